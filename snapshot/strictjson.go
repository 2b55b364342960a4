package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// StrictJSON decodes JSON that comes from outside, where encoding/json would
// guess: a key must be a field's name exactly, in case too, and no key may stand
// twice; null stands for references only. A field tagged required:"true" must be
// there. Numbers keep their text in untyped values. The zero value is ready; it is safe for concurrent use and must not be
// copied after its first use.
type StrictJSON struct {
	codec jsonCodec
}

// UnknownFieldError says that an object has a key that names no field.
type UnknownFieldError struct {
	// Path leads to the key, such as .floors[2].heigth.
	Path string
}

func (e *UnknownFieldError) Error() string { return fmt.Sprintf("unknown field %s", e.Path) }

// MissingFieldError says that an object lacks a field that is required.
type MissingFieldError struct {
	Path string
}

func (e *MissingFieldError) Error() string { return fmt.Sprintf("field %s is missing", e.Path) }

// Decode decodes one JSON value into a pointer to a value of a type that
// JSON().Check accepts. It fails with an *UnknownFieldError or
// a *MissingFieldError, with a *json.UnmarshalTypeError for a value of the wrong type, or with an error
// that says where the text is no JSON.
func (s *StrictJSON) Decode(data []byte, into any) error {
	tree, err := ParseJSON(data)
	if err != nil {
		return err
	}
	t := reflect.TypeOf(into).Elem()
	if kind := t.Kind(); tree == nil && kind != reflect.Pointer && kind != reflect.Interface {
		return &json.UnmarshalTypeError{Value: "null", Type: t}
	}
	if path := s.unknown(t, tree); path != "" {
		return &UnknownFieldError{Path: path}
	}
	if path, wrong := s.null(t, tree); wrong != nil {
		return &json.UnmarshalTypeError{Value: "null", Type: wrong, Field: strings.TrimPrefix(path, ".")}
	}
	if path := missing(t, tree); path != "" {
		return &MissingFieldError{Path: path}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return decodeSafely(d, into)
}

// unknown returns the path of the first key, in the order of keys, that names
// no field of t; empty when there is none.
func (s *StrictJSON) unknown(t reflect.Type, tree any) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if marshalsToJSON(t) {
		return ""
	}
	switch tree := tree.(type) {
	case []any:
		if k := t.Kind(); k == reflect.Slice || k == reflect.Array {
			for i, v := range tree {
				if path := s.unknown(t.Elem(), v); path != "" {
					return "[" + strconv.Itoa(i) + "]" + path
				}
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			inner, ok := s.inner(t, name)
			if !ok {
				return "." + name
			}
			if path := s.unknown(inner, tree[name]); path != "" {
				return "." + name + path
			}
		}
	}
	return ""
}

// null returns the path and the type of the first value, in the order of keys,
// that is null where no reference stands; encoding/json would pass it over.
func (s *StrictJSON) null(t reflect.Type, tree any) (path string, wrong reflect.Type) {
	for t.Kind() == reflect.Pointer && tree != nil {
		t = t.Elem()
	}
	if marshalsToJSON(t) {
		return "", nil
	}
	switch tree := tree.(type) {
	case nil:
		switch t.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
			return "", nil
		}
		return "", t
	case []any:
		if k := t.Kind(); k == reflect.Slice || k == reflect.Array {
			for i, v := range tree {
				if path, wrong := s.null(t.Elem(), v); wrong != nil {
					return "[" + strconv.Itoa(i) + "]" + path, wrong
				}
			}
		}
	case map[string]any:
		if k := t.Kind(); k != reflect.Map && k != reflect.Struct {
			return "", nil
		}
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if inner, ok := s.inner(t, name); ok {
				if path, wrong := s.null(inner, tree[name]); wrong != nil {
					return "." + name + path, wrong
				}
			}
		}
	}
	return "", nil
}

// inner returns the type of what stands under a key of a t.
func (s *StrictJSON) inner(t reflect.Type, name string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		inner, ok := s.codec.fieldTypes(t)[name]
		return inner, ok
	default:
		return t, true // of the wrong type, which decoding says better
	}
}

// missing returns the path of the first required field of a struct that its
// object lacks; empty when there is none. It looks at the outermost struct
// alone.
func missing(t reflect.Type, tree any) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	object, ok := tree.(map[string]any)
	if !ok || t.Kind() != reflect.Struct || marshalsToJSON(t) {
		return ""
	}
	fields, _ := structFields(t) // Check has told of what is refused
	for _, f := range fields {
		if _, there := object[f.name]; !there && t.FieldByIndex(f.index).Tag.Get("required") == "true" {
			return "." + f.name
		}
	}
	return ""
}
