package snapshot

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// CanonicalJSON returns the canonical form of one JSON value: object keys sorted
// by their bytes, no space, numbers in exactly the text they came in, strings
// with only the escapes that JSON demands. Equal canonical forms mean equal
// values; 1 and 1.0 are different texts and so different values.
//
// It refuses what ParseJSON refuses.
func CanonicalJSON(data []byte) ([]byte, error) {
	v, err := ParseJSON(data)
	if err != nil {
		return nil, err
	}
	return AppendJSON(make([]byte, 0, len(data)), v)
}

// ParseJSON parses one JSON value into map[string]any, []any, json.Number,
// string, bool and nil. Empty objects and arrays are not nil. The result shares
// no memory with data.
//
// It is strict: one value and nothing after it, valid UTF-8, no object with the
// same key twice, no lone surrogates, at most 1,000 levels. An error says the
// offset of the offending byte.
func ParseJSON(data []byte) (any, error) { return ParseJSONAround(data, 0) }

// ParseJSONAround is ParseJSON of JSON in which other JSON stands, so many levels
// deep: it takes as many levels more.
func ParseJSONAround(data []byte, levels int) (any, error) {
	p := jsonParser{data: data, most: maxDepth + levels}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(data) {
		return nil, p.errorf(p.pos, "JSON value is followed by %q: send one value", rune(data[p.pos]))
	}
	return v, nil
}

type jsonParser struct {
	data []byte
	pos  int
	most int // levels
}

func (p *jsonParser) errorf(offset int, format string, args ...any) error {
	return fmt.Errorf("at offset %d: "+format, append([]any{offset}, args...)...)
}

func (p *jsonParser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end; 0 is no valid byte of JSON
// outside strings, and none inside.
func (p *jsonParser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// unexpected is the error for the next byte where want should stand.
func (p *jsonParser) unexpected(want string) error {
	if p.pos >= len(p.data) {
		return p.errorf(p.pos, "JSON ends where %s should stand", want)
	}
	r, _ := utf8.DecodeRune(p.data[p.pos:])
	return p.errorf(p.pos, "%q stands where %s should", r, want)
}

func (p *jsonParser) value(depth int) (any, error) {
	switch c := p.peek(); c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return p.str()
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return p.number()
		}
		return nil, p.unexpected("a JSON value")
	}
}

func (p *jsonParser) literal(word string) error {
	if len(p.data)-p.pos < len(word) || string(p.data[p.pos:p.pos+len(word)]) != word {
		return p.errorf(p.pos, "malformed literal: did you mean %s?", word)
	}
	p.pos += len(word)
	return nil
}

func (p *jsonParser) enter(depth int) error {
	if depth >= p.most {
		return p.errorf(p.pos, "JSON nests deeper than %d levels", p.most)
	}
	p.pos++
	p.space()
	return nil
}

func (p *jsonParser) object(depth int) (any, error) {
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	m := map[string]any{}
	if p.peek() == '}' {
		p.pos++
		return m, nil
	}
	for {
		at := p.pos
		if p.peek() != '"' {
			return nil, p.unexpected("an object's key")
		}
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, twice := m[key]; twice {
			return nil, p.errorf(at, "object has the key %q twice", key)
		}
		p.space()
		if p.peek() != ':' {
			return nil, p.unexpected("':'")
		}
		p.pos++
		p.space()
		if m[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		if done, err := p.next('}', "',' or '}'"); done || err != nil {
			return m, err
		}
	}
}

func (p *jsonParser) array(depth int) (any, error) {
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	list := []any{}
	if p.peek() == ']' {
		p.pos++
		return list, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if done, err := p.next(']', "',' or ']'"); done || err != nil {
			return list, err
		}
	}
}

// next takes the comma before another member, or the end.
func (p *jsonParser) next(end byte, want string) (done bool, err error) {
	p.space()
	switch p.peek() {
	case end:
		p.pos++
		return true, nil
	case ',':
		p.pos++
		p.space()
		return false, nil
	}
	return false, p.unexpected(want)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (p *jsonParser) number() (any, error) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
		if isDigit(p.peek()) {
			return nil, p.errorf(start, "number begins with a surplus 0")
		}
	} else if err := p.digits(); err != nil {
		return nil, err
	}
	if p.peek() == '.' {
		p.pos++
		if err := p.digits(); err != nil {
			return nil, err
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if err := p.digits(); err != nil {
			return nil, err
		}
	}
	return json.Number(p.data[start:p.pos]), nil
}

func (p *jsonParser) digits() error {
	if !isDigit(p.peek()) {
		return p.unexpected("a digit")
	}
	for isDigit(p.peek()) {
		p.pos++
	}
	return nil
}

func (p *jsonParser) str() (string, error) {
	p.pos++
	start := p.pos
	var out []byte // nil as long as the text can be taken as it stands
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		switch {
		case c == '"':
			text := p.data[start:p.pos]
			p.pos++
			return string(append(out, text...)), nil
		case c == '\\':
			out = append(out, p.data[start:p.pos]...)
			var err error
			if out, err = p.escape(out); err != nil {
				return "", err
			}
			start = p.pos
		case c < 0x20:
			return "", p.errorf(p.pos, "string has the control character %#02x: write it as \\u%04x", c, c)
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.errorf(p.pos, "string is not valid UTF-8")
			}
			p.pos += size
		}
	}
	return "", p.errorf(p.pos, "JSON ends inside a string")
}

// escape appends what the escape at the position stands for.
func (p *jsonParser) escape(out []byte) ([]byte, error) {
	at := p.pos
	p.pos++
	c := p.peek()
	p.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
		r, ok := p.hex4()
		if !ok {
			return nil, p.errorf(at, "\\u needs four hexadecimal digits")
		}
		if utf16.IsSurrogate(r) {
			if r, ok = p.secondHalf(r); !ok {
				return nil, p.errorf(at, "string has half of a surrogate pair")
			}
		}
		return utf8.AppendRune(out, r), nil
	}
	return nil, p.errorf(at, "string has an unknown escape")
}

func (p *jsonParser) secondHalf(first rune) (rune, bool) {
	if len(p.data)-p.pos < 6 || p.data[p.pos] != '\\' || p.data[p.pos+1] != 'u' {
		return 0, false
	}
	p.pos += 2
	second, ok := p.hex4()
	r := utf16.DecodeRune(first, second)
	return r, ok && r != utf8.RuneError
}

func (p *jsonParser) hex4() (rune, bool) {
	if len(p.data)-p.pos < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.data[p.pos:p.pos+4]), 16, 16)
	p.pos += 4
	return rune(n), err == nil
}
