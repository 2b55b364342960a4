package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

var (
	// ErrNoRevision says that an entity has no such revision: it has not come to
	// it, or the journal never kept it, as most of those of asynchronous entities
	// between two writes; or that there was no entity at a time.
	ErrNoRevision = errors.New("no such revision")
	// ErrDropped says that retention has dropped a revision from the journal. The
	// error is a *DroppedError.
	ErrDropped = errors.New("the revision is no longer kept")
)

// DroppedError says from where on the states of an entity are kept.
type DroppedError struct {
	Key    persist.Key
	Oldest entity.ETag // the oldest revision that is kept; zero: none of that life
	Time   time.Time   // and its time
}

func (e *DroppedError) Error() string {
	if e.Oldest.Life == 0 {
		return fmt.Sprintf("%s: %v, and none of this life is", e.Key, ErrDropped)
	}
	return fmt.Sprintf("%s: %v; the oldest one that is kept is %d of life %d, of %s",
		e.Key, ErrDropped, e.Oldest.Revision, e.Oldest.Life, e.Time.Format(time.RFC3339Nano))
}

// Unwrap returns ErrDropped.
func (e *DroppedError) Unwrap() error { return ErrDropped }

// HistoryOptions selects a page of an entity's changes, oldest first.
type HistoryOptions struct {
	// From and To bound the revisions, both inclusive; 0 is no bound.
	From, To uint64
	// Life is the life that is read; 0 is the present one.
	Life uint64
	// Earlier reads all lives, one after the other, in place of Life.
	Earlier bool
	// After is HistoryPage.Next of the page before; its zero value starts at the
	// oldest.
	After entity.ETag
	// Limit is the most changes that a page has. 0 means 100; more than 1,000 are
	// taken as 1,000. A page ends early when its states have a mebibyte.
	Limit int
}

// Revision is one change of an entity, as the journal keeps it.
type Revision struct {
	Life, Revision uint64
	Position       uint64
	Time           time.Time
	Type           string // the message or the event that led to it, or "deleted"
	Deleted        bool
	// State is the state that it led to, as JSON; nil for a deletion, or when it
	// cannot be made.
	State json.RawMessage
	// Data is the event of an event-sourced entity, as JSON, else nil.
	Data json.RawMessage
	// Err says why the change, or the state that it led to, cannot be read.
	Err error
}

// HistoryPage is a part of an entity's history.
type HistoryPage struct {
	Revisions []Revision
	// Next is HistoryOptions.After of the next page; zero at the end.
	Next entity.ETag
	// Oldest is the oldest revision that is kept of the first life that was read
	// for the page, and OldestTime its time; zero when none is. Dropped says that
	// retention has dropped what was before it in that life, all of it when Oldest
	// is zero. Of lives of which nothing is kept nobody knows.
	Oldest     entity.ETag
	OldestTime time.Time
	Dropped    bool
}

const maxHistory = 1000

// History reads a page of what the journal keeps of an entity, whether it lives
// or not: an entity that was deleted is found by its Life, or with Earlier. It
// wakes nobody. Without either it fails as Get does.
func (p *Pod) History(ctx context.Context, name string, o HistoryOptions) (HistoryPage, error) {
	head, err := p.headOf(ctx, name)
	if err != nil && (!errors.Is(err, entity.ErrNotFound) || o.Life == 0 && !o.Earlier) {
		return HistoryPage{}, err
	}
	if o.Limit <= 0 {
		o.Limit = 100
	}
	o.Limit = min(o.Limit, maxHistory)
	r := reading{pod: p, key: persist.Key{Pod: p.name, Name: name}, head: head, o: o}
	r.life, r.from = o.Life, o.From
	switch {
	case o.After.Life != 0 && mutant.On(mutant.HistorySkipsBetweenPages):
		r.life, r.from = o.After.Life, max(o.From, o.After.Revision+2)
	case o.After.Life != 0:
		r.life, r.from = o.After.Life, max(o.From, o.After.Revision+1)
	case o.Earlier:
		r.life, err = persist.NextLife(ctx, p.store(), r.key, 0)
	case o.Life == 0:
		r.life = head.Life
	}
	if err == nil || errors.Is(err, entity.ErrNotFound) {
		if err = r.oldest(ctx); err == nil {
			err = r.all(ctx)
		}
	}
	return r.page, err
}

// reading is one call of History.
type reading struct {
	pod        *Pod
	key        persist.Key
	head       snapshot.Record // what is acknowledged; of revision 0 when nothing is
	o          HistoryOptions
	life, from uint64
	fold       fold
	page       HistoryPage
	bytes      int
}

