package jsonfile

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// index is what the store knows without reading: every name, life and
// revision, where each change stands, and the contents that the entities' files
// do not show yet. It is guarded by the store's mu.
type index struct {
	entities map[persist.Key]*entity
	pods     map[string]*pod
	kinds    map[string]int // entities that have rows of the kind
	log      []entry        // in the order of positions
	past     map[persist.Key]*history
	dirty    map[*entity]struct{}
	held     int    // bytes of contents that wait for their files
	last     uint64 // the highest position
	seq      uint64 // of the last line
	end      place  // of the journal
}

// entity is a key that has a record or rows, or whose file is still to be
// removed.
type entity struct {
	key            persist.Key
	life, revision uint64 // 0 without a record
	kinds          []string
	err            error    // why the file cannot be read
	held           *content // what the file is to become, or nil if it is that
	size           int      // of held, as it counts in index.held
	exists         bool     // has a record, readable or not
	present        bool     // has a record or rows
	version        uint64   // counts changes, so that a flush sees what came meanwhile
	busy           bool     // a commit builds on held
}

// pod has its present entities in the order of names.
type pod struct {
	list    []*entity
	records int
}

// entry is one change of the journal.
type entry struct {
	position, life, revision uint64
	past                     *history // nil when it is not known whose it is
	seg                      *segment
	off                      int64
	size, index              int32
	event, bad               bool
}

// history has the positions of a key's changes, in order.
type history struct {
	key       persist.Key
	positions []uint64
}

func newIndex() *index {
	return &index{
		entities: map[persist.Key]*entity{}, pods: map[string]*pod{}, kinds: map[string]int{},
		past: map[persist.Key]*history{}, dirty: map[*entity]struct{}{},
	}
}

func byName(e *entity, name string) int { return cmp.Compare(e.key.Name, name) }

// entity returns the entity of a key, making it when it is new.
func (x *index) entity(key persist.Key) *entity {
	e := x.entities[key]
	if e == nil {
		e = &entity{key: key}
		x.entities[key] = e
	}
	return e
}

// show puts an entity where lists find it, or takes it out.
func (x *index) show(e *entity, exists, present bool) {
	p := x.pods[e.key.Pod]
	if p == nil {
		p = &pod{}
		x.pods[e.key.Pod] = p
	}
	if exists != e.exists {
		e.exists = exists
		if p.records--; exists {
			p.records += 2
		}
	}
	if present != e.present {
		e.present = present
		if i, found := slices.BinarySearchFunc(p.list, e.key.Name, byName); found {
			p.list = slices.Delete(p.list, i, i+1)
		} else {
			p.list = slices.Insert(p.list, i, e)
		}
	}
	if len(p.list) == 0 {
		delete(x.pods, e.key.Pod)
	}
}

// describe takes what is known of an entity from its content.
func (x *index) describe(e *entity, c *content) {
	e.life, e.revision = 0, 0
	if c.record != nil {
		e.life, e.revision = c.record.Life, c.record.Revision
	}
	e.err = nil
	x.setKinds(e, c)
	x.show(e, c.record != nil, c.record != nil || len(c.rows) > 0)
}

// setKinds notes which kinds of rows an entity has; nil for none.
func (x *index) setKinds(e *entity, c *content) {
	if c != nil && len(c.kinds) == len(e.kinds) {
		same := true
		for _, k := range e.kinds {
			same = same && c.kinds[k] > 0
		}
		if same {
			return
		}
	}
	for _, k := range e.kinds {
		if x.kinds[k]--; x.kinds[k] == 0 {
			delete(x.kinds, k)
		}
	}
	e.kinds = nil
	if c == nil {
		return
	}
	for k := range c.kinds {
		e.kinds = append(e.kinds, k)
		x.kinds[k]++
	}
	slices.Sort(e.kinds)
}

// hold makes c the entity's content, which its file is to show; nil removes it.
func (x *index) hold(e *entity, c *content) {
	e.version++
	x.held -= e.size
	e.held, e.size = c, 0
	x.dirty[e] = struct{}{}
	if c != nil {
		e.size = c.size + len(e.key.Name) + 256
		x.held += e.size
		x.describe(e, c)
		return
	}
	x.setKinds(e, nil)
	e.life, e.revision, e.err = 0, 0, nil
	x.show(e, false, false)
}

