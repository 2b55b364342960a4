package filter

import (
	"math"
	"strings"
)

// operand is a path, or a constant if the path is nil.
type operand struct {
	path  *Path
	at    int // of the path among those of the filter, from 1; 0 for pod and name
	value Value
}

// get returns the operand's value, the missing one where it has none.
func (o *operand) get(s *Subject) Value {
	switch {
	case o.path == nil:
		return o.value
	case o.at > 0 && s.rows != nil:
		return s.rows.Columns[o.at-1][s.row]
	}
	v, _ := o.path.lookup(s)
	return v
}

// boolNode is a value that is to be a bool.
type boolNode struct{ value operand }

func (n *boolNode) judge(s *Subject) verdict {
	if v := n.value.get(s); v.form == formBool {
		return verdict(v.bits)
	}
	return none
}

// equalNode is left == right, or != if it is negated.
type equalNode struct {
	left, right operand
	negated     bool
	deep        node // what compares lists and objects; nil where a constant is none
}

func (n *equalNode) judge(s *Subject) verdict {
	v, w := n.left.get(s), n.right.get(s)
	if v.form == formMissing || w.form == formMissing {
		return none
	}
	if n.deep != nil && v.form > formOther && w.form > formOther {
		return n.deep.judge(s)
	}
	if !s.compares(v, w) {
		return none
	}
	return verdictOf(equal(v, w) != n.negated)
}

// comparison is one of <, <=, > and >=.
type comparison uint8

const (
	less comparison = iota
	lessOrEqual
	greater
	greaterOrEqual
)

type orderNode struct {
	left, right operand
	op          comparison
}

func (n *orderNode) judge(s *Subject) verdict {
	v, w := n.left.get(s), n.right.get(s)
	if v.form == formFloat && w.form == formFloat { // the usual, without the detours
		return n.floats(math.Float64frombits(v.bits), math.Float64frombits(w.bits))
	}
	if !s.compares(v, w) {
		return none
	}
	return n.compare(v, w)
}

func (n *orderNode) compare(v, w Value) verdict {
	c, ok := order(v, w)
	if !ok {
		return none
	}
	switch n.op {
	case less:
		return verdictOf(c < 0)
	case lessOrEqual:
		return verdictOf(c <= 0)
	case greater:
		return verdictOf(c > 0)
	}
	return verdictOf(c >= 0)
}

func (n *orderNode) floats(f, g float64) verdict {
	switch n.op {
	case less:
		return verdictOf(f < g)
	case lessOrEqual:
		return verdictOf(f <= g)
	case greater:
		return verdictOf(f > g)
	}
	return verdictOf(f >= g)
}

// amongNode is value in [constants].
type amongNode struct {
	value operand
	list  []Value
}

func (n *amongNode) judge(s *Subject) verdict {
	v := n.value.get(s)
	if v.form == formMissing || !s.spend(bytesPerCost/2*len(n.list)) {
		return none
	}
	for i := range n.list {
		if equal(v, n.list[i]) {
			return yes
		}
	}
	return no
}

// containsNode is constant in path.
type containsNode struct {
	value Value
	key   step // of a text
	path  *Path
}

func (n *containsNode) judge(s *Subject) verdict {
	_, pos := n.path.lookup(s)
	found, ok := s.state.contains(pos, n.value, n.key)
	if !ok {
		return none
	}
	return verdictOf(found)
}

// textTest is a function that asks something of a text.
type textTest uint8

const (
	startsWith textTest = iota
	endsWith
	contains
)

type textNode struct {
	text, arg operand
	test      textTest
}

func (n *textNode) judge(s *Subject) verdict {
	v, w := n.text.get(s), n.arg.get(s)
	if v.form != formString || w.form != formString || !s.spend(len(w.text)) {
		return none
	}
	switch n.test {
	case startsWith:
		return verdictOf(strings.HasPrefix(v.text, w.text))
	case endsWith:
		return verdictOf(strings.HasSuffix(v.text, w.text))
	}
	if !s.spend(len(v.text)) {
		return none
	}
	return verdictOf(strings.Contains(v.text, w.text))
}

// hasNode is has(inside.key).
type hasNode struct {
	inside *Path
	key    step
}

func (n *hasNode) judge(s *Subject) verdict {
	v, pos := n.inside.lookup(s)
	switch v.form {
	case formMissing, formList:
		return none
	case formMap:
		return verdictOf(s.state.find(pos, []step{n.key}) >= 0)
	}
	return no
}
