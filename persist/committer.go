package persist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
)

// DefaultKeepChanges is how many positions of the journal stay unless
// CommitterConfig.KeepChanges says otherwise.
const DefaultKeepChanges = 1_000_000

// CommitterConfig tunes a Committer. The zero value works.
type CommitterConfig struct {
	// MaxUnits is the most units one commit has. 0 means 4,096.
	MaxUnits int
	// MaxBytes is the size of states, changes and rows at which a group is
	// closed; a single larger unit makes a group of its own. 0 means 4 MB.
	MaxBytes int
	// KeepChanges is how many positions of the journal stay; older changes are
	// dropped in the background. 0 means 1,000,000.
	KeepChanges uint64
	// KeepFor is how long changes stay; older ones are dropped in the
	// background, within a thirty-second part of this time and at most an hour.
	// 0 means that age drops nothing.
	KeepFor time.Duration
	// MinBackoff and MaxBackoff bound the wait between two tries to reopen a
	// broken store. 0 means 50 ms and 5 s.
	MinBackoff, MaxBackoff time.Duration
}

func (c CommitterConfig) withDefaults() CommitterConfig {
	if c.MaxUnits <= 0 {
		c.MaxUnits = 4096
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 4 << 20
	}
	if c.KeepChanges == 0 {
		c.KeepChanges = DefaultKeepChanges
	}
	if c.MinBackoff <= 0 {
		c.MinBackoff = 50 * time.Millisecond
	}
	if c.MaxBackoff <= 0 {
		c.MaxBackoff = 5 * time.Second
	}
	return c
}

// Committer groups the units of many lanes into durable commits: whatever is
// queued while the last commit runs is the next group. There is one for each
// service, and while it lives nobody else writes to that service.
//
// It runs only while something is queued, as a job of the system's executor,
// and hands outcomes out through callbacks that must not block; so no slow
// actor can hold it up. Its methods are safe for concurrent use.
type Committer struct {
	sys   *actor.System
	store PersistenceService
	cfg   CommitterConfig
	ctx   context.Context // of commits; ends when Close gives up waiting
	stop  context.CancelFunc

	background context.Context // of what reads and trims; ends when Close begins
	leave      context.CancelFunc

	mu      sync.Mutex
	queue   []pending
	running bool
	closed  bool
	down    error         // why the store is being reopened; nil while it serves
	pause   time.Duration // the last one before a try to reopen it; 0: it has taken units since
	jobs    int           // background jobs that run
	idle    []*actor.Waiter
	taken   uint64 // units that were ever queued
	done    uint64 // of these, how many have their outcome
	marks   []mark

	position    uint64 // highest one that an outcome had
	journaled   uint64 // highest one that a unit with changes had
	watchers    []*watcher
	quarantined map[*actor.Ref]Quarantined
	projections map[string]*Running
	retention   retention
	figures     Figures

	// The running job's: position, journaled and parts of figures, before they are
	// told.
	last, lastChange         uint64
	applied, failed, refused uint64
}

// mark is somebody who waits until so many units have their outcome.
type mark struct {
	done   uint64
	waiter *actor.Waiter
}

type pending struct {
	lane *Lane
	unit Unit
	tag  any
}

// NewCommitter returns the committer of a service. The caller closes the
// committer first and the service after it.
func NewCommitter(sys *actor.System, store PersistenceService, cfg CommitterConfig) *Committer {
	c := &Committer{sys: sys, store: store, cfg: cfg.withDefaults()}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.background, c.leave = context.WithCancel(context.Background())
	c.ageFromNow()
	return c
}

// Service returns the store behind the committer, for reading.
func (c *Committer) Service() PersistenceService { return c.store }

// Down returns why the store takes no writes at the moment, or nil. If it wraps
// ErrUnavailable, whatever the store shows is durable all the same.
func (c *Committer) Down() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

func (c *Committer) submit(p pending) {
	c.mu.Lock()
	c.queue = append(c.queue, p)
	c.taken++
	start := !c.running
	c.running = true
	c.mu.Unlock()
	if start {
		c.sys.Go(c.run)
	}
}

