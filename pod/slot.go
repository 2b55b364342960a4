package pod

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// slot is the place of one name in a pod while its entity is in memory, or is
// being read. Its actor's mailbox is the entity's mailbox: messages wait in it
// from the first one on. A slot whose actor has retired is replaced by the next
// message; a sender that meets a retired one resolves the name again.
type slot struct {
	*Pods
	pod  *Pod
	name string
	spec *entity.Spec
	ref  *actor.Ref
	view atomic.Pointer[snapshot.Record] // nil: read the store
	used atomic.Uint64                   // when it handled its last message, by the pods' count of uses
	stay atomic.Bool                     // its passivation is paused
	ends atomic.Bool                     // a deletion is under way
	row  atomic.Pointer[row]             // its place in a roster, if it has one
	here atomic.Bool                     // it counts as resident: from its start, since one that is stopped before that says no goodbye

	// An earlier activation of the name may have units at the committer: the
	// slot follows on one, or its actor was restarted.
	succeeds atomic.Bool
}

var _ entity.Host = (*slot)(nil)

func (s *slot) Key() persist.Key        { return persist.Key{Pod: s.pod.name, Name: s.name} }
func (s *slot) Spec() *entity.Spec      { return s.spec }
func (s *slot) MaxState() int           { return s.cfg.MaxState }
func (s *slot) Quarantine(reason error) { s.pod.quarantine(s.name, reason) }

func (s *slot) Committer() *persist.Committer { return s.pod.committer }
func (s *slot) Created(life uint64) {
	s.pod.created(CreatedChild{Pod: s.pod.name, Name: s.name, Life: life})
}
func (s *slot) SetView(r *snapshot.Record) {
	before := s.view.Swap(r)
	if r != nil && before != nil && before.Revision != 0 && s.pod.hub.matching.Load() > 0 && !s.spec.Durability.IsAsync() {
		s.pod.hub.replaces(s.Key(), before)
	}
	s.pod.indexes.viewed(s.pod.name, s.name, r)
	s.row.Load().changed()
}
func (s *slot) Published(c persist.Change) {
	s.pod.hub.shows(&c)
	s.published(c)
}
func (s *slot) Closing() bool      { return s.closing.Load() }
func (s *slot) Used()              { s.used.Store(s.residents.use()) }
func (s *slot) Stays() bool        { return s.stay.Load() && !mutant.On(mutant.StayIgnored) }
func (s *slot) SetStays(stay bool) { s.pod.setStays(s.name, stay) }
func (s *slot) Owes()              { s.pod.wakeSoon(s.name) }

func (s *slot) Remind(name string, at time.Time) { s.pod.reminders.tell(s.name, name, at) }

// SetRemoving counts the deletions under way in the pod.
func (s *slot) SetRemoving(removing bool) {
	if s.ends.Swap(removing) == removing {
		return
	}
	if removing {
		s.pod.removing.Add(1)
	} else {
		s.pod.removing.Add(-1)
	}
}

// Gone frees the name. A slot that leaves units behind keeps its place, so that
// the next one of the name knows.
func (s *slot) Gone(unsettled bool) {
	if s.here.Swap(false) {
		s.residents.left()
	}
	s.SetRemoving(false)
	s.pod.indexes.left(s.pod.name, s.name, s.view.Load())
	if !unsettled || mutant.On(mutant.SlotForgetsUnsettled) {
		s.pod.slots.remove(s)
	}
}

// Succeeds reports whether the activation that begins is not the name's first.
func (s *slot) Succeeds() bool { return s.succeeds.Swap(true) }

const shards = 32

// slots finds a pod's slots by name.
type slots struct {
	seed maphash.Seed
	// departures counts the entities that left. The others are one more than it
	// was when a census was taken, was promised, and failed; see census.
	departures, census, promised, failed atomic.Uint64
	// ended counts all slots that are there no longer, also of names that have no
	// entity, or none any more.
	ended atomic.Uint64

	roster   atomic.Pointer[roster] // nil: nobody needed one since somebody left
	counting sync.Mutex             // is held by whoever makes one
	shards   [shards]struct {
		mu sync.RWMutex
		m  map[string]*slot
	}
}

