package filter

import (
	"cmp"
	"math"
	"strings"
)

// equal is CEL's ==: numbers across their types, as CEL compares them, and never
// an error. Lists and objects equal nothing here.
func equal(v, w Value) bool {
	if v.form >= formOther || w.form >= formOther {
		return false
	}
	c, ok := order(v, w)
	return ok && c == 0 || v.form == formNull && w.form == formNull
}

// order is CEL's order of bools, numbers, strings, bytes and times; ok is false
// where CEL has none.
func order(v, w Value) (c int, ok bool) {
	rank := v.form.rank()
	if rank != w.form.rank() {
		return 0, false
	}
	switch rank {
	case formInt:
		return orderNumbers(v, w), true
	case formString, formBytes:
		return strings.Compare(v.text, w.text), true
	case formBool, formTime:
		return v.Compare(w), true
	}
	return 0, false
}

// orderNumbers compares as CEL does: an integer next to a float is rounded to
// one, unless the float is beyond all integers of its size.
func orderNumbers(v, w Value) int {
	switch {
	case v.form == formFloat && w.form == formFloat:
	case v.form == formFloat:
		return orderFloat(math.Float64frombits(v.bits), w)
	case w.form == formFloat:
		return -orderFloat(math.Float64frombits(w.bits), v)
	}
	return compareNumbers(v, w)
}

func orderFloat(f float64, n Value) int {
	low, high := float64(math.MinInt64), float64(math.MaxInt64)
	if n.form == formUint {
		low, high = 0, math.MaxUint64
	}
	switch {
	case f < low:
		return -1
	case f > high:
		return 1
	}
	whole, _ := n.Float()
	return cmp.Compare(f, whole)
}