// oldest says from where on the first life that is read is kept.
func (r *reading) oldest(ctx context.Context) error {
	if r.life == 0 {
		return nil
	}
	changes, err := r.pod.store().Changes(ctx, r.key, r.life, 0, 1)
	switch {
	case err != nil:
		return fmt.Errorf("read the history of %s: %w", r.key, err)
	case len(changes) == 0:
		r.page.Dropped = r.life == r.head.Life
		return nil
	}
	c := &changes[0]
	r.page.Oldest, r.page.OldestTime = entity.ETag{Life: c.Life, Revision: c.Revision}, c.Time
	r.page.Dropped = !whole(c)
	return nil
}

// all reads life after life until the page is full.
func (r *reading) all(ctx context.Context) error {
	for r.life != 0 {
		full, err := r.oneLife(ctx)
		if err != nil || full || !r.o.Earlier {
			return err
		}
		next, err := persist.NextLife(ctx, r.pod.store(), r.key, r.life)
		if err != nil {
			return err
		}
		r.life, r.from = next, r.o.From
	}
	return nil
}

// oneLife reads a life to its end, or until the page is full.
func (r *reading) oneLife(ctx context.Context) (full bool, err error) {
	limit := r.pod.pods.pages()
	for {
		n := min(limit.next(), r.o.Limit-len(r.page.Revisions)+1)
		changes, err := r.pod.store().Changes(ctx, r.key, r.life, r.from, n)
		if err != nil {
			return false, fmt.Errorf("read the history of %s: %w", r.key, err)
		}
		limit.saw(changes)
		for i := range changes {
			c := &changes[i]
			if r.o.To != 0 && c.Revision > r.o.To || c.Life == r.head.Life && c.Revision > r.head.Revision && c.Err == nil {
				return false, nil // beyond what was asked for, or is acknowledged
			}
			if len(r.page.Revisions) == r.o.Limit || r.bytes > pageBytes {
				last := r.page.Revisions[len(r.page.Revisions)-1]
				r.page.Next = entity.ETag{Life: last.Life, Revision: last.Revision}
				return true, nil
			}
			line, err := r.line(ctx, c)
			if err != nil {
				return false, err
			}
			r.bytes += len(line.State) + len(line.Data)
			r.page.Revisions = append(r.page.Revisions, line)
			r.from = c.Revision + 1
		}
		if len(changes) < n {
			return false, nil
		}
	}
}

// line makes a change readable. Its error is that of a store that is down.
func (r *reading) line(ctx context.Context, c *persist.Change) (Revision, error) {
	out := Revision{
		Life: c.Life, Revision: c.Revision, Position: c.Position, Time: c.Time, Type: c.Type,
		Deleted: deletes(c), Err: c.Err,
	}
	switch {
	case c.Err != nil || out.Deleted:
		return out, nil
	case c.Event:
		out.Data = jsonOf(c.Codec, c.Data)
	}
	v, err := r.pod.viewBehind(ctx, &r.fold, c)
	if err == nil {
		var state []byte
		if state, err = v.JSON(); err == nil {
			out.State = state
		}
	}
	if ctx.Err() != nil || errors.Is(err, persist.ErrUnavailable) {
		return out, err
	}
	out.Err = err
	return out, nil
}

// headOf returns what is acknowledged of an entity: its life and revision, and
// not always the state.
func (p *Pod) headOf(ctx context.Context, name string) (snapshot.Record, error) {
	v, err := p.Get(ctx, name)
	if err == nil {
		return v.record, nil
	}
	if !errors.Is(err, entity.ErrQuarantined) {
		return snapshot.Record{}, err
	}
	// The journal may be good though the record is not.
	last, lastErr := p.lastLife(ctx, persist.Key{Pod: p.name, Name: name})
	if lastErr != nil || last == 0 {
		return snapshot.Record{}, err
	}
	return snapshot.Record{Life: last, Revision: ^uint64(0)}, nil
}

func (p *Pod) lastLife(ctx context.Context, key persist.Key) (last uint64, err error) {
	for {
		next, err := persist.NextLife(ctx, p.store(), key, last)
		if err != nil || next == 0 {
			return last, err
		}
		last = next
	}
}

