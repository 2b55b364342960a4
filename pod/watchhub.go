package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	// keptBytes bounds the newest changes that a hub keeps for those who read
	// them, as Config.ChangesHeld does.
	keptBytes = 16 << 20
	// showWithin is how long a durable change waits to be shown until its entity
	// shows it to reads.
	showWithin = 100 * time.Millisecond
	// lookAfter is how often the store is asked, while somebody watches, whether
	// it has changes that nobody was told of: those of a commit whose outcome was
	// unknown.
	lookAfter = 5 * time.Second
	// storePause is the wait before a store that failed is read again.
	storePause = 100 * time.Millisecond
	// maxSlow bounds the entities that are known not to show what is durable.
	maxSlow = 1024
)

// hub tells the watches of one store of its changes. A job of its own reads what
// has become durable from the journal, once for all watches, keeps the newest of
// it in a ring and notes with those whom it concerns that they have something to
// read. While nobody watches it does nothing.
type hub struct {
	pods  *Pods
	count atomic.Int64 // watches, from before they know where they begin

	matching atomic.Int64 // of these, how many have a Match

	mu        sync.Mutex
	committer *persist.Committer // nil: the store does not exist yet
	base      uint64             // the store gives positions above it
	durable   uint64             // everything through it is durable or will never be
	through   uint64             // everything through it is told
	from      uint64             // everything behind it and not behind through is in the ring
	keeps     int                // changes at most
	far       uint64             // positions from which on a watch of one entity does not read all others
	ring      []*change
	bytes     int
	running   bool
	ended     error
	timer     actor.Timer // of the next look; nil while nobody watches
	tails     int         // that are listed
	joined    uint64      // that ever were

	all      []*tail
	whole    map[string][]*tail      // of whole pods
	entities map[persist.Key][]*tail // of single entities

	tracked uint64                        // the entities of changes behind it tell when they show them
	shown   map[uint64]struct{}           // the positions of those that are shown and not told
	slow    map[persist.Key]late          // what entities did not show in time
	before  int                           // bytes of the states in priors
	priors  map[priorKey]*snapshot.Record // acknowledged states that others have replaced, whose change is not told
	holding *actor.Waiter                 // the job waits for an entity to show something
}

func (h *hub) init(p *Pods) {
	h.pods, h.keeps, h.far = p, p.cfg.ChangesHeld, uint64(p.cfg.ChangesHeld)
	h.whole, h.entities = map[string][]*tail{}, map[persist.Key][]*tail{}
	h.shown, h.slow = map[uint64]struct{}{}, map[persist.Key]late{}
	h.priors = map[priorKey]*snapshot.Record{}
}

// priorKey names a state.
type priorKey struct {
	persist.Key
	life, revision uint64
}

// attach gives the hub its store, whose positions are above base.
func (h *hub) attach(c *persist.Committer, base uint64) {
	h.mu.Lock()
	h.committer, h.base = c, base
	h.durable, h.through, h.from, h.tracked = base, base, base, base
	h.mu.Unlock()
	c.Notify(h.committed)
}

// openHub has the watches told of what is committed from now on.
func (p *Pods) openHub(ctx context.Context) error {
	p.hub.attach(p.committer, 0)
	position, err := p.store().Position(ctx)
	if err == nil {
		p.hub.committed(position) // nobody writes yet
	}
	return err
}

// endWatches ends all watches, as the pods close.
func (p *Pods) endWatches() {
	p.hub.end(ErrStopping)
	p.volatile.hub.end(ErrStopping)
}

// serves reports whether the hub has a store.
func (h *hub) serves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.committer != nil
}

// committed notes that everything through a position is durable.
func (h *hub) committed(position uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rise(position)
}

// rise notes the same. mu is held.
func (h *hub) rise(position uint64) {
	h.durable = max(h.durable, position)
	switch {
	case h.tails == 0 && !h.running:
		h.through, h.from = h.durable, h.durable
	case h.through < h.durable && !h.running && h.ended == nil:
		h.running = true
		h.pods.sys.Go(h.run)
	}
}

