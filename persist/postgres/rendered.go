package postgres

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/snapshot"
)

// maxRendered bounds how deep a state nests that is rendered here.
const maxRendered = 64

// appendRendered appends the JSON of a msgpack state, straight from its bytes,
// for jsonb, to which neither the order of keys nor the way in which a number is
// written makes a difference. It is not ok for what it leaves to the codec:
// other codecs, times and other extensions, keys that are no strings, and all
// that has no form as jsonb or is damaged.
func appendRendered(dst []byte, r *snapshot.Record) (_ []byte, ok bool) {
	if r.Codec != "msgpack" {
		return dst, false
	}
	m := renderer{out: dst, in: r.State}
	if !m.value(0) || len(m.in) > 0 {
		return dst, false
	}
	return m.out, true
}

// renderer reads from the front of in and appends to out. Its methods are false
// when it cannot go on.
type renderer struct {
	out, in []byte
}

// take returns the next n bytes, or nil if there are fewer.
func (m *renderer) take(n uint64) ([]byte, bool) {
	if n > uint64(len(m.in)) {
		return nil, false
	}
	b := m.in[:n]
	m.in = m.in[n:]
	return b, true
}

// number reads an unsigned integer of so many bytes.
func (m *renderer) number(bytes uint64) (n uint64, ok bool) {
	b, ok := m.take(bytes)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, ok
}

// value renders the next value.
func (m *renderer) value(depth int) bool {
	head, ok := m.take(1)
	if !ok || depth > maxRendered {
		return false
	}
	c := head[0]
	switch {
	case c < 0x80:
		m.out = strconv.AppendInt(m.out, int64(c), 10)
		return true
	case c >= 0xe0:
		m.out = strconv.AppendInt(m.out, int64(int8(c)), 10)
		return true
	case c < 0x90:
		return m.object(uint64(c&0x0f), depth)
	case c < 0xa0:
		return m.list(uint64(c&0x0f), depth)
	case c < 0xc0:
		return m.text(uint64(c & 0x1f))
	case c >= 0xca && c <= 0xd3:
		return m.numeral(c)
	}
	switch c {
	case 0xc0:
		m.out = append(m.out, "null"...)
		return true
	case 0xc2, 0xc3:
		m.out = strconv.AppendBool(m.out, c == 0xc3)
		return true
	case 0xc4, 0xc5, 0xc6:
		return m.sized(1<<(c-0xc4), func(n uint64) bool { return m.binary(n) })
	case 0xd9, 0xda, 0xdb:
		return m.sized(1<<(c-0xd9), func(n uint64) bool { return m.text(n) })
	case 0xdc, 0xdd:
		return m.sized(2<<(c-0xdc), func(n uint64) bool { return m.list(n, depth) })
	case 0xde, 0xdf:
		return m.sized(2<<(c-0xde), func(n uint64) bool { return m.object(n, depth) })
	}
	return false
}

// sized reads a length of so many bytes, and what has it.
func (m *renderer) sized(bytes uint64, what func(n uint64) bool) bool {
	n, ok := m.number(bytes)
	return ok && what(n)
}

// numeral renders a number that stands behind its head.
func (m *renderer) numeral(head byte) bool {
	switch head {
	case 0xca:
		n, ok := m.number(4)
		return ok && m.float(float64(math.Float32frombits(uint32(n))), 32)
	case 0xcb:
		n, ok := m.number(8)
		return ok && m.float(math.Float64frombits(n), 64)
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, ok := m.number(1 << (head - 0xcc))
		m.out = strconv.AppendUint(m.out, n, 10)
		return ok
	}
	bytes := uint64(1) << (head - 0xd0)
	n, ok := m.number(bytes)
	unused := 64 - 8*bytes
	m.out = strconv.AppendInt(m.out, int64(n<<unused)>>unused, 10)
	return ok
}

func (m *renderer) float(f float64, bits int) bool {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return false
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) { // as encoding/json has it: 5e-324 would take 326 digits
		form = 'e'
	}
	m.out = strconv.AppendFloat(m.out, f, form, -1, bits)
	return true
}

func (m *renderer) binary(n uint64) bool {
	b, ok := m.take(n)
	if ok {
		m.out = append(m.out, '"')
		m.out = base64.StdEncoding.AppendEncode(m.out, b)
		m.out = append(m.out, '"')
	}
	return ok
}

func (m *renderer) text(n uint64) bool {
	b, ok := m.take(n)
	if !ok || !utf8.Valid(b) {
		return false
	}
	const digits = "0123456789abcdef"
	m.out = append(m.out, '"')
	from := 0
	for i, c := range b {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		m.out = append(m.out, b[from:i]...)
		from = i + 1
		switch {
		case c == 0:
			return false
		case c < 0x20:
			m.out = append(m.out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			m.out = append(m.out, '\\', c)
		}
	}
	m.out = append(append(m.out, b[from:]...), '"')
	return true
}

func (m *renderer) list(n uint64, depth int) bool {
	m.out = append(m.out, '[')
	for i := range n {
		if i > 0 {
			m.out = append(m.out, ',')
		}
		if !m.value(depth + 1) {
			return false
		}
	}
	m.out = append(m.out, ']')
	return true
}

// object renders a map whose keys are strings. The codec writes no key twice.
func (m *renderer) object(n uint64, depth int) bool {
	m.out = append(m.out, '{')
	for i := range n {
		if i > 0 {
			m.out = append(m.out, ',')
		}
		if !m.key() {
			return false
		}
		m.out = append(m.out, ':')
		if !m.value(depth + 1) {
			return false
		}
	}
	m.out = append(m.out, '}')
	return true
}

func (m *renderer) key() bool {
	c, ok := m.number(1)
	switch {
	case !ok:
		return false
	case c >= 0xa0 && c < 0xc0:
		return m.text(c & 0x1f)
	case c >= 0xd9 && c <= 0xdb:
		return m.sized(1<<(c-0xd9), m.text)
	}
	return false
}