func (t *slots) init() {
	t.seed = maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i].m = make(map[string]*slot)
	}
}

// get returns the slot of a name, retired ones too: their view holds until a
// new slot takes the name.
func (t *slots) get(name string) *slot {
	sh := &t.shards[maphash.String(t.seed, name)%shards]
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.m[name]
}

// ensure returns the live slot of a name, made by spawn if there is none; spawn
// is told whether the new slot follows on one that is ending.
func (t *slots) ensure(name string, spawn func(succeeds bool) (*slot, error)) (*slot, error) {
	if s := t.get(name); s != nil && !s.ref.Stopped() {
		return s, nil
	}
	sh := &t.shards[maphash.String(t.seed, name)%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s := sh.m[name]; s != nil && !s.ref.Stopped() {
		return s, nil
	}
	before := sh.m[name]
	if before != nil {
		t.ended.Add(1)
	}
	if before != nil && before.wasThere() {
		t.departed() // or a roster would list it, and the new one as a latecomer
	}
	s, err := spawn(before != nil)
	if err != nil {
		return nil, err
	}
	sh.m[name] = s
	return s, nil
}

func (t *slots) remove(s *slot) {
	sh := &t.shards[maphash.String(t.seed, s.name)%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.m[s.name] != s {
		return
	}
	delete(sh.m, s.name)
	t.ended.Add(1)
	if s.wasThere() {
		t.departed()
	}
}

// wasThere reports whether the slot's entity exists, or may: a name that has none
// leaves nothing behind.
func (s *slot) wasThere() bool {
	r := s.view.Load()
	return r == nil || r.Revision != 0
}

// departed notes that a slot that may have been an entity's is there no longer.
// The shard's lock is held, which whoever counts the slots takes.
func (t *slots) departed() {
	t.departures.Add(1)
	t.dropRoster()
}

// all returns the slots for which want holds, in no order.
func (t *slots) all(want func(*slot) bool) []*slot {
	var out []*slot
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.RLock()
		for _, s := range sh.m {
			if want(s) {
				out = append(out, s)
			}
		}
		sh.mu.RUnlock()
	}
	return out
}

// spawn makes the slot of a name, whose actor starts by reading the store.
func (p *Pod) spawn(name string, spec *entity.Spec, succeeds bool) (*slot, error) {
	s := &slot{Pods: p.pods, pod: p, name: name, spec: spec}
	s.succeeds.Store(succeeds)
	s.stay.Store(p.pinned.has(name))
	s.Used()
	p.slots.came(s) // before it can have a view
	ref, created, err := p.manager.EnsureChild(name, func() actor.Props {
		return actor.Props{
			New:     s.begins,
			Mailbox: actor.Mailbox{Capacity: p.pods.cfg.Mailbox, Policy: actor.Fail}, OwnPoison: true,
		}
	})
	switch {
	case errors.Is(err, actor.ErrStopped) && p.dropping.Load() && !p.pods.closing.Load():
		return nil, fmt.Errorf("%w: %q was deleted", ErrNoPod, p.name)
	case errors.Is(err, actor.ErrStopped): // the pods are being closed, or the system is stopped before them
		return nil, fmt.Errorf("pod %s: %w", p.name, ErrStopping)
	case err != nil:
		return nil, fmt.Errorf("pod %s: make a slot for %q: %w", p.name, name, err)
	case !created:
		return nil, fmt.Errorf("pod %s: %q is taken by an actor that is no entity", p.name, name)
	}
	s.ref = ref
	return s, nil
}

// begins makes the actor of the slot when that starts, or restarts.
func (s *slot) begins() actor.Actor {
	if !s.here.Swap(true) {
		s.residents.came(s.Pods)
	}
	return entity.NewActor(s)
}
