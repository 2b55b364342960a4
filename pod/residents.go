package pod

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// residents keeps the number of entities in memory below its bound, by sending
// out those that have not been used for the longest time. Those that cannot
// leave (of eager pods, or paused) are not counted against it.
type residents struct {
	most  int64         // negative: no bound
	uses  atomic.Uint64 // counts messages to all entities; the number of one's last says how long ago that was
	count atomic.Int64
	room  atomic.Int64 // the bound, and those beside it that could not leave at the last look
	limit atomic.Int64 // the count at which some are sent out
	busy  atomic.Bool  // somebody does that
	again atomic.Bool  // a timer is set that looks again
	pause atomic.Int64 // the timer's next time, in nanoseconds
}

const (
	// The wait before it is looked again whether there is room, when entities
	// were busy, grows from minRoomPause to maxRoomPause.
	minRoomPause = 50 * time.Millisecond
	maxRoomPause = 5 * time.Second
)

func (r *residents) init(most int) {
	r.most = int64(most)
	r.room.Store(r.most)
	r.limit.Store(r.most + 1)
}

func (r *residents) use() uint64 { return r.uses.Add(1) }

// came notes that an entity has come into memory.
func (r *residents) came(p *Pods) {
	if n := r.count.Add(1); r.most >= 0 && n >= r.limit.Load() && r.busy.CompareAndSwap(false, true) {
		p.sys.Go(p.makeRoom)
	}
}

// left notes that one has gone.
func (r *residents) left() {
	if room := r.room.Load(); r.count.Add(-1) <= room {
		r.limit.Store(room + 1)
	}
}

// makeRoom asks as many entities to leave as there are too many, and a
// sixteenth of the bound more: so a look at all of them is paid by many that
// come. When there are too many still, since they were busy, it looks again
// after a pause.
func (p *Pods) makeRoom() {
	r := &p.residents
	defer r.busy.Store(false)
	var all []*slot
	for _, pod := range p.All() {
		if pod.lets() {
			all = append(all, pod.slots.all(func(s *slot) bool { return !s.Stays() && !s.ref.Stopped() })...)
		}
	}
	slices.SortFunc(all, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(a.used.Load(), b.used.Load()), strings.Compare(a.pod.name, b.pod.name), strings.Compare(a.name, b.name))
	})
	over := int64(len(all)) - r.most
	if over > 0 {
		for _, s := range all[:min(over+r.most/16, int64(len(all)))] {
			s.ref.TellSystem(entity.Sweep())
		}
	}
	count := r.count.Load()
	r.room.Store(r.most + max(count-int64(len(all)), 0))
	r.limit.Store(max(r.room.Load(), count) + r.most/16 + 1)
	if over <= 0 {
		r.pause.Store(0)
	} else if p.work.Err() == nil && r.again.CompareAndSwap(false, true) {
		p.lookAgain()
	}
}

// lookAgain sees to it that there is room, since those who were asked to leave
// may have been busy.
func (p *Pods) lookAgain() {
	r := &p.residents
	pause := min(max(2*time.Duration(r.pause.Load()), minRoomPause), maxRoomPause)
	r.pause.Store(int64(pause))
	p.sys.After(pause, func() {
		r.again.Store(false)
		if r.count.Load() > r.room.Load() && r.busy.CompareAndSwap(false, true) {
			p.sys.Go(p.makeRoom)
		}
	})
}

// Active returns how many entities of all pods are in memory.
func (p *Pods) Active() int { return int(p.residents.count.Load()) }

// lets reports whether the pod's entities leave memory when they are idle.
func (p *Pod) lets() bool {
	spec := p.spec.Load()
	return spec == nil || !spec.Eager
}

// pins are the names of the entities whose passivation is paused.
type pins struct {
	mu    sync.Mutex
	names map[string]struct{}
}

func (p *pins) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.names[name]
	return is
}

func (p *pins) set(name string, pin bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !pin:
		delete(p.names, name)
	case p.names == nil:
		p.names = map[string]struct{}{name: {}}
	default:
		p.names[name] = struct{}{}
	}
}

// PausePassivation keeps an entity in memory, once it is there, though it is
// idle or memory is short. It holds until ResumePassivation or the end of the
// process; Passivate, PoisonPill and closing the pods work all the same.
func (p *Pod) PausePassivation(name string) { p.setStays(name, true) }

// ResumePassivation lets an entity leave memory again.
func (p *Pod) ResumePassivation(name string) { p.setStays(name, false) }

func (p *Pod) setStays(name string, stay bool) {
	p.pinned.set(name, stay)
	if s := p.slots.get(name); s != nil {
		s.stay.Store(stay)
	}
}
