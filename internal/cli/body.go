package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxBody bounds what is read from the standard input.
const maxBody = 64 << 20

// bodyOf makes a message of arguments: JSON, members as key=text and key:=json,
// or - for JSON from the standard input. nil is none.
func bodyOf(args []string) (json.RawMessage, error) {
	switch {
	case len(args) == 0:
		return nil, nil
	case len(args) == 1 && args[0] == "-":
		data, err := io.ReadAll(io.LimitReader(os.Stdin, maxBody+1))
		switch {
		case err != nil:
			return nil, err
		case len(data) > maxBody:
			return nil, Usagef("the standard input has more than %d bytes", maxBody)
		case !utf8.Valid(data): // JSON would have another text in its place
			return nil, Usagef("the standard input is not valid UTF-8")
		}
		return wholeJSON("the standard input", data)
	case len(args) == 1 && (json.Valid([]byte(args[0])) || looksLikeJSON(args[0])):
		return wholeJSON("the argument", []byte(args[0]))
	}
	return members(args)
}

// looksLikeJSON reports whether a text is meant to be JSON, if not good JSON.
func looksLikeJSON(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && strings.ContainsRune(`{["`, rune(s[0]))
}

// wholeJSON checks that a text is one JSON value.
func wholeJSON(what string, text []byte) (json.RawMessage, error) {
	var v json.RawMessage
	if err := json.Unmarshal(text, &v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset > 0 {
			return nil, Usagef("%s is no JSON: %v, at byte %d", what, err, syntax.Offset)
		}
		return nil, Usagef("%s is no JSON: %v", what, err)
	}
	return v, nil
}

// members makes an object of key=text and key:=json.
func members(args []string) (json.RawMessage, error) {
	var b strings.Builder
	seen := make(map[string]bool, len(args))
	for i, a := range args {
		key, value, is := strings.Cut(a, "=")
		if !is {
			return nil, Usagef("%s is neither JSON nor a member: write key=text, or key:=json for numbers, true, false, null, lists and objects", Printable(a))
		}
		text, err := json.Marshal(value)
		if name, raw := strings.CutSuffix(key, ":"); raw {
			key = name
			text, err = wholeJSON("the value of "+Printable(key), []byte(value))
		}
		if err != nil {
			return nil, err
		}
		if key == "" || seen[key] {
			return nil, Usagef("%s has no key, or one that came before", Printable(a))
		}
		seen[key] = true
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
	}
	return json.RawMessage(b.String() + "}"), nil
}
