package snapshot

import (
	"reflect"
	"time"
)

// HoldsReferences reports whether a copied value of type t could share memory
// with its original: whether t is or contains a map, slice, pointer, interface,
// channel or function, in exported or unexported fields. Strings do not count,
// since nobody can change their bytes, and neither does time.Time, whose
// location is never written to. A nil t holds nothing.
func HoldsReferences(t reflect.Type) bool {
	if t == nil || t == reflect.TypeFor[time.Time]() {
		return false
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface,
		reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return t.Len() > 0 && HoldsReferences(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if HoldsReferences(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
