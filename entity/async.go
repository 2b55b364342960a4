package entity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	// reserveAhead is how many revisions an asynchronous entity may give out
	// before they are durable. Recovery after an unclean stop goes on behind
	// them.
	reserveAhead = 1000
	// maxFlushPause bounds the wait before a failed flush is tried again.
	maxFlushPause = 5 * time.Second
)

// flusher writes the states of an asynchronous entity behind its
// acknowledgements: the newest state at least once an interval, one write in
// flight at a time. A failed write is tried again and never rolls back. Entities
// of another durability have none: nil, for the methods that are called on it.
type flusher struct {
	latest   *snapshot.Record // the newest state, if it is not written yet
	what     string           // the message that led to it
	running  *flush
	reserved uint64 // revisions through this one may be given out
	timer    *flushTimer
	reading  *flushTimer // the timer whose read of the store is under way
	failing  error       // why the last write failed
	warned   bool        // the log knows that writes fail
	tried    uint64      // the revision of the write that failed
	removing bool        // a deletion failed, and may have happened all the same
	pause    time.Duration

	// unseen is the state after turns that were failed by a deletion which then
	// failed itself: it stands, though no answer has told of it.
	unseen *snapshot.Record
	// unheard are the messages of such turns, and unheardRows counts the rows up
	// to theirs: once those are durable the messages are sent, and the host is
	// told of reminders.
	unheard     []*parcel
	unheardRows uint64

	rows    []persist.RowOp // for the next write
	given   uint64          // rows that were ever to be written
	written uint64          // of these, how many are durable
}

// flush is a write in flight.
type flush struct {
	of     *snapshot.Record // the flusher's latest when it began
	record *snapshot.Record // what is written: a copy with its own Reserved
	rows   []persist.RowOp  // written with it
	given  uint64           // the flusher's rows up to and with these
}

// flushTimer tells a due timer from one that was replaced.
type flushTimer struct{ t actor.Timer }

// flushHead brings what the store holds after a write whose outcome is unknown.
type flushHead struct {
	by     *activation
	timer  *flushTimer
	record snapshot.Record
	err    error
}

func (f *flusher) recovered(revision uint64) {
	if f != nil {
		f.reserved = revision
	}
}

// failure is why the last write failed.
func (f *flusher) failure() error {
	if f == nil {
		return nil
	}
	return f.failing
}

// hidden returns the state that no answer has told of, if there is one.
func (f *flusher) hidden() *snapshot.Record {
	if f == nil {
		return nil
	}
	return f.unseen
}

// shown notes that the view is as new as the state.
func (f *flusher) shown() {
	if f != nil {
		f.unseen = nil
	}
}

func (f *flusher) reset() {
	if f == nil {
		return
	}
	f.cancel()
	*f = flusher{}
}

func (f *flusher) cancel() {
	if f == nil {
		return
	}
	if f.timer != nil {
		f.timer.t.Stop()
		f.timer = nil
	}
	f.reading = nil
}

// abandoned notes that the turns which wait are failed, while what they have
// made of the entity stands.
func (f *flusher) abandoned(a *activation) {
	if r := a.queue.last(); r != nil {
		f.unseen = r
	}
	f.unheardRows = f.given
	for _, k := range a.mail.outbox.receivers() {
		for _, p := range a.mail.outbox.line(k).parcels {
			if !p.durable && !p.unheard {
				p.unheard = true
				f.unheard = append(f.unheard, p)
			}
		}
	}
}

// heard lets out what abandoned turns have sent, and are to be reminded of, when
// that is durable.
func (a *activation) heard(ctx *actor.Context) {
	f := a.async
	if f.unheardRows == 0 || f.written < f.unheardRows {
		return
	}
	parcels := f.unheard
	f.unheard, f.unheardRows = nil, 0
	a.tellReminders(a.mail.reminders.news())
	for _, p := range parcels {
		a.dispatchParcel(ctx, p)
	}
}

// clean reports whether the store holds the newest state and promises no
// revision beyond it.
func (f *flusher) clean(a *activation) bool {
	if !a.spec.Durability.IsAsync() || a.phase != serving || a.head.revision == 0 || mutant.On(mutant.PassivateLosesAsync) {
		return true
	}
	return f.latest == nil && f.running == nil && len(f.rows) == 0 && f.reserved <= max(a.head.revision, a.head.floor)
}

