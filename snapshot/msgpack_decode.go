package snapshot

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// preallocated bounds what is allocated on a length that the input claims,
// before its elements have been seen.
const preallocated = 64

// decoder reads values from data. Lengths are checked against what is left
// before anything is allocated, so that noise costs no more than its size.
type decoder struct {
	in    *msgpack.Decoder // reads from this decoder, through Read
	data  []byte
	pos   int
	depth int
}

func newDecoder(data []byte) *decoder {
	d := &decoder{data: data}
	d.in = msgpack.NewDecoder(d)
	return d
}

// Read, ReadByte and UnreadByte are for the msgpack.Decoder.
func (d *decoder) Read(b []byte) (int, error) {
	if d.pos >= len(d.data) && len(b) > 0 {
		return 0, io.EOF
	}
	n := copy(b, d.data[d.pos:])
	d.pos += n
	return n, nil
}

func (d *decoder) ReadByte() (byte, error) {
	if d.pos >= len(d.data) {
		return 0, errShort()
	}
	d.pos++
	return d.data[d.pos-1], nil
}

func (d *decoder) UnreadByte() error {
	d.pos--
	return nil
}

func errShort() error { return errors.New("msgpack ends too early") }

func (d *decoder) end() error {
	if left := len(d.data) - d.pos; left > 0 {
		return fmt.Errorf("msgpack value is followed by %d surplus bytes", left)
	}
	return nil
}

func (d *decoder) enter() error {
	if d.depth >= maxDepth {
		return errTooDeep()
	}
	d.depth++
	return nil
}

func (d *decoder) leave() { d.depth-- }

// take gives the next n bytes, still owned by the input.
func (d *decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.data)-d.pos {
		return nil, errShort()
	}
	d.pos += n
	return d.data[d.pos-n : d.pos], nil
}

// kind classifies the next value without taking it.
func (d *decoder) kind() (kind, error) {
	c, err := d.in.PeekCode()
	if err != nil {
		return 0, errShort()
	}
	return kindOf(c), nil
}

// kind is what a msgpack value is, as its first byte says.
type kind int

const (
	kindInvalid kind = iota
	kindNil
	kindBool
	kindInt  // of a form that fits int64
	kindUint // of 64 bits without a sign
	kindFloat32
	kindFloat64
	kindString
	kindBytes
	kindArray
	kindMap
	kindExt
)

func (k kind) String() string {
	return [...]string{"an invalid byte", "nil", "a bool", "an integer", "an integer",
		"a float32", "a float64", "a string", "bytes", "an array", "a map", "an extension"}[k]
}

func kindOf(c byte) kind {
	switch {
	case msgpcode.IsFixedNum(c):
		return kindInt
	case msgpcode.IsFixedMap(c):
		return kindMap
	case msgpcode.IsFixedArray(c):
		return kindArray
	case msgpcode.IsString(c):
		return kindString
	case msgpcode.IsBin(c):
		return kindBytes
	case msgpcode.IsExt(c):
		return kindExt
	}
	switch c {
	case msgpcode.Nil:
		return kindNil
	case msgpcode.True, msgpcode.False:
		return kindBool
	case msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32,
		msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64:
		return kindInt
	case msgpcode.Uint64:
		return kindUint
	case msgpcode.Float:
		return kindFloat32
	case msgpcode.Double:
		return kindFloat64
	case msgpcode.Array16, msgpcode.Array32:
		return kindArray
	case msgpcode.Map16, msgpcode.Map32:
		return kindMap
	}
	return kindInvalid
}

// expect takes a nil, which stands for the zero value of every type, or says
// that a value of another kind is next.
func (d *decoder) expect(want ...kind) (isNil bool, err error) {
	got, err := d.kind()
	if err != nil {
		return false, err
	}
	if got == kindNil {
		return true, d.in.DecodeNil()
	}
	for _, w := range want {
		if got == w {
			return false, nil
		}
	}
	return false, fmt.Errorf("is stored as %v, want %v", got, want[0])
}

// mapLen gives a map's length, -1 for nil. Each entry takes at least two bytes.
func (d *decoder) mapLen() (int, error) {
	if isNil, err := d.expect(kindMap); isNil || err != nil {
		return -1, err
	}
	n, err := d.in.DecodeMapLen()
	return d.claimed(n, 2, err)
}

// arrayLen gives an array's length, -1 for nil.
func (d *decoder) arrayLen() (int, error) {
	if isNil, err := d.expect(kindArray); isNil || err != nil {
		return -1, err
	}
	n, err := d.in.DecodeArrayLen()
	return d.claimed(n, 1, err)
}

// claimed refuses a number of elements for which the input is too short.
func (d *decoder) claimed(n, size int, err error) (int, error) {
	if err != nil || n < 0 || n > (len(d.data)-d.pos)/size {
		return 0, errShort()
	}
	return n, nil
}

// text gives the bytes of a string, valid UTF-8 and still owned by the input.
func (d *decoder) text() ([]byte, error) {
	if isNil, err := d.expect(kindString); isNil || err != nil {
		return nil, err
	}
	b, err := d.payload()
	if err == nil && !utf8.Valid(b) {
		err = errNotUTF8(string(b))
	}
	return b, err
}

// payload gives the bytes of a string or of bytes.
func (d *decoder) payload() ([]byte, error) {
	n, err := d.in.DecodeBytesLen()
	if err != nil {
		return nil, errShort()
	}
	return d.take(n)
}

