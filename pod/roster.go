package pod

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/internal/mutant"
)

// A roster lists the slots of a pod of which all is in memory (see census), so
// that queries can keep tables of what they look at: the values at their paths,
// one row a slot, next to each other in memory. To look at a table takes a
// fraction of the time that it takes to find each entity's state and the values
// in it, which are spread over all of the memory.
//
// Slots that come later are listed behind it. When one leaves, the roster is
// dropped with its tables; also when too many came, which need not be entities
// that stay: messages to names without one make slots, too.
type roster struct {
	departures uint64 // for which it holds
	slots      []*slot
	names      []string
	tables     *tables
	ready      atomic.Bool

	mu   sync.Mutex
	late []*slot // that came since
	most int     // of them; 0 while the roster is being made
}

// tables are those of a roster, the one used last first. Rows hold on to them
// and not to the roster, so that they let go of all of it when it is dropped.
type tables struct{ atomic.Pointer[[]*table] }

// row is a slot's place in a roster.
type row struct {
	tables *tables
	number int
}

// changed notes that the view of a row's slot is another one.
func (r *row) changed() {
	if r == nil || mutant.On(mutant.TableRowStale) {
		return
	}
	if all := r.tables.Load(); all != nil {
		for _, t := range *all {
			t.dirty[r.number/64].Or(1 << (r.number % 64))
		}
	}
}

// came lists a slot that is about to come. Where it is one too many there is no
// roster any more: a query that has it still began before that one came.
func (t *slots) came(s *slot) {
	r := t.roster.Load()
	if r == nil || r.came(s) {
		return
	}
	if t.roster.CompareAndSwap(r, nil) {
		r.tables.Store(nil)
	}
}

func (r *roster) came(s *slot) (fits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most > 0 && len(r.late) >= r.most {
		return false
	}
	r.late = append(r.late, s)
	return true
}

// latecomers returns the slots that came since the roster was made.
func (r *roster) latecomers() []*slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mutant.On(mutant.LatecomersMissed) {
		return nil
	}
	return slices.Clip(r.late)
}

// currentRoster returns the pod's roster, made anew where there is none; nil
// without a census.
func (p *Pod) currentRoster() *roster {
	departures := p.slots.departures.Load()
	if p.slots.census.Load() != departures+1 {
		return nil
	}
	if r := p.slots.roster.Load(); r != nil && r.departures == departures && r.ready.Load() {
		return r
	}
	if !p.slots.counting.TryLock() {
		return nil // another query makes it
	}
	defer p.slots.counting.Unlock()
	p.slots.dropRoster()
	r := &roster{departures: departures, tables: &tables{}}
	p.slots.roster.Store(r)
	// Slots are put in their place under their shard's lock. So one that came
	// since it was stored is late, found here, or both.
	all := p.slots.all(func(*slot) bool { return true })
	var names strings.Builder // next to each other, as the values are
	for i, s := range all {
		s.row.Store(&row{r.tables, i})
		names.WriteString(s.name)
	}
	rest := names.String()
	for _, s := range all {
		r.names = append(r.names, rest[:len(s.name)])
		rest = rest[len(s.name):]
	}
	r.slots = all
	r.mu.Lock()
	r.late = slices.DeleteFunc(r.late, func(s *slot) bool { at := s.row.Load(); return at != nil && at.tables == r.tables })
	r.most = fewAlways + len(all)/8
	r.mu.Unlock()
	if p.slots.departures.Load() != departures {
		return nil // whoever left has dropped it
	}
	r.ready.Store(true)
	return r
}

// dropRoster lets go of the roster and its tables.
func (t *slots) dropRoster() {
	if r := t.roster.Swap(nil); r != nil {
		r.tables.Store(nil)
	}
}

const (
	mostTables = 4
	mostCells  = 1 << 20  // of a table
	mostOwned  = 64 << 20 // bytes of the texts that a table owns
	longText   = 256      // bytes of a text that a table shares with the state
)

