package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// mapPlan writes maps sorted by the bytes of their encoded keys.
type mapPlan struct {
	typ       reflect.Type
	key, elem *plan
}

// span is one entry of a map in the encoder's buffer.
type span struct {
	start, value, end int
}

func (m *mapPlan) encode(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		e.buf = appendNil(e.buf)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.buf = appendMapLen(e.buf, v.Len())
	if v.Len() == 0 {
		return nil
	}
	key := reflect.New(m.typ.Key()).Elem()
	elem := reflect.New(m.typ.Elem()).Elem()
	base := len(e.spans)
	for iter := v.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		elem.SetIterValue(iter)
		s := span{start: len(e.buf)}
		if err := m.key.enc(e, key); err != nil {
			return at(keyStep(key), err)
		}
		s.value = len(e.buf)
		if err := m.elem.enc(e, elem); err != nil {
			return at(keyStep(key), err)
		}
		s.end = len(e.buf)
		e.spans = append(e.spans, s)
	}
	return e.sortEntries(base)
}

func keyStep(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return fmt.Sprintf("[%q]", shorten(key.String()))
	}
	return fmt.Sprintf("[%v]", key)
}

// sortEntries puts the entries from base on, which end the buffer, in the order
// of their keys. It fails when two keys have the same encoding.
func (e *encoder) sortEntries(base int) error {
	spans, buf := e.spans[base:], e.buf
	e.spans = e.spans[:base]
	if len(spans) < 2 {
		return nil
	}
	start := spans[0].start
	slices.SortFunc(spans, func(a, b span) int {
		return bytes.Compare(buf[a.start:a.value], buf[b.start:b.value])
	})
	e.tmp = append(e.tmp[:0], buf[start:]...)
	at := start
	for i, s := range spans {
		if i > 0 {
			p := spans[i-1]
			if bytes.Equal(e.tmp[p.start-start:p.value-start], e.tmp[s.start-start:s.value-start]) {
				return errors.New("two keys of the map have the same encoding: it keeps only what their marshalling tells apart")
			}
		}
		at += copy(buf[at:], e.tmp[s.start-start:s.end-start])
	}
	return nil
}

func (m *mapPlan) decode(d *decoder, v reflect.Value) error {
	n, err := d.mapLen()
	if err != nil || n < 0 {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	// The size is a claim until the entries have come.
	out := reflect.MakeMapWithSize(m.typ, min(n, preallocated))
	key := reflect.New(m.typ.Key()).Elem()
	elem := reflect.New(m.typ.Elem()).Elem()
	for i := range n {
		key.SetZero()
		elem.SetZero()
		if err := m.key.dec(d, key); err != nil {
			return at(fmt.Sprintf("[key %d]", i), err)
		}
		if err := m.elem.dec(d, elem); err != nil {
			return at(keyStep(key), err)
		}
		out.SetMapIndex(key, elem)
	}
	if out.Len() != n {
		return errors.New("map has the same key twice")
	}
	v.Set(out)
	return nil
}