// flushed forgets the content of an entity whose file shows it.
func (x *index) flushed(e *entity) {
	x.held -= e.size
	e.held, e.size = nil, 0
	delete(x.dirty, e)
	if !e.present {
		delete(x.entities, e.key)
	}
}

// next returns the pod's first present entity behind a name whose name begins
// with prefix, nil if there is none. An empty name is before all.
func (p *pod) next(after, prefix string) *entity {
	if p == nil {
		return nil
	}
	from := max(after, prefix)
	i, _ := slices.BinarySearchFunc(p.list, from, byName)
	if i < len(p.list) && after != "" && p.list[i].key.Name == after {
		i++
	}
	if i == len(p.list) || !strings.HasPrefix(p.list[i].key.Name, prefix) {
		return nil
	}
	return p.list[i]
}

func (x *index) sortedPods() []string {
	names := make([]string, 0, len(x.pods))
	for name := range x.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// history returns the history of a key, making it when it is new.
func (x *index) history(key persist.Key) *history {
	h := x.past[key]
	if h == nil {
		h = &history{key: key}
		x.past[key] = h
	}
	return h
}

// find returns the place in the log of the first change at or behind a
// position.
func (x *index) find(position uint64) int {
	if n := len(x.log); n == 0 || x.log[n-1].position < position {
		return n
	}
	return sort.Search(len(x.log), func(i int) bool { return x.log[i].position >= position })
}

// at returns the change at a position, nil if there is none.
func (x *index) at(position uint64) *entry {
	if i := x.find(position); i < len(x.log) && x.log[i].position == position {
		return &x.log[i]
	}
	return nil
}

// put notes a change, in the place of one with the same position.
func (x *index) put(e entry) {
	i := x.find(e.position)
	if i < len(x.log) && x.log[i].position == e.position {
		x.forget(&x.log[i])
		x.log[i] = e
	} else {
		x.log = slices.Insert(x.log, i, e)
	}
	e.seg.live++
	e.seg.used += int64(e.size)
	if h := e.past; h != nil {
		x.past[h.key] = h // also where forget has just dropped it
		if j, found := slices.BinarySearch(h.positions, e.position); !found {
			h.positions = slices.Insert(h.positions, j, e.position)
		}
	}
}

// forget takes a change out of its history and its segment's count.
func (x *index) forget(e *entry) {
	e.seg.live--
	e.seg.dropped++
	e.seg.used -= int64(e.size)
	h := e.past
	if h == nil {
		return
	}
	if i, found := slices.BinarySearch(h.positions, e.position); found {
		if i == 0 {
			h.positions = h.positions[1:]
		} else {
			h.positions = slices.Delete(h.positions, i, i+1)
		}
	}
	if len(h.positions) == 0 {
		delete(x.past, h.key)
	}
}

// drop forgets the changes at the positions from … to.
func (x *index) drop(ranges [][2]uint64) {
	for _, r := range ranges {
		i, j := x.find(r[0]), x.find(r[1]+1)
		for k := i; k < j; k++ {
			x.forget(&x.log[k])
		}
		if i == 0 {
			x.log = x.log[j:]
		} else if j > i {
			x.log = slices.Delete(x.log, i, j)
		}
	}
	if len(x.log) == 0 {
		x.log = nil
	}
}

// note enters a line's changes.
func (x *index) note(h *lineHead, seg *segment, off int64, size int, bad bool) {
	x.seq = max(x.seq, h.Seq)
	x.last = max(x.last, h.last(), h.Life)
	if h.Pod == "" || len(h.Revisions) == 0 {
		return
	}
	for i, revision := range h.Revisions {
		x.put(entry{position: h.Position + uint64(i), life: h.Life, revision: revision, past: x.history(h.key()),
			seg: seg, off: off, size: int32(size), index: int32(i), event: h.isEvent(i), bad: bad})
	}
}

// lastChange returns the life and the revision of a key's newest change, of the
// given life unless that is 0; zeros if there is none.
func (x *index) lastChange(key persist.Key, life uint64) (uint64, uint64) {
	h := x.past[key]
	if h == nil {
		return life, 0
	}
	for i := len(h.positions) - 1; i >= 0; i-- {
		if e := x.at(h.positions[i]); e != nil && (life == 0 || e.life == life) {
			return e.life, e.revision
		}
	}
	return life, 0
}
