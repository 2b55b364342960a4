package filter

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// celNode is a part of an expression that cel-go evaluates.
type celNode struct {
	program cel.Program
	keys    *keys
	loops   bool // it has comprehensions, and is interrupted
}

// interruptAfter is the number of turns of a comprehension between two looks at
// the context.
const interruptAfter = 100

func (n *celNode) judge(s *Subject) verdict {
	if s.failed != nil {
		return none
	}
	s.scope.look(s, n.keys)
	out, details, err := n.eval(s)
	if cost := details.ActualCost(); cost != nil && s.failed == nil && !s.charge(int(min(*cost, MaxCost))) {
		return none
	}
	if err != nil {
		s.failed = n.failure(s, err)
		return none
	}
	if b, ok := out.(types.Bool); ok {
		return verdictOf(bool(b))
	}
	return none
}

func (n *celNode) eval(s *Subject) (any, *cel.EvalDetails, error) {
	if n.loops {
		return n.program.ContextEval(s.ctx, &s.scope)
	}
	return n.program.Eval(&s.scope)
}

// failure tells what ends a Match from what CEL calls an error, which is no
// answer; nil is for that.
func (n *celNode) failure(s *Subject, err error) error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return errTooCostly(s)
	case n.loops && s.ctx.Err() != nil:
		return fmt.Errorf("%s/%s: %w", s.pod, s.name, context.Cause(s.ctx))
	}
	return nil
}
