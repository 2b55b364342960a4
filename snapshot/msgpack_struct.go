package snapshot

import (
	"reflect"
)

// structPlan writes a struct as a map from names to values, in the order of
// declaration.
type structPlan struct {
	fields   []fieldPlan
	byName   map[string]int
	optional bool // some fields may be left out
}

type fieldPlan struct {
	field
	key  []byte // the encoded name
	plan *plan
}

// of finds the field in its struct. It is absent inside an embedded nil pointer.
func (f *fieldPlan) of(v reflect.Value) (reflect.Value, bool) {
	v = v.Field(f.index[0])
	for _, i := range f.index[1:] {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// make finds the field in a struct that is being read, and makes the embedded
// pointers on the way.
func (f *fieldPlan) make(v reflect.Value) reflect.Value {
	v = v.Field(f.index[0])
	for _, i := range f.index[1:] {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// stored gives the field's value unless it is to be left out.
func (f *fieldPlan) stored(v reflect.Value) (reflect.Value, bool) {
	v, ok := f.of(v)
	if !ok || f.omitEmpty && isEmpty(v) || f.isZero != nil && f.isZero(v) {
		return v, false
	}
	return v, true
}

func (s *structPlan) encode(e *encoder, v reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	n := len(s.fields)
	if s.optional {
		n = 0
		for i := range s.fields {
			if _, ok := s.fields[i].stored(v); ok {
				n++
			}
		}
	}
	e.buf = appendMapLen(e.buf, n)
	for i := range s.fields {
		f := &s.fields[i]
		fv := v.Field(f.index[0])
		if s.optional {
			var ok bool
			if fv, ok = f.stored(v); !ok {
				continue
			}
		}
		e.buf = append(e.buf, f.key...)
		if err := f.plan.enc(e, fv); err != nil {
			return at("."+f.goName, err)
		}
	}
	return nil
}

func (s *structPlan) decode(d *decoder, v reflect.Value) error {
	n, err := d.mapLen()
	if err != nil || n < 0 {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	expected := 0 // the field that comes next when nothing was added or removed
	for range n {
		name, err := d.text()
		if err != nil {
			return err
		}
		i, ok := expected, expected < len(s.fields) && s.fields[expected].name == string(name)
		if !ok {
			i, ok = s.byName[string(name)]
		}
		if !ok {
			if err := d.skip(); err != nil {
				return err
			}
			continue
		}
		f := &s.fields[i]
		expected = i + 1
		target := f.make(v)
		target.SetZero()
		if err := f.plan.dec(d, target); err != nil {
			return at("."+f.goName, err)
		}
	}
	return nil
}
