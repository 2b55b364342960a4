package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// member is one of an object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of an object in their order; false if the value
// is none.
func membersOf(value json.RawMessage) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(value))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var all []member
	for d.More() {
		t, err := d.Token()
		name, is := t.(string)
		var m json.RawMessage
		if err != nil || !is || d.Decode(&m) != nil {
			return nil, false
		}
		all = append(all, member{name, m})
	}
	return all, true
}

// elementsOf returns the elements of an array; false if the value is none.
func elementsOf(value json.RawMessage) ([]json.RawMessage, bool) {
	var all []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) || json.Unmarshal(value, &all) != nil {
		return nil, false
	}
	return all, true
}

// cell is a value in a table: a text without its quotes, else JSON.
func cell(value json.RawMessage) string {
	var s string
	if bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return string(escapeJSON(b.Bytes()))
}

// at returns what stands at a path such as state.floor, state.x[0] or
// state["odd name"]; nil if nothing does, or the path is none.
func at(value json.RawMessage, path string) json.RawMessage {
	for first := true; path != ""; first = false {
		step, index, rest, err := nextStep(path, first)
		if err != nil {
			return nil
		}
		path = rest
		if index >= 0 {
			list, _ := elementsOf(value)
			if index >= len(list) {
				return nil
			}
			value = list[index]
			continue
		}
		members, _ := membersOf(value)
		value = nil
		for _, m := range members {
			if m.name == step {
				value = m.value
			}
		}
		if value == nil {
			return nil
		}
	}
	return value
}

var errPath = errors.New("not a path")

// nextStep takes the first step of a path: a name, or an index from 0.
func nextStep(path string, first bool) (name string, index int, rest string, err error) {
	switch {
	case strings.HasPrefix(path, `["`):
		d := json.NewDecoder(strings.NewReader(path[1:]))
		if err := d.Decode(&name); err != nil && !errors.Is(err, io.EOF) {
			return "", -1, "", errPath
		}
		rest = path[1+d.InputOffset():]
	case path[0] == '[':
		digits, behind, _ := strings.Cut(path[1:], "]")
		index, err = strconv.Atoi(digits)
		return "", index, behind, err
	case first || path[0] == '.':
		word := strings.TrimPrefix(path, ".")
		end := strings.IndexAny(word, ".[")
		if end < 0 {
			end = len(word)
		}
		return word[:end], -1, word[end:], nil
	default:
		return "", -1, "", errPath
	}
	if rest == "" || rest[0] != ']' {
		return "", -1, "", errPath
	}
	return name, -1, rest[1:], nil
}
