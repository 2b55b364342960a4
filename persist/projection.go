package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// Projection is a durable subscription to a store's journal: Apply is handed
// every change from a position on, in order, and what it puts into its Table is
// kept with the store.
//
// The Table is exactly once: what Apply puts there is committed in one unit
// with the position through which it was applied. Whatever else Apply does
// happens at least once: after a failure or a crash it is handed the same
// changes again, perhaps in batches of another size.
//
// It is woken by commits through its committer, and needs no other one.
type Projection struct {
	// Name is that of the cursor and the table in the store, so it stays the
	// same over restarts. It is checked as the name of an entity.
	Name string
	// Pods are those whose changes are handed to Apply; nil means all. The pods'
	// definitions are changes of the pod "$pods".
	Pods []string
	// From says where a projection begins that has not run before. The zero
	// value begins at the first change. Later it goes on where it was.
	From Start
	// Batch is the most changes that Apply gets at a time. 0 means 256. A batch
	// has about a mebibyte at most, unless a single change has more.
	Batch int
	// Apply takes changes, in the order of their positions, never two calls at a
	// time. Its error or panic is reported (Running.Status) and the same changes
	// are handed over again, with growing pauses. ctx ends when the projection is
	// stopped. Apply keeps neither t nor changes. It may block, by the system's
	// means; it must not wait for the projection itself.
	Apply func(ctx context.Context, t *Table, changes []Change) error
	// Gap is told, before anything behind it is applied, that changes behind from
	// and not behind to may be missing, because retention dropped them before
	// they were applied. What is left of them follows. Its error stops the
	// projection; without a Gap the projection stops with ErrGap. After a crash
	// the same gap may be told again.
	Gap func(from, to uint64) error
	// OnDamaged is handed a change that cannot be read (Change.Err), which is
	// skipped when it returns nil; its error stops the projection. Without it the
	// projection stops at the first damaged change.
	OnDamaged func(c Change) error
}

// Start is where a projection begins: FromZero, FromNow or FromPosition.
type Start struct {
	after uint64
	now   bool
}

// FromZero begins at the first change.
func FromZero() Start { return Start{} }

// FromNow begins behind what the store holds at StartProjection.
func FromNow() Start { return Start{now: true} }

// FromPosition begins behind a position.
func FromPosition(n uint64) Start { return Start{after: n} }

var (
	// ErrGap says that retention dropped changes that a projection had not
	// applied.
	ErrGap = errors.New("changes were dropped from the journal before they were applied")
	// ErrProjectionRunning refuses a second projection of one name.
	ErrProjectionRunning = errors.New("a projection of this name runs already")
	// ErrProjectionStopped says that a projection was stopped.
	ErrProjectionStopped = errors.New("the projection is stopped")
)

// projections is the pod that the store keeps projections under.
const projections = "$projections"

// Running is a projection that runs. It is safe for concurrent use. Whoever
// started it stops it, before the committer is closed; Committer.Close ends it
// otherwise.
type Running struct {
	c      *Committer
	p      Projection
	key    Key
	ctx    context.Context
	cancel context.CancelFunc
	unhear func()

	mu      sync.Mutex
	busy    bool // the job runs
	again   bool // there may be something new
	timer   actor.Timer
	waits   []*actor.Waiter
	status  Status
	fatal   bool // status.Err stopped it for good
	rebuild bool // asked for
	stopped bool

	job projectionJob
}

// Status is how a projection is getting on.
type Status struct {
	// Position is that of the last change that was applied or passed over.
	Position uint64
	// Through is the position that nothing is missing up to.
	Through uint64
	// Lag is how many positions there are between Through and the newest change.
	Lag uint64
	// Err is why the projection does not get on at the moment: what failed last,
	// Failures times in a row. It is nil once something succeeded.
	Err      error
	Failures int
	// NextTry is when it is tried again; zero when nothing has failed, and when
	// the projection was stopped by Err for good: by ErrGap, a damaged change or
	// an unreadable cursor. Then Rebuild goes on, or the next start.
	NextTry time.Time
	// Rebuilding says that the table is being emptied.
	Rebuilding bool
}

