package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
)

// change is what a message does to a document, in the model: a JSON merge patch,
// a value that is put or removed at a pointer, or a JSON patch.
type change struct {
	kind    string // merge, set, remove or patch
	pointer string
	value   any
	merge   bool
	ops     []formOp
}

// formOp is one operation of a JSON patch.
type formOp struct {
	op, path, from string
	value          any
}

func (c change) String() string {
	switch c.kind {
	case "merge":
		return text(c.value)
	case "set":
		return fmt.Sprintf("%q: %s (%t)", c.pointer, text(c.value), c.merge)
	case "patch":
		return c.body()
	}
	return strconv.Quote(c.pointer)
}

// body is the message as JSON.
func (c change) body() string {
	switch c.kind {
	case "merge":
		return text(c.value)
	case "set":
		return text(map[string]any{"pointer": c.pointer, "value": c.value, "merge": c.merge})
	case "remove":
		return text(map[string]any{"pointer": c.pointer})
	}
	list := []any{}
	for _, o := range c.ops {
		m := map[string]any{"op": o.op, "path": o.path}
		if o.op == "move" || o.op == "copy" {
			m["from"] = o.from
		} else if o.op != "remove" {
			m["value"] = o.value
		}
		list = append(list, m)
	}
	return text(list)
}

// message is the message as a Go value.
func (c change) message() any {
	switch c.kind {
	case "merge":
		return entity.Merge(c.value.(map[string]any))
	case "set":
		return entity.Set{Pointer: c.pointer, Value: c.value, Merge: c.merge}
	case "remove":
		return entity.Remove{Pointer: c.pointer}
	}
	patch := entity.Patch{}
	for _, o := range c.ops {
		patch = append(patch, entity.PatchOperation{Op: o.op, Path: o.path, From: o.from, Value: o.value})
	}
	return patch
}

// malformed reports whether the change is none, whatever it is for.
func (c change) malformed() bool {
	_, is := tokensOf(c.pointer)
	if _, object := c.value.(map[string]any); c.kind == "set" && c.pointer == "" && !object {
		return true // as SetAt has it
	}
	return !is || slices.ContainsFunc(c.ops, func(o formOp) bool {
		path, isPath := tokensOf(o.path)
		from, isFrom := tokensOf(o.from)
		takes := o.op == "move" || o.op == "copy"
		return !isPath || takes && !isFrom || o.op == "move" && len(path) > len(from) && slices.Equal(from, path[:len(from)])
	})
}

// newChange draws a change of a kind.
func newChange(rng *rand.Rand, kind string) change {
	c := change{kind: kind}
	switch kind {
	case "merge":
		m := map[string]any{}
		for range rng.IntN(4) {
			member := choose(rng, "n", "n", "tags", "kind", "kind", "sub", "other", "a/b", "longer")
			m[member] = formValue(rng, "/"+member)
			if rng.IntN(6) == 0 {
				m[member] = nil
			}
		}
		c.value = m
	case "set":
		c.pointer, c.merge = choose(rng, formPointers()...), rng.IntN(4) == 0
		c.value = formValue(rng, c.pointer)
	case "remove":
		c.pointer = choose(rng, formPointers()...)
	case "patch":
		for range 1 + rng.IntN(4) {
			o := formOp{op: choose(rng, "add", "add", "add", "remove", "replace", "move", "copy", "test"), path: choose(rng, formPointers()...)}
			switch o.op {
			case "move", "copy":
				o.from = choose(rng, formPointers()...)
			case "test":
				o.path = choose(rng, "/n", "/n", "/sub/x", "/kind", "/other", o.path)
				o.value = formValue(rng, o.path)
			case "add", "replace":
				o.value = formValue(rng, o.path)
			}
			c.ops = append(c.ops, o)
		}
	}
	return c
}

// formPointers are the places that changes are about; some are none.
func formPointers() []string {
	return []string{
		"/n", "/n", "/tags", "/tags/0", "/tags/1", "/tags/-", "/tags/-", "/sub", "/sub/x", "/sub/y", "/kind", "/kind", "/a~1b", "/m~0n",
		"/other", "/other/p", "/other/p/q", "/other/l/0", "/other/l/-", "/longer", "/tags/01", "", "x", "/x~2",
	}
}

// formValue draws a value for a place, mostly one that fits there.
func formValue(rng *rand.Rand, pointer string) any {
	from := []string{"0", "1", "1.0", "10e-1", "3", "12", "25", "2.5", `"a"`, `"xyzzy"`, "null", "true", "[]", `["x",1]`, "{}", `{"x":1}`, `{"p":{"q":null}}`, huge}
	switch pick := rng.IntN(5); {
	case pick == 0:
	case pointer == "/n":
		from = []string{"0", "1", "1.0", "10e-1", "3", "7", "-0"}
	case pointer == "/tags":
		from = []string{"[]", `["x"]`, `["x","y"]`, `["x","y","z"]`}
	case strings.HasPrefix(pointer, "/tags/"):
		from = []string{`"x"`, `"y"`, `"z"`, `"ab"`}
	case pointer == "/sub":
		from = []string{`{"x":1}`, `{"x":2.5}`, `{"x":1.0}`}
	case strings.HasPrefix(pointer, "/sub/"):
		from = []string{"1", "2.5", "7"}
	case pointer == "/kind":
		from = []string{`"a"`, "1"}
	case pointer == "":
		from = []string{"{}", `{"n":1,"kind":"a"}`, `{"kind":"a","tags":["x"]}`}
	case pointer == "/a~1b":
		from = []string{"1", "1.0", `[1,"x"]`, `[1.0,"x"]`, `["x",1]`, `{"x":1}`, `{"x":1,"y":2}`}
	case strings.HasPrefix(pointer, "/other"):
		from = []string{"{}", `{"p":{}}`, `{"l":[1,2]}`, `{"l":[[]],"p":{"q":1}}`}
	}
	return parsed(from[rng.IntN(len(from))])
}

