package postgres

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Element types of arrays, by their numbers in the server's table pg_type.
const (
	typeBool        = 16
	typeBytea       = 17
	typeInt8        = 20
	typeInt4        = 23
	typeText        = 25
	typeTimestamptz = 1184
)

// maxGuess bounds the room that is made ahead for a column.
const maxGuess = 1 << 20

// arrayOf makes a column of the values in the server's binary form of an array.
// encode appends one element, or says that it is NULL.
func arrayOf[T any](element uint32, values []T, encode func(dst []byte, v *T) (_ []byte, ok bool)) []byte {
	const head = 20
	out := make([]byte, head, 256)
	nulls := uint32(0)
	for i := range values {
		at := len(out)
		out = append(out, 0, 0, 0, 0)
		filled, ok := encode(out, &values[i])
		if ok {
			out = filled
			binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
		} else {
			nulls = 1
			binary.BigEndian.PutUint32(out[at:], ^uint32(0))
		}
		if i == 0 { // the others will be about as long, unless the first is an exception
			out = slices.Grow(out, min((len(out)-at+8)*(len(values)-1), maxGuess))
		}
	}
	for i, n := range [...]uint32{1, nulls, element, uint32(len(values)), 1} { // dimensions, nulls, type, length, first index
		binary.BigEndian.PutUint32(out[4*i:], n)
	}
	return out
}

func texts[T any](values []T, of func(v *T) string) []byte {
	return arrayOf(typeText, values, func(dst []byte, v *T) ([]byte, bool) { return append(dst, of(v)...), true })
}

// derivedTexts has NULL for what has no form as text there.
func derivedTexts[T any](values []T, of func(v *T) string) []byte {
	return arrayOf(typeText, values, func(dst []byte, v *T) ([]byte, bool) {
		s := of(v)
		if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
			return dst, false
		}
		return append(dst, s...), true
	})
}

func bytesOf[T any](values []T, appendTo func(dst []byte, v *T) []byte) []byte {
	return arrayOf(typeBytea, values, func(dst []byte, v *T) ([]byte, bool) { return appendTo(dst, v), true })
}

func integers[T any](values []T, of func(v *T) int64) []byte {
	return arrayOf(typeInt8, values, func(dst []byte, v *T) ([]byte, bool) {
		return binary.BigEndian.AppendUint64(dst, uint64(of(v))), true
	})
}

func smallIntegers[T any](values []T, of func(v *T) int32) []byte {
	return arrayOf(typeInt4, values, func(dst []byte, v *T) ([]byte, bool) {
		return binary.BigEndian.AppendUint32(dst, uint32(of(v))), true
	})
}

func booleans[T any](values []T, of func(v *T) bool) []byte {
	return arrayOf(typeBool, values, func(dst []byte, v *T) ([]byte, bool) {
		if of(v) {
			return append(dst, 1), true
		}
		return append(dst, 0), true
	})
}

// derivedTimes has NULL for years that the server does not have, and counts in
// microseconds as it does.
func derivedTimes[T any](values []T, of func(v *T) time.Time) []byte {
	const epoch = 946_684_800 // its year 2000, in seconds since 1970
	return arrayOf(typeTimestamptz, values, func(dst []byte, v *T) ([]byte, bool) {
		t := of(v)
		if y := t.UTC().Year(); y < -4700 || y > 200_000 {
			return dst, false
		}
		return binary.BigEndian.AppendUint64(dst, uint64((t.Unix()-epoch)*1_000_000+int64(t.Nanosecond()/1000))), true
	})
}
