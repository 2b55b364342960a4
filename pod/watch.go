package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// WatchRequest says what a Watch shows.
type WatchRequest struct {
	// Pods are those whose changes are shown; nil means all.
	Pods []string
	// Name, if not empty, is that of the one entity of the one pod of Pods that
	// is watched, whether it exists or not.
	Name string
	// Match, if not nil, narrows the watch to changes that lead to a state for
	// which it holds, and to those that lead away from one (EventLeft,
	// EventDeleted). It is called by Next alone, and must give the same answer
	// for the same view. A change for which it fails with filter.ErrTooCostly is
	// told as a gap; any other error ends the watch.
	Match func(*View) (bool, error)
	// Resume has the watch begin behind the position After, which is an
	// Event.ID of any watch, or 0 for the beginning of the journal. Otherwise it
	// begins with what comes after the call. The changes of volatile pods are
	// not told again: a watch of some begins with a gap.
	Resume bool
	After  uint64
}

// Matching returns a filter as the Match of one watch.
func Matching(f *filter.Filter) func(*View) (bool, error) {
	var s filter.Subject // the watch asks for one view at a time
	return func(v *View) (bool, error) {
		s.Reset(v.Pod, v.Name, &v.record)
		return f.Match(context.Background(), &s) // its cost is bounded
	}
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	// EventChanged: the entity was created or changed, and has (or had then) the
	// state that is told.
	EventChanged EventKind = "changed"
	// EventDeleted: the entity's life has ended.
	EventDeleted EventKind = "deleted"
	// EventLeft: by this change the entity's state left those that Match holds
	// for. It is said once, with the state that the change led to.
	EventLeft EventKind = "left"
	// EventGap: changes behind From and not behind To may be missing. What was
	// known from the watch so far may be out of date and is to be read anew.
	EventGap EventKind = "gap"
)

// GapReason says why a gap is there.
type GapReason string

// The reasons of gaps.
const (
	// GapTrimmed: retention has dropped the changes from the journal, or, under a
	// Match, the events that the state behind the one at the position To was made
	// of.
	GapTrimmed GapReason = "trimmed"
	// GapDamaged: the change at the position To, or under a Match the state behind
	// it, cannot be read.
	GapDamaged GapReason = "damaged"
	// GapTooCostly: Match takes too long to say whether it holds for the change
	// at the position To, or for the state before it.
	GapTooCostly GapReason = "too_costly"
	// GapVolatile: changes of volatile pods may be missing, which have no
	// positions and are not told again. From and To are 0.
	GapVolatile GapReason = "volatile"
)

// Event is what a Watch shows. Its bytes are shared: nobody changes them.
type Event struct {
	Kind EventKind
	// ID is where a watch that follows on this event resumes (WatchRequest.After).
	// It never falls. A change of a volatile pod has none of its own: that of the
	// last other change.
	ID uint64
	// Position is the change's own; 0 for a gap, and for a change of a volatile
	// pod.
	Position  uint64
	Pod, Name string
	Life      uint64
	Revision  uint64
	Time      time.Time
	// Type is the name of the message that led to the change, or of the event of
	// an event-sourced entity, or "deleted".
	Type string
	// State is the state that the change led to, as JSON. It is nil for a
	// deletion, when it cannot be read, and, unless a Match has asked for it, for
	// event-sourced entities.
	State json.RawMessage
	// Data is the event of an event-sourced entity, as JSON, else nil.
	Data json.RawMessage
	// Unsure, of EventLeft and EventDeleted under a Match, says that the state
	// before is no longer known: whoever has not been told of the entity ignores
	// the event.
	Unsure bool
	// From, To and Reason are of a gap.
	From, To uint64
	Reason   GapReason

	line *rendered
}

var (
	// ErrPosition refuses to resume at a position that the store has not come to:
	// it is another store's, or the store has been put back from a backup.
	ErrPosition = errors.New("no such position yet")
	// ErrWatchClosed says that a watch was closed.
	ErrWatchClosed = errors.New("the watch is closed")
)