// settled returns the store's position, through which everything is durable or
// will never be.
func (h *hub) settled(ctx context.Context) (uint64, error) {
	c := h.committer
	position, err := c.Service().Position(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.Settle(ctx); err != nil {
		return 0, err
	}
	if down := c.Down(); down != nil && !errors.Is(down, persist.ErrUnavailable) { // what it holds may not be durable
		return 0, fmt.Errorf("%w: it is being reopened after: %v", persist.ErrUnavailable, down)
	}
	return position, nil
}

// lookLater has it found out after a while what is durable, again and again
// while somebody watches. mu is held.
func (h *hub) lookLater() {
	if h.tails == 0 || h.ended != nil || h.committer == nil || h.timer != nil {
		return
	}
	h.timer = h.pods.sys.After(lookAfter, func() {
		h.pods.sys.Go(func() {
			position, err := h.settled(h.pods.work)
			h.mu.Lock()
			defer h.mu.Unlock()
			if err == nil && !mutant.On(mutant.WatchNeverLooks) {
				h.rise(position)
			}
			h.timer = nil
			h.lookLater()
		})
	})
}

// join has a tail told of what comes.
func (h *hub) join(ctx context.Context, t *tail) error {
	h.count.Add(1)
	h.matching.Add(t.matching())
	t.joined.Store(true)
	position := uint64(0)
	if h.serves() {
		var err error
		if position, err = h.settled(ctx); err != nil {
			return err
		}
	}
	r := &t.watch.req
	h.mu.Lock()
	defer h.mu.Unlock()
	position = max(position, h.base)
	switch {
	case h.ended != nil:
		return h.ended
	case !t.main || !r.Resume:
		t.at = position
	case r.After > position:
		return fmt.Errorf("%w: %d; the newest is %d", ErrPosition, r.After, position)
	case mutant.On(mutant.WatchSkipsOne):
		t.at = r.After + 1
	default:
		t.at = r.After
	}
	if t.main {
		t.watch.id = t.at
	}
	if h.tails == 0 {
		h.durable = max(h.durable, position)
		h.tracked = h.durable
		if !h.running {
			h.through, h.from = h.durable, h.durable
		}
	}
	h.tails++
	h.joined++
	t.listed, t.number = true, h.joined
	t.behind = t.at < h.through // also when it was told of something meanwhile
	h.list(t, func(l []*tail) []*tail { return append(l, t) })
	h.rise(position)
	h.lookLater()
	return nil
}

// leave ends what join began.
func (h *hub) leave(t *tail) {
	if !t.joined.Swap(false) {
		return
	}
	h.count.Add(-1)
	h.matching.Add(-t.matching())
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.listed {
		return
	}
	t.listed = false
	h.tails--
	h.list(t, func(l []*tail) []*tail { return slices.DeleteFunc(l, func(o *tail) bool { return o == t }) })
	if h.tails == 0 {
		if h.timer != nil && h.timer.Stop() {
			h.timer = nil
		}
		h.ring, h.bytes, h.from = nil, 0, h.through
		clear(h.shown)
		clear(h.slow)
		h.forgetPriors()
		h.release()
	}
}

// list changes the lists that a tail is in. mu is held.
func (h *hub) list(t *tail, f func([]*tail) []*tail) {
	r := &t.watch.req
	switch {
	case r.Pods == nil:
		h.all = f(h.all)
	case r.Name != "":
		changeList(h.entities, persist.Key{Pod: r.Pods[0], Name: r.Name}, f)
	default:
		for i, name := range r.Pods {
			if !slices.Contains(r.Pods[:i], name) {
				changeList(h.whole, name, f)
			}
		}
	}
}

func changeList[K comparable](m map[K][]*tail, k K, f func([]*tail) []*tail) {
	if l := f(m[k]); len(l) > 0 {
		m[k] = l
	} else {
		delete(m, k)
	}
}

// end ends all watches.
func (h *hub) end(err error) {
	h.mu.Lock()
	h.ended = err
	all := slices.Clone(h.all)
	for _, l := range h.whole {
		all = append(all, l...)
	}
	for _, l := range h.entities {
		all = append(all, l...)
	}
	h.release()
	h.mu.Unlock()
	slices.SortFunc(all, func(a, b *tail) int { return cmp.Compare(a.number, b.number) })
	for _, t := range all {
		t.watch.end(err)
	}
}

// run tells of changes until all that are durable are told.
func (h *hub) run() {
	ctx := h.pods.work
	limit := h.pods.pages()
	for {
		h.mu.Lock()
		after, to := h.through, h.durable
		if h.tails == 0 {
			h.ring, h.bytes, h.through, h.from = nil, 0, to, to
		}
		if after >= to || h.tails == 0 || h.ended != nil {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		n := limit.next()
		changes, mark, err := readLog(ctx, h.committer.Service(), after, to, n)
		switch {
		case err != nil:
			if h.pods.sys.Sleep(ctx, storePause) != nil {
				h.mu.Lock()
				h.running = false
				h.mu.Unlock()
				return
			}
		case mark > after:
			h.skip(to)
		default:
			limit.saw(changes)
			for i := range changes {
				c := &change{Change: changes[i]}
				h.await(ctx, &c.Change)
				h.tell(c)
			}
			if len(changes) < n {
				h.told(to)
			}
		}
	}
}

// skip has all watches read for themselves what is told of no more.
func (h *hub) skip(to uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	each := func(l []*tail) {
		for _, t := range l {
			t.behindFrom(max(t.at, h.through))
		}
	}
	each(h.all)
	for _, name := range slices.Sorted(maps.Keys(h.whole)) {
		each(h.whole[name])
	}
	for _, key := range slices.SortedFunc(maps.Keys(h.entities), byKey) {
		each(h.entities[key])
	}
	h.ring, h.bytes = nil, 0
	h.through, h.from = to, to
	clear(h.shown)
	h.forgetPriors()
}

func byKey(a, b persist.Key) int {
	return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.Name, b.Name))
}

