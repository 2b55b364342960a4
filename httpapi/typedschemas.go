package httpapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const schemaPrefix = "#/components/schemas/"

// typeSchemas makes JSON Schemas of the Go types of one pod. Their names begin
// with the pod's, since pods know nothing of each other's types.
type typeSchemas struct {
	registry huma.Registry
	prefix   string
	names    map[reflect.Type]string
	taken    map[string]bool
	seen     map[reflect.Type]bool
	incoming bool // of what clients send: required is what a message must have
}

// newTypeSchemas returns the schemas of one pod, which stand at a place, such as
// schemaPrefix.
func newTypeSchemas(at, prefix string, incoming bool) *typeSchemas {
	s := &typeSchemas{
		prefix: prefix, incoming: incoming,
		names: make(map[reflect.Type]string), taken: make(map[string]bool), seen: make(map[reflect.Type]bool),
	}
	s.registry = huma.NewMapRegistry(at, s.name)
	return s
}

// name gives each type a name of its own, that of the Go type if it is free.
func (s *typeSchemas) name(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name, is := s.names[t]; is {
		return name
	}
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, huma.DefaultSchemaNamer(t, hint))
	name := s.prefix + plain
	for n := 2; s.taken[name]; n++ {
		name = fmt.Sprint(s.prefix, plain, n)
	}
	s.names[t], s.taken[name] = name, true
	return name
}

// schema returns the schema of a type; any JSON, should the type be one that
// cannot be described.
func (s *typeSchemas) schema(t reflect.Type) (out *huma.Schema) {
	if t == nil {
		return &huma.Schema{}
	}
	defer func() {
		if p := recover(); p != nil { // of huma, which knows fewer types than the codecs
			out = &huma.Schema{Description: "Any JSON that the program understands."}
		}
	}()
	s.prepare(t)
	out = s.registry.Schema(t, true, "Value")
	if out == nil {
		out = &huma.Schema{}
	}
	return out
}

// prepare has types that write their own JSON described as any JSON.
func (s *typeSchemas) prepare(t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.seen[t] {
		return
	}
	s.seen[t] = true
	if writesItself(t) {
		s.registry.RegisterTypeAlias(t, reflect.TypeFor[any]())
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		s.prepare(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() || f.Anonymous {
				s.prepare(f.Type)
			}
		}
	}
}

// writesItself reports whether a type's JSON is not what its fields say. Those
// that are known are left alone, and so are texts.
func writesItself(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number]():
		return false
	}
	p := reflect.PointerTo(t)
	marshals, text := reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()
	return t.Implements(marshals) || p.Implements(marshals) ||
		(t.Implements(text) || p.Implements(text)) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// components returns the schemas that were made, by their names, as what the
// server writes and takes fits them: nil maps, slices and pointers are null.
func (s *typeSchemas) components() map[string]*huma.Schema {
	done := make(map[reflect.Type]bool)
	for len(done) < len(s.names) {
		for t, name := range maps.Clone(s.names) {
			if own := s.registry.Map()[name]; own != nil && t.Kind() == reflect.Struct && !done[t] {
				s.complete(t, own)
				s.nulls(t, own)
			}
			done[t] = true
		}
	}
	return s.registry.Map()
}

// complete adds to the schema of a struct the members that it has from embedded
// structs of unexported types, which huma passes over. A message must have those
// that its jsonShape asks for.
func (s *typeSchemas) complete(t reflect.Type, own *huma.Schema) {
	var required []string
	for _, f := range fieldsOf(t) {
		if own.Properties[f.name] == nil {
			if own.Properties == nil {
				own.Properties = make(map[string]*huma.Schema)
			}
			own.Properties[f.name] = s.schema(f.field.Type)
		}
		if _, options, _ := strings.Cut(f.field.Tag.Get("json"), ","); f.required || !s.incoming && !strings.Contains(options, "omit") {
			required = append(required, f.name)
		}
	}
	own.Required = required
}

// definitionsPrefix is where a schema that stands alone has those that it refers
// to.
const definitionsPrefix = "#/$defs/"

// aloneSchema returns the schema of a type with all that it refers to; nil if it
// cannot be written.
func aloneSchema(t reflect.Type, incoming bool) json.RawMessage {
	s := newTypeSchemas(definitionsPrefix, "", incoming)
	data, err := json.Marshal(s.schema(t))
	if err != nil {
		return nil
	}
	var whole map[string]any
	if json.Unmarshal(data, &whole) != nil {
		return nil
	}
	if parts := s.components(); len(parts) > 0 {
		whole["$defs"] = parts
	}
	if data, err = encode(whole); err != nil {
		return nil
	}
	return data
}

// nulls lets the members of a struct be null where their Go values can be nil.
func (s *typeSchemas) nulls(t reflect.Type, own *huma.Schema) {
	for _, f := range fieldsOf(t) {
		member := own.Properties[f.name]
		if member == nil {
			continue
		}
		_, options, _ := strings.Cut(f.field.Tag.Get("json"), ",")
		if own.Properties[f.name] = nullable(member, f.field.Type); !s.incoming && strings.Contains(options, "omitempty") && member.Ref != "" {
			own.Properties[f.name] = member // a pointer that is nil is left out
		}
	}
}

// nullable lets a schema of a type, and those of its elements, be null where nil
// is.
func nullable(s *huma.Schema, t reflect.Type) *huma.Schema {
	switch {
	case s == nil:
		return s
	case s.Ref != "" && t.Kind() == reflect.Pointer:
		return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}}
	case s.Ref != "":
		return s
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Slice && t.Kind() != reflect.Array && t.Kind() != reflect.Map {
		return s
	}
	switch values, is := s.AdditionalProperties.(*huma.Schema); {
	case is && s.Type == huma.TypeObject:
		s.Nullable = true
		s.AdditionalProperties = nullable(values, t.Elem())
	case s.Type == huma.TypeString && s.ContentEncoding != "":
		s.Nullable = true
	case s.Type == huma.TypeArray:
		s.Nullable = s.Nullable && t.Kind() == reflect.Slice
		s.Items = nullable(s.Items, t.Elem())
	}
	return s
}
