package snapshot

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

func (*jsonCodec) Check(t reflect.Type) error {
	if t == nil {
		return errors.New("state has no type")
	}
	c := jsonChecker{}
	if err := c.check(t, true); err != nil {
		return fmt.Errorf("type %s has no canonical JSON form: %w", t, err)
	}
	return nil
}

// jsonChecker walks a type as encoding/json walks its values. It holds the
// types seen; one that holds itself is being checked already.
type jsonChecker map[jsonPlace]bool

// jsonPlace is a type where values have an address, or have none because they
// stand in a map. Without one, encoding/json does not find methods on pointers.
type jsonPlace struct {
	typ       reflect.Type
	addressed bool
}

func (c jsonChecker) check(t reflect.Type, addressed bool) error {
	place := jsonPlace{t, addressed}
	if c[place] || isTime(t) || t == reflect.TypeFor[json.Number]() {
		return nil
	}
	c[place] = true
	if marshalsToJSON(t) || unmarshalsFromJSON(t) {
		return checkOwnJSON(t, addressed)
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("is of interface type %s, whose values do not say their type when they are read back: use a concrete type or any", t)
		}
		return nil
	case reflect.Pointer:
		if err := checkPointer(t); err != nil {
			return err
		}
		return c.check(t.Elem(), true)
	case reflect.Slice:
		return stepped("[]", c.check(t.Elem(), true))
	case reflect.Array:
		return stepped("[]", c.check(t.Elem(), addressed))
	case reflect.Map:
		if err := checkJSONKey(t.Key()); err != nil {
			return at("[key]", err)
		}
		return stepped("[]", c.check(t.Elem(), false))
	case reflect.Struct:
		return c.structure(t, addressed)
	case reflect.String, reflect.Float32, reflect.Float64:
		return nil
	}
	if scalarKind(t.Kind()) {
		return nil
	}
	return refuseKind(t)
}

func stepped(step string, err error) error {
	if err == nil {
		return nil
	}
	return at(step, err)
}

func (c jsonChecker) structure(t reflect.Type, addressed bool) error {
	fields, err := structFields(t)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if err := c.check(f.typ, addressed); err != nil {
			return at("."+f.goName, err)
		}
	}
	return nil
}

func unmarshalsFromJSON(t reflect.Type) bool {
	return jsonHalf(t, reflect.TypeFor[json.Unmarshaler]()) || jsonHalf(t, reflect.TypeFor[encoding.TextUnmarshaler]())
}

// checkOwnJSON refuses types that encoding/json would write in one way and read
// in another.
func checkOwnJSON(t reflect.Type, addressed bool) error {
	f := jsonForm()
	if !jsonHalf(t, f.marshaler) && !jsonHalf(t, f.unmarshaler) {
		f = textForm()
	}
	if !f.implementedBy(t) {
		return fmt.Errorf("is of type %s, which has only one of %s and Un%s: add the other", t, f.name, "m"+f.name[1:])
	}
	if !addressed && !t.Implements(f.marshaler) {
		return fmt.Errorf("is of type %s, whose %s is on the pointer and is not found in a map: use *%s", t, f.name, t)
	}
	return f.checkPromoted(t)
}

// checkJSONKey takes the keys that encoding/json can write and read.
func checkJSONKey(t reflect.Type) error {
	f := textForm()
	if t.Implements(f.marshaler) || reflect.PointerTo(t).Implements(f.unmarshaler) {
		// encoding/json writes keys of a string kind as they are.
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.String && t.Implements(f.marshaler) && f.implementedBy(t) {
			return nil
		}
		return fmt.Errorf("is of type %s: a key that marshals itself needs MarshalText on the value, UnmarshalText on the pointer, and another kind than string", t)
	}
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	}
	return fmt.Errorf("is of type %s, which cannot be the key of a JSON object: use a string or an integer, or the msgpack codec", t)
}
