package snapshot

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"
)

// encoder writes values to buf. It belongs to one call at a time; its codec
// pools it. Nothing that it holds survives the call but scratch space.
type encoder struct {
	codec *msgpackCodec
	buf   []byte
	depth int
	spans []span // the entries of the maps being written, innermost last
	tmp   []byte // a map's entries while they are put in order
}

func newEncoder(c *msgpackCodec) *encoder { return &encoder{codec: c} }

func (e *encoder) append(dst []byte, v any) ([]byte, error) {
	e.buf, e.depth, e.spans = dst, 0, e.spans[:0]
	err := e.root(v)
	out := e.buf
	e.buf = nil
	if cap(e.tmp) > 1<<20 {
		e.tmp = nil // one huge map must not stay for good
	}
	return out, err
}

func (e *encoder) root(v any) error {
	switch v := v.(type) {
	case nil:
		return errors.New("nil has no type: pass a value or a pointer to one")
	case map[string]any:
		return e.tree(v)
	case *map[string]any:
		if v != nil {
			return e.tree(*v)
		}
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return errors.New("pointer is nil")
		}
		rv = rv.Elem()
	}
	p, err := e.codec.planFor(rv.Type())
	if err != nil {
		return err
	}
	return p.enc(e, rv)
}

func (e *encoder) enter() error {
	if e.depth >= maxDepth {
		return errTooDeep()
	}
	e.depth++
	return nil
}

func encodeBool(e *encoder, v reflect.Value) error {
	e.buf = appendBool(e.buf, v.Bool())
	return nil
}

func encodeInt(e *encoder, v reflect.Value) error {
	e.buf = appendInt(e.buf, v.Int())
	return nil
}

func encodeUint(e *encoder, v reflect.Value) error {
	e.buf = appendUint(e.buf, v.Uint())
	return nil
}

func encodeFloat64(e *encoder, v reflect.Value) error {
	f, err := canonicalFloat(v.Float())
	if err != nil {
		return err
	}
	e.buf = appendFloat64(e.buf, f)
	return nil
}

func encodeFloat32(e *encoder, v reflect.Value) error {
	f, err := canonicalFloat(v.Float())
	if err != nil {
		return err
	}
	e.buf = appendFloat32(e.buf, float32(f))
	return nil
}

// canonicalFloat refuses what JSON cannot say, and makes -0 the 0 that it
// equals.
func canonicalFloat(f float64) (float64, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%v cannot be kept: only finite numbers can", f)
	}
	if f == 0 {
		f = 0
	}
	return f, nil
}

func encodeString(e *encoder, v reflect.Value) error {
	s := v.String()
	if !utf8.ValidString(s) {
		return errNotUTF8(s)
	}
	e.buf = appendText(e.buf, s)
	return nil
}

func encodeBytes(e *encoder, v reflect.Value) error {
	e.buf = appendBytes(e.buf, v.Bytes())
	return nil
}

func encodeByteArray(e *encoder, v reflect.Value) error {
	e.buf = appendBytes(e.buf, addressable(v).Bytes())
	return nil
}

func encodeTime(e *encoder, v reflect.Value) error {
	var t time.Time
	if v.CanAddr() {
		t = *v.Addr().Interface().(*time.Time)
	} else {
		t = v.Interface().(time.Time)
	}
	return e.time(t)
}

func (e *encoder) time(t time.Time) error {
	t = t.UTC()
	if err := checkYear(t); err != nil {
		return err
	}
	e.buf = appendTime(e.buf, t)
	return nil
}

func (f *form) encode(e *encoder, v reflect.Value) error {
	b, err := f.marshal(addressable(v).Addr().Interface())
	if err != nil {
		return err
	}
	if !f.binary {
		e.buf = appendText(e.buf, string(b))
		return nil
	}
	if b == nil {
		b = []byte{} // nil is for nil pointers
	}
	e.buf = appendBytes(e.buf, b)
	return nil
}

func (p *plan) encodePointer(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		e.buf = appendNil(e.buf)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return p.enc(e, v.Elem())
}

func (p *plan) encodeSlice(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		e.buf = appendNil(e.buf)
		return nil
	}
	return p.encodeArray(e, v)
}

func (p *plan) encodeArray(e *encoder, v reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	n := v.Len()
	e.buf = appendArrayLen(e.buf, n)
	for i := range n {
		if err := p.enc(e, v.Index(i)); err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

func (e *encoder) leave() { e.depth-- }
