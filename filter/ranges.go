package filter

import (
	"math"
	"slices"
)

// Range is a part of the order of values: from Low to High, both in it unless
// they are open. A bound may lie between the values of two kinds.
type Range struct {
	Low, High         Value
	LowOpen, HighOpen bool
}

// Holds says whether a value is in the range.
func (r Range) Holds(v Value) bool {
	low, high := v.Compare(r.Low), v.Compare(r.High)
	return (low > 0 || low == 0 && !r.LowOpen) && (high < 0 || high == 0 && !r.HighOpen)
}

// Prefix returns a beginning that all values of the range have; ok is false if
// it holds more than the strings with one beginning.
func (r Range) Prefix() (prefix string, ok bool) {
	prefix, ok = r.Low.Text()
	if !ok || r.LowOpen {
		return "", false
	}
	end := startingWith(prefix)[0]
	return prefix, r.High.Compare(r.Low) == 0 || compareHighs(r, end) == 0
}

func (r Range) empty() bool {
	c := r.Low.Compare(r.High)
	return c > 0 || c == 0 && (r.LowOpen || r.HighOpen)
}

// maxRanges bounds how many ranges are told apart; more are put together.
const maxRanges = 256

// Ranges says where the value at a path must be for an entity to match: in one
// of the ranges, which are in order and apart from each other; none says that
// nothing matches. With ok false the filter says nothing about the path. It is
// cautious: what is in a range need not match.
//
// It understands ==, in [constants], <, <=, >, >= and startsWith between the
// path and a constant, put together with && and ||.
func (f *Filter) Ranges(p Path) (ranges []Range, ok bool) {
	set, ok := rangesOf(f.root, p.String())
	if !ok {
		return nil, false
	}
	return set, true
}

// rangesOf returns where the path's value must be for the node to say yes.
func rangesOf(n node, path string) ([]Range, bool) {
	switch n := n.(type) {
	case andNode:
		return rangesOfAll(n, path)
	case orNode:
		return rangesOfAny(n, path)
	case *equalNode:
		if c, _, ok := sides(n.left, n.right, path); ok && !n.negated {
			return equalTo(c), true
		}
	case *amongNode:
		if n.value.is(path) {
			var set []Range
			for _, v := range n.list {
				set = append(set, equalTo(v)...)
			}
			return join(set), true
		}
	case *orderNode:
		if c, flipped, ok := sides(n.left, n.right, path); ok {
			return ordered(n.op, flipped, c)
		}
	case *textNode:
		if n.test == startsWith && n.text.is(path) && n.arg.path == nil && n.arg.value.form == formString {
			return startingWith(n.arg.value.text), true
		}
	case *boolNode:
		if n.value.is(path) {
			return equalTo(BoolValue(true)), true
		}
	}
	return nil, false
}

func rangesOfAll(nodes []node, path string) ([]Range, bool) {
	var set []Range
	known := false
	for _, n := range nodes {
		switch more, ok := rangesOf(n, path); {
		case !ok:
		case known:
			set = intersect(set, more)
		default:
			set, known = more, true
		}
	}
	return set, known
}

func rangesOfAny(nodes []node, path string) ([]Range, bool) {
	var set []Range
	for _, n := range nodes {
		more, ok := rangesOf(n, path)
		if !ok {
			return nil, false
		}
		set = append(set, more...)
	}
	return join(set), true
}

func (o *operand) is(path string) bool { return o.path != nil && o.path.String() == path }

// sides finds the path on one side and a constant on the other.
func sides(left, right operand, path string) (c Value, flipped, ok bool) {
	switch {
	case left.is(path) && right.path == nil:
		return right.value, false, true
	case right.is(path) && left.path == nil:
		return left.value, true, true
	}
	return Value{}, false, false
}

// equalTo is what CEL's == finds equal: with numbers of 2^53 and more, that is
// also what rounds to the same float64.
func equalTo(c Value) []Range {
	low, high := rounded(c)
	return []Range{{Low: low, High: high}}
}

