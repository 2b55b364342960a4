package httpapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// jsonShape is what the JSON of a Go type must be like, as far as decoding alone
// does not say, or says in words that are of the program.
type jsonShape struct {
	kind    reflect.Kind // Invalid: any JSON
	null    bool         // may stand for it
	bits    int          // of a number
	members []member     // of a struct
	each    *jsonShape   // of the elements of an array, the members of a map, or what a pointer leads to
	length  int          // of an array of Go
	text    bool         // a string that decoding also takes for something else
}

// member is a field of a struct under its JSON name.
type member struct {
	name     string
	required bool
	shape    *jsonShape
}

// shapeOf returns the shape of a type, which may be part of itself.
func shapeOf(t reflect.Type, all map[reflect.Type]*jsonShape) *jsonShape {
	if known := all[t]; known != nil {
		return known
	}
	s := &jsonShape{kind: t.Kind()}
	all[t] = s
	switch {
	case t == reflect.TypeFor[time.Time](), t.Kind() != reflect.Pointer && readsText(t):
		s.kind, s.text = reflect.String, true // and null leaves it empty
		return s
	case t.Kind() == reflect.Interface, t.Kind() != reflect.Pointer && readsItself(t):
		s.kind, s.null = reflect.Invalid, true
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		s.null, s.each = true, shapeOf(t.Elem(), all)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.bits = t.Bits()
	case reflect.Slice, reflect.Map:
		s.null = true
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !readsItself(t.Elem()) {
			s.kind, s.text = reflect.String, true // in base64, or an array of numbers
			break
		}
		s.each = shapeOf(t.Elem(), all)
	case reflect.Array:
		s.each, s.length = shapeOf(t.Elem(), all), t.Len()
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			s.members = append(s.members, member{name: f.name, required: f.required, shape: shapeOf(f.field.Type, all)})
		}
	}
	return s
}

// asksFor reports whether something in the JSON must be there, beside the shapes
// that were seen.
func (s *jsonShape) asksFor(seen map[*jsonShape]bool) bool {
	if s == nil || seen[s] {
		return false
	}
	seen[s] = true
	if s.kind == reflect.Array || s.text {
		return true
	}
	for _, m := range s.members {
		if m.required || m.shape.asksFor(seen) {
			return true
		}
	}
	return s.each.asksFor(seen)
}

// behind is the shape that pointers lead to.
func (s *jsonShape) behind() *jsonShape {
	for s.kind == reflect.Pointer {
		s = s.each
	}
	return s
}

// readsItself reports whether a type's JSON is its own business.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, own := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if p.Implements(own) {
			return true
		}
	}
	return t == reflect.TypeFor[json.Number]()
}

// readsText reports whether a type's JSON is a string whose text is its own
// business.
func readsText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) &&
		!p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[json.Marshaler]())
}

// jsonField is a field of a struct as JSON has it.
type jsonField struct {
	name     string
	required bool // in what comes from outside
	field    reflect.StructField
}

// fieldsOf returns the fields of a struct, those of embedded ones among them. A
// field is required unless its tag lets it be left out or it is a pointer.
func fieldsOf(t reflect.Type) (out []jsonField) {
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-", f.Anonymous && name == "" && inner.Kind() == reflect.Struct, !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		required := f.Type.Kind() != reflect.Pointer && !behindPointer(t, f.Index)
		for option := range strings.SplitSeq(options, ",") {
			required = required && option != "omitempty" && option != "omitzero"
		}
		out = append(out, jsonField{name, required, f})
	}
	return out
}

