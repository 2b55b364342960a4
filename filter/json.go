package filter

import (
	"bytes"
	"math"
	"strconv"

	"github.com/twinsrv/twinsrv/snapshot"
)

// The json functions read canonical JSON where it stands: there is no space
// between its tokens. Positions and -1 are as with msgpack.

// jsonSkipText returns the position behind the text whose opening quote stands
// at pos.
func jsonSkipText(b []byte, pos int) int {
	for at := pos + 1; ; {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			return -1
		}
		end := at + i
		escapes := 0
		for b[end-1-escapes] == '\\' { // stops at the opening quote at the latest
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		at = end + 1
	}
}

// jsonSkip returns the position behind the value at pos.
func jsonSkip(b []byte, pos int) int {
	for depth := 0; pos >= 0 && pos < len(b); {
		switch b[pos] {
		case '"':
			pos = jsonSkipText(b, pos)
		case '{', '[':
			depth++
			pos++
			continue
		case '}', ']':
			depth--
			pos++
		case ',', ':':
			if depth <= 0 {
				return -1 // where a value should begin
			}
			pos++
			continue
		default:
			pos = jsonSkipWord(b, pos)
		}
		if depth <= 0 {
			if depth < 0 {
				return -1
			}
			return pos
		}
	}
	return -1
}

// jsonSkipWord returns the position behind a number, true, false or null.
func jsonSkipWord(b []byte, pos int) int {
	for ; pos < len(b); pos++ {
		switch b[pos] {
		case ',', '}', ']', ':', '"', '{', '[':
			return pos
		}
	}
	return pos
}

// jsonField returns the position of the value of an object's key, which is
// given with its quotes and escapes; -1 if the value at pos is no object that
// has it.
func jsonField(b []byte, pos int, quoted string) int {
	if pos < 0 || pos >= len(b) || b[pos] != '{' {
		return -1
	}
	for at := pos + 1; at < len(b) && b[at] == '"'; {
		colon := at + len(quoted)
		if colon < len(b) && b[colon] == ':' && string(b[at:colon]) == quoted {
			return colon + 1
		}
		if at = jsonSkipText(b, at); at < 0 || at >= len(b) || b[at] != ':' {
			return -1
		}
		at = jsonSkip(b, at+1)
		if at < 0 || at >= len(b) || b[at] != ',' {
			return -1
		}
		at++
	}
	return -1
}

// jsonElement returns the position of the i-th value of a list, -1 if the value
// at pos is no list that has it.
func jsonElement(b []byte, pos, i int) int {
	at := jsonFirst(b, pos)
	for ; i > 0 && at >= 0; i-- {
		at = jsonNext(b, at)
	}
	if i < 0 {
		return -1
	}
	return at
}

// jsonFirst returns the position of a list's first value, -1 if it has none.
func jsonFirst(b []byte, pos int) int {
	if pos < 0 || pos+1 >= len(b) || b[pos] != '[' || b[pos+1] == ']' {
		return -1
	}
	return pos + 1
}

// jsonNext returns the position of the value behind that at pos, -1 if it was
// the last one.
func jsonNext(b []byte, pos int) int {
	at := jsonSkip(b, pos)
	if at < 0 || at+1 >= len(b) || b[at] != ',' {
		return -1
	}
	return at + 1
}

// jsonValue reads the value at pos; lists and objects stay unread.
func jsonValue(b []byte, pos int) Value {
	if pos < 0 || pos >= len(b) {
		return Value{}
	}
	switch b[pos] {
	case '{':
		return Value{form: formMap}
	case '[':
		return Value{form: formList}
	case '"':
		end := jsonSkipText(b, pos)
		if end < 0 {
			return Value{}
		}
		return jsonText(b[pos:end])
	}
	word := b[pos:jsonSkipWord(b, pos)]
	switch string(word) {
	case "true":
		return BoolValue(true)
	case "false":
		return BoolValue(false)
	case "null":
		return nullValue()
	}
	return jsonNumber(word)
}

func jsonText(quoted []byte) Value {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return StringValue(view(inner))
	}
	tree, err := snapshot.ParseJSON(quoted)
	text, ok := tree.(string)
	if err != nil || !ok {
		return Value{}
	}
	return StringValue(text)
}

// jsonNumber reads a number: integers that fit 64 bits as they are, others as
// the float64 next to them.
func jsonNumber(word []byte) Value {
	if v, ok := shortNumber(word); ok {
		return v
	}
	if len(word) == 0 || word[0] != '-' && (word[0] < '0' || word[0] > '9') {
		return Value{} // strconv takes more than JSON does
	}
	text := view(word)
	if !bytes.ContainsAny(word, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return IntValue(n)
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return uintValue(n)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return Value{}
	}
	return FloatValue(f)
}

// shortNumber reads numbers of at most 15 digits without an exponent. Both the
// digits and the power of ten are exact as float64, so their quotient is the
// float64 next to the number.
func shortNumber(word []byte) (Value, bool) {
	digits := word
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 16 {
		return Value{}, false
	}
	n, point := int64(0), -1
	for i, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			n = 10*n + int64(c-'0')
		case c == '.' && point < 0 && i > 0:
			point = i
		default:
			return Value{}, false
		}
	}
	if point < 0 {
		if len(digits) < len(word) {
			n = -n
		}
		return IntValue(n), true
	}
	f := float64(n) / math.Pow10(len(digits)-1-point)
	if len(digits) < len(word) {
		f = -f
	}
	return FloatValue(f), true
}
