package postgres

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/snapshot"
)

// maxDigits bounds the numbers that get a derived form: jsonb writes an
// exponent out in digits.
const maxDigits = 4096

// appendDerived appends a state as JSON that jsonb takes. It says whether there
// is such a form: there is none if it has no bytes or no known codec, or holds
// U+0000, half a surrogate pair, or a number of more than 4,096 digits. What else
// the server refuses becomes NULL there.
func appendDerived(dst []byte, r *snapshot.Record) (_ []byte, ok bool) {
	if len(r.State) == 0 {
		return dst, false
	}
	text := r.State
	if r.Codec != "json" { // which need not be made canonical for jsonb
		if out, ok := appendRendered(dst, r); ok {
			return out, true
		}
		c, err := snapshot.CodecByName(r.Codec)
		if err != nil {
			return dst, false
		}
		if text, err = c.ToJSON(r.State); err != nil {
			return dst, false
		}
	}
	if !json.Valid(text) || !fitsJSONB(text) {
		return dst, false
	}
	return append(dst, text...), true
}

// fitsJSONB says whether the server takes valid JSON as jsonb.
func fitsJSONB(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			n, ok := stringFits(text[i:])
			if !ok {
				return false
			}
			i += n
		case c == '-' || c >= '0' && c <= '9':
			n := numberLength(text[i:])
			if !numberFits(text[i : i+n]) {
				return false
			}
			i += n
		default:
			i++
		}
	}
	return true
}

const replacement = string(utf8.RuneError)

// stringFits returns the length of the string that text begins with, and whether
// the server takes its escapes.
func stringFits(text []byte) (n int, ok bool) {
	end := 1
	for text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	s := text[:end+1]
	if !bytes.Contains(s, []byte(`\u`)) {
		return end + 1, true
	}
	// The decoder puts U+FFFD where a surrogate has no other half: then there are
	// more of them than were written. What was written as the escape of one is
	// refused with them.
	var decoded string
	if json.Unmarshal(s, &decoded) != nil {
		return 0, false
	}
	return end + 1, !strings.ContainsRune(decoded, 0) && strings.Count(decoded, replacement) == bytes.Count(s, []byte(replacement))
}

func numberLength(text []byte) int {
	n := 0
	for n < len(text) && strings.IndexByte("+-.0123456789eE", text[n]) >= 0 {
		n++
	}
	return n
}

func numberFits(number []byte) bool {
	digits, exponent, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	if len(digits) > maxDigits || len(exponent) > 6 {
		return false
	}
	e := 0
	for _, c := range exponent {
		if c >= '0' && c <= '9' {
			e = 10*e + int(c-'0')
		}
	}
	return e <= maxDigits
}
