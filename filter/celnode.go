package filter

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// celNode is a part of an expression that cel-go evaluates.
type celNode struct {
	program cel.Program
	keys    *keys
}

func (n *celNode) judge(s *Subject) verdict {
	if s.failed != nil {
		return none
	}
	s.scope.look(s, n.keys)
	out, _, err := n.program.Eval(&s.scope)
	if b, ok := out.(types.Bool); ok && err == nil && s.failed == nil {
		return verdictOf(bool(b))
	}
	return none // what CEL calls an error is no answer
}