// run commits groups until nothing is queued.
func (c *Committer) run() {
	for {
		group, refuse := c.take()
		switch {
		case group == nil:
			return
		case refuse != nil:
			c.settle(group, nil, refuse)
		default:
			c.commit(group)
		}
		c.mu.Lock()
		c.position = c.last // before anybody hears of it, so that it can be waited for
		c.mu.Unlock()
		c.deliver(group)
		c.account(len(group))
	}
}

// account notes that n more units have their outcome, and tells those who wait
// for that and for changes.
func (c *Committer) account(n int) {
	c.mu.Lock()
	c.done += uint64(n)
	c.figures.Applied, c.figures.Failed, c.figures.Refused = c.applied, c.failed, c.refused
	for len(c.marks) > 0 && c.marks[0].done <= c.done {
		c.marks[0].waiter.Wake()
		c.marks = c.marks[1:]
	}
	var told []*watcher
	if c.lastChange > c.journaled {
		c.journaled = c.lastChange
		told = c.watchers // replaced, never changed
	}
	c.retainWhenDue()
	c.mu.Unlock()
	for _, w := range told {
		w.f(c.lastChange)
	}
}

// Settle waits until every unit that was queued before the call has its
// outcome, or until ctx ends. Whoever loads a key that somebody else may still
// have units queued for calls it first.
func (c *Committer) Settle(ctx context.Context) error {
	c.mu.Lock()
	if c.done == c.taken {
		c.mu.Unlock()
		return nil
	}
	m := mark{done: c.taken, waiter: c.sys.NewWaiter()}
	c.marks = append(c.marks, m)
	c.mu.Unlock()
	return m.waiter.Wait(ctx)
}

// take removes the next group from the queue. It returns nil when the queue is
// empty, having marked the job as ended and woken those who wait for that.
func (c *Committer) take() (group []pending, refuse error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.running = false
		c.queue = nil
		c.wakeIdle()
		return nil, nil
	}
	n, size := 0, 0
	for n < len(c.queue) && n < c.cfg.MaxUnits {
		size += c.queue[n].unit.size()
		if n > 0 && size > c.cfg.MaxBytes {
			break
		}
		n++
	}
	group = c.queue[:n:n]
	c.queue = c.queue[n:]
	switch {
	case c.down != nil:
		refuse = fmt.Errorf("%w: it is being reopened after: %v", undone(c.down), c.down)
	case c.closed:
		refuse = fmt.Errorf("%w: the committer is closed", ErrUnavailable)
	}
	return group, refuse
}

func (u *Unit) size() int {
	n := len(u.Key.Pod) + len(u.Key.Name) + 64
	if u.Record != nil {
		n += len(u.Record.State)
	}
	for i := range u.Changes {
		n += len(u.Changes[i].Data) + 64
	}
	for i := range u.Rows {
		n += len(u.Rows[i].ID) + len(u.Rows[i].Value) + 32
	}
	return n
}

// commit brings a group into the store and settles each of its units. A group
// that the store refuses for its data is halved until the guilty unit stands
// alone.
func (c *Committer) commit(group []pending) {
	live, units := c.prepare(group)
	if len(units) == 0 {
		return
	}
	begin := c.sys.Now()
	outcomes, err := c.store.Commit(c.ctx, units)
	c.count(units, c.sys.Now().Sub(begin))
	switch {
	case err == nil && len(outcomes) != len(units):
		err = fmt.Errorf("%w: the store gave %d outcomes for %d units", ErrUnknown, len(outcomes), len(units))
		c.fault(err)
		c.settle(live, nil, err)
	case err == nil:
		c.proven(outcomes)
		c.settle(live, outcomes, nil)
	case errors.Is(err, ErrInvalid) && len(live) > 1 && !mutant.On(mutant.BadUnitFailsGroup):
		half := len(live) / 2
		c.commit(live[:half])
		c.commit(live[half:])
	case errors.Is(err, ErrInvalid):
		c.settle(live, nil, err)
	case errors.Is(err, ErrUnavailable):
		c.fault(err)
		c.settle(live, nil, err)
	default:
		if !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if mutant.On(mutant.UnknownAsUndone) {
			err = fmt.Errorf("%w: %v", ErrUnavailable, err)
		}
		c.fault(err)
		c.settle(live, nil, err)
	}
}

