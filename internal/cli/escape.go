package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable is a text that can do nothing to a terminal: one with control
// characters is quoted.
func Printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}

// escapeJSON replaces the characters of JSON, in which all that can do something
// to a terminal stand in texts, by what means the same.
func escapeJSON(text []byte) []byte {
	return escape(text, func(r rune) string {
		if r1, r2 := utf16.EncodeRune(r); r1 != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, r1, r2)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escapeYAML is escapeJSON for YAML whose texts with such characters are quoted.
func escapeYAML(text []byte) []byte {
	return escape(text, func(r rune) string { return fmt.Sprintf(`\U%08X`, r) })
}

// escape replaces what is not printable, but for the ends of lines.
func escape(text []byte, by func(rune) string) []byte {
	fine := func(r rune) bool { return r == '\n' || unicode.IsPrint(r) }
	if first := strings.IndexFunc(string(text), func(r rune) bool { return !fine(r) }); first < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if fine(r) {
			b.Write(text[:n])
		} else {
			b.WriteString(by(r))
		}
		text = text[n:]
	}
	return []byte(b.String())
}
