package snapshot

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// skip passes over the next value.
func (d *decoder) skip() error {
	k, err := d.kind()
	if err != nil {
		return err
	}
	switch k {
	case kindArray, kindMap:
		n, err := d.arrayOrMapLen(k)
		if err != nil {
			return err
		}
		if err := d.enter(); err != nil {
			return err
		}
		defer d.leave()
		for range n {
			if err := d.skip(); err != nil {
				return err
			}
		}
		return nil
	case kindString, kindBytes:
		_, err = d.payload()
		return err
	}
	_, err = d.scalar(k)
	return err
}

// arrayOrMapLen gives how many values follow: two for each entry of a map.
func (d *decoder) arrayOrMapLen(k kind) (int, error) {
	if k == kindArray {
		return d.arrayLen()
	}
	n, err := d.mapLen()
	return 2 * n, err
}

// tree reads the next value without knowing its type; Upgrade lists what it is
// made of.
func (d *decoder) tree() (any, error) {
	k, err := d.kind()
	if err != nil {
		return nil, err
	}
	switch k {
	case kindArray:
		return d.list((*decoder).tree)
	case kindMap:
		return d.treeMap()
	}
	return d.scalar(k)
}

func (d *decoder) list(read func(*decoder) (any, error)) (any, error) {
	n, err := d.arrayLen()
	if err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	out := make([]any, 0, min(n, preallocated))
	for i := range n {
		v, err := read(d)
		if err != nil {
			return nil, at(fmt.Sprintf("[%d]", i), err)
		}
		out = append(out, v)
	}
	return out, nil
}

// treeMap reads a map: of strings, of plain keys, or as it stands.
func (d *decoder) treeMap() (any, error) {
	start := d.pos
	named, plain := map[string]any{}, map[any]any{}
	whole := false // some key can be no key in Go
	n, err := d.entries((*decoder).tree, (*decoder).tree, func(k, v any) {
		switch k := k.(type) {
		case string:
			named[k], plain[k] = v, v
		case int64, uint64, bool, float32, float64:
			plain[k] = v
		default:
			whole = true
		}
	})
	switch {
	case err != nil:
		return nil, err
	case whole:
		return msgpack.RawMessage(append([]byte(nil), d.data[start:d.pos]...)), nil
	case len(plain) != n:
		return nil, errors.New("map has the same key twice")
	case len(named) == n:
		return named, nil
	}
	return plain, nil
}

func (d *decoder) entries(key, value func(*decoder) (any, error), add func(k, v any)) (int, error) {
	n, err := d.mapLen()
	if err != nil {
		return 0, err
	}
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	for i := range n {
		k, err := key(d)
		if err != nil {
			return 0, at(fmt.Sprintf("[key %d]", i), err)
		}
		v, err := value(d)
		if err != nil {
			return 0, at("["+shorten(fmt.Sprint(k))+"]", err)
		}
		add(k, v)
	}
	return n, nil
}

// scalar reads a value of kind k that holds no others.
func (d *decoder) scalar(k kind) (any, error) {
	switch k {
	case kindNil:
		return nil, d.in.DecodeNil()
	case kindBool:
		return d.in.DecodeBool()
	case kindInt, kindUint:
		n, err := d.in.DecodeInt64()
		if err != nil {
			return nil, errShort()
		}
		if k == kindUint && n < 0 {
			return uint64(n), nil
		}
		return n, nil
	case kindFloat32, kindFloat64:
		f, err := d.in.DecodeFloat64()
		if err != nil {
			return nil, errShort()
		}
		f, err = canonicalFloat(f)
		if k == kindFloat32 {
			return float32(f), err
		}
		return f, err
	case kindString:
		b, err := d.text()
		return string(b), err
	case kindBytes:
		b, err := d.payload()
		return append(make([]byte, 0, len(b)), b...), err
	case kindExt:
		return d.time()
	}
	return nil, fmt.Errorf("byte %#02x at offset %d begins no value", d.data[d.pos], d.pos)
}

// tree writes what decoder.tree reads, and any value of a type that has a plan.
func (e *encoder) tree(v any) error {
	switch v := v.(type) {
	case nil:
		e.buf = appendNil(e.buf)
		return nil
	case map[string]any:
		return treeEntries(e, v)
	case map[any]any:
		return treeEntries(e, v)
	case []any:
		return e.treeList(v)
	case msgpack.RawMessage:
		d := newDecoder(v)
		if err := d.skip(); err != nil {
			return err
		}
		e.buf = append(e.buf, v...)
		return d.end()
	}
	rv := reflect.ValueOf(v)
	p, err := e.codec.planFor(rv.Type())
	if err != nil {
		return err
	}
	return p.enc(e, rv)
}

func treeEntries[K comparable](e *encoder, m map[K]any) error {
	if m == nil {
		e.buf = appendNil(e.buf)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.buf = appendMapLen(e.buf, len(m))
	base := len(e.spans)
	for k, v := range m {
		s := span{start: len(e.buf)}
		if err := e.tree(k); err != nil {
			return at("["+shorten(fmt.Sprint(k))+"]", err)
		}
		s.value = len(e.buf)
		if err := e.tree(v); err != nil {
			return at("["+shorten(fmt.Sprint(k))+"]", err)
		}
		s.end = len(e.buf)
		e.spans = append(e.spans, s)
	}
	return e.sortEntries(base)
}

func (e *encoder) treeList(list []any) error {
	if list == nil {
		e.buf = appendNil(e.buf)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.buf = appendArrayLen(e.buf, len(list))
	for i, v := range list {
		if err := e.tree(v); err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// ToJSON gives maps as objects, times as RFC 3339 with nanoseconds, bytes as
// base64, and keys other than strings as their text.
func (c *msgpackCodec) ToJSON(data []byte) ([]byte, error) {
	d := c.decoder(data)
	defer c.done(d)
	v, err := d.rendered()
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return nil, fmt.Errorf("rendering msgpack: %w", err)
	}
	return AppendJSON(nil, v)
}

// rendered reads the next value as a JSON tree.
func (d *decoder) rendered() (any, error) {
	k, err := d.kind()
	if err != nil {
		return nil, err
	}
	switch k {
	case kindArray:
		return d.list((*decoder).rendered)
	case kindMap:
		out := map[string]any{}
		n, err := d.entries((*decoder).renderedKey, (*decoder).rendered, func(k, v any) {
			out[k.(string)] = v
		})
		if err == nil && len(out) != n {
			err = errors.New("map has two keys with the same text")
		}
		return out, err
	}
	v, err := d.scalar(k)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), nil
	case float32:
		return numberOf(float64(v), 32), nil
	case float64:
		return numberOf(v, 64), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	}
	return v, nil
}

func (d *decoder) renderedKey() (any, error) {
	v, err := d.rendered()
	if err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	b, err := AppendJSON(nil, v)
	return string(b), err
}
