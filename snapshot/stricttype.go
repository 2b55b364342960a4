package snapshot

import "reflect"

// strictType is what StrictJSON has to know of a type. It is worked out once:
// to look for methods and tags each time took longer than decoding.
type strictType struct {
	own      bool                    // it marshals itself
	untyped  bool                    // something in it may hold any JSON
	fields   map[string]reflect.Type // of a struct, by their names in JSON
	required []string                // of them, in their order
}

func (s *StrictJSON) of(t reflect.Type) *strictType {
	if known, ok := s.types.Load(t); ok {
		return known.(*strictType)
	}
	made := &strictType{own: marshalsToJSON(t), untyped: holdsAny(t, make(map[reflect.Type]bool))}
	if t.Kind() == reflect.Struct && !made.own {
		made.fields = make(map[string]reflect.Type)
		fields, _ := structFields(t) // Check has told of what is refused
		for _, f := range fields {
			made.fields[f.name] = f.typ
			if t.FieldByIndex(f.index).Tag.Get("required") == "true" {
				made.required = append(made.required, f.name)
			}
		}
	}
	known, _ := s.types.LoadOrStore(t, made)
	return known.(*strictType)
}

// holdsAny reports whether a value of the type may hold an interface, of which
// encoding/json chooses what is in it.
func holdsAny(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsAny(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsAny(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// inner returns the type of what stands under a key of a t.
func (k *strictType) inner(t reflect.Type, name string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		inner, ok := k.fields[name]
		return inner, ok
	default:
		return t, true // of the wrong type, which decoding says better
	}
}
