package entity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/twinsrv/twinsrv/snapshot"
)

// Object is a document's state: a JSON object, with numbers as json.Number so
// that they keep their text.
type Object map[string]any

// Merge is the message "merge" of a document: a JSON merge patch (RFC 7396).
// Members that are null are removed, objects are merged, everything else
// replaces. Its body is the patch itself, an object: any other patch would make
// the state one that is no object.
type Merge map[string]any

// Set is the message "set" of a document: it puts a value at a JSON pointer
// (RFC 6901), making the objects on the way. The empty pointer replaces the
// whole state and needs an object. In an array an existing index is replaced
// and "-" appends.
type Set struct {
	Pointer string `json:"pointer" required:"true"`
	Value   any    `json:"value" required:"true"`
	// Merge makes Value a JSON merge patch (RFC 7396) of what stands at the
	// pointer.
	Merge bool `json:"merge,omitempty"`
}

// Remove is the message "remove" of a document: it removes what stands at a
// JSON pointer, and is rejected when nothing does.
type Remove struct {
	Pointer string `json:"pointer" required:"true"`
}

// Document describes entities whose state is a JSON object, for pods that are
// declared and not programmed. They handle the messages Merge, Set, Remove and
// Patch, of which the first two create unless Create says otherwise.
type Document struct {
	// Name is the name of the pod.
	Name string
	// Create says which of "merge", "set", "remove" and "patch" create an
	// entity, and of what name. The zero value lets "merge" and "set" create
	// any.
	Create Creation
	// Schema, if it is not empty, is a JSON Schema (2020-12) of at most 64 KiB
	// that every changed state must fit; see SchemaError. It refers to nothing
	// outside itself. "format" is not checked.
	Schema json.RawMessage
	// Index are the paths that queries find entities by without looking at all,
	// such as "state.floor"; see pod.Query.
	Index []string
	// Durability is Sync unless set.
	Durability Durability
	// Repeats says how long answers to messages with ids are remembered.
	Repeats Window
	// Eager recovers every entity when the pod starts.
	Eager bool
}

func (d Document) state() (o Object) { return o }

// Spec checks and compiles the definition.
func (d Document) Spec() (*Spec, error) {
	create := d.Create
	if create.By == nil {
		create.By = []string{"merge", "set"}
	}
	spec := &Spec{
		Name: d.Name, Kind: KindDocument, Durability: d.Durability, Eager: d.Eager,
		State: reflect.TypeFor[Object](), codec: snapshot.JSON(), repeats: d.Repeats.withDefaults(), index: slices.Clone(d.Index),
	}
	empty := func(context.Context, string) (Object, error) { return Object{}, nil }
	handlers := Handlers[Object]{
		"merge":  On(func(c *Context, o *Object, m Merge) error { return o.apply(m, c.a.host.MaxState()) }),
		"set":    On(func(c *Context, o *Object, m Set) error { return o.apply(m, c.a.host.MaxState()) }),
		"remove": On(func(c *Context, o *Object, m Remove) error { return o.apply(m, c.a.host.MaxState()) }),
		"patch":  On(func(c *Context, o *Object, p Patch) error { return o.apply(p, c.a.host.MaxState()) }),
	}
	if len(d.Schema) > 0 {
		var err error
		if spec.schema, err = compileSchema(d.Schema); err != nil {
			return nil, fmt.Errorf("%w: the schema of %s: %w", ErrDefinition, d.Name, err)
		}
	}
	return compile(spec, empty, handlers, create)
}

// apply makes of the object what a message of documents says, and takes at most
// so many bytes for what it copies. After an error the object is of no use.
func (o *Object) apply(message any, most int) (err error) {
	switch m := message.(type) {
	case Merge:
		o.merge(m)
	case Set:
		err = o.set(m)
	case Remove:
		return o.remove(m)
	case Patch:
		err = o.patch(m, most)
	}
	return cmp.Or(err, o.checkDepth())
}

// Replace returns the message that makes body, a JSON object, the whole state of
// a document. What the pod's schema forbids is refused also if the state is so
// already.
func (s *Spec) Replace(body []byte) (*Message, error) { return s.SetAt("", body) }

// SetAt returns the Set that puts body, a JSON value, at a pointer in a
// document. It fails with ErrMalformed, or with ErrUnknownMessage where there
// are no documents.
func (s *Spec) SetAt(pointer string, body []byte) (*Message, error) {
	return s.setAt(pointer, body, false)
}

// MergeAt returns the Set that has body, a JSON merge patch, change what stands
// at a pointer in a document. It fails as SetAt does.
func (s *Spec) MergeAt(pointer string, body []byte) (*Message, error) {
	return s.setAt(pointer, body, true)
}

func (s *Spec) setAt(pointer string, body []byte, merge bool) (*Message, error) {
	v, err := snapshot.ParseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, ok := v.(map[string]any); !ok && pointer == "" {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, notAnObject(v))
	}
	m, err := s.about(pointer, "set", Set{Pointer: pointer, Value: v, Merge: merge})
	if err == nil {
		m.whole = pointer == "" && !merge
	}
	return m, err
}

// RemoveAt returns the Remove of what stands at a pointer in a document. It
// fails as SetAt does.
func (s *Spec) RemoveAt(pointer string) (*Message, error) {
	return s.about(pointer, "remove", Remove{Pointer: pointer})
}

func (s *Spec) about(pointer, name string, body any) (*Message, error) {
	if _, err := parsePointer(pointer); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	h, ok := s.handlers[name]
	if !ok || s.Kind != KindDocument {
		return nil, fmt.Errorf("%w: pod %s has no documents", ErrUnknownMessage, s.Name)
	}
	return &Message{handler: h, body: body}, nil
}

// Schema returns the JSON Schema of a document's states, nil if there is none.
// It must not be changed.
func (s *Spec) Schema() json.RawMessage {
	if s.schema == nil {
		return nil
	}
	return s.schema.text
}

// notAnObject says which kind of value stands where an object must.
func notAnObject(v any) error {
	kind := "a number"
	switch v.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = "a boolean"
	case string:
		kind = "a string"
	case []any:
		kind = "an array"
	}
	return fmt.Errorf("a document is a JSON object, not %s", kind)
}

// maxDepth is how deep a document nests, the state itself being level 1.
const maxDepth = 1000

// checkDepth rejects a state that could not be stored.
func (o *Object) checkDepth() error {
	if deeper(map[string]any(*o), maxDepth) {
		return Rejectf("the state would nest deeper than %d levels", maxDepth)
	}
	return nil
}

// deeper reports whether v nests deeper than so many levels.
func deeper(v any, levels int) bool {
	if levels < 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			if deeper(child, levels-1) {
				return true
			}
		}
		return levels == 0
	case []any:
		for _, child := range v {
			if deeper(child, levels-1) {
				return true
			}
		}
		return levels == 0
	}
	return false
}

func (o *Object) merge(m Merge) {
	*o = mergePatch(map[string]any(*o), map[string]any(m)).(map[string]any)
}

// mergePatch is MergePatch of RFC 7396, section 2. It may keep parts of both.
func mergePatch(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok || t == nil {
		t = make(map[string]any, len(p))
	}
	for k, v := range p {
		if v == nil {
			delete(t, k)
		} else {
			t[k] = mergePatch(t[k], v)
		}
	}
	return t
}