// told notes that there is nothing more through a position.
func (h *hub) told(to uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.through = max(h.through, to)
}

// tell notes a change with those whom it concerns.
func (h *hub) tell(c *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.through = c.Position
	delete(h.shown, c.Position)
	prior := priorKey{c.Key, c.Life, c.Revision - 1}
	if c.replaced = h.priors[prior]; c.replaced != nil {
		h.before -= len(c.replaced.State)
		delete(h.priors, prior)
	}
	if c.Err == nil && (c.Key.Pod == "" || c.Key.Pod[0] == '$') {
		return
	}
	if h.tails == 0 || c.Position <= h.tracked { // it was not awaited: whoever is to see it awaits it
		h.ring, h.bytes, h.from = nil, 0, c.Position
	} else {
		h.ring = append(h.ring, c)
		h.bytes += c.size()
	}
	for len(h.ring) > h.keeps || h.bytes > keptBytes && len(h.ring) > 1 {
		h.from = h.ring[0].Position
		h.bytes -= h.ring[0].size()
		h.ring[0] = nil
		h.ring = h.ring[1:]
	}
	for _, t := range h.all {
		t.behindFrom(c.Position - 1)
	}
	for _, t := range h.whole[c.Key.Pod] {
		t.behindFrom(c.Position - 1)
	}
	for _, t := range h.entities[c.Key] {
		t.behindFrom(c.Position - 1)
	}
}

// forgetPriors gives up the states that were replaced: what tells of their
// changes then reads them from the journal, or is unsure. mu is held.
func (h *hub) forgetPriors() {
	clear(h.priors)
	h.before = 0
}

// replaces notes the acknowledged state that a change replaces: retention may
// have dropped it from the journal long ago. It is called on the entity's turn,
// before shows is.
func (h *hub) replaces(key persist.Key, before *snapshot.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.priors) >= h.keeps || h.before > keptBytes { // of changes that were never told, or are told late
		h.forgetPriors()
	}
	h.priors[priorKey{key, before.Life, before.Revision}] = before
	h.before += len(before.State)
}