// At returns an entity's state at a revision of its present life, exactly. It
// fails as Get does, and with ErrNoRevision or a *DroppedError.
func (p *Pod) At(ctx context.Context, name string, revision uint64) (View, error) {
	now, err := p.Get(ctx, name)
	if err != nil && !errors.Is(err, entity.ErrQuarantined) {
		return View{}, err
	}
	if err == nil {
		switch {
		case revision == now.Revision:
			return now, nil
		case revision > now.Revision || revision == 0:
			return View{}, fmt.Errorf("%w: %s/%s has come to revision %d, not %d", ErrNoRevision, p.name, name, now.Revision, revision)
		}
	}
	head, headErr := now.record, error(nil)
	if err != nil {
		if head, headErr = p.headOf(ctx, name); headErr != nil {
			return View{}, headErr
		}
	}
	key := persist.Key{Pod: p.name, Name: name}
	changes, err := p.store().Changes(ctx, key, head.Life, revision, 1)
	switch {
	case err != nil:
		return View{}, fmt.Errorf("read the history of %s: %w", key, err)
	case len(changes) > 0 && (changes[0].Revision == revision || mutant.On(mutant.AtTakesNext)):
		return p.viewBehind(ctx, &fold{}, &changes[0])
	}
	return View{}, p.missing(ctx, key, head, revision)
}

// missing says why the journal does not have a revision before the head's.
func (p *Pod) missing(ctx context.Context, key persist.Key, head snapshot.Record, revision uint64) error {
	oldest, err := p.oldestKept(ctx, key, head)
	switch {
	case err != nil:
		return err
	case revision < oldest.Revision && !whole(&oldest):
		return &DroppedError{Key: key, Oldest: entity.ETag{Life: oldest.Life, Revision: oldest.Revision}, Time: oldest.Time}
	}
	return fmt.Errorf("%w: %s was never written at revision %d", ErrNoRevision, key, revision)
}

// whole reports whether a change is the first of its life.
func whole(c *persist.Change) bool { return c.Position == c.Life }

// oldestKept returns the oldest change of the head's life; the head itself, when
// the journal has none.
func (p *Pod) oldestKept(ctx context.Context, key persist.Key, head snapshot.Record) (persist.Change, error) {
	changes, err := p.store().Changes(ctx, key, head.Life, 0, 1)
	if err != nil {
		return persist.Change{}, fmt.Errorf("read the history of %s: %w", key, err)
	}
	if len(changes) == 0 {
		return persist.Change{Key: key, Life: head.Life, Revision: head.Revision, Time: head.Changed}, nil
	}
	return changes[0], nil
}

// previous returns the change of the same life before one; found is false when
// the journal no longer has it.
func (p *Pod) previous(ctx context.Context, c *persist.Change) (prior persist.Change, found bool, err error) {
	most := p.pods.pages().limit
	for back := uint64(1); ; back *= 8 {
		from := c.Revision - min(c.Revision, back)
		for next := from; ; {
			changes, err := p.store().Changes(ctx, c.Key, c.Life, next, most)
			if err != nil {
				return prior, false, fmt.Errorf("read the history of %s: %w", c.Key, err)
			}
			for i := range changes {
				if changes[i].Revision >= c.Revision {
					changes = changes[:i]
					break
				}
				prior, found = changes[i], true
			}
			if len(changes) < most {
				break
			}
			next = prior.Revision + 1
		}
		if found || from == 0 {
			return prior, found, nil
		}
	}
}

// Retention is what a pod's journal keeps.
type Retention struct {
	// Changes is how many positions are kept; all pods of a store share them.
	Changes uint64
	// Age is how long changes are kept; 0 means that age drops nothing.
	Age time.Duration
	// Through is the position through which changes may have been dropped; 0 if
	// none was. Events of living event-sourced entities stay all the same.
	Through uint64
	// Position is the newest one of the store.
	Position uint64
	// Volatile says that the pod is: positions of it mean nothing to anybody, and
	// Through and Position are 0.
	Volatile bool
}

// Retention returns what is kept of the history of the pod's entities.
func (p *Pod) Retention(ctx context.Context) (Retention, error) {
	cfg := p.pods.cfg.Committer
	r := Retention{Changes: cfg.KeepChanges, Age: cfg.KeepFor}
	switch {
	case p.committer != p.pods.committer:
		return Retention{Changes: volatileKeeps, Age: cfg.KeepFor, Volatile: true}, nil
	case r.Changes == 0:
		r.Changes = persist.DefaultKeepChanges
	}
	var err error
	if r.Position, err = p.store().Position(ctx); err == nil {
		r.Through, err = persist.TrimmedThrough(ctx, p.store())
	}
	if err != nil {
		return Retention{}, fmt.Errorf("pod %s: %w", p.name, err)
	}
	return r, nil
}
