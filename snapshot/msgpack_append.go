package snapshot

import (
	"encoding/binary"
	"math"
	"time"
)

// The forms of MessagePack (github.com/msgpack/msgpack/blob/master/spec.md) that
// states are made of, each number and length in the shortest one. They are
// appended here, without the library's way through an io.Writer, because every
// change of an entity is encoded in its turn.

func appendNil(b []byte) []byte { return append(b, 0xc0) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

func appendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(b, uint64(n))
	case n >= -32:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

func appendUint(b []byte, n uint64) []byte {
	switch {
	case n < 0x80:
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}

func appendFloat64(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(f))
}

func appendFloat32(b []byte, f float32) []byte {
	return binary.BigEndian.AppendUint32(append(b, 0xca), math.Float32bits(f))
}

func appendText(b []byte, s string) []byte {
	if len(s) < 32 {
		b = append(b, 0xa0|byte(len(s)))
	} else {
		b = appendLen(b, len(s), 0xd9, 0xda, 0xdb)
	}
	return append(b, s...)
}

// appendBytes takes nil for the nil of MessagePack.
func appendBytes(b, v []byte) []byte {
	if v == nil {
		return appendNil(b)
	}
	return append(appendLen(b, len(v), 0xc4, 0xc5, 0xc6), v...)
}

func appendArrayLen(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x90|byte(n))
	}
	return appendLen(b, n, 0, 0xdc, 0xdd)
}

func appendMapLen(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x80|byte(n))
	}
	return appendLen(b, n, 0, 0xde, 0xdf)
}

// timeType is the extension type of times.
const timeType = 0xff

// appendTime appends a time's seconds and nanoseconds, in 4, 8 or 12 bytes.
func appendTime(b []byte, t time.Time) []byte {
	sec, nsec := uint64(t.Unix()), uint64(t.Nanosecond())
	switch {
	case sec>>34 != 0:
		b = binary.BigEndian.AppendUint32(append(b, 0xc7, 12, timeType), uint32(nsec))
		return binary.BigEndian.AppendUint64(b, sec)
	case sec>>32 != 0 || nsec != 0:
		return binary.BigEndian.AppendUint64(append(b, 0xd7, timeType), nsec<<34|sec)
	}
	return binary.BigEndian.AppendUint32(append(b, 0xd6, timeType), uint32(sec))
}

// appendLen appends a length behind its code, of one, two or four bytes; one 0
// is none.
func appendLen(b []byte, n int, one, two, four byte) []byte {
	switch {
	case n <= math.MaxUint8 && one != 0:
		return append(b, one, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, two), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, four), uint32(n))
}
