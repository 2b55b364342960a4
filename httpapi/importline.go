package httpapi

import (
	"bytes"
	"fmt"
)

// lineAround is how many bytes a line of an import may have beside the state: a
// name and a cursor, or a definition with its schema.
const lineAround = 128 << 10

// largeLine refuses a line whose state the store could not take, before anything
// of it is parsed: that takes up to fifty times its bytes.
func (c *call) largeLine(line []byte) error {
	most := c.api.pods.MaxState()
	if len(line) <= most || leastJSON(line) <= most+lineAround {
		return nil
	}
	return refuse(CodeStoreRefused, fmt.Sprintf("the line has more than %d bytes without its white space, and a state of at most %d is kept; nothing changed", most+lineAround, most))
}

// leastJSON returns how many bytes a text of JSON has in its canonical form, or
// fewer: there is no white space there, numbers keep their text, and what an escape
// stands for has a byte at least. A text that the canonical form is half of, or a
// sixth, is so taken for no longer than it is.
func leastJSON(text []byte) (n int) {
	inside := false // a string
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			inside = !inside
		case inside && b == '\\':
			if i++; i < len(text) && text[i] == 'u' {
				i += 4
			}
		case !inside && (b == ' ' || b == '\t' || b == '\r' || b == '\n'):
			continue
		}
		n++
	}
	return n
}

// lineMemory returns about how many bytes of memory a line takes until it is
// handled. It was measured: the text is there twice or three times, a member or an
// element takes some 40 bytes, and an object with a member some 350.
func lineMemory(line []byte) int {
	values := bytes.Count(line, []byte(",")) + bytes.Count(line, []byte("["))
	return 3*len(line) + 40*values + 350*bytes.Count(line, []byte("{"))
}
