package filter

import (
	"slices"
	"strings"
)

// Projection renders chosen parts of entities as JSON. It is immutable and safe
// for concurrent use.
type Projection struct{ root *selected }

// selected is a place of which all or parts are chosen.
type selected struct {
	step  step
	whole bool
	parts []*selected // keys in their order, before indexes in theirs
}

// NewProjection makes a projection of paths. A path inside another one adds
// nothing to it.
func NewProjection(paths []Path) *Projection {
	top := &selected{}
	for _, p := range paths {
		at := top.part(keyStep(rootNames()[p.root]))
		for _, s := range p.steps {
			at = at.part(s)
		}
		at.whole = true
	}
	order := rootNames()
	slices.SortFunc(top.parts, func(a, b *selected) int {
		return slices.Index(order[:], a.step.name) - slices.Index(order[:], b.step.name)
	})
	for _, p := range top.parts {
		p.sort()
	}
	return &Projection{root: top}
}

func (n *selected) part(s step) *selected {
	for _, p := range n.parts {
		if p.step == s {
			return p
		}
	}
	p := &selected{step: s}
	n.parts = append(n.parts, p)
	return p
}

func (n *selected) sort() {
	slices.SortFunc(n.parts, func(a, b *selected) int {
		if c := strings.Compare(a.step.name, b.step.name); c != 0 {
			return c
		}
		return a.step.index - b.step.index
	})
	for _, p := range n.parts {
		p.sort()
	}
}

// AppendJSON appends an object with the chosen parts, each where it is in the
// envelope; of a list, the chosen elements behind each other. What an entity
// does not have is left out.
func (p *Projection) AppendJSON(dst []byte, s *Subject) []byte {
	dst = append(dst, '{')
	first := true
	for _, n := range p.root.parts {
		r, _ := rootOf(n.step.name)
		path := Path{root: r}
		if r != rootState {
			v, _ := path.lookup(s)
			dst = appendKey(dst, &first, n.step)
			dst = v.AppendJSON(dst)
			continue
		}
		before, was := len(dst), first
		out, ok := n.append(appendKey(dst, &first, n.step), &s.state, 0)
		if !ok {
			out, first = out[:before], was
		}
		dst = out
	}
	return append(dst, '}')
}

// appendKey appends a comma, unless nothing stands before it, and a key.
func appendKey(dst []byte, first *bool, s step) []byte {
	if !*first {
		dst = append(dst, ',')
	}
	*first = false
	if s.quoted == "" {
		return dst // an element of a list
	}
	return append(append(dst, s.quoted...), ':')
}

// append appends what is chosen of the value at pos; ok is false, and dst
// spoiled, if there is none of it.
func (n *selected) append(dst []byte, state *raw, pos int) ([]byte, bool) {
	form := state.value(pos).form
	if n.whole {
		text := state.json(pos)
		return append(dst, text...), text != nil && form != formMissing
	}
	if form != formMap && form != formList {
		return dst, false
	}
	brackets := "{}"
	if form == formList {
		brackets = "[]"
	}
	dst = append(dst, brackets[0])
	first, some := true, false
	for _, p := range n.parts {
		at := state.find(pos, []step{p.step})
		if at < 0 {
			continue
		}
		before, was := len(dst), first
		out, ok := p.append(appendKey(dst, &first, p.step), state, at)
		if !ok {
			dst, first = out[:before], was
			continue
		}
		dst, some = out, true
	}
	return append(dst, brackets[1]), some
}
