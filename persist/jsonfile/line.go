package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The journal's lines are JSON objects of two parts, each with its checksum:
//
//	{"seq":7,"at":0,"op":"unit","position":12,"pod":"rooms","name":"a","life":12,"revisions":[1],"head":"0123abcd",…,"sum":"0123abcd"}
//
// The head says whose line it is also when the rest is damaged.
type lineHead struct {
	// Seq counts the lines of the store.
	Seq uint64 `json:"seq"`
	// At is where in the segment the group begins that this line was written
	// and synced with: what stands before it was durable then.
	At int64 `json:"at"`
	// Op is "unit", "import", "trim" or, at the start of a segment, "segment".
	Op string `json:"op"`
	// Position is that of the first change, or the one spent on a unit
	// without; in other lines the store's highest.
	Position uint64 `json:"position"`
	Pod      string `json:"pod,omitempty"`
	Name     string `json:"name,omitempty"`
	Life     uint64 `json:"life,omitempty"`
	// New says that the entity did not exist before.
	New bool `json:"new,omitempty"`
	// Revisions are those of the changes, whose positions follow each other;
	// Events are the indices of those that are events.
	Revisions []uint64 `json:"revisions,omitempty"`
	Events    []int    `json:"events,omitempty"`
}

type lineBody struct {
	Format  int          `json:"format,omitempty"` // in the first line of a segment
	Delete  bool         `json:"delete,omitempty"`
	Full    bool         `json:"full,omitempty"` // there are no other rows than these
	Record  *lineRecord  `json:"record,omitempty"`
	Rows    []lineRow    `json:"rows,omitempty"`
	Changes []lineChange `json:"changes,omitempty"`
	Drop    [][2]uint64  `json:"drop,omitempty"` // positions from … to, of changes
}

type lineRecord struct {
	Revision uint64 `json:"revision"`
	Reserved uint64 `json:"reserved"`
	Changed  stamp  `json:"changed"`
	Schema   uint32 `json:"schema"`
	Codec    string `json:"codec"`
	// Same says that the state is the last change's data.
	Same bool `json:"same,omitempty"`
	value
}

type lineRow struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	value
	Delete bool `json:"delete,omitempty"`
}

type lineChange struct {
	Time   stamp  `json:"time"`
	Type   string `json:"type"`
	Schema uint32 `json:"schema"`
	Codec  string `json:"codec"`
	value
}

const (
	opUnit    = "unit"
	opImport  = "import"
	opTrim    = "trim"
	opSegment = "segment"
)

type line struct {
	lineHead
	lineBody
	base *content // what the entity's file has before it, where that was read
}

func (h *lineHead) key() persist.Key { return persist.Key{Pod: h.Pod, Name: h.Name} }

// last is the highest position that the line has or tells.
func (h *lineHead) last() uint64 {
	if n := len(h.Revisions); n > 1 {
		return h.Position + uint64(n) - 1
	}
	return h.Position
}

func (l *line) append(dst []byte) ([]byte, error) {
	start := len(dst)
	head, err := marshal(l.lineHead)
	if err != nil {
		return nil, err
	}
	body, err := marshal(l.lineBody)
	if err != nil {
		return nil, err
	}
	dst = append(dst, head[:len(head)-1]...)
	dst = fmt.Appendf(dst, `%s%08x"`, rowHead, checksum(dst[start:]))
	if inner := body[1 : len(body)-1]; len(inner) > 0 {
		dst = append(append(dst, ','), inner...)
	}
	return fmt.Appendf(dst, "%s%08x\"}\n", lineSum, checksum(dst[start:])), nil
}

var errLine = errors.New("the line's checksum is not that of its content")

// readHead reads a line's head, whatever became of the rest. text is the line
// without its end.
func readHead(text []byte) (h lineHead, ok bool) {
	i := bytes.Index(text, []byte(rowHead))
	if i < 0 || len(text) < i+len(rowHead)+9 || string(text[i+len(rowHead):][:9]) != fmt.Sprintf(`%08x"`, checksum(text[:i])) {
		return h, false
	}
	return h, json.Unmarshal(append(bytes.Clone(text[:i]), '}'), &h) == nil
}

