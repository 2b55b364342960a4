package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/snapshot"
)

// lazyCursor is how many positions a cursor passes over without being saved,
// where there was nothing to apply.
const lazyCursor = 1024

// projectionJob is what a projection's job knows between its runs. Only the job
// touches it, and Stop behind it; base is also guarded by Running.mu.
type projectionJob struct {
	known          bool // what follows is what the store has, but for the lazy cursor
	life, revision uint64
	cursor         cursor
	saved          uint64 // the position that the store has
	base           uint64 // the store's position when the cursor was read
	pages          pageSize
	few            int // at most so many changes at a time, after a table that was too large; 0: no bound
}

// cursor is the state of a projection's record.
type cursor struct {
	Position uint64 `json:"position"`
	// Gap is through where it is known that changes may be missing.
	Gap uint64 `json:"gap,omitempty"`
	// Emptying says that the table is being emptied, to start over.
	Emptying bool `json:"emptying,omitempty"`
}

// stopError is an error that stops a projection for good.
type stopError struct{ cause error }

func (e stopError) Error() string { return e.cause.Error() }
func (e stopError) Unwrap() error { return e.cause }

// wake starts the job, unless it runs already or waits after a failure.
func (r *Running) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again = true
	if r.busy || r.stopped || r.fatal || r.timer != nil {
		return
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.background.Err() == nil {
		r.busy = true
		r.c.inBackground(r.run)
	}
}

