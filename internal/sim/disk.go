package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// fate is what becomes of a commit.
type fate int

const (
	synced         fate = iota
	refusedBefore       // nothing is written, and the store says so
	lostUnknown         // nothing is written, and the store does not know
	writtenUnknown      // all is written, and the store does not know
	tornUnknown         // some units are written, and the store does not know
	refusedGroup        // the store refuses the call for some unit's data
	refusedUnit         // it refuses one unit
	conflict            // one unit meets another revision
	fates
)

func (f fate) String() string {
	return [...]string{"synced", "refused before", "lost, unknown", "written, unknown", "torn, unknown", "group refused", "unit refused", "unit conflicts"}[f]
}

// base is a store that does what it is told at once.
type base interface {
	persist.PersistenceService
	// reopened is the store as the next process finds it.
	reopened() (base, error)
	// discard ends its use for good.
	discard()
}

// disk is a store of which only what is synced survives a crash. Its time and
// its faults come from the seed. Like all of the simulation it lives on one
// goroutine.
type disk struct {
	base // what is synced

	sys  *actor.System // of the process that has the disk
	rng  *rand.Rand
	note func(format string, args ...any)
	seen func() // is called when something has become durable

	slow    time.Duration // the longest that a sync takes, at the moment
	next    []fate        // of the commits that come
	errRate int           // of a thousand commits so many fail by chance
	away    time.Time     // until then every call fails
	healing bool          // it needs no reopening
	down    bool          // until it is reopened
	writing []persist.Unit
	guilty  map[persist.Key]bool // what was refused for its data
	gone    bool                 // the process has died
	unknown bool                 // a commit had an unknown outcome, in this process or before
}

// reopens is a disk whose owner must reopen it after an unknown outcome.
type reopens struct{ *disk }

var _ persist.Reopener = reopens{}

// Reopen takes the disk back into service.
func (d reopens) Reopen(ctx context.Context) error {
	if err := d.latency(ctx); err != nil {
		return err
	}
	d.down = false
	return nil
}

// heals is a disk that stays in service whatever happened.
type heals struct{ *disk }

// latency makes a call take its time, and fail while the disk is away.
func (d *disk) latency(ctx context.Context) error {
	if d.rng.IntN(4) == 0 {
		if err := d.sys.Sleep(ctx, time.Duration(d.rng.IntN(3000))*time.Microsecond); err != nil {
			return fmt.Errorf("%w: %w", persist.ErrUnavailable, err)
		}
	}
	if d.gone || d.sys.Now().Before(d.away) {
		return fmt.Errorf("%w: the disk is away", persist.ErrUnavailable)
	}
	return nil
}

// back is the way of an answer: what was read may be old when it arrives.
func (d *disk) back(ctx context.Context) {
	if d.rng.IntN(6) == 0 {
		_ = d.sys.Sleep(context.WithoutCancel(ctx), time.Duration(d.rng.IntN(2000))*time.Microsecond)
	}
}

func (d *disk) serving(ctx context.Context) error {
	if d.down {
		return fmt.Errorf("%w: the disk must be reopened", persist.ErrUnavailable)
	}
	return d.latency(ctx)
}

// draw takes the next commit's fate.
func (d *disk) draw() fate {
	if len(d.next) > 0 {
		f := d.next[0]
		d.next = d.next[1:]
		return f
	}
	if d.rng.IntN(1000) < d.errRate {
		return fate(1 + d.rng.IntN(int(fates)-1))
	}
	return synced
}

// Commit writes, syncs for a while, and then lets what was written be read.
func (d *disk) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	if d.gone || d.down || d.sys.Now().Before(d.away) {
		return nil, fmt.Errorf("%w: the disk is away", persist.ErrUnavailable)
	}
	f := d.draw()
	if (f == refusedGroup || f == refusedUnit) && slices.ContainsFunc(units, ofBank) {
		f = synced // what is refused for its data is a dead letter, and the money with it
	}
	if f == refusedBefore {
		d.note("commit of %d: %v", len(units), f)
		return nil, fmt.Errorf("%w: by the simulation", persist.ErrUnavailable)
	}
	d.writing = units
	_ = d.sys.Sleep(context.WithoutCancel(ctx), time.Duration(d.rng.Int64N(int64(d.slow)+1)))
	if d.gone {
		return nil, fmt.Errorf("%w: the process has died", persist.ErrUnknown)
	}
	d.writing = nil
	outcomes, err := d.end(ctx, f, units)
	d.seen()
	d.note("commit of %d: %v", len(units), f)
	return outcomes, err
}

func ofBank(u persist.Unit) bool {
	return u.Key.Pod == accounts || u.Key.Pod == purses || u.Key.Pod == tills
}

// end decides a commit.
func (d *disk) end(ctx context.Context, f fate, units []persist.Unit) ([]persist.Outcome, error) {
	ctx = context.WithoutCancel(ctx)
	switch f {
	case refusedGroup:
		if len(units) == 1 {
			d.guilty[units[0].Key] = true
		}
		return nil, fmt.Errorf("%w: by the simulation", persist.ErrInvalid)
	case refusedUnit, conflict:
		return d.refuse(ctx, f, units)
	case lostUnknown, tornUnknown, writtenUnknown:
		d.unknown = true
		if l, ok := d.base.(*withLog); ok {
			return d.failLog(ctx, l, units)
		}
		if f == tornUnknown {
			units = d.some(units)
		}
		if f != lostUnknown && len(units) > 0 {
			_, _ = d.base.Commit(ctx, units)
		}
		d.down = !d.healing
		return nil, fmt.Errorf("%w: by the simulation", persist.ErrUnknown)
	}
	outcomes, err := d.base.Commit(ctx, units)
	if l, ok := d.base.(*withLog); ok {
		l.fold(ctx)
	}
	return outcomes, err
}