// whole says whether a line is as it was written.
func whole(text []byte) bool {
	n := len(text) - len(lineSum) - 10
	return n > 0 && string(text[n:]) == fmt.Sprintf(`%s%08x"}`, lineSum, checksum(text[:n]))
}

// readLine reads all of a line.
func readLine(text []byte) (*line, error) {
	if !whole(text) {
		return nil, errLine
	}
	var l struct {
		line
		Head string `json:"head"`
		Sum  string `json:"sum"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	return &l.line, nil
}

// setUnit fills in what a unit does. Changes have their final revisions.
func (l *line) setUnit(u *persist.Unit, changes []persist.Change) {
	l.Delete = u.Delete
	for i := range changes {
		l.addChange(&changes[i])
	}
	if r := u.Record; r != nil {
		l.setRecord(r)
		if n := len(changes); n > 0 && len(r.State) > 0 && changes[n-1].Codec == r.Codec && bytes.Equal(changes[n-1].Data, r.State) {
			l.Record.Same, l.Record.value = true, value{}
		}
	}
	for i := range u.Rows {
		op := &u.Rows[i]
		r := lineRow{Kind: op.Kind, ID: op.ID, Delete: op.Delete}
		if !op.Delete {
			r.value = valueOf(op.Value, "")
		}
		l.Rows = append(l.Rows, r)
	}
}

func (l *line) setRecord(r *snapshot.Record) {
	l.Record = &lineRecord{Revision: r.Revision, Reserved: r.Reserved, Changed: stampOf(r.Changed),
		Schema: r.Schema, Codec: r.Codec, value: valueOf(r.State, r.Codec)}
}

func (l *line) addChange(c *persist.Change) {
	if c.Event {
		l.Events = append(l.Events, len(l.Revisions))
	}
	l.Revisions = append(l.Revisions, c.Revision)
	l.Changes = append(l.Changes, lineChange{Time: stampOf(c.Time), Type: c.Type, Schema: c.Schema, Codec: c.Codec,
		value: valueOf(c.Data, c.Codec)})
}

// change returns the line's change of that index.
func (l *line) change(i int) (persist.Change, error) {
	if i >= len(l.Changes) || i >= len(l.Revisions) {
		return persist.Change{}, errLine
	}
	w := &l.Changes[i]
	data, err := w.bytes()
	c := persist.Change{Position: l.Position + uint64(i), Key: l.key(), Life: l.Life, Revision: l.Revisions[i],
		Time: time.Time(w.Time), Type: w.Type, Schema: w.Schema, Codec: w.Codec, Data: data, Event: l.isEvent(i)}
	return c, err
}

func (h *lineHead) isEvent(i int) bool {
	for _, e := range h.Events {
		if e == i {
			return true
		}
	}
	return false
}

// record returns the record that the line writes, nil if it writes none.
func (l *line) record() (*snapshot.Record, error) {
	w := l.Record
	if w == nil {
		return nil, nil
	}
	v := w.value
	if w.Same {
		if len(l.Changes) == 0 {
			return nil, errLine
		}
		v = l.Changes[len(l.Changes)-1].value
	}
	state, err := v.bytes()
	return &snapshot.Record{Life: l.Life, Revision: w.Revision, Reserved: w.Reserved, Changed: time.Time(w.Changed),
		Schema: w.Schema, Codec: w.Codec, State: state}, err
}

// apply does to an entity's content what the line says. A deletion is not for
// it.
func (l *line) apply(c *content) error {
	r, err := l.record()
	if err != nil {
		return err
	}
	if r != nil {
		c.setRecord(r)
	}
	for i := range l.Rows {
		op := &l.Rows[i]
		id := rowID{op.Kind, op.ID}
		if op.Delete {
			c.dropRow(id)
			continue
		}
		v, err := op.bytes()
		if err != nil {
			return err
		}
		c.setRow(id, row{value: v})
	}
	if l.Op == opUnit {
		c.position = max(c.position, l.last())
	}
	return nil
}