// Watch is a stream of changes in the order of their positions, each once. It
// shows what is durable, and no earlier than reads do, but that it waits for an
// entity that is busy with something else a moment at most.
//
//   - Of an asynchronous entity it shows what is written: the newest state at
//     least once an interval, not every revision.
//   - A reader that is slow holds up nobody and holds no memory: it is behind,
//     and reads from the journal what it has missed. What retention drops before
//     it comes to it is a gap.
//   - Under a Match, whether an entity left depends on the journal alone: on the
//     states before and after a change. So a watch that resumes says the same
//     as one that was never interrupted. Where the state before is no longer in
//     the journal, the event says that it is Unsure; where the state behind is
//     not, it is a gap.
//   - The changes of volatile pods are shown as they come, between those of the
//     others, and never again: they have no position, and no ID of their own. A
//     watch of volatile pods that resumes, or that is so far behind that some are
//     gone, has a gap with the reason GapVolatile and without positions.
//
// Next must not be called by two at a time; the other methods may be, always.
// Whoever makes a watch closes it.
type Watch struct {
	pods   *Pods
	req    WatchRequest
	tails  [2]*tail // the first is of what can be resumed, the second of what is volatile
	waiter *actor.Waiter
	page   []line // what was read
	shown  int    // of the page
	id     uint64 // of the last event
	place  atomic.Uint64
	ended  atomic.Pointer[error]
}

// line is something that a tail has read: a change, or a gap.
type line struct {
	tail   *tail
	change *change // nil: a gap
	gap    *Event
}

// Watch begins a watch. It fails with ErrNoPod, ErrPosition, ErrStopping, and
// when the store is down. What is acknowledged before the call is not shown
// unless the request resumes; what is sent behind it is.
func (p *Pods) Watch(ctx context.Context, r WatchRequest) (*Watch, error) {
	if r.Pods = slices.Clone(r.Pods); r.Pods != nil {
		slices.Sort(r.Pods)
		r.Pods = slices.Compact(r.Pods)
	}
	if r.Name != "" && len(r.Pods) != 1 {
		return nil, fmt.Errorf("%w: a watch of one entity names its pod, and no other", entity.ErrName)
	}
	for _, name := range r.Pods {
		if _, err := p.Pod(name); err != nil {
			return nil, err
		}
	}
	if r.Name != "" {
		if err := entity.CheckName(r.Name); err != nil {
			return nil, err
		}
	}
	w := &Watch{pods: p, req: r, waiter: p.sys.NewWaiter()}
	w.tails = [2]*tail{
		{hub: &p.hub, watch: w, main: true, pages: p.pages()},
		{hub: &p.volatile.hub, watch: w, pages: p.pages()},
	}
	short := w.showsVolatile() // a pod that is dropped meanwhile is one of which changes may be missing
	for _, t := range w.tails {
		if err := t.hub.join(ctx, t); err != nil {
			w.Close()
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	w.place.Store(w.id)
	if r.Resume && short && w.tails[1].hub.serves() {
		w.page = append(w.page, line{tail: w.tails[1], gap: &Event{Kind: EventGap, Reason: GapVolatile}})
	}
	return w, nil
}

// showsVolatile reports whether a volatile pod may be watched.
func (w *Watch) showsVolatile() bool {
	if w.req.Pods == nil {
		return true
	}
	return slices.ContainsFunc(w.req.Pods, func(name string) bool {
		pod, err := w.pods.Pod(name)
		return err == nil && pod.hub == w.tails[1].hub
	})
}

// wants reports whether the change of a key is for the watch.
func (w *Watch) wants(key persist.Key) bool {
	if w.req.Pods == nil {
		return key.Pod != "" && key.Pod[0] != '$'
	}
	_, named := slices.BinarySearch(w.req.Pods, key.Pod)
	return named && (w.req.Name == "" || w.req.Name == key.Name)
}

// Next returns the next event, waiting for it. When ctx ends it returns ctx's
// error, and can be called again. It fails for good with ErrStopping when the
// pods close, with ErrWatchClosed, and with the error of Match.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		w.place.Store(w.id) // whoever comes for the next has the last
		if end := w.ended.Load(); end != nil {
			return Event{}, *end
		}
		if err := ctx.Err(); err != nil {
			return Event{}, err
		}
		e, is, err := w.show(ctx)
		if is || err != nil {
			return e, err
		}
		if w.shown < len(w.page) {
			continue
		}
		w.page, w.shown = w.page[:0], 0
		more := false
		for _, t := range w.tails {
			got, err := t.read(ctx)
			if err != nil {
				return Event{}, err
			}
			more = more || got
		}
		if more {
			continue
		}
		w.place.Store(w.id)
		if err := w.waiter.Wait(ctx); err != nil {
			return Event{}, err
		}
	}
}

