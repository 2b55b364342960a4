package httpapi

import (
	"encoding"
	"encoding/json"
	"fmt"
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
	optional bool // no member has to be there: what is left out is zero
}

func newTypeSchemas(prefix string, optional bool) *typeSchemas {
	s := &typeSchemas{
		prefix: prefix, optional: optional,
		names: make(map[reflect.Type]string), taken: make(map[string]bool), seen: make(map[reflect.Type]bool),
	}
	s.registry = huma.NewMapRegistry(schemaPrefix, s.name)
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
			out = &huma.Schema{Description: fmt.Sprintf("The Go type %s.", t)}
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
			if f := t.Field(i); f.IsExported() {
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
	all := s.registry.Map()
	for t, name := range s.names {
		if own := all[name]; own != nil && t.Kind() == reflect.Struct {
			s.nulls(t, own)
		}
	}
	for _, own := range all {
		if s.optional {
			own.Required = nil
		}
	}
	return all
}

// nulls lets the members of a struct be null where their Go values can be nil.
func (s *typeSchemas) nulls(t reflect.Type, own *huma.Schema) {
	for name, member := range own.Properties {
		own.Properties[name] = nullable(member)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		member := own.Properties[name]
		if member == nil || member.Ref == "" || f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omitempty") {
			continue
		}
		own.Properties[name] = &huma.Schema{AnyOf: []*huma.Schema{member, {Type: "null"}}}
	}
}

// nullable lets maps and bytes be null, at any depth.
func nullable(s *huma.Schema) *huma.Schema {
	if s == nil || s.Ref != "" {
		return s
	}
	if values, is := s.AdditionalProperties.(*huma.Schema); is && s.Type == huma.TypeObject {
		s.Nullable = true
		s.AdditionalProperties = nullable(values)
	}
	if s.Type == huma.TypeString && s.ContentEncoding != "" {
		s.Nullable = true
	}
	s.Items = nullable(s.Items)
	return s
}
