package entity

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Patch is the message "patch" of a document: a JSON patch (RFC 6902), whose
// operations happen in their order, all of them or none. Its body is the patch
// itself, an array. The rejection of a patch that cannot be applied names the
// operation, counted from 0. Unless Create says otherwise it creates nothing.
type Patch []PatchOperation

// PatchOperation is one operation of a Patch.
type PatchOperation struct {
	// Op is "add", "remove", "replace", "move", "copy" or "test".
	Op string `json:"op" enum:"add,remove,replace,move,copy,test"`
	// Path is the JSON pointer of the place that the operation is about.
	Path string `json:"path"`
	// From is the JSON pointer from which "move" and "copy" take.
	From string `json:"from,omitempty"`
	// Value is what "add", "replace" and "test" bring; nil is null.
	Value any `json:"value,omitempty"`
}

func (o PatchOperation) hasValue() bool { return o.Op == "add" || o.Op == "replace" || o.Op == "test" }
func (o PatchOperation) hasFrom() bool  { return o.Op == "move" || o.Op == "copy" }

// check refuses what is no operation, whatever state it is for.
func (o PatchOperation) check() error {
	if !o.hasValue() && !o.hasFrom() && o.Op != "remove" {
		return fmt.Errorf("op is add, remove, replace, move, copy or test, not %q", o.Op)
	}
	path, err := parsePointer(o.Path)
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	if !o.hasFrom() {
		return nil
	}
	from, err := parsePointer(o.From)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if o.Op == "move" && len(path) > len(from) && slices.Equal(from, path[:len(from)]) {
		return errors.New("nothing can be moved into itself")
	}
	return nil
}

// MarshalJSON writes the patch as RFC 6902 has it.
func (p Patch) MarshalJSON() ([]byte, error) {
	list := make([]any, len(p))
	for i, o := range p {
		if err := o.check(); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		members := map[string]any{"op": o.Op, "path": o.Path}
		if o.hasValue() {
			members["value"] = o.Value
		}
		if o.hasFrom() {
			members["from"] = o.From
		}
		list[i] = members
	}
	return snapshot.JSON().Append(nil, list)
}

// UnmarshalJSON reads a patch and refuses what is none. As RFC 6902 wants it,
// members that an operation does not have are passed over. Numbers keep their
// text.
func (p *Patch) UnmarshalJSON(data []byte) error {
	tree, err := snapshot.ParseJSON(data)
	if err != nil {
		return err
	}
	list, ok := tree.([]any)
	if !ok {
		return errors.New("a JSON patch is an array of operations")
	}
	out := make(Patch, len(list))
	for i, v := range list {
		if out[i], err = parseOperation(v); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
	}
	*p = out
	return nil
}

func parseOperation(v any) (o PatchOperation, err error) {
	members, ok := v.(map[string]any)
	if !ok {
		return o, errors.New("it is no object")
	}
	text := func(name string) string {
		s, is := members[name].(string)
		if !is && err == nil {
			err = fmt.Errorf("the member %q is missing, or no string", name)
		}
		return s
	}
	o.Op, o.Path = text("op"), text("path")
	if o.hasFrom() {
		o.From = text("from")
	}
	if err == nil {
		err = o.check()
	}
	if o.hasValue() {
		if o.Value, ok = members["value"]; !ok && err == nil {
			err = errors.New(`the member "value" is missing`)
		}
	}
	return o, err
}

const (
	// maxPatchWork is how many values a patch may move, copy and compare; a
	// second's worth. It bounds the time of one that inserts at the front of a
	// large array, or compares something large, again and again.
	maxPatchWork = 20_000_000
	// memberWork and numberWork are how many more values a comparison of a
	// member or of a number counts as. Texts count by their lengths besides.
	memberWork = 8
	numberWork = 4
)

// patching is a patch at work. RFC 6902 is followed to the letter, which
// json-patch/v5 does not: there a test for null passes where nothing stands, 1
// is not 1.0, and the empty key cannot be named.
type patching struct {
	root   any
	work   int // of maxPatchWork
	copied int // bytes of the values that "copy" made
	most   int // of them
}