func decodeBool(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindBool); isNil || err != nil {
		return err
	}
	b, err := d.in.DecodeBool()
	v.SetBool(b)
	return err
}

func decodeInt(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindInt, kindUint); isNil || err != nil {
		return err
	}
	big, _ := d.kind()
	n, err := d.in.DecodeInt64()
	if err != nil {
		return errShort()
	}
	if big == kindUint && n < 0 {
		return fmt.Errorf("%d does not fit %s", uint64(n), v.Type())
	}
	if v.OverflowInt(n) {
		return fmt.Errorf("%d does not fit %s", n, v.Type())
	}
	v.SetInt(n)
	return nil
}

func decodeUint(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindInt, kindUint); isNil || err != nil {
		return err
	}
	big, _ := d.kind()
	n, err := d.in.DecodeInt64()
	if err != nil {
		return errShort()
	}
	if big == kindInt && n < 0 {
		return fmt.Errorf("%d does not fit %s", n, v.Type())
	}
	if v.OverflowUint(uint64(n)) {
		return fmt.Errorf("%d does not fit %s", uint64(n), v.Type())
	}
	v.SetUint(uint64(n))
	return nil
}

// decodeFloat also takes integers and the other size of float where these are
// exact, so that a field may change between them.
func decodeFloat(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindFloat64, kindFloat32, kindInt, kindUint); isNil || err != nil {
		return err
	}
	k, _ := d.kind()
	var f float64
	var err error
	if k == kindInt || k == kindUint {
		var n int64
		n, err = d.in.DecodeInt64()
		f = float64(n)
		if k == kindUint && n < 0 || f >= math.MaxInt64 || int64(f) != n {
			return fmt.Errorf("%d does not fit %s", n, v.Type())
		}
	} else {
		f, err = d.in.DecodeFloat64()
	}
	if err != nil {
		return errShort()
	}
	if f, err = canonicalFloat(f); err != nil {
		return err
	}
	if v.Kind() == reflect.Float32 && float64(float32(f)) != f {
		return fmt.Errorf("%v does not fit %s", f, v.Type())
	}
	v.SetFloat(f)
	return nil
}

func decodeString(d *decoder, v reflect.Value) error {
	b, err := d.text()
	if err != nil {
		return err
	}
	v.SetString(string(b))
	return nil
}

func decodeBytes(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindBytes); isNil || err != nil {
		return err
	}
	b, err := d.payload()
	if err != nil {
		return err
	}
	v.SetBytes(append(make([]byte, 0, len(b)), b...))
	return nil
}

func decodeByteArray(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindBytes); isNil || err != nil {
		return err
	}
	b, err := d.payload()
	if err != nil {
		return err
	}
	if len(b) != v.Len() {
		return fmt.Errorf("has %d bytes, want %d", len(b), v.Len())
	}
	copy(v.Bytes(), b)
	return nil
}

func decodeTime(d *decoder, v reflect.Value) error {
	if isNil, err := d.expect(kindExt); isNil || err != nil {
		return err
	}
	t, err := d.time()
	if err != nil {
		return err
	}
	*v.Addr().Interface().(*time.Time) = t
	return nil
}

// time reads msgpack's timestamp extension.
func (d *decoder) time() (time.Time, error) {
	start := d.pos
	id, n, err := d.in.DecodeExtHeader()
	if err != nil {
		return time.Time{}, errShort()
	}
	if id != -1 || (n != 4 && n != 8 && n != 12) {
		return time.Time{}, fmt.Errorf("extension %d of %d bytes is no time", id, n)
	}
	d.pos = start
	t, err := d.in.DecodeTime()
	if err != nil {
		return time.Time{}, errShort()
	}
	t = t.UTC()
	return t, checkYear(t)
}

func (f *form) decode(d *decoder, v reflect.Value) error {
	want := kindString
	if f.binary {
		want = kindBytes
	}
	if isNil, err := d.expect(want); isNil || err != nil {
		return err
	}
	b, err := d.payload()
	if err != nil {
		return err
	}
	if !f.binary && !utf8.Valid(b) {
		return errNotUTF8(string(b))
	}
	own := append(make([]byte, 0, len(b)), b...) // the method may keep it
	return f.unmarshalSafely(v.Addr().Interface(), own)
}

func (p *plan) decodePointer(d *decoder, v reflect.Value) error {
	if k, err := d.kind(); err != nil || k == kindNil {
		_, err := d.expect(kindNil)
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	v.Set(reflect.New(v.Type().Elem()))
	return p.dec(d, v.Elem())
}

func (p *plan) decodeSlice(d *decoder, v reflect.Value) error {
	n, err := d.arrayLen()
	if err != nil || n < 0 {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	first := max(1, preallocated/max(1, int(v.Type().Elem().Size()/64)))
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, first)))
	for i := range n {
		if i == v.Cap() {
			v.Grow(min(i, n-i))
		}
		v.SetLen(i + 1)
		if err := p.dec(d, v.Index(i)); err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

func (p *plan) decodeArray(d *decoder, v reflect.Value) error {
	n, err := d.arrayLen()
	if err != nil || n < 0 {
		return err
	}
	if n != v.Len() {
		return fmt.Errorf("has %d elements, want %d", n, v.Len())
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	for i := range n {
		if err := p.dec(d, v.Index(i)); err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}
