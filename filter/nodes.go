package filter

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// node compiles an expression that says yes or no.
func (c *compiler) node(e ast.Expr) node {
	if n := c.own(e); n != nil {
		return n
	}
	return c.rest(e)
}

// own returns a node for the common forms, nil for others.
func (c *compiler) own(e ast.Expr) node {
	switch e.Kind() {
	case ast.CallKind:
		return c.call(e)
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return c.presence(e.AsSelect())
		}
	}
	o, ok := c.operand(e)
	switch {
	case !ok:
		return nil
	case o.path == nil && o.value.form != formBool:
		return constNode(none)
	case o.path == nil:
		return constNode(o.value.bits)
	}
	return &boolNode{o}
}

func (c *compiler) call(e ast.Expr) node {
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		return c.member(call)
	}
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return andNode(c.nodes(args))
	case operators.LogicalOr:
		return orNode(c.nodes(args))
	case operators.LogicalNot:
		return notNode{c.node(args[0])}
	case operators.Equals:
		return c.equality(e, args, false)
	case operators.NotEquals:
		return c.equality(e, args, true)
	case operators.Less:
		return c.order(args, less)
	case operators.LessEquals:
		return c.order(args, lessOrEqual)
	case operators.Greater:
		return c.order(args, greater)
	case operators.GreaterEquals:
		return c.order(args, greaterOrEqual)
	case operators.In:
		return c.membership(args)
	case operators.Index:
		if o, ok := c.operand(e); ok {
			return &boolNode{o}
		}
	}
	return nil
}

func (c *compiler) nodes(args []ast.Expr) []node {
	out := make([]node, len(args))
	for i, a := range args {
		out[i] = c.node(a)
	}
	return out
}

func (c *compiler) equality(e ast.Expr, args []ast.Expr, negated bool) node {
	left, ok := c.operand(args[0])
	right, too := c.operand(args[1])
	if !ok || !too {
		return nil
	}
	n := &equalNode{left: left, right: right, negated: negated}
	if left.path != nil && right.path != nil {
		n.deep = c.rest(e)
	}
	return n
}

func (c *compiler) order(args []ast.Expr, op comparison) node {
	left, ok := c.operand(args[0])
	right, too := c.operand(args[1])
	if !ok || !too {
		return nil
	}
	return &orderNode{left: left, right: right, op: op}
}

// membership compiles value in [constants] and constant in path.
func (c *compiler) membership(args []ast.Expr) node {
	value, ok := c.operand(args[0])
	if !ok {
		return nil
	}
	if args[1].Kind() == ast.ListKind {
		list, ok := c.constants(args[1].AsList())
		if !ok {
			return nil
		}
		return &amongNode{value: value, list: list}
	}
	in, ok := c.operand(args[1])
	if !ok || in.path == nil || in.path.root != rootState || value.path != nil || value.value.form != formString {
		return nil
	}
	c.whole = true
	return &containsNode{value: value.value, key: keyStep(value.value.text), path: in.path}
}

func (c *compiler) constants(list ast.ListExpr) ([]Value, bool) {
	if len(list.OptionalIndices()) > 0 {
		return nil, false
	}
	var out []Value
	for _, e := range list.Elements() {
		o, ok := c.operand(e)
		if !ok || o.path != nil {
			return nil, false
		}
		out = append(out, o.value)
	}
	return out, true
}

func (c *compiler) member(call ast.CallExpr) node {
	args := call.Args()
	if len(args) != 1 {
		return nil
	}
	text, ok := c.operand(call.Target())
	arg, too := c.operand(args[0])
	if !ok || !too {
		return nil
	}
	switch call.FunctionName() {
	case "startsWith":
		return &textNode{text: text, arg: arg, test: startsWith}
	case "endsWith":
		return &textNode{text: text, arg: arg, test: endsWith}
	case "contains":
		return &textNode{text: text, arg: arg, test: contains}
	case matches:
		if arg.path == nil && arg.value.form == formString {
			if pattern, err := c.pattern(arg.value.text); err == nil {
				return &patternNode{text: text, pattern: pattern}
			}
		}
	}
	return nil
}

func (c *compiler) presence(sel ast.SelectExpr) node {
	inside, ok := c.operand(sel.Operand())
	if !ok || inside.path == nil || inside.path.root != rootState {
		return nil
	}
	c.whole = true
	return &hasNode{inside: inside.path, key: keyStep(sel.FieldName())}
}

// operand compiles a path or a constant of one value.
func (c *compiler) operand(e ast.Expr) (operand, bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		return constant(e.AsLiteral())
	case ast.CallKind:
		if folded, ok := c.fold(e); ok {
			return constant(folded)
		}
	}
	if p, ok := c.path(e); ok {
		return operand{path: p, at: c.place(p)}, true
	}
	return operand{}, false
}

// place returns the number, from 1, of a path whose value is to be known; 0 for
// those that every subject has.
func (c *compiler) place(p *Path) int {
	if p.root == rootPod || p.root == rootName {
		return 0
	}
	text := p.String()
	at := slices.IndexFunc(c.paths, func(q Path) bool { return q.String() == text })
	if at < 0 {
		at = len(c.paths)
		c.paths = append(c.paths, *p)
	}
	return at + 1
}

// path compiles what reads one member of the envelope, or a place in the state.
func (c *compiler) path(e ast.Expr) (*Path, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		r, ok := rootOf(e.AsIdent())
		return &Path{root: r}, ok
	case ast.SelectKind:
		if sel := e.AsSelect(); !sel.IsTestOnly() {
			return c.extend(sel.Operand(), keyStep(sel.FieldName()))
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, false
		}
		switch at := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return c.extend(call.Args()[0], keyStep(string(at)))
		case types.Int:
			if at >= 0 && at <= maxIndex {
				return c.extend(call.Args()[0], step{index: int(at)})
			}
		}
	}
	return nil, false
}

func (c *compiler) extend(inside ast.Expr, s step) (*Path, bool) {
	p, ok := c.path(inside)
	if !ok || p.root != rootState {
		return nil, false
	}
	p.steps = append(p.steps, s)
	return p, true
}

// constant makes an operand of a literal.
func constant(v ref.Val) (operand, bool) {
	var out Value
	switch v := v.(type) {
	case types.Null:
		out = nullValue()
	case types.Bool:
		out = BoolValue(bool(v))
	case types.Int:
		out = IntValue(int64(v))
	case types.Uint:
		out = uintValue(uint64(v))
	case types.Double:
		out = FloatValue(float64(v))
	case types.String:
		out = StringValue(string(v))
	case types.Bytes:
		out = bytesValue(string(v))
	case types.Timestamp:
		out = TimeValue(v.Time)
	}
	return operand{value: out}, out.form != formMissing
}

// fold evaluates a call of nothing but literals, such as
// timestamp("2024-01-01T00:00:00Z"); ok is false where that has no value.
func (c *compiler) fold(e ast.Expr) (ref.Val, bool) {
	if !foldable(e) {
		return nil, false
	}
	program, err := c.plan(e)
	if err != nil {
		return nil, false
	}
	out, _, err := program.Eval(map[string]any{})
	return out, err == nil
}

func foldable(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.CallKind:
	default:
		return false
	}
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.Negate, operators.Add, operators.Subtract, operators.Multiply, operators.Divide,
		"timestamp", "duration", "int", "uint", "double", "string", "bytes":
	default:
		return false
	}
	for _, a := range call.Args() {
		if !foldable(a) {
			return false
		}
	}
	return !call.IsMemberFunction()
}