// show returns the next line of the page as an event, unless Match drops it.
func (w *Watch) show(ctx context.Context) (e Event, is bool, err error) {
	if w.shown == len(w.page) {
		return Event{}, false, nil
	}
	l := &w.page[w.shown]
	at := uint64(0)
	if l.change == nil {
		e, is, at = *l.gap, true, l.gap.To
	} else {
		at = l.change.Position
		e, is, err = w.judge(ctx, l.change)
		switch {
		case ctx.Err() != nil:
			return Event{}, false, ctx.Err() // it is judged again
		case errors.Is(err, persist.ErrUnavailable):
			return Event{}, false, w.pods.sys.Sleep(ctx, storePause)
		}
	}
	if errors.Is(err, filter.ErrTooCostly) {
		e, is, err = Event{Kind: EventGap, From: at - 1, To: at, Reason: GapTooCostly}, true, nil
	}
	if l.tail.main {
		w.id = max(w.id, at)
	} else {
		e.Position, e.From, e.To = 0, 0, 0
	}
	*l = line{}
	w.shown++
	e.ID = w.id
	if err != nil {
		err = fmt.Errorf("watch: the change at position %d: %w", at, err)
		w.place.Store(w.id)
		w.end(err)
	}
	return e, is, err
}

// judge makes an event of a change, if it is to be shown.
func (w *Watch) judge(ctx context.Context, c *change) (Event, bool, error) {
	if c.Err != nil {
		return Event{Kind: EventGap, From: c.Position - 1, To: c.Position, Reason: GapDamaged}, true, nil
	}
	if w.req.Match == nil {
		return c.event(w.pods), true, nil
	}
	after, err := c.after(ctx, w.pods)
	if err != nil {
		return Event{}, false, err
	}
	if after.view != nil {
		if match, err := w.req.Match(after.view); err != nil || match {
			return c.eventWith(w.pods, after), match, err
		}
	}
	if after.reason != "" { // it may be one for which Match holds
		return Event{Kind: EventGap, From: c.Position - 1, To: c.Position, Reason: after.reason}, true, nil
	}
	before, err := c.before(ctx, w.pods)
	if err != nil {
		return Event{}, false, err
	}
	if !before.unknown {
		if before.view == nil || mutant.On(mutant.WatchLeavesSilently) {
			return Event{}, false, nil
		}
		if match, err := w.req.Match(before.view); err != nil || !match {
			return Event{}, false, err
		}
	}
	e := c.eventWith(w.pods, after)
	if e.Kind == EventChanged {
		e.Kind = EventLeft
	}
	if before.unknown {
		e.Unsure, e.line = true, nil
	}
	return e, true, nil
}

// Position returns where a watch that follows on this one resumes: everything
// through it is not for this watch, or was shown by a call of Next that another
// one has followed on. It may be more than the last event's ID.
func (w *Watch) Position() uint64 { return w.place.Load() }

// Close ends the watch. A Next that waits returns ErrWatchClosed.
func (w *Watch) Close() { w.end(ErrWatchClosed) }

// end has Next return an error from now on, unless it does already.
func (w *Watch) end(err error) {
	if !w.ended.CompareAndSwap(nil, &err) {
		return
	}
	for _, t := range w.tails {
		t.hub.leave(t)
	}
	w.waiter.Wake()
}

// Watchers returns how many watches there are.
func (p *Pods) Watchers() int { return int(p.hub.count.Load()) }
