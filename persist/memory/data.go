package memory

import (
	"cmp"
	"math"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// data is what a store holds: the port's meaning, written down plainly. It
// shares no bytes with its callers, and never changes bytes that it has; so a
// fork may share them. It is not safe for concurrent use.
type data struct {
	next    uint64 // the next position to give
	records *tree[persist.Key, stored]
	log     *tree[uint64, *persist.Change]
	changes *tree[changeKey, *persist.Change]
	rows    *tree[rowKey, []byte]
}

// stored is a record in its envelope.
type stored struct {
	life, revision uint64
	envelope       []byte
}

// changeKey sorts changes by entity.
type changeKey struct {
	persist.Key
	life, revision uint64
}

// rowKey sorts rows as the port reads them.
type rowKey struct {
	kind string
	persist.Key
	id string
}

func newData(first uint64) *data {
	return &data{
		next:    first + 1,
		records: newTree[persist.Key, stored](compareKeys),
		log:     newTree[uint64, *persist.Change](cmp.Compare[uint64]),
		changes: newTree[changeKey, *persist.Change](compareChanges),
		rows:    newTree[rowKey, []byte](compareRows),
	}
}

func (d *data) fork() *data {
	return &data{next: d.next, records: d.records.fork(), log: d.log.fork(), changes: d.changes.fork(), rows: d.rows.fork()}
}

func compareKeys(a, b persist.Key) int {
	if c := strings.Compare(a.Pod, b.Pod); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func compareChanges(a, b changeKey) int {
	if c := compareKeys(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.life, b.life), cmp.Compare(a.revision, b.revision))
}

func compareRows(a, b rowKey) int {
	if c := strings.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	if c := compareKeys(a.Key, b.Key); c != 0 {
		return c
	}
	return strings.Compare(a.id, b.id)
}

func keyOf(c *persist.Change) changeKey { return changeKey{c.Key, c.Life, c.Revision} }

// putChange takes a change, of which nobody else has the bytes.
func (d *data) putChange(c *persist.Change) {
	c.Time = c.Time.Round(0).UTC()
	d.dropChange(c.Position)
	d.log.put(c.Position, c)
	d.changes.put(keyOf(c), c)
}

func (d *data) dropChange(position uint64) {
	old, ok := d.log.get(position)
	if !ok {
		return
	}
	d.log.delete(position)
	if filed, ok := d.changes.get(keyOf(old)); ok && filed == old {
		d.changes.delete(keyOf(old))
	}
}

// putRecord takes a record, whose life is set.
func (d *data) putRecord(k persist.Key, r *persist.Stored) {
	d.records.put(k, stored{life: r.Record.Life, revision: r.Record.Revision, envelope: r.Record.Append(nil)})
}

// lastRevision returns the highest revision of a life in the journal.
func (d *data) lastRevision(k persist.Key, life uint64) uint64 {
	last, ok := d.changes.floor(changeKey{k, life, math.MaxUint64})
	if !ok || last.Key != k || last.life != life {
		return 0
	}
	return last.revision
}

// eachKind calls fn for the kinds of rows that there are, in order.
func (d *data) eachKind(fn func(kind string)) {
	for from := ""; ; {
		kind := ""
		d.rows.from(rowKey{kind: from}, func(k rowKey, _ []byte) bool {
			kind = k.kind
			return false
		})
		if kind == "" {
			return
		}
		fn(kind)
		from = kind + "\x00"
	}
}

// eachRow calls fn for the rows of an entity, in order.
func (d *data) eachRow(key persist.Key, fn func(k rowKey, value []byte)) {
	d.eachKind(func(kind string) {
		d.rows.from(rowKey{kind: kind, Key: key}, func(k rowKey, value []byte) bool {
			if k.kind != kind || k.Key != key {
				return false
			}
			fn(k, value)
			return true
		})
	})
}

// cloneBytes copies; nothing stays nil.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }

// cloneValue copies; nothing becomes empty.
func cloneValue(b []byte) []byte { return append([]byte{}, b...) }
