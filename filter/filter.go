package filter

import (
	"context"
	"fmt"
	"slices"
)

// Filter is a compiled expression that an entity matches or does not. It is
// immutable and safe for concurrent use.
type Filter struct {
	text   string
	root   node
	sifter sifter // does what root does, for many rows; nil: it cannot
	paths  []Path
	whole  bool // it looks at more of an entity than the values at its paths
}

// Compile compiles an expression in CEL over pod, name (strings), life, revision
// (integers), changed (a timestamp) and state. Its result is a bool; where only
// an entity's state can tell, an entity for which it is another value does not
// match. The package says the bounds. The error is a *SyntaxError.
func Compile(text string) (f *Filter, err error) {
	defer caught(&err)
	c, err := newCompiler(text)
	if err != nil {
		return nil, err
	}
	root, err := c.compile()
	if err != nil {
		return nil, err
	}
	f = &Filter{text: text, root: root, paths: c.paths, whole: c.whole || c.left}
	if !f.whole {
		f.sifter = sifterOf(root)
	}
	return f, nil
}

// caught makes an error of a panic: expressions are strangers', and a fault of
// what compiles them is no reason to stop.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = &SyntaxError{Line: 1, Column: 1, Message: fmt.Sprintf("expression cannot be compiled: %v", r)}
	}
}

// String returns the expression's text.
func (f *Filter) String() string { return f.text }

// Paths returns the paths whose values, beside pod and name, decide alone
// whether an entity matches; ok is false if the filter looks at more.
func (f *Filter) Paths() (paths []Path, ok bool) { return slices.Clone(f.paths), !f.whole }

// Match says whether the subject's entity matches. A missing key, a value of
// another type than the expression needs, and a result that is no bool are no
// match. It fails with ErrTooCostly, or with the context's error once that has
// ended; the context is looked at only by expressions with comprehensions, so a
// scan looks at it between entities: Subject.Spent says how much was done.
func (f *Filter) Match(ctx context.Context, s *Subject) (bool, error) {
	s.spent = 0
	if f.whole {
		s.ctx = ctx
	}
	out := f.root.judge(s)
	if f.whole {
		s.ctx = nil
	}
	if s.failed != nil {
		err := s.failed
		s.failed = nil
		return false, err
	}
	return out == yes, nil
}
