package filter

import (
	"cmp"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/snapshot"
)

// Kind is what a Value is.
type Kind uint8

// The kinds, in the order in which Compare puts their values.
const (
	Missing Kind = iota // there is no value; the zero Value
	Null
	Bool
	Number
	String
	Bytes
	Time
	Other // a list or an object
)

func (k Kind) String() string {
	return [...]string{"missing", "null", "bool", "number", "string", "bytes", "time", "list or object"}[k]
}

// Value is what stands at a path: a small value that is compared, sorted by,
// grouped by, and put into indexes. The zero Value is the missing one. Values
// are immutable, and safe for concurrent use; == on them is not their equality:
// use Compare.
type Value struct {
	form  form
	nanos uint32 // of a time
	bits  uint64 // a bool, an int64, a uint64, a float64, or the seconds of a time
	text  string // a string, bytes, or the JSON of a list or an object
}

// form is how a Value is kept. The forms are in the order of the kinds; what
// ends a kind stands behind all values of it.
type form uint8

const (
	formMissing form = iota
	formNull
	formBool
	formInt
	formUint // above the range of int64
	formFloat
	formAfterNumbers
	formString
	formAfterStrings
	formBytes
	formAfterBytes
	formTime
	formAfterTimes
	formOther
	formList // as it stands in a state, its text not rendered
	formMap  // as well
)

// rank orders the forms; the three forms of numbers are one.
func (f form) rank() form {
	switch f {
	case formUint, formFloat:
		return formInt
	case formList, formMap:
		return formOther
	}
	return f
}

func nullValue() Value             { return Value{form: formNull} }
func uintValue(n uint64) Value     { return normalUint(n) }
func bytesValue(text string) Value { return Value{form: formBytes, text: text} }

// BoolValue returns a bool as a Value.
func BoolValue(b bool) Value {
	v := Value{form: formBool}
	if b {
		v.bits = 1
	}
	return v
}

// IntValue returns an integer as a Value.
func IntValue(n int64) Value { return Value{form: formInt, bits: uint64(n)} }

// FloatValue returns a number as a Value; NaN is missing.
func FloatValue(f float64) Value {
	if math.IsNaN(f) {
		return Value{}
	}
	return Value{form: formFloat, bits: math.Float64bits(f)}
}

// StringValue returns a text as a Value.
func StringValue(s string) Value { return Value{form: formString, text: s} }

// TimeValue returns a time as a Value.
func TimeValue(t time.Time) Value {
	return Value{form: formTime, bits: uint64(t.Unix()), nanos: uint32(t.Nanosecond())}
}

func normalUint(n uint64) Value {
	if n <= math.MaxInt64 {
		return IntValue(int64(n))
	}
	return Value{form: formUint, bits: n}
}

// Kind says what the value is.
func (v Value) Kind() Kind {
	switch v.form.rank() {
	case formNull:
		return Null
	case formBool:
		return Bool
	case formInt:
		return Number
	case formString:
		return String
	case formBytes:
		return Bytes
	case formTime:
		return Time
	case formOther:
		return Other
	}
	return Missing
}

// Float returns a number as the float64 next to it; ok is false for all that is
// no number.
func (v Value) Float() (f float64, ok bool) {
	switch v.form {
	case formInt:
		return float64(int64(v.bits)), true
	case formUint:
		return float64(v.bits), true
	case formFloat:
		return math.Float64frombits(v.bits), true
	}
	return 0, false
}

// Int returns an integer that is kept as one and fits int64.
func (v Value) Int() (n int64, ok bool) { return int64(v.bits), v.form == formInt }

// Text returns a string; ok is false for all that is none.
func (v Value) Text() (s string, ok bool) { return v.text, v.form == formString }

func (v Value) time() time.Time { return time.Unix(int64(v.bits), int64(v.nanos)).UTC() }

