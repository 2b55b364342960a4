package jsonfile

import (
	"cmp"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// content is what an entity's file holds. It is not safe for concurrent use;
// the bytes in it are never changed.
type content struct {
	key      persist.Key
	position uint64           // of the last unit
	record   *snapshot.Record // nil when there are only rows, from an import
	rows     map[rowID]row
	kinds    map[string]int // how many rows of each kind
	size     int            // bytes of states and rows
}

type rowID struct{ kind, id string }

// row is a value, or what is left of one that cannot be read.
type row struct {
	value   []byte
	damaged bool
}

func newContent(key persist.Key) *content {
	return &content{key: key, rows: map[rowID]row{}, kinds: map[string]int{}}
}

func (c *content) setRecord(r *snapshot.Record) {
	if c.record != nil {
		c.size -= len(c.record.State)
	}
	c.record = r
	c.size += len(r.State)
}

func (c *content) setRow(id rowID, r row) {
	c.dropRow(id)
	c.rows[id] = r
	c.kinds[id.kind]++
	c.size += rowSize(id, r)
}

func (c *content) dropRow(id rowID) {
	r, ok := c.rows[id]
	if !ok {
		return
	}
	delete(c.rows, id)
	c.size -= rowSize(id, r)
	if c.kinds[id.kind]--; c.kinds[id.kind] == 0 {
		delete(c.kinds, id.kind)
	}
}

func rowSize(id rowID, r row) int { return len(id.kind) + len(id.id) + len(r.value) + 64 }

// sorted returns the rows' IDs in the order of kind and ID.
func (c *content) sorted() []rowID {
	ids := make([]rowID, 0, len(c.rows))
	for id := range c.rows {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

func compareIDs(a, b rowID) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// owned returns a copy of a record, for a caller who may do with it as they
// like.
func owned(r *snapshot.Record) snapshot.Record {
	out := *r
	out.Changed = r.Changed.Round(0).UTC()
	out.State = append([]byte(nil), r.State...)
	return out
}

func stampOf(t time.Time) stamp { return stamp(t.Round(0).UTC()) }