// changed takes a turn's new state. The turn waits only if its revision is
// beyond what the store has reserved, or it has rows: messages are not sent, and
// those that came not acknowledged, before they are durable.
func (f *flusher) changed(ctx *actor.Context, a *activation, e *entry, rows []persist.RowOp) {
	f.latest, f.what = e.record, e.message.handler.name
	f.take(a, e, rows)
	f.plan(ctx, a, e)
}

// keep takes the rows of a turn that changed nothing else.
func (f *flusher) keep(ctx *actor.Context, a *activation, e *entry, rows []persist.RowOp) {
	f.take(a, e, rows)
	f.plan(ctx, a, e)
}

func (f *flusher) take(a *activation, e *entry, rows []persist.RowOp) {
	if len(rows) > 0 {
		f.rows = append(append(f.rows, rows...), a.mail.outbox.removed()...)
		f.given += uint64(len(rows))
		e.rows = f.given
	}
	e.waits = f.holds(e)
}

// holds reports whether an entry must wait for a write.
func (f *flusher) holds(e *entry) bool {
	return f.hides() || e.record != nil && e.revision > f.reserved || e.rows > f.written && !mutant.On(mutant.AsyncRowsNotAwaited)
}

// hides reports whether what abandoned turns have made of the entity is not
// durable yet: nothing that is computed on it may leave.
func (f *flusher) hides() bool {
	return f != nil && (f.unseen != nil && f.unseen.Revision > f.reserved || f.written < f.unheardRows)
}

func (f *flusher) plan(ctx *actor.Context, a *activation, e *entry) {
	switch {
	case f.failing != nil:
		// the retry writes it
	case e.waits || e.record != nil && f.reserved-e.revision < reserveAhead/4:
		f.start(a, false)
	case f.timer == nil && f.running == nil:
		f.schedule(ctx, a, a.spec.Durability.Interval())
	}
}

func (f *flusher) schedule(ctx *actor.Context, a *activation, d time.Duration) {
	f.cancel()
	due, self := &flushTimer{}, a.self
	f.timer = due
	due.t = ctx.System().After(d, func() { self.TellSystem(flushDue{due}) })
}

// start writes the newest state, unless a write is in flight already. A clean
// write gives back the revisions that were reserved.
func (f *flusher) start(a *activation, clean bool) {
	if f.running != nil {
		return
	}
	f.cancel()
	of := f.latest
	if of == nil { // only the reservation changes
		of = &snapshot.Record{
			Life: a.head.life, Revision: a.head.revision, Changed: a.head.changed,
			Schema: a.spec.Version, Codec: a.spec.codec.Name(), State: a.head.enc,
		}
	}
	r := *of
	// An unclean stop may have left revisions above the state's own that were
	// given out.
	r.Life, r.Reserved = a.head.life, max(r.Revision, a.head.floor)
	if clean {
		f.reserved = r.Reserved // gives the others back, from now on
	} else {
		r.Reserved += reserveAhead
	}
	u := persist.Unit{Key: a.key, Life: a.head.life, Expect: a.head.stored, Record: &r, Rows: f.rows}
	if f.latest != nil {
		u.Changes = []persist.Change{a.stateChange(&r, f.what)}
	}
	if mutant.On(mutant.AsyncReservesTooFew) && !clean {
		few := r
		few.Reserved -= reserveAhead - 1
		u.Record = &few
	}
	f.running = &flush{of: f.latest, record: &r, rows: f.rows, given: f.given}
	f.rows = nil
	a.submit(u, f.running)
}

func (a *activation) flushDue(ctx *actor.Context, m flushDue) {
	f := a.async
	if f.timer != m.timer {
		return
	}
	f.timer = nil
	if f.failing != nil {
		store, key, self, stopped := a.host.Committer().Service(), a.key, a.self, ctx.Context()
		f.reading = m.timer
		ctx.System().Go(func() { self.TellSystem(readHead(stopped, a, m.timer, store, key)) })
		return
	}
	if f.latest != nil || len(f.rows) > 0 {
		f.start(a, false)
	}
}

func readHead(ctx context.Context, a *activation, t *flushTimer, store persist.PersistenceService, key persist.Key) flushHead {
	r, err := store.Load(ctx, key)
	return flushHead{by: a, timer: t, record: r, err: err}
}