// rounded returns the bounds of what a number can be taken for.
func rounded(c Value) (low, high Value) {
	f, ok := c.Float()
	if !ok || math.Abs(f) < 1<<53 {
		return c, c
	}
	return FloatValue(math.Nextafter(f, math.Inf(-1))), FloatValue(math.Nextafter(f, math.Inf(1)))
}

// ordered is what stands in the given order to a constant: values of its kind.
func ordered(op comparison, flipped bool, c Value) ([]Range, bool) {
	if flipped {
		op = [...]comparison{less: greater, lessOrEqual: greaterOrEqual, greater: less, greaterOrEqual: lessOrEqual}[op]
	}
	first, last, ok := kindBounds(c.form)
	if !ok {
		return nil, true // CEL has no order of such values: nothing matches
	}
	low, high := rounded(c)
	exact := low == high
	r := Range{Low: first, High: last}
	switch op {
	case less:
		r.High, r.HighOpen = high, exact
	case lessOrEqual:
		r.High = high
	case greater:
		r.Low, r.LowOpen = low, exact
	default:
		r.Low = low
	}
	return join([]Range{r}), true
}

// kindBounds returns what lies below and above all values of a form's kind.
func kindBounds(f form) (first, last Value, ok bool) {
	switch f.rank() {
	case formBool:
		return BoolValue(false), BoolValue(true), true
	case formInt:
		return FloatValue(math.Inf(-1)), Value{form: formAfterNumbers}, true
	case formString:
		return StringValue(""), Value{form: formAfterStrings}, true
	case formBytes:
		return bytesValue(""), Value{form: formAfterBytes}, true
	case formTime:
		return Value{form: formAfterBytes}, Value{form: formAfterTimes}, true
	}
	return Value{}, Value{}, false
}

func startingWith(prefix string) []Range {
	r := Range{Low: StringValue(prefix), High: Value{form: formAfterStrings}}
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
		r.High, r.HighOpen = StringValue(string(end)), true
	}
	return []Range{r}
}

// join puts ranges in order, and those together that meet.
func join(set []Range) []Range {
	set = slices.DeleteFunc(set, Range.empty)
	slices.SortFunc(set, compareLows)
	var out []Range
	for _, r := range set {
		last := len(out) - 1
		if last >= 0 && (meets(out[last], r) || len(out) == maxRanges) {
			if compareHighs(out[last], r) < 0 {
				out[last].High, out[last].HighOpen = r.High, r.HighOpen
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// meets says whether a range that does not begin before another one begins in
// it, or at its end.
func meets(r, next Range) bool {
	c := next.Low.Compare(r.High)
	return c < 0 || c == 0 && (!next.LowOpen || !r.HighOpen)
}

func compareLows(a, b Range) int {
	c := a.Low.Compare(b.Low)
	switch {
	case c != 0 || a.LowOpen == b.LowOpen:
		return c
	case a.LowOpen:
		return 1
	}
	return -1
}

func compareHighs(a, b Range) int {
	c := a.High.Compare(b.High)
	switch {
	case c != 0 || a.HighOpen == b.HighOpen:
		return c
	case a.HighOpen:
		return -1
	}
	return 1
}

func intersect(a, b []Range) []Range {
	var out []Range
	for i, j := 0, 0; i < len(a) && j < len(b); {
		r := a[i]
		if compareLows(r, b[j]) < 0 {
			r.Low, r.LowOpen = b[j].Low, b[j].LowOpen
		}
		if compareHighs(r, b[j]) > 0 {
			r.High, r.HighOpen = b[j].High, b[j].HighOpen
		}
		if !r.empty() {
			out = append(out, r)
		}
		if compareHighs(a[i], b[j]) < 0 {
			i++
		} else {
			j++
		}
	}
	return out
}
