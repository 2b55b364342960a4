package filter

import (
	"github.com/google/cel-go/cel"
)

// scope is a subject as cel-go sees it. It decodes no more of the state than the
// filter's keys.
type scope struct {
	subject *Subject
	keys    *keys
	state   any
}

// keys are the members of the state that an expression can look at; all of them
// if it looks at the state itself.
type keys struct {
	all   bool
	names []step
}

// subjectName is what our nodes of a program find the subject by; no expression can
// say it.
const subjectName = "@subject"

// subjectOf is what a program is evaluated for; nil where it is planned.
func subjectOf(vars cel.Activation) *Subject {
	found, _ := vars.ResolveName(subjectName)
	s, _ := found.(*Subject)
	return s
}

var _ cel.Activation = (*scope)(nil)

// forget drops what was decoded of an earlier entity.
func (c *scope) forget() { c.keys, c.state = nil, nil }

// Parent implements cel.Activation.
func (*scope) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (c *scope) ResolveName(name string) (any, bool) {
	if name == subjectName {
		return c.subject, true
	}
	r, ok := rootOf(name)
	if !ok {
		return nil, false
	}
	s := c.subject
	switch r {
	case rootPod:
		return s.pod, true
	case rootName:
		return s.name, true
	case rootLife:
		return int64(s.record.Life), true
	case rootRevision:
		return int64(s.record.Revision), true
	case rootChanged:
		return s.record.Changed, true
	}
	return c.state, c.state != missing{}
}

// missing stands for a state that cannot be read.
type missing struct{}

// look decodes the state as far as the keys go, once for each entity.
func (c *scope) look(s *Subject, k *keys) {
	c.subject = s
	if c.keys == k {
		return
	}
	c.keys, c.state = k, missing{}
	if v := s.state.value(0); !k.all && v.form == formMap {
		some := make(map[string]any, len(k.names))
		for i := range k.names {
			if pos := s.state.find(0, k.names[i:i+1]); pos >= 0 {
				inner, ok := s.state.tree(pos, 1)
				if !ok {
					return
				}
				some[k.names[i].name] = inner
			}
		}
		c.state = some
		return
	}
	if tree, ok := s.state.tree(0, 0); ok {
		c.state = tree
	}
}