// last writes what is not written when the entity ends without leaving in
// order, behind a write in flight. Nobody hears of the outcome.
func (f *flusher) last(a *activation) {
	if a.poison != nil || f.clean(a) {
		return
	}
	if w := f.running; w != nil {
		f.running, a.head.stored = nil, w.record.Revision
		if f.latest == w.of {
			f.latest = nil
		}
	}
	f.start(a, true)
}

// flushed takes the outcome of a write.
func (a *activation) flushed(ctx *actor.Context, w *flush, o persist.Outcome) {
	f := a.async
	if a.poison != nil || f.running != w {
		return
	}
	f.running = nil
	if o.Err != nil {
		f.tried = w.record.Revision
		f.rows = append(w.rows, f.rows...) // also if they were written: it does no harm
		f.fail(ctx, a, o.Err)
		return
	}
	f.failing, f.pause, f.warned = nil, 0, false
	a.head.stored = w.record.Revision
	if w.record.Revision > a.head.floor {
		a.head.floor = 0
	}
	f.reserved, f.written = w.record.Reserved, w.given
	if f.unseen != nil && f.unseen.Revision <= f.reserved {
		a.show(f.unseen)
	}
	if f.latest == w.of {
		f.latest = nil
	}
	a.heard(ctx)
	short := false
	for _, e := range a.queue.entries[a.queue.start:] {
		if e.removes || e.creates {
			continue
		}
		e.waits = e.waits && f.holds(e)
		short = short || e.waits
	}
	switch {
	case short:
		f.start(a, false)
	case f.latest != nil || len(f.rows) > 0:
		f.schedule(ctx, a, a.spec.Durability.Interval())
	}
}

// fail plans the next try. Until then the store's own word on what it holds is
// needed, since the failed write may have been applied.
func (f *flusher) fail(ctx *actor.Context, a *activation, err error) {
	if !f.warned {
		f.warned = true
		level := slog.LevelWarn
		if errors.Is(err, persist.ErrUnavailable) || errors.Is(err, persist.ErrUnknown) {
			level = slog.LevelDebug // the committer tells of the store
		}
		ctx.Logger().Log(context.Background(), level, "changes of an asynchronous entity are not durable yet; trying again", "entity", a.key.String(), "error", err)
	}
	a.lane = nil
	f.failing = err
	f.pause = min(max(2*f.pause, a.spec.Durability.Interval(), 10*time.Millisecond), maxFlushPause)
	f.schedule(ctx, a, f.pause)
}

// show makes a state the view. Its life may have been named since.
func (a *activation) show(r *snapshot.Record) {
	r.Life = a.head.life
	a.viewed = true
	a.async.shown()
	a.host.SetView(r)
}

// flushHead goes on after a failed write from what the store holds.
func (a *activation) flushHead(ctx *actor.Context, m flushHead) {
	f := a.async
	switch {
	case f.failing == nil || a.poison != nil || f.reading != m.timer: // or something else was begun meanwhile
	case m.err == nil && m.record.Life == a.head.life && (m.record.Revision == a.head.stored || m.record.Revision == f.tried):
		a.head.stored, f.reserved = m.record.Revision, max(f.reserved, m.record.Reserved)
		f.failing = nil
		if f.latest != nil && f.latest.Revision == a.head.stored {
			f.latest = nil // the write that failed was applied
		}
		if f.removing { // else the barrier is another message's
			f.removing = false
			if f.unseen != nil && f.unseen.Revision <= f.reserved {
				a.show(f.unseen)
			}
			a.unhold(ctx, holdBarrier)
		}
		f.start(a, false)
	case errors.Is(m.err, persist.ErrNotFound) && f.removing:
		a.viewed = false
		a.host.SetView(&snapshot.Record{Life: a.head.life})
		a.host.SetRemoving(false)
		a.removed(ctx)
	case m.err != nil && !errors.Is(m.err, persist.ErrNotFound) && !unreadable(m.err):
		f.fail(ctx, a, m.err)
	default:
		a.lost(ctx, fmt.Errorf("%s: the store no longer holds life %d of it: %w", a.key, a.head.life, persist.ErrConflict))
	}
}

// lost gives the activation up: the store holds something else than what was
// built on.
func (a *activation) lost(ctx *actor.Context, err error) {
	ctx.Logger().Error("an entity is read anew; acknowledged changes that were not durable are gone", "entity", a.key.String(), "error", err)
	a.poison = err
	a.hold(ctx, holdPoison)
	a.model.forget()
	a.queue.failAll(ctx, a, nil, err)
	a.load(ctx)
}
