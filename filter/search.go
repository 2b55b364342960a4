package filter

import (
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	indexOf     = "indexOf"
	lastIndexOf = "lastIndexOf"
)

// searchCall is a call of indexOf or lastIndexOf. It takes the place of cel-go's own,
// which compare at each place anew: that takes the product of both lengths.
type searchCall struct {
	interpreter.InterpretableCall
}

// Eval implements interpreter.Interpretable.
func (c *searchCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (c *searchCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	texts, failed := textsOf(frame, c.Args())
	if failed != nil {
		return failed
	}
	for i, text := range texts {
		texts[i] = strings.ToValidUTF8(text, string(utf8.RuneError))
	}
	runes := utf8.RuneCountInString(texts[0])
	if len(c.Args()) == 2 {
		if c.Function() == indexOf {
			return firstIndex(texts[0], texts[1], 0, runes)
		}
		return lastIndex(texts[0], texts[1], runes, runes)
	}
	v := c.Args()[2].Exec(frame)
	at, ok := v.(types.Int)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(v)
	case at < 0:
		return types.NewErr("index out of range: %d", int64(at))
	case texts[1] == "":
		return min(at, types.Int(runes))
	case at >= types.Int(runes):
		return types.Int(-1)
	case c.Function() == indexOf:
		return firstIndex(texts[0], texts[1], int(at), runes)
	}
	return lastIndex(texts[0], texts[1], int(at), runes)
}

// firstIndex is where sub stands first in text, which has so many runes, at the rune
// from or behind it.
func firstIndex(text, sub string, from, runes int) types.Int {
	if from > runes {
		return -1
	}
	behind := text[bytesOf(text, from):]
	at := strings.Index(behind, sub)
	if at < 0 {
		return -1
	}
	return types.Int(from + utf8.RuneCountInString(behind[:at]))
}

// lastIndex is where sub stands last in text, which has so many runes, at the rune
// from or before it.
func lastIndex(text, sub string, from, runes int) types.Int {
	at := strings.LastIndex(text[:bytesOf(text, min(from+utf8.RuneCountInString(sub), runes))], sub)
	if at < 0 {
		return -1
	}
	return types.Int(utf8.RuneCountInString(text[:at]))
}

// bytesOf is how many bytes the first n runes of a valid text have.
func bytesOf(text string, n int) int {
	for at := range text {
		if n == 0 {
			return at
		}
		n--
	}
	return len(text)
}
