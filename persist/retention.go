package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The journal is kept in a window of count (CommitterConfig.KeepChanges) and of
// age (KeepFor). A job of its own drops what has left the window, a bounded
// number of changes at a time, so that commits wait for no more than that. It
// runs while there is something to drop, and is woken by commits and, for age,
// by a timer while there is something that grows old.
//
// Age is judged by a time of retention's own, so that a clock which jumps does
// not empty the journal:
//
//   - It begins at the time of about the newest changes that are there, and
//     follows the system's no faster than catchUp times the time that its own
//     timers measure. A clock that is wrong for a time t costs at most
//     catchUp*t of history.
//   - It never goes back, but nothing is dropped that is young by the system's
//     time either.
//   - Changes go in order. One whose time is in the future, or cannot be read,
//     goes with the first behind it whose time can be told.
const (
	trimChunk    = 1024
	maxTrimChunk = 16 * trimChunk
	catchUp      = 16
	maxLook      = time.Hour
	minLook      = 50 * time.Millisecond
	maxAhead     = 64 // pages that one round of judging by age reads
)

// retention is what the committer knows of the journal's window. Its first
// fields are guarded by Committer.mu, the others are the running job's.
type retention struct {
	running bool
	timer   actor.Timer
	slept   time.Duration // what the timer has measured for the next run; 0: none
	retry   bool          // the last run failed; only the timer starts the next
	through uint64        // Trim has looked so far; 0 after a start
	ended   endedLives    // whose events Trim has passed and kept
	told    uint64        // the journal's mark: what is not behind it may be gone
	asked   bool          // told is right: the store's mark has been read
	judged  uint64        // the changes through here were there when age was judged last

	mark  markRecord
	known bool      // mark is what the store has
	clock time.Time // the time of retention's own; zero while there is nothing to judge
	young time.Time // the time of the oldest change that stays; zero: not known
	more  bool      // there is more to judge than one round does
	pages pageSize
}

// ageFromNow begins to look for what is too old.
func (c *Committer) ageFromNow() {
	if c.cfg.KeepFor <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retainIn(minLook)
}

// stopAging ends the timer.
func (c *Committer) stopAging() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.retention.timer; t != nil {
		t.Stop()
		c.retention.timer = nil
	}
}

// retainWhenDue starts the job when commits have given it something to do. mu
// is held.
func (c *Committer) retainWhenDue() {
	r := &c.retention
	if r.running || r.retry {
		return
	}
	ages := c.cfg.KeepFor > 0 && r.timer == nil && c.journaled > r.judged
	if _, due := c.beyondCount(c.position); due || ages {
		c.retain()
	}
}

// beyondCount returns through where changes have left the window of count, and
// whether they are worth a round. mu is held.
func (c *Committer) beyondCount(position uint64) (through uint64, due bool) {
	if position <= c.cfg.KeepChanges {
		return 0, false
	}
	through = position - c.cfg.KeepChanges
	return through, through >= c.retention.through+trimChunk
}

// retainIn starts the job d from now. mu is held.
func (c *Committer) retainIn(d time.Duration) {
	if c.background.Err() != nil {
		return
	}
	r := &c.retention
	if r.timer != nil {
		r.timer.Stop()
	}
	var self actor.Timer
	self = c.sys.After(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.timer != self || r.running {
			return
		}
		r.timer, r.slept, r.retry = nil, d, false
		c.retain()
	})
	r.timer = self
}

// retain starts the job. mu is held.
func (c *Committer) retain() {
	if c.background.Err() != nil {
		return
	}
	c.retention.running, c.retention.judged = true, c.journaled
	c.inBackground(func() {
		wait, err := c.retainAll(c.background)
		c.mu.Lock()
		defer c.mu.Unlock()
		r := &c.retention
		r.running = false
		if err != nil {
			r.retry = true
			wait = c.cfg.MaxBackoff
		}
		if wait > 0 {
			c.retainIn(wait)
		}
		c.retainWhenDue() // for what was committed meanwhile
	})
}

