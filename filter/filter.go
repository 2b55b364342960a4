package filter

import (
	"context"
)

// Filter is a compiled expression that an entity matches or does not. It is
// immutable and safe for concurrent use.
type Filter struct {
	text string
	root node
}

// Compile compiles an expression in CEL over pod, name (strings), life, revision
// (integers), changed (a timestamp) and state. Its result is a bool; where only
// an entity's state can tell, an entity for which it is another value does not
// match. The package says the bounds. The error is a *SyntaxError.
func Compile(text string) (*Filter, error) {
	c, err := newCompiler(text)
	if err != nil {
		return nil, err
	}
	root, err := c.compile()
	if err != nil {
		return nil, err
	}
	return &Filter{text: text, root: root}, nil
}

// String returns the expression's text.
func (f *Filter) String() string { return f.text }

// Match says whether the subject's entity matches. A missing key, a value of
// another type than the expression needs, and a result that is no bool are no
// match. It fails with ErrTooCostly, or with the context's error once that has
// ended; the context is looked at only by expressions with comprehensions, so a
// scan looks at it between entities.
func (f *Filter) Match(ctx context.Context, s *Subject) (bool, error) {
	s.ctx, s.spent, s.failed = ctx, 0, nil
	out := f.root.judge(s)
	s.ctx = nil
	return out == yes && s.failed == nil, s.failed
}
