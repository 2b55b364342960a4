package commitlog

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// effect is what a unit has done to its entity, once that is decided.
type effect struct {
	key     persist.Key
	life    uint64
	last    uint64 // the last position that it has spent
	deleted bool
	record  *snapshot.Record // nil: as before, or deleted
	changes []persist.Change
	rows    []persist.RowOp
}

// first is the first position that it has spent.
func (e *effect) first() uint64 {
	if len(e.changes) > 0 {
		return e.changes[0].Position
	}
	return e.last
}

// The bits of an effect's first byte.
const (
	hasRecord = 1 << iota
	isDeleted
)

// The bits of a change's first byte.
const (
	isEvent     = 1 << iota
	isState     // its data is the record's state, which is not repeated
	samePrinted // its schema and codec are the record's
)

// appendEffect encodes an effect. What several of its parts say alike, as a
// state and the change that led to it do, is said once.
func appendEffect(b []byte, e *effect) []byte {
	var flags byte
	if e.record != nil {
		flags |= hasRecord
	}
	if e.deleted {
		flags |= isDeleted
	}
	b = append(b, flags)
	b = appendText(b, e.key.Pod)
	b = appendText(b, e.key.Name)
	b = binary.AppendUvarint(b, e.life)
	b = binary.AppendUvarint(b, e.last)
	if r := e.record; r != nil {
		b = binary.AppendUvarint(b, r.Revision)
		b = binary.AppendUvarint(b, r.Reserved)
		b = appendTime(b, r.Changed)
		b = binary.AppendUvarint(b, uint64(r.Schema))
		b = appendText(b, r.Codec)
		b = appendBytes(b, r.State)
	}
	b = binary.AppendUvarint(b, uint64(len(e.changes)))
	for i := range e.changes {
		b = appendChange(b, &e.changes[i], e.record)
	}
	b = binary.AppendUvarint(b, uint64(len(e.rows)))
	for i := range e.rows {
		r := &e.rows[i]
		b = append(b, boolByte(r.Delete))
		b = appendText(b, r.Kind)
		b = appendText(b, r.ID)
		b = appendBytes(b, r.Value)
	}
	return b
}

func appendChange(b []byte, c *persist.Change, r *snapshot.Record) []byte {
	var flags byte
	if c.Event {
		flags |= isEvent
	}
	if r != nil && len(c.Data) > 0 && len(c.Data) == len(r.State) && string(c.Data) == string(r.State) {
		flags |= isState
	}
	if r != nil && c.Schema == r.Schema && c.Codec == r.Codec {
		flags |= samePrinted
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, c.Position)
	b = binary.AppendUvarint(b, c.Revision)
	b = appendTime(b, c.Time)
	b = appendText(b, c.Type)
	if flags&samePrinted == 0 {
		b = binary.AppendUvarint(b, uint64(c.Schema))
		b = appendText(b, c.Codec)
	}
	if flags&isState == 0 {
		b = appendBytes(b, c.Data)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendBytes(b, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// words keeps one copy of texts that come again and again.
type words map[string]string

// maxWords bounds them: what comes after is not kept.
const maxWords = 4096

func (w words) text(b []byte) string {
	if s, ok := w[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(w) < maxWords {
		w[s] = s
	}
	return s
}

var errShort = errors.New("a group is cut short, or is not of this format")

// reader decodes a group. What it returns shares the group's memory, but for
// texts.
type reader struct {
	rest  []byte
	short bool
	words words
}

// effect decodes the next one.
func (r *reader) effect() (e effect, err error) {
	flags := r.byte()
	e.deleted = flags&isDeleted != 0
	e.key.Pod = r.words.text(r.bytes())
	e.key.Name = string(r.bytes())
	e.life, e.last = r.number(), r.number()
	if flags&hasRecord != 0 {
		e.record = &snapshot.Record{Life: e.life, Revision: r.number(), Reserved: r.number(), Changed: r.time(),
			Schema: uint32(r.number()), Codec: r.words.text(r.bytes()), State: r.bytes()}
	}
	if n := r.count(); n > 0 {
		e.changes = make([]persist.Change, n)
		for i := range e.changes {
			r.change(&e, &e.changes[i])
		}
	}
	if n := r.count(); n > 0 {
		e.rows = make([]persist.RowOp, n)
		for i := range e.rows {
			e.rows[i] = persist.RowOp{Delete: r.byte() != 0, Kind: r.words.text(r.bytes()), ID: string(r.bytes()), Value: r.bytes()}
		}
	}
	if r.short {
		return effect{}, errShort
	}
	return e, nil
}

func (r *reader) change(e *effect, c *persist.Change) {
	flags := r.byte()
	*c = persist.Change{Key: e.key, Life: e.life, Event: flags&isEvent != 0, Position: r.number(), Revision: r.number(),
		Time: r.time(), Type: r.words.text(r.bytes())}
	if flags&(samePrinted|isState) != 0 && e.record == nil {
		r.short = true
		return
	}
	if flags&samePrinted != 0 {
		c.Schema, c.Codec = e.record.Schema, e.record.Codec
	} else {
		c.Schema, c.Codec = uint32(r.number()), r.words.text(r.bytes())
	}
	if flags&isState != 0 {
		c.Data = e.record.State
	} else {
		c.Data = r.bytes()
	}
}

func (r *reader) fail() { r.rest, r.short = nil, true }

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count is a number of things that have at least a byte each.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) time() time.Time {
	sec, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return time.Time{}
	}
	r.rest = r.rest[n:]
	return time.Unix(sec, int64(r.number())).UTC()
}

// bytes is nil when there are none.
func (r *reader) bytes() []byte {
	n := r.count()
	if n == 0 {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}