// prepare settles the units whose lane is poisoned and returns the others,
// with the life filled in where an earlier commit has decided it.
func (c *Committer) prepare(group []pending) ([]pending, []Unit) {
	live := make([]pending, 0, len(group))
	units := make([]Unit, 0, len(group))
	for _, p := range group {
		if p.lane.poison != nil {
			p.lane.settle(p, Outcome{Err: p.lane.refusal(p.unit.Key)})
			c.failed++
			continue
		}
		if p.unit.Life == 0 && p.unit.Expect > 0 {
			p.unit.Life = p.lane.life
		}
		if mutant.On(mutant.AckBeforeSync) && p.unit.Life != 0 && p.unit.Record != nil {
			p.lane.deliver([]Result{{Tag: p.tag, Outcome: Outcome{Life: p.unit.Life, Position: c.last + uint64(len(units)) + 1}}})
			p.lane = c.Lane(func([]Result) {}) // nobody hears what becomes of it
		}
		live = append(live, p)
		units = append(units, p.unit)
	}
	return live, units
}

// settle notes outcomes with their lanes; err, if not nil, is every unit's.
func (c *Committer) settle(group []pending, outcomes []Outcome, err error) {
	for i, p := range group {
		o := Outcome{Err: err}
		if err == nil {
			o = outcomes[i]
			if mutant.On(mutant.ConflictSpreads) && o.Err == nil {
				o.Err = outcomes[(i+1)%len(outcomes)].Err
			}
			c.last = max(c.last, o.Position)
			if o.Err == nil && len(p.unit.Changes) > 0 {
				c.lastChange = max(c.lastChange, o.Position)
			}
		}
		switch {
		case o.Err == nil:
			c.ends(&p.unit, o)
		case errors.Is(o.Err, ErrUnknown): // it may have been applied, behind all that is known
			c.ends(&p.unit, Outcome{Life: p.unit.Life, Position: c.last})
		}
		c.tally(o.Err)
		p.lane.settle(p, o)
	}
}

// deliver hands the settled results to the lanes, in the order in which the
// lanes first appear in the group.
func (c *Committer) deliver(group []pending) {
	for _, p := range group {
		if results := p.lane.settled; len(results) > 0 {
			p.lane.settled = nil
			p.lane.deliver(results)
		}
	}
}

// Close ends what runs in the background, waits until everything queued has its
// outcome, or until ctx ends, and then refuses whatever comes. It leaves the
// service open.
func (c *Committer) Close(ctx context.Context) error {
	defer c.stop()
	c.leave()
	c.stopAging()
	c.endProjections()
	for {
		c.mu.Lock()
		if !c.running && c.jobs == 0 {
			c.closed = true
			c.mu.Unlock()
			return nil
		}
		w := c.sys.NewWaiter()
		c.idle = append(c.idle, w)
		c.mu.Unlock()
		if err := w.Wait(ctx); err != nil {
			c.mu.Lock()
			c.closed = true
			c.mu.Unlock()
			return fmt.Errorf("close the committer while a commit or its background is still running: %w", err)
		}
	}
}

// inBackground runs f, which ends when c.background does. Close waits for it.
// mu is held.
func (c *Committer) inBackground(f func()) {
	c.jobs++
	c.sys.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.jobs--
			c.wakeIdle()
		}()
		f()
	})
}

// wakeIdle has Close look again. mu is held.
func (c *Committer) wakeIdle() {
	for _, w := range c.idle {
		w.Wake()
	}
	c.idle = nil
}
