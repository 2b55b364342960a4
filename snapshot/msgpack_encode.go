package snapshot

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// encoder writes values to buf. It belongs to one call at a time; its codec
// pools it. Nothing that it holds survives the call but scratch space.
type encoder struct {
	codec *msgpackCodec
	out   *msgpack.Encoder // writes to this encoder, through Write
	buf   []byte
	depth int
	spans []span // the entries of the maps being written, innermost last
	tmp   []byte // a map's entries while they are put in order
}

func newEncoder(c *msgpackCodec) *encoder {
	e := &encoder{codec: c}
	e.out = msgpack.NewEncoder(e)
	return e
}

// Write and WriteByte are for the msgpack.Encoder.
func (e *encoder) Write(b []byte) (int, error) {
	e.buf = append(e.buf, b...)
	return len(b), nil
}

func (e *encoder) WriteByte(c byte) error {
	e.buf = append(e.buf, c)
	return nil
}

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

func encodeBool(e *encoder, v reflect.Value) error { return e.out.EncodeBool(v.Bool()) }
func encodeInt(e *encoder, v reflect.Value) error  { return e.out.EncodeInt(v.Int()) }
func encodeUint(e *encoder, v reflect.Value) error { return e.out.EncodeUint(v.Uint()) }

func encodeFloat64(e *encoder, v reflect.Value) error {
	f, err := canonicalFloat(v.Float())
	if err != nil {
		return err
	}
	return e.out.EncodeFloat64(f)
}

func encodeFloat32(e *encoder, v reflect.Value) error {
	f, err := canonicalFloat(v.Float())
	if err != nil {
		return err
	}
	return e.out.EncodeFloat32(float32(f))
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
	return e.out.EncodeString(s)
}

func encodeBytes(e *encoder, v reflect.Value) error { return e.out.EncodeBytes(v.Bytes()) }

func encodeByteArray(e *encoder, v reflect.Value) error {
	return e.out.EncodeBytes(addressable(v).Bytes())
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
	return e.out.EncodeTime(t)
}

func (f *form) encode(e *encoder, v reflect.Value) error {
	b, err := f.marshal(addressable(v).Addr().Interface())
	if err != nil {
		return err
	}
	if !f.binary {
		return e.out.EncodeString(string(b))
	}
	if b == nil {
		b = []byte{} // nil is for nil pointers
	}
	return e.out.EncodeBytes(b)
}

func (p *plan) encodePointer(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		return e.out.EncodeNil()
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return p.enc(e, v.Elem())
}

func (p *plan) encodeSlice(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		return e.out.EncodeNil()
	}
	return p.encodeArray(e, v)
}

func (p *plan) encodeArray(e *encoder, v reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	n := v.Len()
	if err := e.out.EncodeArrayLen(n); err != nil {
		return err
	}
	for i := range n {
		if err := p.enc(e, v.Index(i)); err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

func (e *encoder) leave() { e.depth-- }
