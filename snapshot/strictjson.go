package snapshot

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// StrictJSON decodes JSON that comes from outside, where encoding/json would
// guess: a key must be a field's name exactly, in case too, and no key may stand
// twice; null stands for references only. A field tagged required:"true" must be
// there. Numbers keep their text in untyped values. The zero value is ready; it
// is safe for concurrent use and must not be copied after its first use.
type StrictJSON struct {
	types sync.Map // reflect.Type to *strictType
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
	return s.DecodeParsed(data, tree, into)
}

// DecodeParsed is Decode of data that ParseJSON has made tree of.
func (s *StrictJSON) DecodeParsed(data []byte, tree, into any) error {
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
	if path := s.missing(t, tree); path != "" {
		return &MissingFieldError{Path: path}
	}
	return decodeSafely(data, into, s.of(t).untyped)
}

// unknown returns the path of the first key, in the order of keys, that names
// no field of t; empty when there is none.
func (s *StrictJSON) unknown(t reflect.Type, tree any) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	known := s.of(t)
	if known.own {
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
		first, found := "", ""
		for name, v := range tree {
			if found != "" && name > first {
				continue
			}
			inner, ok := known.inner(t, name)
			if !ok {
				first, found = name, "."+name
			} else if path := s.unknown(inner, v); path != "" {
				first, found = name, "."+name+path
			}
		}
		return found
	}
	return ""
}

// null returns the path and the type of the first value, in the order of keys,
// that is null where no reference stands; encoding/json would pass it over.
func (s *StrictJSON) null(t reflect.Type, tree any) (path string, wrong reflect.Type) {
	for t.Kind() == reflect.Pointer && tree != nil {
		t = t.Elem()
	}
	known := s.of(t)
	if known.own {
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
		first := ""
		for name, v := range tree {
			if wrong != nil && name > first {
				continue
			}
			if inner, ok := known.inner(t, name); ok {
				if behind, bad := s.null(inner, v); bad != nil {
					first, path, wrong = name, "."+name+behind, bad
				}
			}
		}
		return path, wrong
	}
	return "", nil
}

// missing returns the path of the first required field of a struct that its
// object lacks; empty when there is none. It looks at the outermost struct
// alone.
func (s *StrictJSON) missing(t reflect.Type, tree any) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if object, ok := tree.(map[string]any); ok {
		for _, name := range s.of(t).required {
			if _, there := object[name]; !there {
				return "." + name
			}
		}
	}
	return ""
}
