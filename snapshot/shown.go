package snapshot

import (
	"fmt"
	"reflect"
)

// Shower renders encoded states of one type as JSON for people. It is immutable
// and safe for concurrent use.
type Shower struct {
	codec Codec
	root  *shape // nil: ToJSON says it all
}

// shape says where values stand that the msgpack codec keeps as the text of their
// own JSON.
type shape struct {
	text    bool
	fields  map[string]*shape
	element *shape // of a list or a map
}

// ShowerOf returns what renders states of a type that the codec takes.
func ShowerOf(c Codec, t reflect.Type) *Shower {
	s := &Shower{codec: c}
	if c.Name() != msgpackName {
		return s
	}
	some := false
	if root := shapeOf(t, map[reflect.Type]*shape{}, &some); some {
		s.root = root
	}
	return s
}

// shapeOf notes in some whether anything in the type is kept as text.
func shapeOf(t reflect.Type, seen map[reflect.Type]*shape, some *bool) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, is := seen[t]; is {
		return s
	}
	s := &shape{}
	seen[t] = s
	switch own := selfMarshalling(t); {
	case isTime(t):
	case own != nil:
		s.text = own.name == jsonForm().name
		*some = *some || s.text
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array, t.Kind() == reflect.Map:
		s.element = shapeOf(t.Elem(), seen, some)
	case t.Kind() == reflect.Struct:
		fields, err := structFields(t)
		if err != nil { // no codec takes such a type
			return s
		}
		s.fields = make(map[string]*shape, len(fields))
		for _, f := range fields {
			s.fields[f.name] = shapeOf(f.typ, seen, some)
		}
	}
	return s
}

// JSON renders an encoded state as Codec.ToJSON does, but with values whose types
// marshal themselves to JSON as that JSON, and not as a string that holds it.
func (s *Shower) JSON(data []byte) ([]byte, error) {
	text, err := s.codec.ToJSON(data)
	if err != nil || s.root == nil {
		return text, err
	}
	tree, err := ParseJSON(text)
	if err == nil {
		tree, err = s.root.show(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("rendering what marshals itself: %w", err)
	}
	return AppendJSON(nil, tree)
}

// show returns the tree with the texts of it replaced by what they say.
func (s *shape) show(v any) (_ any, err error) {
	if s == nil {
		return v, nil
	}
	switch v := v.(type) {
	case string:
		if s.text {
			return ParseJSON([]byte(v))
		}
	case map[string]any:
		for k, inner := range v {
			of := s.element
			if s.fields != nil {
				of = s.fields[k]
			}
			if v[k], err = of.show(inner); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, inner := range v {
			if v[i], err = s.element.show(inner); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