// patch applies a patch whose copies together have at most so many bytes. After
// an error the state is of no use.
func (o *Object) patch(p Patch, most int) error {
	w := patching{root: map[string]any(*o), most: most}
	for i, op := range p {
		err := w.apply(op)
		if err != nil && i > 0 && mutant.On(mutant.PatchHalfApplied) {
			break
		}
		if err != nil {
			return Rejectf("operation %d (%s %q): %v; nothing of the patch was applied", i, op.Op, op.Path, err)
		}
	}
	root, ok := w.root.(map[string]any)
	if !ok {
		return Rejectf("the patch leaves no object: %v", notAnObject(w.root))
	}
	*o = root
	return nil
}

func (w *patching) apply(o PatchOperation) error {
	if err := o.check(); err != nil { // it may come from Go
		return err
	}
	path, err := parsePointer(o.Path)
	if err != nil {
		return err
	}
	switch o.Op {
	case "add":
		return w.add(path, o.Value)
	case "remove":
		_, err := w.remove(path)
		return err
	case "replace":
		return w.replace(path, o.Value)
	case "test":
		return w.test(path, o.Value)
	}
	from, err := parsePointer(o.From)
	if err != nil {
		return err
	}
	if o.Op == "copy" {
		v, err := valueAt(w.root, from)
		if err != nil {
			return err
		}
		if v, err = w.copy(v, 0); err != nil {
			return err
		}
		return w.add(path, v)
	}
	if slices.Equal(from, path) {
		_, err := valueAt(w.root, from)
		return err
	}
	v, err := w.remove(from)
	if err != nil {
		return err
	}
	return w.add(path, v)
}

// change replaces the container of the place that a path, which is not empty,
// leads to by what f makes of it.
func (w *patching) change(path []string, f func(container any, token string) (any, error)) (err error) {
	w.root, err = changeIn(w.root, path, f)
	return err
}

func changeIn(node any, path []string, f func(container any, token string) (any, error)) (any, error) {
	if len(path) == 1 {
		return f(node, path[0])
	}
	child, err := childOf(node, path[0])
	if err != nil {
		return node, err
	}
	child, err = changeIn(child, path[1:], f)
	if err != nil {
		return node, err
	}
	switch n := node.(type) {
	case map[string]any:
		n[path[0]] = child
	case []any:
		i, _ := index(path[0], len(n))
		n[i] = child
	}
	return node, nil
}

func (w *patching) add(path []string, v any) error {
	if len(path) == 0 {
		w.root = v
		return nil
	}
	return w.change(path, func(container any, token string) (any, error) {
		switch n := container.(type) {
		case map[string]any:
			n[token] = v
			return n, nil
		case []any:
			i, ok := len(n), token == "-"
			if !ok {
				i, ok = index(token, len(n)+1)
			}
			if !ok {
				return n, fmt.Errorf("the array has %d elements, and none can be added at %q", len(n), token)
			}
			return slices.Insert(n, i, v), w.spend(len(n) - i + 1)
		}
		return container, noContainer(token)
	})
}

func (w *patching) remove(path []string) (v any, err error) {
	if len(path) == 0 {
		return nil, errors.New("the whole state cannot be removed; delete the entity, or replace it by {}")
	}
	err = w.change(path, func(container any, token string) (_ any, err error) {
		if v, err = childOf(container, token); err != nil {
			return container, err
		}
		if n, ok := container.([]any); ok {
			i, _ := index(token, len(n))
			return slices.Delete(n, i, i+1), w.spend(len(n) - i)
		}
		delete(container.(map[string]any), token)
		return container, nil
	})
	return v, err
}

func (w *patching) replace(path []string, v any) error {
	if len(path) == 0 {
		w.root = v
		return nil
	}
	return w.change(path, func(container any, token string) (any, error) {
		if _, err := childOf(container, token); err != nil {
			return container, err
		}
		switch n := container.(type) {
		case map[string]any:
			n[token] = v
		case []any:
			i, _ := index(token, len(n))
			n[i] = v
		}
		return container, nil
	})
}

func (w *patching) test(path []string, want any) error {
	v, err := valueAt(w.root, path)
	if err != nil {
		return err
	}
	same, err := w.equal(v, want)
	if err == nil && !same {
		err = errors.New("another value stands there")
	}
	return err
}