// table has the values at some paths for each row of a roster.
type table struct {
	roster *roster
	paths  []filter.Path
	texts  []string
	dirty  []atomic.Uint64 // a bit for each row whose values are not those of its view

	mu      sync.Mutex  // is held by whoever looks at the table
	rows    filter.Rows // of the roster's slots
	there   []bool      // the row's slot has an entity; nil: the table was given up
	unknown []int       // rows of which the store alone knows
	owned   int         // bytes of texts in cells that are not the states'
	subject filter.Subject
}

// owned counts the bytes of a cell's text that is not shared with the state: a
// short one is a copy, and that of a list or an object is made.
func owned(v filter.Value) int {
	if v.Kind() == filter.Other || v.Size() <= longText {
		return v.Size()
	}
	return 0
}

// table returns the roster's table of the paths, which the caller must unlock;
// nil if another one is looking at it, or it would be too large.
func (r *roster) table(p *Pod, paths []filter.Path) *table {
	texts := make([]string, len(paths))
	for i := range paths {
		texts[i] = paths[i].String()
	}
	if len(paths)*len(r.slots) > mostCells {
		return nil
	}
	t := r.share(p, paths, texts)
	if p.slots.roster.Load() != r {
		r.tables.Store(nil) // it was dropped meanwhile
	}
	if !t.mu.TryLock() {
		return nil
	}
	if t.refresh(p); t.there == nil {
		t.mu.Unlock()
		return nil
	}
	return t
}

// share finds or makes the table of the paths.
func (r *roster) share(p *Pod, paths []filter.Path, texts []string) *table {
	for {
		old := r.tables.Load()
		var all []*table
		if old != nil {
			all = *old
		}
		at := slices.IndexFunc(all, func(t *table) bool { return slices.Equal(t.texts, texts) })
		if at == 0 {
			return all[0]
		}
		var t *table
		if at > 0 {
			t = all[at]
		} else {
			t = newTable(p.name, r, paths, texts)
		}
		next := append([]*table{t}, slices.DeleteFunc(slices.Clone(all), func(o *table) bool { return o == t })...)
		next = next[:min(len(next), mostTables)]
		if r.tables.CompareAndSwap(old, &next) {
			return t
		}
	}
}

func newTable(pod string, r *roster, paths []filter.Path, texts []string) *table {
	n := len(r.slots)
	t := &table{
		roster: r, paths: paths, texts: texts, dirty: make([]atomic.Uint64, (n+63)/64),
		rows: filter.Rows{Pod: pod, Names: r.names, Columns: make([][]filter.Value, len(paths))}, there: make([]bool, n),
	}
	for i := range t.rows.Columns {
		t.rows.Columns[i] = make([]filter.Value, n)
	}
	for i := range t.dirty {
		t.dirty[i].Store(^uint64(0))
	}
	return t
}

// refresh reads the views of the rows that are dirty. A row is clean before its
// view is read, so that a later one makes it dirty again. A table that owns too
// much stays without rows from then on.
func (t *table) refresh(p *Pod) {
	t.unknown = t.unknown[:0]
	for i := range t.dirty {
		if t.dirty[i].Load() == 0 {
			continue
		}
		for set := t.dirty[i].Swap(0); set != 0; set &= set - 1 {
			if t.owned > mostOwned {
				t.rows.Columns, t.there = nil, nil
			}
			if n := 64*i + bits.TrailingZeros64(set); n < len(t.there) {
				t.read(p, n)
			}
		}
	}
}

func (t *table) read(p *Pod, n int) {
	slot := t.roster.slots[n]
	r := slot.view.Load()
	if r == nil {
		t.there[n], t.unknown = false, append(t.unknown, n)
		t.dirty[n/64].Or(1 << (n % 64))
		return
	}
	t.there[n] = r.Revision != 0
	t.subject.Reset(p.name, slot.name, r)
	for i := range t.paths {
		v, _ := t.paths[i].Value(&t.subject)
		if text, ok := v.Text(); ok && len(text) <= longText {
			v = v.Clone()
		}
		cell := &t.rows.Columns[i][n]
		t.owned += owned(v) - owned(*cell)
		*cell = v
	}
	t.subject.Reset("", "", nil)
}
