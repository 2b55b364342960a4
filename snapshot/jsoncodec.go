package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// JSON returns a new JSON codec, the one for documents: what encoding/json gives
// for a value, in the form of CanonicalJSON. Numbers in json.Number,
// json.RawMessage and any keep their text; any holds them as json.Number when
// it is read back. It refuses what encoding/json would leave out, bend or be
// unable to read back. Unlike with msgpack, minus zero stays -0 and times keep
// their offset.
func JSON() Codec { return &jsonCodec{} }

type jsonCodec struct {
	fields sync.Map // reflect.Type to map[string]reflect.Type
}

func (*jsonCodec) Name() string { return jsonName }

func (*jsonCodec) Append(dst []byte, v any) ([]byte, error) {
	out, err := appendAsJSON(dst, v)
	if err != nil {
		return dst, fmt.Errorf("encoding %T: %w", v, err)
	}
	return out, nil
}

func appendAsJSON(dst []byte, v any) ([]byte, error) {
	switch tree := v.(type) {
	case map[string]any:
		v = &tree
	case nil:
		return dst, errors.New("nil has no type: pass a value or a pointer to one")
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer {
		// Methods on pointers are only found where there is an address.
		p := reflect.New(rv.Type())
		p.Elem().Set(rv)
		rv = p
	}
	if rv.IsNil() {
		return dst, errors.New("pointer is nil")
	}
	if err := checkValues(rv.Elem(), 0); err != nil {
		return dst, err
	}
	if tree, ok := rv.Interface().(*map[string]any); ok {
		if out, err := AppendJSON(dst, *tree); err == nil {
			return out, nil // nothing but a JSON tree, as documents are
		}
	}
	b, err := json.Marshal(rv.Interface())
	if err != nil {
		return dst, err
	}
	parsed, err := ParseJSON(b)
	if err != nil {
		return dst, err
	}
	return AppendJSON(dst, parsed)
}

func (c *jsonCodec) Decode(data []byte, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decoding into %T: a pointer is needed", into)
	}
	t := target.Type().Elem()
	tree, err := ParseJSON(data)
	if err != nil {
		return fmt.Errorf("decoding %s: %w", t, err)
	}
	if m, ok := into.(*map[string]any); ok {
		object, ok := tree.(map[string]any)
		if !ok && tree != nil {
			return errors.New("decoding an object: JSON is of another type")
		}
		*m = object
		return nil
	}
	if c.dropInexact(t, tree) {
		if data, err = AppendJSON(nil, tree); err != nil {
			return fmt.Errorf("decoding %s: %w", t, err)
		}
	}
	fresh := reflect.New(t)
	if err := decodeSafely(data, fresh.Interface(), true); err != nil {
		return fmt.Errorf("decoding %s: %w", t, err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// decodeSafely calls the own methods of types, which are written for their own
// output; what they do on other input, even a panic, is an error here. Numbers
// keep their text where the type is untyped.
func decodeSafely(data []byte, into any, untyped bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unmarshalling panicked: %v", p)
		}
	}()
	if !untyped {
		return json.Unmarshal(data, into) // which needs no buffer
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("JSON ends too early")
		}
		return err
	}
	return nil
}

// ToJSON returns a copy of data in canonical form.
func (*jsonCodec) ToJSON(data []byte) ([]byte, error) { return CanonicalJSON(data) }