// run applies what there is.
func (r *Running) run() {
	for r.ctx.Err() == nil {
		more, err := r.step(r.ctx)
		if !r.stepped(more, err) {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	r.wakeAll()
}

// stepped notes how a step went. It says whether to go on.
func (r *Running) stepped(more bool, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.status
	s.Position, s.Rebuilding = r.job.cursor.Position, r.job.cursor.Emptying
	var stop stopError
	switch {
	case r.ctx.Err() != nil:
		return true // to the end
	case err == nil:
		s.Err, s.Failures, s.NextTry = nil, 0, time.Time{}
		if !s.Rebuilding && !r.rebuild {
			s.Through = max(s.Through, s.Position)
		}
		r.wakeAll()
		if more || r.again || r.rebuild { // asked for in the middle of the step
			return true
		}
		r.busy = false
		return false
	case errors.As(err, &stop):
		if r.rebuild {
			return true
		}
		r.fatal = true
		s.Err, s.NextTry = fmt.Errorf("projection %q: %w", r.p.Name, stop.cause), time.Time{}
		r.c.sys.Logger().Error("a projection has stopped", "projection", r.p.Name, "position", s.Position, "error", err)
	default:
		pause := r.c.pauseAfter(s.Failures)
		s.Err, s.NextTry = fmt.Errorf("projection %q: %w", r.p.Name, err), r.c.sys.Now().Add(pause)
		r.timer = r.c.sys.After(pause, r.retry)
		r.c.sys.Logger().Warn("a projection failed and is tried again", "projection", r.p.Name, "position", s.Position, "error", err, "next_try_in", pause)
	}
	s.Failures++
	r.busy = false
	r.wakeAll()
	return false
}

// pauseAfter is the pause after so many failures before this one.
func (c *Committer) pauseAfter(failures int) time.Duration {
	pause := c.cfg.MinBackoff
	for range failures {
		if pause >= c.cfg.MaxBackoff {
			break
		}
		pause *= 2
	}
	return min(pause, c.cfg.MaxBackoff)
}

func (r *Running) retry() {
	r.mu.Lock()
	r.timer = nil
	r.mu.Unlock()
	r.wake()
}

// step does one bounded thing. It says whether there is more to do.
func (r *Running) step(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	rebuild := r.rebuild
	r.mu.Unlock()
	if !r.job.known || rebuild {
		if err := r.load(ctx, rebuild); err != nil {
			return false, err
		}
	}
	if r.job.cursor.Emptying {
		return true, r.empty(ctx)
	}
	return r.advance(ctx)
}

// load reads the cursor, makes it when there is none, and begins a rebuild that
// was asked for.
func (r *Running) load(ctx context.Context, rebuild bool) error {
	j := &r.job
	rec, err := r.c.readSettled(ctx, r.key)
	base, errBase := r.c.store.Position(ctx)
	switch {
	case errBase != nil:
		return errBase
	case err == nil:
		err = decodeCursor(rec, &j.cursor)
	case errors.Is(err, ErrNotFound):
		j.cursor, err = cursor{Position: r.p.From.after}, nil
	}
	unreadable := errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer)
	switch {
	case unreadable && !rebuild:
		return stopError{fmt.Errorf("its cursor cannot be read; Rebuild starts over: %w", err)}
	case unreadable:
		if o := r.c.commit1(ctx, Unit{Key: r.key, Delete: true, Force: true}); o.Err != nil {
			return o.Err
		}
		rec = snapshot.Record{}
	case err != nil:
		return err
	}
	if mutant.On(mutant.ProjectionSkipsOne) && rec.Revision > 1 {
		j.cursor.Position++
	}
	j.life, j.revision, j.saved = rec.Life, rec.Revision, j.cursor.Position
	r.mu.Lock()
	j.base = max(j.base, base)
	r.mu.Unlock()
	next := j.cursor
	if rebuild {
		next = cursor{Emptying: true}
	}
	if j.revision == 0 || rebuild {
		if err := r.commit(ctx, next, nil); err != nil {
			return err
		}
	}
	j.known, j.few = true, 0
	if rebuild {
		r.mu.Lock()
		r.rebuild = false
		r.mu.Unlock()
	}
	return nil
}

func decodeCursor(rec snapshot.Record, into *cursor) error {
	var c cursor
	if rec.Schema > 0 {
		return fmt.Errorf("the cursor has schema version %d: %w", rec.Schema, snapshot.ErrNewer)
	}
	if err := json.Unmarshal(rec.State, &c); err != nil {
		return fmt.Errorf("the cursor is no JSON (%v): %w", err, snapshot.ErrCorrupt)
	}
	*into = c
	return nil
}

// commit saves the cursor with rows of the table.
func (r *Running) commit(ctx context.Context, next cursor, rows []RowOp) error {
	j := &r.job
	state, err := json.Marshal(next)
	if err != nil {
		return err
	}
	rev := j.revision + 1
	o := r.c.commit1(ctx, Unit{Key: r.key, Life: j.life, Expect: j.revision, Rows: rows, Record: &snapshot.Record{
		Revision: rev, Reserved: rev, Changed: r.c.sys.Now().UTC(), Codec: "json", State: state,
	}})
	if o.Err != nil {
		j.known = j.known && errors.Is(o.Err, ErrInvalid)
		return fmt.Errorf("commit the table through position %d: %w", next.Position, o.Err)
	}
	j.life, j.revision, j.cursor, j.saved = o.Life, rev, next, next.Position
	return nil
}

// saveCursor saves a cursor that has passed over positions since it was saved.
// When it fails these are read again some time.
func (r *Running) saveCursor(ctx context.Context) {
	if j := &r.job; j.known && j.cursor.Position > j.saved {
		_ = r.commit(ctx, j.cursor, nil)
	}
}

// advance applies the next changes.
func (r *Running) advance(ctx context.Context) (more bool, err error) {
	j := &r.job
	r.mu.Lock()
	r.again = false
	r.mu.Unlock()
	r.c.mu.Lock()
	through := max(j.base, r.c.position)
	r.c.mu.Unlock()

	limit := min(j.pages.limit(), r.p.Batch)
	changes, err := r.c.store.Log(ctx, j.cursor.Position, limit)
	if err != nil {
		return false, fmt.Errorf("read the journal behind position %d: %w", j.cursor.Position, err)
	}
	j.pages.saw(changes)
	if err := r.checkGap(ctx); err != nil {
		return false, err
	}
	if len(changes) == 0 {
		r.arrived(through)
		return false, nil
	}
	whole := len(changes) < limit
	changes, cut, err := r.readable(changes)
	if err != nil {
		return false, err
	}
	if err := r.apply(ctx, changes, &cut); err != nil {
		return false, err
	}
	if whole && !cut {
		r.arrived(through)
		return false, nil
	}
	return true, nil
}

// arrived notes that the journal was read to its end, which was at least so
// far.
func (r *Running) arrived(through uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.rebuild {
		r.status.Through = max(r.status.Through, through)
	}
}

// checkGap finds out, behind a read, whether what was read may have been
// incomplete.
func (r *Running) checkGap(ctx context.Context) error {
	j := &r.job
	mark, err := r.c.trimmedThrough(ctx)
	if err != nil || mark <= max(j.cursor.Position, j.cursor.Gap) {
		return err
	}
	from := max(j.cursor.Position, j.cursor.Gap)
	if r.p.Gap == nil {
		return stopError{fmt.Errorf("%w: of those behind position %d and not behind %d", ErrGap, from, mark)}
	}
	if err := guarded(func() error { return r.p.Gap(from, mark) }); err != nil {
		return stopError{fmt.Errorf("%w: of those behind position %d and not behind %d: %w", ErrGap, from, mark, err)}
	}
	j.cursor.Gap = mark
	return nil
}

// readable returns the changes before the first damaged one, or, when that is
// the first and is skipped, those behind it. cut says that not all were
// returned.
func (r *Running) readable(changes []Change) (ok []Change, cut bool, err error) {
	damaged := func(c Change) bool { return c.Err != nil }
	for len(changes) > 0 && damaged(changes[0]) {
		c := changes[0]
		if r.p.OnDamaged == nil {
			return nil, false, stopError{fmt.Errorf("the change at position %d cannot be read: %w", c.Position, c.Err)}
		}
		if err := guarded(func() error { return r.p.OnDamaged(c) }); err != nil {
			return nil, false, stopError{fmt.Errorf("the damaged change at position %d: %w", c.Position, err)}
		}
		r.job.cursor.Position = c.Position
		changes = changes[1:]
	}
	if i := slices.IndexFunc(changes, damaged); i >= 0 {
		return changes[:i], true, nil
	}
	return changes, false, nil
}

// apply hands changes to Apply and commits what it made of them. When the table
// becomes too large for a unit it does so for the first ones alone, and sets
// cut.
func (r *Running) apply(ctx context.Context, changes []Change, cut *bool) error {
	j := &r.job
	if n := j.few; n > 0 && n < len(changes) {
		changes, *cut = changes[:n], true
	}
	for {
		if len(changes) == 0 {
			return r.pass(ctx, j.cursor.Position)
		}
		last := changes[len(changes)-1].Position
		wanted := r.wanted(changes)
		if len(wanted) == 0 {
			return r.pass(ctx, last)
		}
		if mutant.On(mutant.CursorBeforeTable) {
			_ = r.commit(ctx, cursor{Position: last, Gap: j.cursor.Gap}, nil)
		}
		t := &Table{r: r, values: map[string][]byte{}}
		err := guarded(func() error { return r.p.Apply(ctx, t, wanted) })
		if err == nil {
			err = t.err
		}
		if err != nil {
			return fmt.Errorf("apply the changes behind position %d: %w", j.cursor.Position, err)
		}
		if t.tooLarge() && len(changes) > 1 {
			j.few = (len(changes) + 1) / 2
			changes, *cut = changes[:j.few], true
			continue
		}
		next := j.cursor
		next.Position = last
		if err := r.commit(ctx, next, t.rows()); err != nil {
			return err
		}
		if j.few *= 2; j.few > r.p.Batch {
			j.few = 0
		}
		return nil
	}
}

// wanted returns those of the changes that Apply wants, copied.
func (r *Running) wanted(changes []Change) []Change {
	out := make([]Change, 0, len(changes))
	for _, c := range changes {
		if r.p.Pods == nil || slices.Contains(r.p.Pods, c.Key.Pod) {
			out = append(out, c)
		}
	}
	return out
}

// pass moves the cursor over what there was nothing to apply of.
func (r *Running) pass(ctx context.Context, position uint64) error {
	next := r.job.cursor
	next.Position = position
	if position < r.job.saved+lazyCursor {
		r.job.cursor = next
		return nil
	}
	return r.commit(ctx, next, nil)
}

// empty removes some rows of the table; when there are none it begins anew.
func (r *Running) empty(ctx context.Context) error {
	rows, err := r.c.store.Rows(ctx, viewKind, r.before(""), viewRows/2)
	if err != nil {
		return fmt.Errorf("read the table to empty it: %w", err)
	}
	var gone []RowOp
	for i := range rows {
		if rows[i].Key != r.key {
			break
		}
		gone = append(gone, RowOp{Kind: viewKind, ID: rows[i].ID, Delete: true})
	}
	return r.commit(ctx, cursor{Emptying: len(gone) > 0}, gone)
}
