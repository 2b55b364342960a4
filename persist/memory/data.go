package memory

import (
	"cmp"
	"math"
	"strings"

	"github.com/google/btree"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// data is what a store holds: the port's meaning, written down plainly. It
// shares no bytes with its callers, and never changes bytes or changes that it
// has; so a fork may share them. It is not safe for concurrent use.
//
// The journal is cut at its start and grows at its end, listings start in the
// middle, and a fork must cost nothing: trees that copy a node before they
// change one that another shares do all of that.
type data struct {
	next    uint64 // the next position to give
	records *btree.BTreeG[stored]
	log     *btree.BTreeG[*persist.Change] // by position
	changes *btree.BTreeG[*persist.Change] // by key, life and revision
	rows    *btree.BTreeG[row]
	mark    persist.Mark
}

// stored is a record in its envelope.
type stored struct {
	persist.Key
	life, revision uint64
	envelope       []byte
}

// row is one row; rows are sorted as the port reads them.
type row struct {
	kind string
	persist.Key
	id    string
	value []byte
}

// degree is that of the trees: their nodes have at most 2*degree-1 items. More
// makes walking faster and changing slower.
const degree = 32

func newData(first uint64) *data {
	return &data{
		next:    first + 1,
		records: btree.NewG(degree, func(a, b stored) bool { return compareKeys(a.Key, b.Key) < 0 }),
		log:     btree.NewG(degree, func(a, b *persist.Change) bool { return a.Position < b.Position }),
		changes: btree.NewG(degree, func(a, b *persist.Change) bool { return compareChanges(a, b) < 0 }),
		rows:    btree.NewG(degree, func(a, b row) bool { return compareRows(&a, &b) < 0 }),
	}
}

func (d *data) fork() *data {
	return &data{next: d.next, records: d.records.Clone(), log: d.log.Clone(), changes: d.changes.Clone(), rows: d.rows.Clone(), mark: d.mark}
}

func compareKeys(a, b persist.Key) int {
	if c := strings.Compare(a.Pod, b.Pod); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func compareChanges(a, b *persist.Change) int {
	if c := compareKeys(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Life, b.Life), cmp.Compare(a.Revision, b.Revision))
}

func compareRows(a, b *row) int {
	if c := strings.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	if c := compareKeys(a.Key, b.Key); c != 0 {
		return c
	}
	return strings.Compare(a.id, b.id)
}

// putChange takes a change, of which nobody else has the bytes.
func (d *data) putChange(c *persist.Change) {
	c.Time = c.Time.Round(0).UTC()
	d.dropChange(c.Position)
	d.log.ReplaceOrInsert(c)
	d.changes.ReplaceOrInsert(c)
}

func (d *data) dropChange(position uint64) {
	old, ok := d.log.Delete(&persist.Change{Position: position})
	if !ok {
		return
	}
	if filed, ok := d.changes.Get(old); ok && filed == old {
		d.changes.Delete(old)
	}
}

// logChange takes a change into the log alone. One that is filed already, with
// what was in the log at its position before, stays filed.
func (d *data) logChange(c *persist.Change) {
	c.Time = c.Time.Round(0).UTC()
	old, ok := d.log.ReplaceOrInsert(c)
	if !ok {
		return
	}
	if filed, ok := d.changes.Get(old); ok && filed == old {
		d.changes.Delete(old)
		d.changes.ReplaceOrInsert(c)
	}
}

// fileChange lists a change that is in the log under its entity. One that was
// trimmed meanwhile is gone.
func (d *data) fileChange(position uint64) {
	if c, ok := d.log.Get(&persist.Change{Position: position}); ok {
		d.changes.ReplaceOrInsert(c)
	}
}

// deleteRows removes the rows of an entity.
func (d *data) deleteRows(key persist.Key) {
	var gone []row
	d.eachRow(key, func(r row) { gone = append(gone, r) })
	for _, r := range gone {
		d.rows.Delete(r)
	}
}

// putRecord takes a record, whose life is set.
func (d *data) putRecord(k persist.Key, r *snapshot.Record) {
	d.records.ReplaceOrInsert(stored{Key: k, life: r.Life, revision: r.Revision, envelope: r.Append(nil)})
}

// lastRevision returns the highest revision of a life in the journal.
func (d *data) lastRevision(k persist.Key, life uint64) (last uint64) {
	d.changes.DescendLessOrEqual(&persist.Change{Key: k, Life: life, Revision: math.MaxUint64}, func(c *persist.Change) bool {
		if c.Key == k && c.Life == life {
			last = c.Revision
		}
		return false
	})
	return last
}

// eachKind calls fn for the kinds of rows that there are, in order.
func (d *data) eachKind(fn func(kind string)) {
	for from := ""; ; {
		kind := ""
		d.rows.AscendGreaterOrEqual(row{kind: from}, func(r row) bool {
			kind = r.kind
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
func (d *data) eachRow(key persist.Key, fn func(r row)) {
	d.eachKind(func(kind string) {
		d.rows.AscendGreaterOrEqual(row{kind: kind, Key: key}, func(r row) bool {
			if r.kind != kind || r.Key != key {
				return false
			}
			fn(r)
			return true
		})
	})
}

// cloneBytes copies; nothing stays nil.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }

// cloneValue copies; nothing becomes empty.
func cloneValue(b []byte) []byte { return append([]byte{}, b...) }
