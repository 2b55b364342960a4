package jsonfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/snapshot"
)

// maxNesting bounds how deep JSON is nested that is shown as JSON; deeper ones
// would not be read back.
const maxNesting = 1000

// value is bytes in the most readable form that gives exactly these bytes back:
// JSON, text, or base64. In base64 it may have Value as well, which then only
// shows what the bytes mean. No member at all stands for no bytes.
type value struct {
	Value json.RawMessage `json:"value,omitempty"`
	Text  *string         `json:"text,omitempty"`
	Data  []byte          `json:"data,omitempty"`
}

// valueOf returns the form of b, which it shares memory with.
func valueOf(b []byte, codec string) value {
	if len(b) == 0 {
		return value{}
	}
	if codec != "msgpack" {
		if exactJSON(b) {
			return value{Value: b}
		}
		if utf8.Valid(b) {
			text := string(b)
			return value{Text: &text}
		}
	}
	return value{Data: b}
}

// shown is v with what its bytes mean, if that can be told.
func (v value) shown(codec string) value {
	if v.Data == nil {
		return v
	}
	if c, err := snapshot.CodecByName(codec); err == nil {
		if text, err := c.ToJSON(v.Data); err == nil && exactJSON(text) {
			v.Value = text
		}
	}
	return v
}

// bytes returns what valueOf was given, nil for no bytes.
func (v value) bytes() ([]byte, error) {
	switch {
	case v.Data != nil:
		return bytes.Clone(v.Data), nil
	case v.Text != nil:
		return []byte(*v.Text), nil
	case v.Value == nil:
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v.Value); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// exactJSON says whether b is JSON that is the same again after it was indented
// and compacted.
func exactJSON(b []byte) bool {
	if !utf8.Valid(b) || !json.Valid(b) {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			return false
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}

// stamp is a time of any year with its nanoseconds, in UTC.
type stamp time.Time

// MarshalJSON writes RFC 3339, or seconds and nanoseconds since 1970 for the
// years that it cannot write.
func (s stamp) MarshalJSON() ([]byte, error) {
	t := time.Time(s).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return fmt.Appendf(nil, "\"unix %d %d\"", t.Unix(), t.Nanosecond()), nil
	}
	return t.AppendFormat(nil, `"`+time.RFC3339Nano+`"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *stamp) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(text, "unix "); ok {
		sec, nsec, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(sec, 10, 64)
		if err != nil {
			return err
		}
		m, err := strconv.ParseInt(nsec, 10, 64)
		if err != nil {
			return err
		}
		*s = stamp(time.Unix(n, m).UTC())
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	*s = stamp(t.UTC())
	return err
}
