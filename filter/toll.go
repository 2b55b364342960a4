package filter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// zonePrice is that of a call that names a zone of time, which is read from its file.
const zonePrice = 200

// tolls have the nodes of a program charge the subject for what they do, each when it
// does it. cel-go's own tracking of costs has a stack of values that grows with each
// turn of a loop and is searched in each, so that long lists took time with the
// square of their length.
type tolls map[int64]looks // at arguments of calls and at keys, by their IDs

// looks says at how much of a value a call looks.
type looks uint8

const (
	looksOnce   looks = iota // or at none
	looksText                // all of a text
	looksInList              // also of what is in a list
	looksAtAll               // also of what is in it
	looksEach                // each byte may become an element
)

// newTolls returns those of an expression.
func newTolls(e ast.Expr) tolls {
	t := tolls{}
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.MapKind {
			for _, entry := range e.AsMap().Entries() {
				t[entry.AsMapEntry().Key().ID()] = looksText
			}
		}
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		args := call.Args()
		if call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
		looked := looksOf(call.FunctionName())
		if equality(call.FunctionName()) && slices.ContainsFunc(args, isLiteral) {
			looked = looksText // what is no text differs at once
		}
		for _, arg := range args {
			t[arg.ID()] = max(t[arg.ID()], looked)
		}
	}))
	return t
}

func equality(function string) bool {
	return function == operators.Equals || function == operators.NotEquals
}

func isLiteral(e ast.Expr) bool { return e.Kind() == ast.LiteralKind }

// looksOf says at how much of each argument a call looks.
func looksOf(function string) looks {
	switch function {
	case operators.Add, matches:
		return looksOnce // what is added is in the sum, and matches charges the subject itself
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		"size", "int", "uint", "double", "bool", "timestamp", "duration":
		return looksText
	case operators.In:
		return looksInList // an object is asked for one key
	case "split":
		return looksEach
	}
	switch {
	case strings.HasPrefix(function, "get"): // the name of a zone, which errors repeat
		return looksText
	case steady(function):
		return looksOnce
	}
	return looksAtAll
}

// decorate is an interpreter.InterpretableDecoratorV2. cel-go calls it once more for
// each member that is added to a chain of them.
func (t tolls) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	looked := t[i.ID()]
	switch i := i.(type) {
	case *tolledAttribute:
		i.price++
		i.looked = looked
		return i, nil
	case interpreter.InterpretableAttribute:
		return &tolledAttribute{InterpretableAttribute: i, price: 1, looked: looked}, nil
	case interpreter.InterpretableConst:
		return i, nil // what uses it pays for it
	case interpreter.InterpretableConstructor:
		return &tolledNode{InterpretableV2: i, price: 1 + len(i.InitVals()), looked: looked}, nil
	case interpreter.InterpretableCall:
		return tolledCall(i, looked), nil
	}
	return &tolledNode{InterpretableV2: i, price: 1, looked: looked}, nil
}

func tolledCall(i interpreter.InterpretableCall, looked looks) *tolledNode {
	n := &tolledNode{InterpretableV2: i, price: 1, looked: looked}
	looks := looksOf(i.Function())
	switch {
	case i.Function() == operators.Add:
		n.made, n.joins = looksText, true
	case looks >= looksAtAll:
		n.made = looksAtAll
	case strings.HasPrefix(i.Function(), "get") && len(i.Args()) == 2:
		n.price += zonePrice
	}
	for _, arg := range i.Args() {
		if c, ok := arg.(interpreter.InterpretableConst); ok {
			n.price += looks.cost(c.Value())
		}
	}
	return n
}

// cost is that of looking at a value.
func (l looks) cost(v ref.Val) int {
	if l == looksOnce {
		return 0
	}
	switch v := v.(type) {
	case types.String:
		if l == looksEach {
			return len(v)
		}
		return len(v) / bytesPerCost
	case types.Bytes:
		return len(v) / bytesPerCost
	}
	if _, object := v.(traits.Mapper); l == looksText || object && l == looksInList {
		return 0
	}
	return sizeOf(v) / bytesPerCost
}

// tolledNode is a node that charges the subject for each time it is evaluated.
type tolledNode struct {
	interpreter.InterpretableV2
	price  int
	looked looks // at its value, by a call
	made   looks // of its value, by itself
	joins  bool  // its value may be of two lists
}

// Eval implements interpreter.Interpretable.
func (n *tolledNode) Eval(vars interpreter.Activation) ref.Val {
	return n.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (n *tolledNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	pay(frame, n.price)
	v := n.InterpretableV2.Exec(frame)
	if n.joins {
		v = joined(frame, v)
	}
	pay(frame, n.looked.cost(v)+n.made.cost(v))
	return v
}

// joined puts into one list what cel-go makes of two. That is a node with the two
// below it; of a tree of those, each look at an element or at the size takes as long as
// the tree is deep, and Value copies all that is in it, and in its elements.
func joined(frame *interpreter.ExecutionFrame, v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if _, grows := v.(traits.MutableLister); !ok || grows { // which map and filter append to
		return v
	}
	n, _ := list.Size().(types.Int)
	pay(frame, int(n))
	all := make([]ref.Val, n)
	for i := range all {
		all[i] = list.Get(types.Int(i))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, all)
}

// tolledAttribute is a variable with members that charges the subject for each of
// them. It stands in other nodes as an attribute, too.
type tolledAttribute struct {
	interpreter.InterpretableAttribute
	price  int
	looked looks // at its value, by a call
}

// Attr implements interpreter.InterpretableAttribute.
func (a *tolledAttribute) Attr() interpreter.Attribute { return a }

// Eval implements interpreter.Interpretable.
func (a *tolledAttribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (a *tolledAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	pay(frame, a.price)
	v := a.InterpretableAttribute.Exec(frame)
	pay(frame, a.looked.cost(v))
	return v
}

// Resolve implements interpreter.Attribute.
func (a *tolledAttribute) Resolve(vars interpreter.Activation) (any, error) {
	pay(vars, a.price)
	return a.InterpretableAttribute.Resolve(vars)
}

// Qualify implements interpreter.Qualifier.
func (a *tolledAttribute) Qualify(vars interpreter.Activation, of any) (any, error) {
	pay(vars, a.price)
	return a.InterpretableAttribute.Qualify(vars, of)
}

// QualifyIfPresent implements interpreter.Qualifier.
func (a *tolledAttribute) QualifyIfPresent(vars interpreter.Activation, of any, presenceOnly bool) (any, bool, error) {
	pay(vars, a.price)
	return a.InterpretableAttribute.QualifyIfPresent(vars, of, presenceOnly)
}

// lookAfter is the cost after which an evaluation looks again whether it may go on.
const lookAfter = 1 << 10

// pay charges the subject, and ends the evaluation, as cel-go's own nodes do, when it
// has had its share or its context has ended. Who had it evaluated recovers.
func pay(vars interpreter.Activation, cost int) {
	if cost == 0 {
		return
	}
	s := subjectOf(vars)
	if s == nil {
		return
	}
	before := s.spent
	switch {
	case !s.charge(cost):
		endTooCostly()
	case before/lookAfter != s.spent/lookAfter && s.ctx.Err() != nil:
		s.failed = fmt.Errorf("%s/%s: %w", s.pod, s.name, context.Cause(s.ctx))
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: s.failed.Error()})
	}
}

func endTooCostly() {
	panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: ErrTooCostly.Error()})
}