// retainAll drops what is outside the window. It returns when to look again, 0
// for when something is committed.
func (c *Committer) retainAll(ctx context.Context) (time.Duration, error) {
	err := c.Down()
	if err == nil {
		err = c.retainCount(ctx)
	}
	var wait time.Duration
	if err == nil && c.cfg.KeepFor > 0 {
		wait, err = c.retainAge(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.sys.Logger().Warn("the journal could not be trimmed; it grows until this succeeds", "error", err, "next_try_in", c.cfg.MaxBackoff)
	}
	return wait, err
}

func (c *Committer) retainCount(ctx context.Context) error {
	c.mu.Lock()
	through, due := c.beyondCount(c.position)
	c.mu.Unlock()
	if !due {
		return nil
	}
	// A store may begin with a high position, and give many that are no changes. What
	// was never there is not marked as gone.
	r := &c.retention
	first, err := c.store.Log(ctx, r.through, 1)
	if err != nil {
		return err
	}
	if len(first) == 0 || first[0].Position > through {
		c.mu.Lock()
		r.through = through
		c.mu.Unlock()
		return nil
	}
	return c.trim(ctx, through)
}

// endedLives are lives of event-sourced entities that have ended. Their events
// go before the change that says so: without it they would make the entity
// again.
type endedLives struct {
	from  uint64 // no event of them is at an earlier position; 0: there are none
	first uint64 // the position of the first change that ended one
}

func (e *endedLives) add(other endedLives) {
	if e.from == 0 {
		*e = other
	} else if other.from > 0 {
		e.from, e.first = min(e.from, other.from), min(e.first, other.first)
	}
}

// ends notes that a unit has ended a life that has events. mu is not held.
func (c *Committer) ends(u *Unit, o Outcome) {
	if !u.Delete || len(u.Changes) == 0 || !u.Changes[0].Event {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retention.ended.add(endedLives{from: max(o.Life, 1), first: o.Position})
}

// trimEnded drops the events of ended lives that Trim has passed while they
// lived, before it comes to the change that ended the first of them. All that
// have ended by now go in one pass; so there is one a window at most. Till then
// such a life may lack its middle: what Trim had not passed goes as it comes.
func (c *Committer) trimEnded(ctx context.Context, through uint64) error {
	c.mu.Lock()
	ended, passed := c.retention.ended, c.retention.through
	if ended.from == 0 || ended.first > through {
		c.mu.Unlock()
		return nil
	}
	c.retention.ended = endedLives{}
	c.mu.Unlock()
	for after := ended.from - 1; after < passed; {
		t, err := c.store.Trim(ctx, after, passed, maxTrimChunk)
		if err != nil {
			c.mu.Lock()
			c.retention.ended.add(ended)
			c.mu.Unlock()
			return err
		}
		after = max(t.Through, after+1)
	}
	return nil
}

// trim drops the changes through a position, having marked that they go.
func (c *Committer) trim(ctx context.Context, through uint64) error {
	if err := c.markTrimmed(ctx, through); err != nil {
		return err
	}
	if err := c.trimEnded(ctx, through); err != nil {
		if !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			c.fault(err)
		}
		return err
	}
	for {
		c.mu.Lock()
		after := c.retention.through
		backlog := c.position - min(c.position, after)
		c.mu.Unlock()
		if after >= through {
			return nil
		}
		limit := min(max(trimChunk, int(min(backlog, maxTrimChunk*4)/4)), maxTrimChunk)
		t, err := c.store.Trim(ctx, after, through, limit)
		if err != nil {
			if !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
				c.fault(err)
			}
			return err
		}
		if t.Through <= after {
			t.Through = through // there was nothing, and it has not said so
		}
		c.mu.Lock()
		c.retention.through = t.Through
		c.mu.Unlock()
	}
}

// retainAge drops what is too old. It returns when to look again; 0 when there
// is nothing that grows old.
func (c *Committer) retainAge(ctx context.Context) (time.Duration, error) {
	r := &c.retention
	c.mu.Lock()
	slept := r.slept
	r.slept = 0
	ahead := r.through
	c.mu.Unlock()
	now := c.sys.Now().Round(0)
	if err := c.advance(ctx, now, slept); err != nil || r.clock.IsZero() {
		return 0, err
	}
	cutoff := now.Add(-c.cfg.KeepFor)
	if r.clock.Before(now) {
		cutoff = r.clock.Add(-c.cfg.KeepFor)
	}
	if r.young.IsZero() || !r.young.After(cutoff) {
		old, err := c.oldest(ctx, ahead, now, cutoff)
		if err == nil && old > ahead {
			err = c.trim(ctx, old)
		}
		if err != nil {
			return 0, err
		}
	}
	look := min(max(c.cfg.KeepFor/(2*catchUp), minLook), maxLook)
	switch {
	case r.clock.IsZero():
		return 0, nil
	case r.more:
		return minLook, nil
	}
	return look, nil // not for each change that grows old: every round costs commits
}

// advance moves retention's time towards now. It is zero afterwards when the
// journal is empty.
func (c *Committer) advance(ctx context.Context, now time.Time, slept time.Duration) error {
	r := &c.retention
	if r.clock.IsZero() {
		newest, err := c.aboutNewest(ctx, now)
		r.clock, r.young = newest, time.Time{}
		return err
	}
	if r.clock.Before(now) {
		if r.clock = r.clock.Add(catchUp * slept); r.clock.After(now) {
			r.clock = now
		}
	}
	return nil
}

