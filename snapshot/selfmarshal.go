package snapshot

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"
)

// form is one way in which types marshal themselves.
type form struct {
	name        string // of the method that marshals
	marshaler   reflect.Type
	unmarshaler reflect.Type
	binary      bool // kept as bytes, else as text
	marshal     func(v any) ([]byte, error)
	unmarshal   func(v any, data []byte) error
}

func (f *form) implementedBy(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(f.marshaler) && p.Implements(f.unmarshaler)
}

func textForm() *form {
	return &form{
		name:        "MarshalText",
		marshaler:   reflect.TypeFor[encoding.TextMarshaler](),
		unmarshaler: reflect.TypeFor[encoding.TextUnmarshaler](),
		marshal: func(v any) ([]byte, error) {
			b, err := v.(encoding.TextMarshaler).MarshalText()
			if err == nil && !utf8.Valid(b) {
				err = errNotUTF8(string(b))
			}
			return b, err
		},
		unmarshal: func(v any, data []byte) error {
			return v.(encoding.TextUnmarshaler).UnmarshalText(data)
		},
	}
}

func binaryForm() *form {
	return &form{
		name:        "MarshalBinary",
		marshaler:   reflect.TypeFor[encoding.BinaryMarshaler](),
		unmarshaler: reflect.TypeFor[encoding.BinaryUnmarshaler](),
		binary:      true,
		marshal: func(v any) ([]byte, error) {
			return v.(encoding.BinaryMarshaler).MarshalBinary()
		},
		unmarshal: func(v any, data []byte) error {
			return v.(encoding.BinaryUnmarshaler).UnmarshalBinary(data)
		},
	}
}

func jsonForm() *form {
	return &form{
		name:        "MarshalJSON",
		marshaler:   reflect.TypeFor[json.Marshaler](),
		unmarshaler: reflect.TypeFor[json.Unmarshaler](),
		marshal: func(v any) ([]byte, error) {
			b, err := v.(json.Marshaler).MarshalJSON()
			if err != nil {
				return nil, err
			}
			return CanonicalJSON(b)
		},
		unmarshal: func(v any, data []byte) error {
			return v.(json.Unmarshaler).UnmarshalJSON(data)
		},
	}
}

// selfMarshalling returns how values of t marshal and unmarshal themselves, or
// nil when they do not do both. Text comes before bytes and these before JSON.
func selfMarshalling(t reflect.Type) *form {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return nil
	}
	for _, f := range []*form{textForm(), binaryForm(), jsonForm()} {
		if f.implementedBy(t) {
			return f
		}
	}
	return nil
}

// checkPromoted refuses a struct that owes its marshalling to an embedded field,
// because that would forget all its other fields.
func (f *form) checkPromoted(t reflect.Type) error {
	if t.Kind() != reflect.Struct || t.NumField() < 2 {
		return nil
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		has := sf.Type.Implements(f.marshaler) || reflect.PointerTo(sf.Type).Implements(f.marshaler)
		if sf.Anonymous && has {
			return fmt.Errorf("%s has %s from its embedded field %s, which forgets its other fields: name that field", t, f.name, sf.Name)
		}
	}
	return nil
}

// unmarshalSafely calls a type's own method. Such methods are written for their
// own output; what they do on other input, even a panic, is an error here.
func (f *form) unmarshalSafely(v any, data []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unmarshalling panicked: %v", p)
		}
	}()
	return f.unmarshal(v, data)
}

func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

// checkYear keeps times within what RFC 3339 can write.
func checkYear(t time.Time) error {
	if y := t.Year(); y < 0 || y > 9999 {
		return fmt.Errorf("time has the year %d: only 0 to 9999 can be kept", y)
	}
	return nil
}