// Clone returns the value with memory of its own. A Value of a Subject may
// share memory with the state, and so keep all of it.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// Size returns how many bytes the text of a value has: of a string, of bytes, or
// of the JSON of a list or an object. All others have none.
func (v Value) Size() int { return len(v.text) }

// Cut returns the value with no more than most bytes of its text (Size), and
// whether something was cut off. Cut values are in no other order than whole ones,
// but some that differ are equal.
func (v Value) Cut(most int) (out Value, cut bool) {
	if len(v.text) <= most {
		return v, false
	}
	v.text = v.text[:most]
	return v, true
}

// Compare orders all values: missing, null, false, true, numbers by what they
// are worth, strings by their bytes, bytes, times, then lists and objects by
// their JSON. Integers and floats compare exactly, so that 1 and 1.0 are equal
// and 1<<53 + 1 lies above its float64. It is a total order: 0 means equal.
func (v Value) Compare(w Value) int {
	if c := cmp.Compare(v.form.rank(), w.form.rank()); c != 0 {
		return c
	}
	switch v.form.rank() {
	case formBool:
		return cmp.Compare(v.bits, w.bits)
	case formInt:
		return compareNumbers(v, w)
	case formTime:
		if c := cmp.Compare(int64(v.bits), int64(w.bits)); c != 0 {
			return c
		}
		return cmp.Compare(v.nanos, w.nanos)
	}
	return strings.Compare(v.text, w.text)
}

func compareNumbers(v, w Value) int {
	switch {
	case v.form == formFloat && w.form == formFloat:
		return cmp.Compare(math.Float64frombits(v.bits), math.Float64frombits(w.bits))
	case v.form == formFloat:
		return -compareWithFloat(w, math.Float64frombits(v.bits))
	case w.form == formFloat:
		return compareWithFloat(v, math.Float64frombits(w.bits))
	case v.form != w.form: // one is above int64
		return cmp.Compare(v.form, w.form)
	case v.form == formInt:
		return cmp.Compare(int64(v.bits), int64(w.bits))
	}
	return cmp.Compare(v.bits, w.bits)
}

// compareWithFloat compares an integer with a float, without rounding either.
func compareWithFloat(n Value, f float64) int {
	whole := math.Floor(f)
	switch {
	case whole < math.MinInt64:
		return 1
	case whole >= 1<<64:
		return -1
	}
	var c int
	if whole >= 1<<63 {
		c = compareNumbers(n, Value{form: formUint, bits: uint64(whole)})
	} else {
		c = compareNumbers(n, IntValue(int64(whole)))
	}
	if c == 0 && f > whole {
		return -1
	}
	return c
}

// AppendJSON appends the value's JSON to dst: numbers as they are, times as RFC
// 3339, bytes as base64, what is missing as null.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.form {
	case formBool:
		return strconv.AppendBool(dst, v.bits != 0)
	case formInt:
		return strconv.AppendInt(dst, int64(v.bits), 10)
	case formUint:
		return strconv.AppendUint(dst, v.bits, 10)
	case formFloat:
		return appendFloat(dst, math.Float64frombits(v.bits))
	case formString:
		return appendText(dst, v.text)
	case formBytes:
		return appendText(dst, base64.StdEncoding.EncodeToString([]byte(v.text)))
	case formTime:
		return appendText(dst, v.time().Format(time.RFC3339Nano))
	case formOther:
		return append(dst, v.text...)
	}
	return append(dst, "null"...)
}

// MarshalJSON returns what AppendJSON gives.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

func (v Value) String() string { return string(v.AppendJSON(nil)) }

// appendFloat writes what JSON can say; a number of a document may be beyond
// every float64 but infinity.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) {
		f = math.Copysign(math.MaxFloat64, f)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	// States have e-9, not e-09.
	if n := len(dst); format == 'e' && n-start >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	out, err := snapshot.AppendJSON(dst, s)
	if err != nil { // invalid UTF-8, which no state has
		out, _ = snapshot.AppendJSON(dst, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}