// aboutNewest is the time that stands in the middle of those of some of the
// newest changes; now when none can be read, and zero when there is none.
func (c *Committer) aboutNewest(ctx context.Context, now time.Time) (time.Time, error) {
	const sample = 17
	position, err := c.store.Position(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for span := uint64(sample); ; span *= 8 {
		after := position - min(position, span)
		changes, err := c.store.Log(ctx, after, sample)
		if err != nil {
			return time.Time{}, err
		}
		var times []time.Time
		for i := range changes {
			if changes[i].Err == nil {
				times = append(times, changes[i].Time.Round(0))
			}
		}
		slices.SortFunc(times, time.Time.Compare)
		switch {
		case len(times) > 0:
			return times[len(times)/2], nil
		case len(changes) > 0 && after == 0:
			return now, nil
		case after == 0:
			return time.Time{}, nil
		}
	}
}

// oldest returns through where all changes behind a position are too old. It
// notes the time of the first that is not; when there is none, and nothing is
// left that could grow old, the clock is zero.
func (c *Committer) oldest(ctx context.Context, after uint64, now, cutoff time.Time) (old uint64, err error) {
	r := &c.retention
	ahead, waiting := after, false
	r.young, r.more = time.Time{}, false
	for range maxAhead {
		limit := r.pages.limit()
		changes, err := c.store.Log(ctx, ahead, limit)
		if err != nil {
			return 0, err
		}
		r.pages.saw(changes)
		for i := range changes {
			switch t := changes[i].Time; {
			case changes[i].Err != nil || t.After(now):
				waiting = true
			case t.After(cutoff):
				r.young = t
				return old, nil
			default:
				old, waiting = changes[i].Position, false
			}
		}
		if len(changes) < limit {
			if !waiting {
				r.clock = time.Time{}
			}
			return old, nil
		}
		ahead = changes[len(changes)-1].Position
	}
	r.more = old > after // else it is the future, for whose beginning it waits
	return old, nil
}

// markRecord is the record of the journal's mark.
type markRecord struct {
	life, revision, through uint64
}

// markKey is where the store keeps through which position the journal may have
// been trimmed, so that whoever comes back to it knows what it may have missed.
func markKey() Key { return Key{Pod: "$journal", Name: "trimmed"} }

type markState struct {
	Through uint64 `json:"through"`
}

// TrimmedThrough returns the position through which a store's changes may have
// been dropped: Committer notes it before it drops any. It is 0 as long as none
// was.
func TrimmedThrough(ctx context.Context, store PersistenceService) (uint64, error) {
	m, err := loadMark(ctx, store)
	return m.through, err
}

// trimmedThrough returns the mark: changes that are not behind it may be gone.
// It reads the store once; then this committer alone moves the mark.
func (c *Committer) trimmedThrough(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	told, asked := c.retention.told, c.retention.asked
	c.mu.Unlock()
	if asked {
		return told, nil
	}
	m, err := loadMark(ctx, c.store)
	if err != nil {
		return 0, err
	}
	c.tellMark(m.through)
	return c.trimmedThrough(ctx)
}

func loadMark(ctx context.Context, store PersistenceService) (markRecord, error) {
	r, err := store.Load(ctx, markKey())
	if errors.Is(err, ErrNotFound) {
		return markRecord{}, nil
	}
	if err != nil {
		return markRecord{}, fmt.Errorf("read through where the journal was trimmed: %w", err)
	}
	var s markState
	if err := json.Unmarshal(r.State, &s); err != nil {
		return markRecord{}, fmt.Errorf("read through where the journal was trimmed: %w: %w", snapshot.ErrCorrupt, err)
	}
	return markRecord{life: r.Life, revision: r.Revision, through: s.Through}, nil
}

// markTrimmed moves the mark forward before anything is dropped.
func (c *Committer) markTrimmed(ctx context.Context, through uint64) error {
	r := &c.retention
	if !r.known {
		if err := c.Settle(ctx); err != nil {
			return err
		}
		m, err := loadMark(ctx, c.store)
		switch {
		case errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer):
			// It is made anew: everything up to here may have been dropped.
			if o := c.commit1(ctx, Unit{Key: markKey(), Delete: true, Force: true}); o.Err != nil {
				return o.Err
			}
			m = markRecord{}
		case err != nil:
			return err
		}
		r.mark, r.known = m, true
	}
	if through <= r.mark.through {
		c.tellMark(r.mark.through)
		return nil
	}
	state, err := json.Marshal(markState{Through: through})
	if err != nil {
		return err
	}
	next := r.mark.revision + 1
	o := c.commit1(ctx, Unit{Key: markKey(), Life: r.mark.life, Expect: r.mark.revision, Record: &snapshot.Record{
		Revision: next, Reserved: next, Changed: c.sys.Now().UTC(), Codec: "json", State: state,
	}})
	if o.Err != nil {
		r.known = false
		return fmt.Errorf("note through where the journal is trimmed: %w", o.Err)
	}
	r.mark = markRecord{life: o.Life, revision: next, through: through}
	c.tellMark(through)
	return nil
}

func (c *Committer) tellMark(through uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retention.told, c.retention.asked = max(c.retention.told, through), true
}
