package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The first byte of an encoded change says how it goes on.
//
//	1  head, data                                    all under one checksum
//	2  size of the head, head, its checksum, data    the data with a checksum before it
//
// Events have the second form. Trim must know whose an event is even when its
// data is damaged, and that it is one when nothing of it can be read: so their
// seal is another one (see eventSeal). Files without events are of format 1,
// which programs read that know no events; the first event makes it format 2.
const (
	changeVersion = 1
	eventVersion  = 2
)

// appendHead encodes all of a change but its data and its position.
func appendHead(b []byte, c *persist.Change) []byte {
	b = appendText(b, c.Key.Pod)
	b = appendText(b, c.Key.Name)
	b = binary.AppendUvarint(b, c.Life)
	b = binary.AppendUvarint(b, c.Revision)
	b = binary.AppendVarint(b, c.Time.Unix())
	b = binary.AppendUvarint(b, uint64(c.Time.Nanosecond()))
	b = appendText(b, c.Type)
	b = binary.AppendUvarint(b, uint64(c.Schema))
	return appendText(b, c.Codec)
}

func (c *changeHead) read(b []byte) (rest []byte, err error) {
	r := fields{rest: b}
	c.Key.Pod = r.text()
	c.Key.Name = r.text()
	c.Life = r.uvarint()
	c.Revision = r.uvarint()
	sec := r.varint()
	nsec := r.uvarint()
	c.Time = time.Unix(sec, int64(nsec)).UTC()
	c.Type = r.text()
	c.Schema = uint32(r.uvarint())
	c.Codec = r.text()
	if r.short {
		return nil, fmt.Errorf("change is cut short: %w", snapshot.ErrCorrupt)
	}
	return r.rest, nil
}

// changeHead is a change without its data.
type changeHead persist.Change

// sealChange encodes a change, whose key, life and position are set, for the
// log bucket.
func sealChange(key []byte, c *persist.Change) []byte {
	size := len(c.Key.Pod) + len(c.Key.Name) + len(c.Type) + len(c.Codec) + 64
	if !c.Event {
		body := append(make([]byte, 0, size+len(c.Data)), changeVersion)
		body = append(appendHead(body, c), c.Data...)
		return checked(seal(logBucket, key, len(body)+4), body)
	}
	head := appendHead(make([]byte, 0, size), c)
	v := make([]byte, sealSize, sealSize+size+len(c.Data)+20)
	binary.BigEndian.PutUint32(v, eventSeal(key))
	v = append(v, eventVersion)
	v = binary.AppendUvarint(v, uint64(len(head)))
	v = append(v, head...)
	v = binary.BigEndian.AppendUint32(v, crc32.Checksum(v[sealSize:], castagnoli()))
	return checked(v, c.Data)
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// kindOfChange is what is certain of an entry of the log before it is decoded.
type kindOfChange int

const (
	unknownKind kindOfChange = iota // its seal is damaged
	stateKind
	eventKind
)

// changeKind tells it by the entry's seal, in which one bit may be flipped; whole
// says that none is.
func changeKind(key, value []byte) (kind kindOfChange, whole bool) {
	if len(value) < sealSize {
		return unknownKind, false
	}
	stored, state, event := binary.BigEndian.Uint32(value), sum(logBucket, key, nil), eventSeal(key)
	switch {
	case stored == state:
		return stateKind, true
	case stored == event:
		return eventKind, true
	case oneBit(stored, event):
		return eventKind, false
	case oneBit(stored, state):
		return stateKind, false
	}
	return unknownKind, false
}

// readChange decodes an entry of the log. The result shares no memory with key
// or value; no data comes back as nil. When it cannot be read, Err says why,
// and besides the position there is what is certain all the same.
func readChange(key, value []byte) (c persist.Change) {
	if len(key) != 8 {
		c.Err = fmt.Errorf("key of a change has %d bytes, want 8: %w", len(key), snapshot.ErrCorrupt)
		return c
	}
	c.Position = binary.BigEndian.Uint64(key)
	var err error
	switch kind, whole := changeKind(key, value); {
	case kind == stateKind && whole:
		err = readState(&c, value[sealSize:])
	case kind == eventKind:
		c.Event = true
		if err = readEvent(&c, value[sealSize:]); err == nil && !whole {
			c.Data, err = nil, fmt.Errorf("its seal is damaged: %w", snapshot.ErrCorrupt)
		}
	default:
		err = fmt.Errorf("key and value do not belong together: %w", snapshot.ErrCorrupt)
	}
	if err != nil {
		c.Err = fmt.Errorf("change at position %d: %w", c.Position, err)
	}
	return c
}

func readState(c *persist.Change, b []byte) error {
	body, err := unchecked(b)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return fmt.Errorf("change is cut short: %w", snapshot.ErrCorrupt)
	}
	if body[0] != changeVersion {
		return newerChange(body[0])
	}
	h := changeHead{Position: c.Position}
	data, err := h.read(body[1:])
	if err != nil {
		return err
	}
	*c = persist.Change(h)
	c.Data = append(c.Data, data...)
	return nil
}

func readEvent(c *persist.Change, b []byte) error {
	f := fields{rest: b}
	version := f.byte()
	size := f.uvarint()
	if f.short || size+4 > uint64(len(f.rest)) {
		return fmt.Errorf("event is cut short: %w", snapshot.ErrCorrupt)
	}
	headed := b[:len(b)-len(f.rest)+int(size)]
	head, rest := f.rest[:size], f.rest[size:]
	if want, got := binary.BigEndian.Uint32(rest), crc32.Checksum(headed, castagnoli()); want != got {
		return fmt.Errorf("event's checksum is %08x, its bytes give %08x: %w", want, got, snapshot.ErrCorrupt)
	}
	if version != eventVersion {
		return newerChange(version)
	}
	h := changeHead{Position: c.Position, Event: true}
	if _, err := h.read(head); err != nil {
		return err
	}
	*c = persist.Change(h)
	data, err := unchecked(rest[4:])
	if err != nil {
		return fmt.Errorf("%s: revision %d: %w", c.Key, c.Revision, err)
	}
	c.Data = append(c.Data, data...)
	return nil
}

func newerChange(version byte) error {
	return fmt.Errorf("it has version %d, this program reads up to %d: %w", version, eventVersion, snapshot.ErrNewer)
}

// fields reads a change's fields in order; once something is cut short it
// gives zeros.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) took(n int) {
	if n <= 0 {
		f.short, f.rest = true, nil
		return
	}
	f.rest = f.rest[n:]
}

func (f *fields) byte() (b byte) {
	if len(f.rest) == 0 {
		f.short = true
		return 0
	}
	b, f.rest = f.rest[0], f.rest[1:]
	return b
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	f.took(n)
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.rest)
	f.took(n)
	return v
}

func (f *fields) text() string {
	n := f.uvarint()
	if n > uint64(len(f.rest)) {
		f.short, f.rest = true, nil
		return ""
	}
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}
