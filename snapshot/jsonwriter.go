package snapshot

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends the canonical JSON of a tree of map[string]any, []any,
// json.Number, string, bool and nil, as ParseJSON gives it, to dst. It returns
// dst as it was and an error for any other type, a malformed number, invalid
// UTF-8, or more than 1,000 levels. A nil map or slice is null.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	out, err := appendTree(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendTree(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v)
	case json.Number:
		if !validNumber(string(v)) {
			return dst, fmt.Errorf("%q is not a JSON number", string(v))
		}
		return append(dst, v...), nil
	case map[string]any:
		return appendObject(dst, v, depth)
	case []any:
		return appendArray(dst, v, depth)
	}
	return dst, fmt.Errorf("%T is not part of a JSON tree: use map[string]any, []any, json.Number, string, bool or nil", v)
}

func appendObject(dst []byte, m map[string]any, depth int) ([]byte, error) {
	if m == nil {
		return append(dst, "null"...), nil
	}
	if depth >= maxDepth {
		return dst, errTooDeep()
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, k); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = appendTree(dst, m[k], depth+1); err != nil {
			return dst, at("."+k, err)
		}
	}
	return append(dst, '}'), nil
}

func appendArray(dst []byte, list []any, depth int) ([]byte, error) {
	if list == nil {
		return append(dst, "null"...), nil
	}
	if depth >= maxDepth {
		return dst, errTooDeep()
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendTree(dst, v, depth+1); err != nil {
			return dst, at(fmt.Sprintf("[%d]", i), err)
		}
	}
	return append(dst, ']'), nil
}

// validNumber reports whether s is exactly one number of JSON's grammar.
func validNumber(s string) bool {
	p := jsonParser{data: []byte(s)}
	if s == "" || (s[0] != '-' && !isDigit(s[0])) {
		return false
	}
	_, err := p.number()
	return err == nil && p.pos == len(s)
}

// appendString writes s with the escapes that JSON demands and no others: quote,
// backslash and control characters.
func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, errNotUTF8(s)
	}
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"'), nil
}

// numberOf gives the text that encoding/json gives for a finite float of that
// many bits.
func numberOf(f float64, bits int) json.Number {
	format := byte('f')
	abs := math.Abs(f)
	if abs != 0 && (bits == 64 && (abs < 1e-6 || abs >= 1e21) ||
		bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21)) {
		format = 'e'
	}
	b := strconv.AppendFloat(nil, f, format, -1, bits)
	// encoding/json writes e-9, not e-09.
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return json.Number(b)
}
