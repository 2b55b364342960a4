package snapshot

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// Msgpack returns a new msgpack codec, the one for typed states. Codecs share
// nothing; keep one for as long as it is of use, since it learns a type's form
// when it first sees it.
//
// Structs become maps under the names of their json tags, in the order of
// declaration; embedded structs, omitempty and omitzero mean what they mean in
// encoding/json, and what that would leave out silently is refused. Maps are
// sorted by the bytes of their encoded keys. Times are kept as UTC instants.
// Types that marshal themselves, and unmarshal too, are kept as they wish: text,
// bytes, or canonical JSON in a string, in this order of preference. Minus zero
// becomes zero. NaN, infinities and invalid UTF-8 are errors when they occur.
func Msgpack() Codec {
	c := &msgpackCodec{}
	c.encoders.New = func() any { return newEncoder(c) }
	c.decoders.New = func() any { return newDecoder(nil) }
	return c
}

type msgpackCodec struct {
	plans    sync.Map  // reflect.Type to planned
	encoders sync.Pool // of *encoder
	decoders sync.Pool // of *decoder
}

// planned is what is known of a type: its plan, or why it has none.
type planned struct {
	plan *plan
	err  error
}

func (c *msgpackCodec) decoder(data []byte) *decoder {
	d := c.decoders.Get().(*decoder)
	d.data, d.pos, d.depth = data, 0, 0
	return d
}

// done gives a decoder back, without the input.
func (c *msgpackCodec) done(d *decoder) {
	d.data = nil
	c.decoders.Put(d)
}

func (c *msgpackCodec) Name() string { return msgpackName }

func (c *msgpackCodec) Check(t reflect.Type) error {
	if t == nil {
		return errors.New("state has no type")
	}
	_, err := c.planFor(t)
	return err
}

func (c *msgpackCodec) planFor(t reflect.Type) (*plan, error) {
	if known, ok := c.plans.Load(t); ok {
		p := known.(planned)
		return p.plan, p.err
	}
	b := planner{codec: c, plans: map[reflect.Type]*plan{}}
	p, err := b.plan(t)
	if err != nil {
		err = fmt.Errorf("type %s has no canonical msgpack form: %w", t, err)
		p = nil
	}
	c.plans.Store(t, planned{p, err})
	return p, err
}

func (c *msgpackCodec) Append(dst []byte, v any) ([]byte, error) {
	e := c.encoders.Get().(*encoder)
	defer c.encoders.Put(e)
	out, err := e.append(dst, v)
	if err != nil {
		return dst, fmt.Errorf("encoding %T: %w", v, err)
	}
	return out, nil
}

func (c *msgpackCodec) Decode(data []byte, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decoding into %T: a pointer is needed", into)
	}
	if tree, ok := into.(*map[string]any); ok {
		return c.decodeTree(data, tree)
	}
	t := target.Type().Elem()
	p, err := c.planFor(t)
	if err != nil {
		return err
	}
	fresh := reflect.New(t).Elem()
	d := c.decoder(data)
	defer c.done(d)
	if err := p.dec(d, fresh); err != nil {
		return fmt.Errorf("decoding %s: %w", t, err)
	}
	if err := d.end(); err != nil {
		return fmt.Errorf("decoding %s: %w", t, err)
	}
	target.Elem().Set(fresh)
	return nil
}

func (c *msgpackCodec) decodeTree(data []byte, into *map[string]any) error {
	d := c.decoder(data)
	defer c.done(d)
	v, err := d.tree()
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return fmt.Errorf("decoding an object: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return fmt.Errorf("decoding an object: it is stored as %T", v)
	}
	*into = m
	return nil
}