// StartProjection runs a projection on a committer's store. It fails when the
// projection is not well-formed, when one of its name runs (with
// ErrProjectionRunning) or the committer is closed, and for FromNow when the
// store is unavailable.
func StartProjection(c *Committer, p Projection) (*Running, error) {
	key := Key{Pod: projections, Name: p.Name}
	if err := key.Check(); err != nil {
		return nil, fmt.Errorf("projection %q: %w", p.Name, err)
	}
	if p.Apply == nil {
		return nil, fmt.Errorf("projection %q: %w", p.Name, invalid("it has no Apply"))
	}
	if p.Batch <= 0 {
		p.Batch = 256
	}
	p.Pods = slices.Clone(p.Pods)
	if p.From.now {
		at, err := c.store.Position(c.background)
		if err != nil {
			return nil, fmt.Errorf("projection %q: find out where the journal ends: %w", p.Name, err)
		}
		p.From.after = at
	}
	r := &Running{c: c, p: p, key: key}
	r.ctx, r.cancel = context.WithCancel(c.background)
	if err := c.register(r); err != nil {
		r.cancel()
		return nil, fmt.Errorf("projection %q: %w", p.Name, err)
	}
	r.unhear = c.Notify(func(uint64) { r.wake() })
	r.wake()
	return r, nil
}

func (c *Committer) register(r *Running) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.background.Err() != nil:
		return fmt.Errorf("%w: the committer is closed", ErrUnavailable)
	case c.projections[r.key.Name] != nil:
		return ErrProjectionRunning
	case c.projections == nil:
		c.projections = make(map[string]*Running)
	}
	c.projections[r.key.Name] = r
	return nil
}

// endProjections has those who wait for projections look again, as these end.
func (c *Committer) endProjections() {
	c.mu.Lock()
	var all []*Running
	for _, r := range c.projections {
		all = append(all, r)
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b *Running) int { return strings.Compare(a.key.Name, b.key.Name) })
	for _, r := range all {
		r.end()
	}
}

// end ends the job, if it runs, and takes no further ones.
func (r *Running) end() {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.wakeAll()
}

// wakeAll has all who wait look again. mu is held.
func (r *Running) wakeAll() {
	for _, w := range r.waits {
		w.Wake()
	}
	r.waits = nil
}

// wait returns nil once done says so, which is called with mu held.
func (r *Running) wait(ctx context.Context, done func() (bool, error)) error {
	for {
		r.mu.Lock()
		if ok, err := done(); ok || err != nil {
			r.mu.Unlock()
			return err
		}
		w := r.c.sys.NewWaiter()
		r.waits = append(r.waits, w)
		r.mu.Unlock()
		if err := w.Wait(ctx); err != nil {
			r.mu.Lock()
			r.waits = slices.DeleteFunc(r.waits, func(o *actor.Waiter) bool { return o == w })
			r.mu.Unlock()
			return err
		}
	}
}

// Stop ends the projection, and waits until Apply has returned, or until ctx
// ends. The cursor and the table stay. Then one of the same name may start.
func (r *Running) Stop(ctx context.Context) error {
	r.unhear()
	r.end()
	if err := r.wait(ctx, func() (bool, error) { return !r.busy, nil }); err != nil {
		return fmt.Errorf("stop projection %q: %w", r.p.Name, err)
	}
	r.saveCursor(ctx)
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.projections[r.key.Name] == r {
		delete(r.c.projections, r.key.Name)
	}
	return nil
}

// Wait returns once everything through a position has been applied: that of an
// Outcome, say, so that a reader finds its own write. It fails when ctx ends or
// the projection stops, also by an error of its own.
func (r *Running) Wait(ctx context.Context, position uint64) error {
	r.wake() // the position may have been spent on no change
	err := r.wait(ctx, func() (bool, error) {
		switch {
		case r.status.Through >= position && !r.rebuild && !r.status.Rebuilding:
			return true, nil
		case r.fatal:
			return false, r.status.Err
		case r.stopped:
			return false, ErrProjectionStopped
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for projection %q to get to position %d: %w", r.p.Name, position, err)
	}
	return nil
}

// Status returns how the projection is getting on.
func (r *Running) Status() Status {
	r.c.mu.Lock()
	newest := r.c.journaled
	r.c.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	newest = max(newest, r.job.base)
	s.Lag = newest - min(newest, s.Through)
	return s
}

// Position returns the position of the last change that was applied or passed
// over.
func (r *Running) Position() uint64 { return r.Status().Position }

// Err returns why the projection does not get on at the moment; nil when it
// does.
func (r *Running) Err() error { return r.Status().Err }

// Rebuild has the projection start over: it empties its table, in steps, and
// applies the journal from zero, whatever its From. A projection that an error
// has stopped goes on by it. It returns at once; Wait waits for the rebuilt
// table.
func (r *Running) Rebuild() {
	r.mu.Lock()
	r.rebuild, r.fatal = true, false
	r.status.Through = 0
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.mu.Unlock()
	r.wake()
}