// behindPointer reports whether a field belongs to a struct that is embedded by
// a pointer.
func behindPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// missing adds what a value that could be decoded lacks.
func (s *jsonShape) missing(tree any, at string, found []entity.Violation) []entity.Violation {
	if len(found) >= maxMissing {
		return found
	}
	if tree == nil {
		if !s.null {
			found = append(found, entity.Violation{Pointer: at, Message: "is null, and must be " + s.wanted()})
		}
		return found
	}
	s = s.behind()
	switch tree := tree.(type) {
	case []any:
		if s.text {
			return append(found, entity.Violation{Pointer: at, Message: "is an array, and must be a string"})
		}
		if s.kind == reflect.Array && len(tree) != s.length {
			found = append(found, entity.Violation{Pointer: at, Message: fmt.Sprintf("must have %d elements, and has %d", s.length, len(tree))})
		}
		for i, v := range tree {
			if s.each != nil {
				found = s.each.missing(v, at+"/"+strconv.Itoa(i), found)
			}
		}
	case map[string]any:
		for _, m := range s.members {
			v, there := tree[m.name]
			switch {
			case there:
				found = m.shape.missing(v, at+"/"+entity.PointerToken(m.name), found)
			case m.required && len(found) < maxMissing:
				found = append(found, entity.Violation{Pointer: at + "/" + entity.PointerToken(m.name), Message: "is required, and missing"})
			}
		}
		if s.kind == reflect.Map {
			for _, name := range slices.Sorted(maps.Keys(tree)) {
				found = s.each.missing(tree[name], at+"/"+entity.PointerToken(name), found)
			}
		}
	}
	return found
}

// misfit returns the place of a value that is of another type than it must be,
// and what is wrong with it in the words of JSON.
func (s *jsonShape) misfit(tree any, at string) (where, what string) {
	if tree == nil && s.null {
		return "", ""
	}
	if s = s.behind(); s.kind == reflect.Invalid {
		return "", ""
	}
	wrong := func() (string, string) { return at, "is " + kindOf(tree) + ", and must be " + s.wanted() }
	switch tree := tree.(type) {
	case []any:
		if s.kind != reflect.Slice && s.kind != reflect.Array {
			return wrong()
		}
		for i, v := range tree {
			if where, what := s.each.misfit(v, at+"/"+strconv.Itoa(i)); what != "" {
				return where, what
			}
		}
	case map[string]any:
		if s.kind != reflect.Struct && s.kind != reflect.Map {
			return wrong()
		}
		for _, m := range s.members {
			if v, there := tree[m.name]; there {
				if where, what := m.shape.misfit(v, at+"/"+entity.PointerToken(m.name)); what != "" {
					return where, what
				}
			}
		}
		if s.kind == reflect.Map {
			for _, name := range slices.Sorted(maps.Keys(tree)) {
				if where, what := s.each.misfit(tree[name], at+"/"+entity.PointerToken(name)); what != "" {
					return where, what
				}
			}
		}
	case string:
		if s.kind != reflect.String {
			return wrong()
		}
	case bool:
		if s.kind != reflect.Bool {
			return wrong()
		}
	case json.Number:
		if !s.holds(tree.String()) {
			if s.bits > 0 {
				return at, "is " + tree.String() + ", and must be " + s.wanted()
			}
			return wrong()
		}
	default: // null
		return wrong()
	}
	return "", ""
}

// holds reports whether a number can be decoded into the type.
func (s *jsonShape) holds(number string) bool {
	switch s.kind {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err := strconv.ParseInt(number, 10, s.bits)
		return err == nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err := strconv.ParseUint(number, 10, s.bits)
		return err == nil
	case reflect.Float32, reflect.Float64:
		_, err := strconv.ParseFloat(number, s.bits)
		return err == nil
	}
	return false
}

// wanted is what the JSON of the type is, for people.
func (s *jsonShape) wanted() string {
	switch s.kind {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-s.bits))
	}
	most := new(big.Int).Lsh(big.NewInt(1), uint(s.bits-1))
	return fmt.Sprintf("a whole number from -%d to %d", most, new(big.Int).Sub(most, big.NewInt(1)))
}

// kindOf names what JSON a value is.
func kindOf(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