// failLog is a commit of which a part may fail. What becomes of it is what the
// log says. The log is opened anew at once, so that the checks can read it; its
// owner must do that still. A process that dies before it does is one that dies
// in the commit.
func (d *disk) failLog(ctx context.Context, l *withLog, units []persist.Unit) ([]persist.Outcome, error) {
	outcomes, err := l.fail(ctx, units)
	if err := l.Reopen(ctx); err != nil {
		panic(err) // nothing fails it
	}
	d.down = err != nil && !d.healing
	return outcomes, err
}

// some drops units, as a disk that wrote some sectors and not others.
func (d *disk) some(units []persist.Unit) []persist.Unit {
	return slices.DeleteFunc(slices.Clone(units), func(persist.Unit) bool { return d.rng.IntN(2) == 0 })
}

// refuse applies all but one unit, and those of its key behind it.
func (d *disk) refuse(ctx context.Context, f fate, units []persist.Unit) ([]persist.Outcome, error) {
	guilty := d.rng.IntN(len(units))
	var kept []persist.Unit
	var at []int
	for i, u := range units {
		if i < guilty || u.Key != units[guilty].Key {
			kept, at = append(kept, u), append(at, i)
		}
	}
	outcomes := make([]persist.Outcome, len(units))
	reason := persist.ErrInvalid
	d.guilty[units[guilty].Key] = true
	if f == conflict {
		reason = persist.ErrConflict
	}
	for i, u := range units {
		outcomes[i].Err = fmt.Errorf("%s: %w: by the simulation", u.Key, persist.ErrConflict)
	}
	outcomes[guilty].Err = fmt.Errorf("%s: %w: by the simulation", units[guilty].Key, reason)
	if len(kept) == 0 {
		return outcomes, nil
	}
	got, err := d.base.Commit(ctx, kept)
	for i := range got {
		outcomes[at[i]] = got[i]
	}
	return outcomes, err
}

// crash is the end of the process. The disk that is left has what was synced,
// and of the commit that was written just then any units.
func (d *disk) crash() *disk {
	d.gone = true
	if l, ok := d.base.(*withLog); ok {
		l.die(d.writing)
		d.writing = nil
	}
	next, err := d.base.reopened()
	if err != nil {
		panic(err) // nothing was done to its file
	}
	after := &disk{base: next, rng: d.rng, note: d.note, seen: d.seen, guilty: d.guilty, slow: d.slow, errRate: d.errRate, healing: d.healing, unknown: d.unknown}
	if rest := d.some(d.writing); len(rest) > 0 {
		if _, err := after.base.Commit(context.Background(), rest); err != nil && !errors.Is(err, persist.ErrInvalid) {
			panic(err) // it has no reason
		}
	}
	return after
}

// Load implements persist.PersistenceService.
func (d *disk) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	if err := d.serving(ctx); err != nil {
		return snapshot.Record{}, err
	}
	r, err := d.base.Load(ctx, key)
	d.back(ctx)
	return r, err
}

// List implements persist.PersistenceService.
func (d *disk) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	if err := d.serving(ctx); err != nil {
		return persist.Page{}, err
	}
	p, err := d.base.List(ctx, pod, o)
	d.back(ctx)
	return p, err
}

// Changes implements persist.PersistenceService.
func (d *disk) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	if err := d.serving(ctx); err != nil {
		return nil, err
	}
	c, err := d.base.Changes(ctx, key, life, from, limit)
	d.back(ctx)
	return c, err
}

// Log implements persist.PersistenceService.
func (d *disk) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	if err := d.serving(ctx); err != nil {
		return nil, err
	}
	return d.base.Log(ctx, after, limit)
}

// Trim implements persist.PersistenceService.
func (d *disk) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	if err := d.serving(ctx); err != nil {
		return persist.Trimmed{}, err
	}
	return d.base.Trim(ctx, after, through, limit)
}

// Rows implements persist.PersistenceService.
func (d *disk) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if err := d.serving(ctx); err != nil {
		return nil, err
	}
	return d.base.Rows(ctx, kind, after, limit)
}

// RowsOf implements persist.PersistenceService.
func (d *disk) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	if err := d.serving(ctx); err != nil {
		return nil, err
	}
	return d.base.RowsOf(ctx, key)
}

// Pods implements persist.PersistenceService.
func (d *disk) Pods(ctx context.Context) ([]string, error) {
	if err := d.serving(ctx); err != nil {
		return nil, err
	}
	return d.base.Pods(ctx)
}

// Position implements persist.PersistenceService.
func (d *disk) Position(ctx context.Context) (uint64, error) {
	if err := d.serving(ctx); err != nil {
		return 0, err
	}
	return d.base.Position(ctx)
}

// Import implements persist.Importer.
func (d *disk) Import(ctx context.Context, b persist.Batch) error {
	if err := d.serving(ctx); err != nil {
		return err
	}
	return d.base.(persist.Importer).Import(ctx, b)
}

// Close leaves what is synced to the next process.
func (d *disk) Close() error { return nil }
