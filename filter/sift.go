package filter

import (
	"math"
	"slices"
	"strings"
)

// MostSifted is the most rows that one call of Sift takes: their verdicts are
// kept next to the values that are looked at.
const MostSifted = 512

// sifter is a node that judges many rows at once, without a call for each. It
// puts its verdicts on those that are there already as && does, and passes over
// rows that are out. What it may cost is bounded by the expression's text, so
// that it never fails.
type sifter interface {
	sift(s *Subject, from int, out []verdict)
}

// Sift appends to found the numbers of those rows, from one number up to but not
// including another, that match as Match says it of each; there are at most
// MostSifted to look at. It returns what that has cost. ok is false, and nothing
// was looked at, if the filter must be asked row by row.
func (f *Filter) Sift(s *Subject, rows *Rows, from, to int, found []int) (matching []int, cost int, ok bool) {
	if f.sifter == nil {
		return found, 0, false
	}
	var verdicts [MostSifted]verdict
	out := verdicts[:to-from]
	fill(out, yes)
	s.pod, s.rows, s.spent = rows.Pod, rows, 0
	f.sifter.sift(s, from, out)
	found = slices.Grow(found, len(out))
	n := len(found)
	room := found[n : n+len(out)]
	k := 0
	for i, v := range out { // without a branch, which nobody could predict
		room[k] = from + i
		k += int(verdictOf(v == yes))
	}
	return found[:n+k], s.spent, true
}

// sifterOf returns the node's sifter; nil if it has none.
func sifterOf(n node) sifter {
	switch n := n.(type) {
	case andNode:
		if inner := siftersOf(n); inner != nil {
			return andSifter(inner)
		}
	case orNode:
		if inner := siftersOf(n); inner != nil {
			return orSifter(inner)
		}
	case notNode:
		if inner := sifterOf(n.inner); inner != nil {
			return notSifter{inner}
		}
	case *orderNode:
		switch {
		case n.left.at > 0 && n.right.at > 0: // the states say how long their texts are
		case n.left.at > 0 && n.right.path == nil && n.right.value.form == formFloat:
			return &limitSifter{n}
		default:
			return eachSifter{n}
		}
	case *textNode:
		switch {
		case n.arg.path != nil || n.test == contains:
		case n.test == startsWith && n.text.path != nil && n.text.path.root == rootName && n.arg.value.form == formString:
			return nameSifter{n.arg.value.text}
		default:
			return eachSifter{n}
		}
	case *equalNode:
		if n.deep == nil {
			return eachSifter{n}
		}
	case *amongNode, *boolNode, constNode:
		return eachSifter{n}
	}
	return nil
}

func siftersOf(nodes []node) []sifter {
	out := make([]sifter, len(nodes))
	for i, n := range nodes {
		out[i] = sifterOf(n)
	}
	if slices.Contains(out, nil) {
		return nil
	}
	return out
}

// and is CEL's &&.
func (v verdict) and(w verdict) verdict {
	switch {
	case v == no || w == no:
		return no
	case v == none || w == none:
		return none
	}
	return yes
}

func fill(out []verdict, v verdict) {
	for i := range out {
		out[i] = v
	}
}

type andSifter []sifter

func (n andSifter) sift(s *Subject, from int, out []verdict) {
	for _, inner := range n {
		inner.sift(s, from, out)
	}
}

// orSifter asks for the rows of which no earlier part has said yes.
type orSifter []sifter

func (n orSifter) sift(s *Subject, from int, out []verdict) {
	var said, asked [MostSifted]verdict
	found, part := said[:len(out)], asked[:len(out)]
	fill(found, no)
	for _, inner := range n {
		for i := range part {
			part[i] = yes
			if out[i] == no || found[i] == yes {
				part[i] = no
			}
		}
		inner.sift(s, from, part)
		for i, v := range part {
			if v == yes || v == none && found[i] == no {
				found[i] = v
			}
		}
	}
	for i := range out {
		out[i] = out[i].and(found[i])
	}
}

type notSifter struct{ inner sifter }

func (n notSifter) sift(s *Subject, from int, out []verdict) {
	var asked [MostSifted]verdict
	part := asked[:len(out)]
	for i := range part {
		part[i] = yes
		if out[i] == no {
			part[i] = no
		}
	}
	n.inner.sift(s, from, part)
	for i, v := range part {
		if v != none {
			v = verdictOf(v == no)
		}
		out[i] = out[i].and(v)
	}
}

// eachSifter asks a node row by row.
type eachSifter struct{ node node }

func (n eachSifter) sift(s *Subject, from int, out []verdict) {
	spent := s.spent
	for i, v := range out {
		if v != no {
			s.spent = 0 // the bound is one row's
			s.toRow(from + i)
			out[i] = v.and(n.node.judge(s))
			spent += s.spent
		}
	}
	s.spent = spent
}

// limitSifter compares a column with a number.
type limitSifter struct{ node *orderNode }

func (n *limitSifter) sift(s *Subject, from int, out []verdict) {
	limit := math.Float64frombits(n.node.right.value.bits)
	column := s.rows.Columns[n.node.left.at-1][from:]
	column = column[:len(out)]
	for i := range column {
		v := &column[i]
		if v.form != formFloat {
			if out[i] != no {
				out[i] = out[i].and(n.node.compare(*v, n.node.right.value))
			}
			continue
		}
		// Without a branch, which nobody could predict: no is 0, and yes is 1.
		out[i] *= n.node.floats(math.Float64frombits(v.bits), limit)
	}
}

// nameSifter looks at the beginnings of names.
type nameSifter struct{ prefix string }

func (n nameSifter) sift(s *Subject, from int, out []verdict) {
	names := s.rows.Names[from:]
	names = names[:len(out)]
	var left [MostSifted]uint16
	looked := 0
	for i, v := range out {
		left[looked] = uint16(i)
		looked += 1 - int(verdictOf(v == no))
	}
	for _, i := range left[:looked] {
		if !strings.HasPrefix(names[i], n.prefix) {
			out[i] = no
		}
	}
	s.spent += looked * (len(n.prefix) / bytesPerCost)
}
