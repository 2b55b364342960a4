package commitlog

import (
	"cmp"

	"github.com/google/btree"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// generation is what some groups have done, as long as it is not folded. One is
// written to; another may be frozen, and is then never changed.
type generation struct {
	segments []*segment // where its groups stand
	last     uint64     // its last group, or the one before it has any

	entities map[persist.Key]*dirty
	sorted   *btree.BTreeG[*dirty]    // the same by key
	rows     *btree.BTreeG[*dirtyRow] // by kind, key and ID
	kinds    map[string]struct{}      // of the rows
	pods     map[string]struct{}      // of the records
	thinned  map[string]struct{}      // pods in which something was deleted
	log      []*persist.Change        // in the order of positions
	position uint64                   // the last one that it has spent, 0: none
}

// dirty is what a generation has done to an entity.
type dirty struct {
	key     persist.Key
	record  *snapshot.Record  // nil when gone, or when older ones know it
	cleared bool              // what older ones have of record and rows is gone
	changes []*persist.Change // in order
}

// known says whether the generation knows of the entity's record whether it is
// there.
func (d *dirty) known() bool { return d.record != nil || d.cleared }

// dirtyRow is a row that was written, or removed.
type dirtyRow struct {
	kind  string
	key   persist.Key
	id    string
	value []byte
	gone  bool
}

func compareKeys(a, b persist.Key) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name))
}

func (r *dirtyRow) compare(o *dirtyRow) int {
	return cmp.Or(cmp.Compare(r.kind, o.kind), compareKeys(r.key, o.key), cmp.Compare(r.id, o.id))
}

const degree = 32 // of the trees

func newGeneration(last uint64, segments ...*segment) *generation {
	return &generation{
		segments: segments, last: last,
		entities: map[persist.Key]*dirty{},
		sorted:   btree.NewG(degree, func(a, b *dirty) bool { return compareKeys(a.key, b.key) < 0 }),
		rows:     btree.NewG(degree, func(a, b *dirtyRow) bool { return a.compare(b) < 0 }),
		kinds:    map[string]struct{}{},
		pods:     map[string]struct{}{},
		thinned:  map[string]struct{}{},
	}
}

func (g *generation) empty() bool { return g.position == 0 && g.log == nil && len(g.entities) == 0 }

// apply takes over what a unit has done. The effect's memory becomes the
// generation's.
func (g *generation) apply(e *effect) {
	g.position = max(g.position, e.last)
	d := g.entities[e.key]
	if d == nil {
		d = &dirty{key: e.key}
		g.entities[e.key] = d
		g.sorted.ReplaceOrInsert(d)
	}
	if e.deleted {
		d.record, d.cleared = nil, true
		g.thinned[e.key.Pod] = struct{}{}
		g.dropRows(e.key)
	}
	if e.record != nil {
		d.record = e.record
		g.pods[e.key.Pod] = struct{}{}
	}
	for i := range e.changes {
		d.changes = append(d.changes, &e.changes[i])
		g.log = append(g.log, &e.changes[i])
	}
	for i := range e.rows {
		r := &e.rows[i]
		if r.Value == nil {
			r.Value = []byte{} // as every store hands it out
		}
		g.kinds[r.Kind] = struct{}{}
		g.rows.ReplaceOrInsert(&dirtyRow{kind: r.Kind, key: e.key, id: r.ID, value: r.Value, gone: r.Delete})
	}
}

// dropRows forgets the rows of an entity that was deleted; cleared says that
// the older ones are gone too.
func (g *generation) dropRows(key persist.Key) {
	var gone []*dirtyRow
	for kind := range g.kinds {
		g.eachRow(&dirtyRow{kind: kind, key: key}, func(r *dirtyRow) bool {
			if r.kind != kind || r.key != key {
				return false
			}
			gone = append(gone, r)
			return true
		})
	}
	for _, r := range gone {
		g.rows.Delete(r)
	}
}

// eachRow calls fn for the rows from the one given on, until it returns false.
func (g *generation) eachRow(from *dirtyRow, fn func(*dirtyRow) bool) {
	g.rows.AscendGreaterOrEqual(from, fn)
}
