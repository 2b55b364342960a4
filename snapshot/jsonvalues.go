package snapshot

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// checkValues finds in v what encoding/json would bend, or report without a
// path: invalid UTF-8 (which it replaces), NaN and infinities, values that hold
// themselves. Types that marshal themselves answer for themselves.
//
// depth counts steps in Go, of which a level of JSON can take three (a pointer,
// an interface, a slice); the writer counts the levels themselves.
func checkValues(v reflect.Value, depth int) error {
	if depth > 3*maxDepth {
		return errTooDeep()
	}
	if !v.IsValid() || marshalsToJSON(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return errNotUTF8(v.String())
		}
	case reflect.Float32, reflect.Float64:
		_, err := canonicalFloat(v.Float())
		return err
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkValues(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if scalarKind(v.Type().Elem().Kind()) {
			return nil
		}
		for i := range v.Len() {
			if err := checkValues(v.Index(i), depth+1); err != nil {
				return at(fmt.Sprintf("[%d]", i), err)
			}
		}
	case reflect.Map:
		return checkEntries(v, depth)
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			if err := checkValues(v.Field(i), depth+1); err != nil {
				return at("."+t.Field(i).Name, err)
			}
		}
	}
	return nil
}

func checkEntries(v reflect.Value, depth int) error {
	for iter := v.MapRange(); iter.Next(); {
		if k := iter.Key(); k.Kind() == reflect.String {
			if err := checkValues(k, depth+1); err != nil {
				return at("[key]", err)
			}
		}
		if err := checkValues(iter.Value(), depth+1); err != nil {
			return at(keyStep(iter.Key()), err)
		}
	}
	return nil
}

// scalarKind says whether every value of a kind has its exact JSON.
func scalarKind(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Uint64
}

// marshalsToJSON says whether encoding/json leaves values of t to their own
// methods.
func marshalsToJSON(t reflect.Type) bool {
	return jsonHalf(t, reflect.TypeFor[json.Marshaler]()) || jsonHalf(t, reflect.TypeFor[encoding.TextMarshaler]())
}

func jsonHalf(t, method reflect.Type) bool {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false
	}
	return reflect.PointerTo(t).Implements(method)
}
