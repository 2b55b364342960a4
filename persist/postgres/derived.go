package postgres

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/snapshot"
)

// maxDigits bounds the numbers that get a derived form: jsonb writes an
// exponent out in digits.
const maxDigits = 4096

// derivedState returns a state as JSON that jsonb takes, or nil if there is none:
// it has no bytes or no known codec, or holds U+0000, half a surrogate pair, or a
// number of more than 4,096 digits. What else the server refuses becomes NULL
// there.
func derivedState(r *snapshot.Record) *string {
	if len(r.State) == 0 {
		return nil
	}
	c, err := snapshot.CodecByName(r.Codec)
	if err != nil {
		return nil
	}
	text := r.State
	// JSON need not be made canonical for jsonb, only be JSON.
	if r.Codec != "json" {
		if text, err = c.ToJSON(r.State); err != nil {
			return nil
		}
	}
	if !json.Valid(text) || !fitsJSONB(text) {
		return nil
	}
	s := string(text)
	return &s
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
	// The decoder puts U+FFFD where a surrogate has no other half; what was
	// written as such itself is refused with them.
	var decoded string
	if json.Unmarshal(s, &decoded) != nil {
		return 0, false
	}
	return end + 1, !strings.ContainsRune(decoded, 0) && !strings.ContainsRune(decoded, utf8.RuneError)
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

// derivedTime returns the time for a timestamptz column, which has microseconds
// and fewer years.
func derivedTime(t time.Time) *time.Time {
	if y := t.Year(); y < -4700 || y > 200_000 {
		return nil
	}
	return &t
}

// derivedText returns the text for a column, or nil if it has no form there.
func derivedText(s string) *string {
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return nil
	}
	return &s
}