func (w *patching) spend(n int) error {
	if w.work += n; w.work > maxPatchWork {
		return errors.New("the patch is too costly, since it moves or compares too many or too large values; split it")
	}
	return nil
}

// texts is the work of comparing two texts byte by byte.
func texts(x, y string) int { return (len(x) + len(y)) / 64 }

// equal compares as RFC 6902, section 4.6, has it: numbers by what they are.
func (w *patching) equal(x, y any) (bool, error) {
	work := 1
	switch x := x.(type) {
	case string:
		if y, ok := y.(string); ok && len(x) == len(y) {
			work += texts(x, y)
		}
	case json.Number:
		if y, ok := y.(json.Number); ok {
			work += numberWork + 8*texts(string(x), string(y)) // digit by digit
		}
	}
	if err := w.spend(work); err != nil {
		return false, err
	}
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for k, v := range x {
			if err := w.spend(memberWork + texts(k, k)); err != nil {
				return false, err
			}
			other, ok := y[k]
			if !ok {
				return false, nil
			}
			if same, err := w.equal(v, other); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for i, v := range x {
			if same, err := w.equal(v, y[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case json.Number:
		y, ok := y.(json.Number)
		return ok && sameNumber(x, y), nil
	default:
		return x == y, nil // null, booleans and strings
	}
}

// copy returns a deep copy.
func (w *patching) copy(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it nests deeper than %d levels", maxDepth)
	}
	if err := w.spend(1); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			c, err := w.copy(child, depth+1)
			if err == nil {
				err = w.made(len(k) + 3)
			}
			if err != nil {
				return nil, err
			}
			out[k] = c
		}
		return out, w.made(2)
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			c, err := w.copy(child, depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, w.made(2)
	case string:
		return v, w.made(len(v) + 2)
	case json.Number:
		return v, w.made(len(v))
	default:
		return v, w.made(4)
	}
}

func (w *patching) made(bytes int) error {
	if w.copied += bytes; w.copied > w.most {
		return fmt.Errorf("the copies of the patch have more than %d bytes", w.most)
	}
	return nil
}

// sameNumber reports whether two texts of JSON numbers are one number. It makes
// no copies of them.
func sameNumber(x, y json.Number) bool {
	if x == y {
		return true
	}
	a, okA := parseDecimal(string(x))
	b, okB := parseDecimal(string(y))
	return okA && okB && a.equal(b)
}

// decimal is a number as its digits, without zeros at either end, and the power
// of ten of the last one. The digits are those of head and then those of tail.
type decimal struct {
	negative   bool
	head, tail string
	exponent   int64
}

func (d decimal) equal(o decimal) bool {
	if d.negative != o.negative || d.exponent != o.exponent || len(d.head)+len(d.tail) != len(o.head)+len(o.tail) {
		return false
	}
	if len(d.head) > len(o.head) {
		d, o = o, d
	}
	rest, begins := strings.CutPrefix(o.head, d.head)
	return begins && d.tail[:len(rest)] == rest && d.tail[len(rest):] == o.tail
}

// parseDecimal reads a JSON number. It gives up on exponents of more than 62
// bits.
func parseDecimal(s string) (d decimal, ok bool) {
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent, has := cutExponent(s)
	if has {
		var err error
		if d.exponent, err = strconv.ParseInt(exponent, 10, 62); err != nil {
			return d, false
		}
	}
	head, tail, _ := strings.Cut(mantissa, ".")
	d.exponent -= int64(len(tail))
	if d.head = strings.TrimLeft(head, "0"); d.head == "" {
		tail = strings.TrimLeft(tail, "0")
	}
	if d.tail = strings.TrimRight(tail, "0"); d.tail == "" {
		head = d.head
		d.head = strings.TrimRight(head, "0")
		d.exponent += int64(len(head) - len(d.head))
	}
	d.exponent += int64(len(tail) - len(d.tail))
	if d.head == "" && d.tail == "" {
		return decimal{}, true // also minus zero
	}
	return d, true
}

func cutExponent(s string) (mantissa, exponent string, has bool) {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
