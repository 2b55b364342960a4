package snapshot

import (
	"fmt"
	"reflect"
)

// plan is how one type is written and read. Its functions are set before its
// codec shows it to anyone and never change.
type plan struct {
	enc func(e *encoder, v reflect.Value) error
	// dec reads into v, which is settable and zero.
	dec func(d *decoder, v reflect.Value) error
}

// planner makes the plans of one type and all that it is made of. A type that
// holds itself meets its own plan, still to be filled in.
type planner struct {
	codec *msgpackCodec
	plans map[reflect.Type]*plan
}

func (b *planner) plan(t reflect.Type) (*plan, error) {
	if p, ok := b.plans[t]; ok {
		return p, nil
	}
	p := &plan{}
	b.plans[t] = p
	if isTime(t) {
		p.enc, p.dec = encodeTime, decodeTime
		return p, nil
	}
	if f := selfMarshalling(t); f != nil {
		p.enc, p.dec = f.encode, f.decode
		return p, f.checkPromoted(t)
	}
	return p, b.byKind(p, t)
}

func (b *planner) byKind(p *plan, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool:
		p.enc, p.dec = encodeBool, decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.enc, p.dec = encodeInt, decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.enc, p.dec = encodeUint, decodeUint
	case reflect.Float32:
		p.enc, p.dec = encodeFloat32, decodeFloat
	case reflect.Float64:
		p.enc, p.dec = encodeFloat64, decodeFloat
	case reflect.String:
		p.enc, p.dec = encodeString, decodeString
	case reflect.Slice:
		return b.slice(p, t)
	case reflect.Array:
		return b.array(p, t)
	case reflect.Map:
		return b.mapping(p, t)
	case reflect.Pointer:
		return b.pointer(p, t)
	case reflect.Struct:
		return b.structure(p, t)
	default:
		return refuseKind(t)
	}
	return nil
}

// refuseKind says why no codec keeps values of t's kind.
func refuseKind(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Interface:
		return fmt.Errorf("is of interface type %s, whose values do not say their type when they are read back: use a concrete type; for any JSON that can be a string that holds it", t)
	case reflect.Chan, reflect.Func:
		return fmt.Errorf("is of type %s, which is no data: keep it outside the state", t)
	case reflect.Complex64, reflect.Complex128:
		return fmt.Errorf("is of type %s, which has no form in JSON: use two floats", t)
	case reflect.Uintptr, reflect.UnsafePointer:
		return fmt.Errorf("is of type %s, an address that means nothing later: use uint64 for numbers", t)
	}
	return fmt.Errorf("is of type %s, which is not supported", t)
}

func (b *planner) slice(p *plan, t reflect.Type) error {
	if bytesLike(t) {
		p.enc, p.dec = encodeBytes, decodeBytes
		return nil
	}
	elem, err := b.plan(t.Elem())
	if err != nil {
		return at("[]", err)
	}
	p.enc, p.dec = elem.encodeSlice, elem.decodeSlice
	return nil
}

func (b *planner) array(p *plan, t reflect.Type) error {
	if bytesLike(t) {
		p.enc, p.dec = encodeByteArray, decodeByteArray
		return nil
	}
	elem, err := b.plan(t.Elem())
	if err != nil {
		return at("[]", err)
	}
	p.enc, p.dec = elem.encodeArray, elem.decodeArray
	return nil
}

func bytesLike(t reflect.Type) bool {
	return t.Elem().Kind() == reflect.Uint8 && selfMarshalling(t.Elem()) == nil
}

func (b *planner) mapping(p *plan, t reflect.Type) error {
	if err := checkKey(t.Key()); err != nil {
		return at("[key]", err)
	}
	key, err := b.plan(t.Key())
	if err != nil {
		return at("[key]", err)
	}
	elem, err := b.plan(t.Elem())
	if err != nil {
		return at("[]", err)
	}
	m := &mapPlan{typ: t, key: key, elem: elem}
	p.enc, p.dec = m.encode, m.decode
	return nil
}

// checkKey refuses keys that are told apart by where they are instead of by what
// they hold.
func checkKey(t reflect.Type) error {
	if isTime(t) || selfMarshalling(t) != nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fmt.Errorf("is of pointer type %s, and pointers read back are other keys: use the value as the key", t)
	case reflect.Array:
		return checkKey(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := checkKey(t.Field(i).Type); err != nil {
				return at("."+t.Field(i).Name, err)
			}
		}
	}
	return nil
}

func (b *planner) pointer(p *plan, t reflect.Type) error {
	if err := checkPointer(t); err != nil {
		return err
	}
	elem, err := b.plan(t.Elem())
	if err != nil {
		return err
	}
	p.enc, p.dec = elem.encodePointer, elem.decodePointer
	return nil
}

// checkPointer refuses pointers to what can be nil itself: both would be nil.
func checkPointer(t reflect.Type) error {
	if selfMarshalling(t.Elem()) != nil {
		return nil
	}
	switch t.Elem().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return fmt.Errorf("is of type %s: a nil pointer and a pointer to nil would look the same: use %s", t, t.Elem())
	}
	return nil
}

func (b *planner) structure(p *plan, t reflect.Type) error {
	fields, err := structFields(t)
	if err != nil {
		return err
	}
	s := &structPlan{byName: make(map[string]int, len(fields))}
	for i, f := range fields {
		elem, err := b.plan(f.typ)
		if err != nil {
			return at("."+f.goName, err)
		}
		s.fields = append(s.fields, fieldPlan{field: f, key: appendText(nil, f.name), plan: elem})
		s.byName[f.name] = i
		s.optional = s.optional || f.omitEmpty || f.isZero != nil || len(f.index) > 1
	}
	p.enc, p.dec = s.encode, s.decode
	return nil
}
