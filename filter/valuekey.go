package filter

import (
	"encoding/binary"
	"math"
	"strings"
)

// AppendKey appends bytes to dst by which the value sorts: comparing keys as
// bytes gives what Compare gives, and equal values have equal keys. No key is
// the beginning of another one, so keys that follow each other sort by the
// first value, then by the next.
func (v Value) AppendKey(dst []byte) []byte {
	rank := v.form.rank()
	dst = append(dst, byte(rank)+1)
	switch rank {
	case formBool:
		return append(dst, byte(v.bits))
	case formInt:
		return appendNumberKey(dst, v)
	case formTime:
		dst = binary.BigEndian.AppendUint64(dst, v.bits^1<<63)
		return binary.BigEndian.AppendUint32(dst, v.nanos)
	case formString, formBytes, formOther:
		return AppendTextKey(dst, v.text)
	}
	return dst
}

// AppendTextKey appends a text so that it sorts by its bytes and is the
// beginning of no other one's key.
func AppendTextKey(dst []byte, s string) []byte {
	for {
		zero := strings.IndexByte(s, 0)
		if zero < 0 {
			return append(append(dst, s...), 0, 1)
		}
		dst = append(append(dst, s[:zero]...), 0, 0xff)
		s = s[zero+1:]
	}
}

// Descend turns round the order of a key, in place.
func Descend(key []byte) {
	for i := range key {
		key[i] = ^key[i]
	}
}

// appendNumberKey writes the highest float64 that is not above the number, and
// how far the number lies above it: not at all for floats, less than 2,048 for
// integers.
func appendNumberKey(dst []byte, v Value) []byte {
	f, _ := v.Float()
	rest := uint64(0)
	if v.form != formFloat {
		if compareWithFloat(v, f) < 0 {
			f = math.Nextafter(f, math.Inf(-1))
		}
		if v.form == formInt {
			rest = v.bits - uint64(int64(f))
		} else {
			rest = v.bits - uint64(f)
		}
	}
	if f == 0 {
		f = 0 // and not -0
	}
	bits := math.Float64bits(f)
	if bits>>63 == 0 {
		bits |= 1 << 63
	} else {
		bits = ^bits
	}
	dst = binary.BigEndian.AppendUint64(dst, bits)
	return binary.BigEndian.AppendUint16(dst, uint16(rest))
}