// parsed reads JSON; numbers keep their text.
func parsed(s string) (v any) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err) // it is the simulation's own, or was checked
	}
	return v
}

// text writes JSON in one way.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // it came from JSON
	}
	return strings.TrimSpace(b.String())
}

func canonical(s string) string {
	if s == "" {
		return ""
	}
	return text(parsed(s))
}

// tokensOf splits a pointer.
func tokensOf(pointer string) (path []string, is bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' || strings.Contains(pointer, "~2") {
		return nil, false
	}
	for _, t := range strings.Split(pointer[1:], "/") {
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(t))
	}
	return path, true
}

// place reads an index.
func place(token string, below int) (int, bool) {
	for i := range below {
		if strconv.Itoa(i) == token {
			return i, true
		}
	}
	return 0, false
}

// find returns what stands at a path.
func find(v any, path []string) (any, bool) {
	for _, t := range path {
		switch n := v.(type) {
		case map[string]any:
			child, there := n[t]
			if !there {
				return nil, false
			}
			v = child
		case []any:
			i, there := place(t, len(n))
			if !there {
				return nil, false
			}
			v = n[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// after is the state that a change leaves, or which of its operations cannot be
// done. Nothing of the state before is changed.
func (c change) after(state any) (next any, failed int, ok bool) {
	path, is := tokensOf(c.pointer)
	if !is {
		return nil, 0, false
	}
	switch c.kind {
	case "merge":
		return merged(state, c.value), 0, true
	case "set":
		v := c.value
		if c.merge {
			before, _ := find(state, path)
			v = merged(before, v)
		}
		next, ok = put(state, path, v)
	case "remove":
		next, ok = without(state, path)
	case "patch":
		for i, o := range c.ops {
			if state, ok = o.after(state); !ok {
				return nil, i, false
			}
		}
		next = state
	}
	if _, object := next.(map[string]any); !object {
		return nil, len(c.ops), false
	}
	return next, 0, ok
}

func (o formOp) after(state any) (any, bool) {
	path, _ := tokensOf(o.path)
	from, _ := tokensOf(o.from)
	there, is := find(state, path)
	switch o.op {
	case "add":
		return added(state, path, o.value)
	case "remove":
		return without(state, path)
	case "replace":
		if !is {
			return nil, false
		}
		return put(state, path, o.value)
	case "test":
		return state, is && alike(there, o.value)
	}
	v, is := find(state, from)
	if !is {
		return nil, false
	}
	if o.op == "move" {
		if slices.Equal(from, path) {
			return state, true
		}
		if state, is = without(state, from); !is {
			return nil, false
		}
	}
	return added(state, path, v)
}

// merged is RFC 7396.
func merged(target, patch any) any {
	p, is := patch.(map[string]any)
	if !is {
		return patch
	}
	out := map[string]any{}
	if t, is := target.(map[string]any); is {
		out = maps.Clone(t)
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = merged(out[k], v)
		}
	}
	return out
}

// put is what "set" does: it makes the objects on the way.
func put(state any, path []string, v any) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	switch n := state.(type) {
	case nil:
		return put(map[string]any{}, path, v)
	case map[string]any:
		child, ok := put(n[path[0]], path[1:], v)
		out := maps.Clone(n)
		out[path[0]] = child
		return out, ok
	case []any:
		out := slices.Clone(n)
		i, there := place(path[0], len(n))
		if path[0] == "-" {
			out, i, there = append(out, nil), len(n), true
		}
		if !there {
			return nil, false
		}
		child, ok := put(out[i], path[1:], v)
		out[i] = child
		return out, ok
	}
	return nil, false
}

// inside makes of the container of a place what f says, where there is one.
func inside(state any, path []string, f func(container any, token string) (any, bool)) (any, bool) {
	if len(path) == 1 {
		return f(state, path[0])
	}
	child, there := find(state, path[:1])
	if !there {
		return nil, false
	}
	child, ok := inside(child, path[1:], f)
	if !ok {
		return nil, false
	}
	return put(state, path[:1], child)
}

// added is what "add" of a JSON patch does.
func added(state any, path []string, v any) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	return inside(state, path, func(container any, token string) (any, bool) {
		switch n := container.(type) {
		case map[string]any:
			return put(n, []string{token}, v)
		case []any:
			i, there := place(token, len(n)+1)
			if token == "-" {
				i, there = len(n), true
			}
			if !there {
				return nil, false
			}
			return slices.Insert(slices.Clone(n), i, v), true
		}
		return nil, false
	})
}

// without is a state in which nothing stands at a path.
func without(state any, path []string) (any, bool) {
	if _, there := find(state, path); !there || len(path) == 0 {
		return nil, false
	}
	return inside(state, path, func(container any, token string) (any, bool) {
		if n, is := container.([]any); is {
			i, _ := place(token, len(n))
			return slices.Delete(slices.Clone(n), i, i+1), true
		}
		out := maps.Clone(container.(map[string]any))
		delete(out, token)
		return out, true
	})
}

// alike compares as "test" of a JSON patch does: numbers by what they are.
func alike(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		return is && maps.EqualFunc(a, b, alike)
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, alike)
	case json.Number:
		b, is := b.(json.Number)
		return is && number(a) == number(b)
	}
	return a == b
}

func number(n json.Number) float64 {
	f, _ := n.Float64()
	return f
}
