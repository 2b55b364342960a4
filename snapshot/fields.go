package snapshot

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// field is one field of a struct as it is stored, under the name that
// encoding/json would give it. Fields of embedded structs stand in their outer
// struct, as they do there.
type field struct {
	name      string
	goName    string
	index     []int // the way to it through embedded structs
	typ       reflect.Type
	omitEmpty bool
	isZero    func(reflect.Value) bool // set for omitzero
}

// structFields lists the fields of t in their order of declaration. It refuses
// whatever encoding/json would leave out without a word, since a state must not
// forget anything.
func structFields(t reflect.Type) ([]field, error) {
	var out []field
	seen := map[string]string{}
	err := collectFields(t, nil, nil, func(f field) error {
		if other, twice := seen[f.name]; twice {
			return fmt.Errorf("has the same name %q as field %s: give one of them another json tag", f.name, other)
		}
		seen[f.name] = f.goName
		out = append(out, f)
		return nil
	})
	return out, err
}

// collectFields gives t's own and embedded fields to add. outer holds the
// structs that t is embedded in.
func collectFields(t reflect.Type, prefix []int, outer []reflect.Type, add func(field) error) error {
	for _, o := range outer {
		if o == t {
			return errors.New("embeds itself: name the field")
		}
	}
	outer = append(outer, t)
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Name == "_" {
			continue // holds nothing
		}
		f, err := readField(sf)
		if err != nil {
			return at("."+sf.Name, err)
		}
		f.index = append(append([]int(nil), prefix...), i)
		if inner, ok := inlined(sf); !ok {
			err = add(f)
		} else if isTime(inner) || selfMarshalling(inner) != nil {
			err = fmt.Errorf("embeds %s, which marshals itself and so has no fields of its own: name the field", inner)
		} else {
			err = collectFields(inner, f.index, outer, add)
		}
		if err != nil {
			return at("."+sf.Name, err)
		}
	}
	return nil
}

// inlined says whether a field's own fields stand in the outer struct, and
// gives the struct that has them.
func inlined(sf reflect.StructField) (reflect.Type, bool) {
	name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if !sf.Anonymous || name != "" {
		return nil, false
	}
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct
}

func readField(sf reflect.StructField) (field, error) {
	f := field{name: sf.Name, goName: sf.Name, typ: sf.Type}
	if err := checkVisible(sf); err != nil {
		return f, err
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return f, errors.New(`is tagged json:"-", so its value would be forgotten: keep it elsewhere or remove the tag`)
	}
	name, options, _ := strings.Cut(tag, ",")
	if name != "" {
		if !validName(name) {
			return f, fmt.Errorf("has the json name %q, which encoding/json refuses: use letters, digits and signs other than quotes, backslash and comma", name)
		}
		f.name = name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "string":
			return f, errors.New(`is tagged json:",string", a second form for the same value: remove the option`)
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.isZero = zeroTest(sf.Type)
		}
	}
	return f, nil
}

// checkVisible refuses fields that reflection may not set. An embedded struct of
// an unexported type is fine, since its own exported fields can be set.
func checkVisible(sf reflect.StructField) error {
	if sf.IsExported() {
		return nil
	}
	if !sf.Anonymous {
		return errors.New("is unexported, so its value would be forgotten: export it, or give the type MarshalText and UnmarshalText")
	}
	if _, ok := inlined(sf); !ok || sf.Type.Kind() == reflect.Pointer {
		return errors.New("embeds an unexported type that cannot be set: export the type or name the field")
	}
	return nil
}

// validName is encoding/json's rule for names in tags.
func validName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}

// zeroTest gives encoding/json's meaning of omitzero: the type's own IsZero
// where it has one.
func zeroTest(t reflect.Type) func(reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	has := reflect.TypeFor[zeroer]()
	switch {
	case t.Kind() == reflect.Pointer && t.Implements(has):
		return func(v reflect.Value) bool {
			return v.IsNil() || v.Interface().(zeroer).IsZero()
		}
	case t.Implements(has):
		return func(v reflect.Value) bool { return v.Interface().(zeroer).IsZero() }
	case reflect.PointerTo(t).Implements(has):
		return func(v reflect.Value) bool {
			return addressable(v).Addr().Interface().(zeroer).IsZero()
		}
	}
	return reflect.Value.IsZero
}

// isEmpty is encoding/json's meaning of omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// addressable returns v, or a copy of it whose address can be taken.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}
