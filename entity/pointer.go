package entity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/snapshot"
)

// ValueAt returns what stands at a JSON pointer (RFC 6901) in a state that is
// given as JSON, in canonical form. It fails with ErrMalformed for what is no
// pointer, and with ErrNoValue when nothing stands there.
func ValueAt(state []byte, pointer string) ([]byte, error) {
	v, err := snapshot.ParseJSON(state)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if v, err = at(v, pointer); err != nil {
		return nil, err
	}
	return snapshot.AppendJSON(nil, v)
}

// At returns what stands at a JSON pointer (RFC 6901). It is part of the object
// and not a copy. It fails as ValueAt does.
func (o Object) At(pointer string) (any, error) { return at(map[string]any(o), pointer) }

func at(v any, pointer string) (any, error) {
	tokens, err := parsePointer(pointer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if v, err = valueAt(v, tokens); err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrNoValue, pointer, err)
	}
	return v, nil
}

// valueAt returns what the tokens lead to.
func valueAt(node any, tokens []string) (_ any, err error) {
	for _, t := range tokens {
		if node, err = childOf(node, t); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// childOf returns what stands under a token in an object or an array.
func childOf(node any, token string) (any, error) {
	switch n := node.(type) {
	case map[string]any:
		if child, ok := n[token]; ok {
			return child, nil
		}
		return nil, fmt.Errorf("there is no %q", token)
	case []any:
		if i, ok := index(token, len(n)); ok {
			return n[i], nil
		}
		return nil, fmt.Errorf("the array has no index %q", token)
	}
	return nil, noContainer(token)
}

func noContainer(token string) error {
	return fmt.Errorf("there is neither an object nor an array for %q", token)
}

// parsePointer splits a JSON pointer (RFC 6901) into its unescaped tokens.
func parsePointer(p string) ([]string, error) {
	if p == "" {
		return nil, nil
	}
	if p[0] != '/' {
		return nil, fmt.Errorf("%q is not a JSON pointer: it is empty or starts with /", p)
	}
	tokens := strings.Split(p[1:], "/")
	if len(tokens) > maxDepth {
		return nil, fmt.Errorf("the pointer has %d parts, and a state nests at most %d levels deep", len(tokens), maxDepth)
	}
	for i, t := range tokens {
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, fmt.Errorf("%q is not a JSON pointer: ~ stands only in ~0 and ~1", p)
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// PointerToken returns a name as one token of a JSON pointer (RFC 6901), with ~
// and / escaped.
func PointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// index reads an array index of a pointer: no sign, no leading zero.
func index(token string, length int) (int, bool) {
	n, err := strconv.Atoi(token)
	return n, err == nil && n >= 0 && n < length && strconv.Itoa(n) == token
}

func (o *Object) set(m Set) error {
	tokens, err := parsePointer(m.Pointer)
	if err != nil {
		return Rejectf("%v", err)
	}
	value := m.Value
	if m.Merge {
		before, err := valueAt(map[string]any(*o), tokens)
		if err != nil {
			before = nil // nothing stands there
		}
		value = mergePatch(before, m.Value)
	}
	v, err := put(map[string]any(*o), tokens, value, m.Pointer)
	if err != nil {
		return err
	}
	root, ok := v.(map[string]any)
	if !ok {
		return Rejectf("%v", notAnObject(v))
	}
	*o = root
	return nil
}

// put returns the node with value at the place that the tokens lead to from it.
func put(node any, tokens []string, value any, pointer string) (any, error) {
	if len(tokens) == 0 {
		return value, nil
	}
	token, rest := tokens[0], tokens[1:]
	switch n := node.(type) {
	case nil:
		return put(map[string]any{}, tokens, value, pointer)
	case map[string]any:
		if n == nil {
			n = map[string]any{}
		}
		child, err := put(n[token], rest, value, pointer)
		if err != nil {
			return nil, err
		}
		n[token] = child
		return n, nil
	case []any:
		if token == "-" {
			child, err := put(nil, rest, value, pointer)
			return append(n, child), err
		}
		i, ok := index(token, len(n))
		if !ok {
			return nil, Rejectf("%q: the array has no index %q", pointer, token)
		}
		child, err := put(n[i], rest, value, pointer)
		n[i] = child
		return n, err
	default:
		return nil, Rejectf("%q: there is neither an object nor an array for %q", pointer, token)
	}
}

func (o *Object) remove(m Remove) error {
	tokens, err := parsePointer(m.Pointer)
	switch {
	case err != nil:
		return Rejectf("%v", err)
	case len(tokens) == 0:
		return Rejectf("the whole state cannot be removed; delete the entity, or set it to {}")
	}
	_, err = cut(map[string]any(*o), tokens, m.Pointer)
	return err
}

// cut returns the node without what the tokens lead to from it.
func cut(node any, tokens []string, pointer string) (any, error) {
	token, rest := tokens[0], tokens[1:]
	switch n := node.(type) {
	case map[string]any:
		child, ok := n[token]
		if !ok {
			return nil, Rejectf("%q: there is no %q", pointer, token)
		}
		if len(rest) == 0 {
			delete(n, token)
			return n, nil
		}
		child, err := cut(child, rest, pointer)
		n[token] = child
		return n, err
	case []any:
		i, ok := index(token, len(n))
		if !ok {
			return nil, Rejectf("%q: the array has no index %q", pointer, token)
		}
		if len(rest) == 0 {
			return slices.Delete(n, i, i+1), nil
		}
		child, err := cut(n[i], rest, pointer)
		n[i] = child
		return n, err
	default:
		return nil, Rejectf("%q: there is neither an object nor an array for %q", pointer, token)
	}
}
