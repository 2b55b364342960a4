package commitlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// plan is how far the folding of a generation is. Its changes go into the
// store's log first, in the order of positions, so that pages are filled one
// after the other; then its entities, in the order of keys, so that those of one
// page are written together; then its rows. What the store has in between is
// hidden by the generation, which is read before it.
type plan struct {
	gen      *generation
	mark     persist.Mark
	entities []*dirty
	rows     []*dirtyRow

	changes, entity, filed, row int  // up to here each is folded; filed is of the entity's changes
	begun                       bool // the entity's record is folded
	told                        bool // the store knows of all groups that it has a part of
	total                       int64
}

func newPlan(g *generation, log uint64) *plan {
	p := &plan{gen: g, mark: persist.Mark{Log: log, Through: g.last}}
	g.sorted.Ascend(func(d *dirty) bool { p.entities = append(p.entities, d); return true })
	g.rows.Ascend(func(r *dirtyRow) bool { p.rows = append(p.rows, r); return true })
	p.total = int64(2*len(g.log) + len(p.entities) + len(p.rows))
	return p
}

// done is how many of the total are folded, roughly.
func (p *plan) done() int64 { return int64(2*p.changes + p.entity + p.row) }

// batch returns the next one of at most so many parts, and the plan as it is
// when that is folded.
func (p *plan) batch(parts int) (persist.Fold, plan, bool) {
	next, f, size := *p, persist.Fold{}, 0
	room := func() bool { return parts > 0 && size < foldBytes }
	for ; next.changes < len(p.gen.log) && room(); next.changes++ {
		c := p.gen.log[next.changes]
		f.Changes = append(f.Changes, *c)
		parts, size = parts-1, size+len(c.Data)
	}
	for next.changes == len(p.gen.log) && next.entity < len(p.entities) && room() {
		d := p.entities[next.entity]
		if !next.begun {
			next.begun = true
			parts, size = parts-1, size+d.fold(&f)
		}
		for ; next.filed < len(d.changes) && parts > 0; next.filed++ {
			f.Filed = append(f.Filed, *d.changes[next.filed])
			parts--
		}
		if next.filed == len(d.changes) {
			next.entity, next.filed, next.begun = next.entity+1, 0, false
		}
	}
	for ; next.entity == len(p.entities) && next.changes == len(p.gen.log) && next.row < len(p.rows) && room(); next.row++ {
		r := p.rows[next.row]
		row := persist.Row{Kind: r.kind, Key: r.key, ID: r.id, Value: r.value}
		if r.gone {
			f.RowsGone = append(f.RowsGone, row)
		} else {
			f.Rows = append(f.Rows, row)
		}
		parts, size = parts-1, size+len(r.value)
	}
	last := mutant.On(mutant.LogFreesUnfolded) || next.changes == len(p.gen.log) && next.entity == len(p.entities) && next.row == len(p.rows)
	if last {
		f.Position, f.Mark = p.gen.position, p.mark
	}
	return f, next, last
}

// fold adds the entity's record to a batch, and returns its size.
func (d *dirty) fold(f *persist.Fold) int {
	if d.cleared && !mutant.On(mutant.LogForgetsDeletions) {
		f.Deleted = append(f.Deleted, d.key)
	}
	if d.record == nil {
		return 0
	}
	f.Records = append(f.Records, persist.Stored{Key: d.key, Record: *d.record})
	return len(d.record.State)
}

// foldStep folds one batch of the frozen generation, if there is one. It does not
// wait until the store behind is copied for a backup: then it fails with a
// persist.BusyError.
func (s *Store) foldStep(ctx context.Context) error {
	if err := take(ctx, s.folds); err != nil {
		return err
	}
	defer release(s.folds)
	if s.busy != nil {
		select {
		case <-s.busy.Over:
			s.busy = nil
		default:
			return s.busy
		}
	}
	s.mu.RLock()
	frozen, reached := s.frozen, uint64(0)
	if frozen != nil {
		reached = s.active.last
	}
	s.mu.RUnlock()
	if frozen == nil {
		return nil
	}
	if s.plan == nil {
		s.plan = newPlan(frozen, s.log)
	}
	last, err := s.foldBatch(ctx, reached)
	if errors.As(err, &s.busy) {
		return err
	}
	if err != nil {
		return s.foldFailed(err)
	}
	s.toFold.Store(s.plan.total - s.plan.done())
	if last {
		s.plan = nil
		s.toFold.Store(0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = nil
	if last {
		s.base = max(s.base, frozen.position)
		s.free = append(s.free, frozen.segments...)
		s.frozen = nil
	}
	return nil
}

// foldBatch folds the next batch of the plan, and returns whether that was the
// last one. What the store behind refuses for its data is halved until what it
// refuses stands alone, so that the error names it.
func (s *Store) foldBatch(ctx context.Context, reached uint64) (last bool, err error) {
	for parts := s.cfg.FoldKeys; ; parts = (parts + 1) / 2 {
		batch, next, last := s.plan.batch(parts)
		if !s.plan.told && !last {
			if batch.Mark, err = s.behind.Mark(ctx); err != nil {
				return false, err
			}
		}
		if !s.plan.told || last {
			batch.Mark.Reached, next.told = reached, true
		}
		err = s.behind.Fold(ctx, batch)
		switch {
		case err == nil:
			*s.plan = next
			return last, nil
		case !errors.Is(err, persist.ErrInvalid):
			return false, err
		case parts == 1:
			return false, fmt.Errorf("what the log has of %s is durable there and cannot be folded; once the log is full, all changes are refused: %w", subject(&batch), err)
		}
	}
}

// subject is the entity of a batch of one part.
func subject(f *persist.Fold) persist.Key {
	switch {
	case len(f.Changes) > 0:
		return f.Changes[0].Key
	case len(f.Deleted) > 0:
		return f.Deleted[0]
	case len(f.Records) > 0:
		return f.Records[0].Key
	case len(f.Filed) > 0:
		return f.Filed[0].Key
	case len(f.Rows) > 0:
		return f.Rows[0].Key
	case len(f.RowsGone) > 0:
		return f.RowsGone[0].Key
	}
	return persist.Key{}
}

func (s *Store) foldFailed(err error) error {
	err = fmt.Errorf("fold the commit log %s: %w", s.dir, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
	return err
}

// freeze has the active generation folded and begins another. The caller has
// the turn, and nothing is frozen. When no segment can be begun, folding is what
// frees one: so the next commit tries again.
func (s *Store) freeze() {
	if err := s.beginSegment(); err != nil {
		s.freezeLast()
		return
	}
	s.freezeFor(newGeneration(s.group, s.current))
}

// freezeLast is freeze without a segment for what comes.
func (s *Store) freezeLast() {
	s.current = nil
	s.freezeFor(newGeneration(s.group))
}

func (s *Store) freezeFor(next *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen, s.active = s.active, next
	s.plannedFor.Store(int64(2*len(s.frozen.log) + len(s.frozen.entities) + s.frozen.rows.Len()))
	s.toFold.Store(s.plannedFor.Load())
	s.nudge()
}

// state tells what there is to fold. failing is why the last try failed.
func (s *Store) state() (frozen, active bool, since time.Time, failing error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.frozen != nil, s.active != nil && !s.active.empty(), s.since, s.failing
}

// makeRoom sees to it that the next so many bytes fit the current segment, or
// that there is none. While something is frozen, commits may fill half a segment
// more than is folded of it; then each of them folds a batch itself. The caller
// has the turn.
func (s *Store) makeRoom(ctx context.Context, bytes int64) error {
	switch {
	case s.current == nil:
		return nil
	case s.current.end+bytes <= s.cfg.SegmentSize:
		if s.ahead(bytes) {
			return s.help(ctx)
		}
		return nil
	}
	for {
		frozen, _, _, _ := s.state()
		if !frozen {
			s.freeze()
			return nil
		}
		if err := s.foldStep(ctx); isBusy(err) {
			return fmt.Errorf("the commit log is full: %w", err)
		} else if err != nil {
			// The error's own kind is that of the fold, and not of the commit.
			return fmt.Errorf("%w: the commit log is full, nothing was done: %v", undone(err), err)
		}
	}
}

// isBusy says whether a fold would have to wait for a backup.
func isBusy(err error) bool {
	var busy *persist.BusyError
	return errors.As(err, &busy)
}

// ahead says that commits are too far ahead of the folding.
func (s *Store) ahead(bytes int64) bool {
	left, total := s.toFold.Load(), s.plannedFor.Load()
	if left == 0 || total == 0 {
		return false
	}
	written := float64(s.current.end+bytes) / float64(s.cfg.SegmentSize)
	return written > 0.5+float64(total-left)/float64(total)
}

// help folds a batch, unless folding fails: there is room yet.
func (s *Store) help(ctx context.Context) error {
	if _, _, _, failing := s.state(); failing != nil {
		return nil
	}
	if err := s.foldStep(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// drain folds everything. The caller has the turn.
func (s *Store) drain(ctx context.Context) error { return s.foldAll(ctx, s.freeze) }

func (s *Store) foldAll(ctx context.Context, freeze func()) error {
	for {
		frozen, active, _, _ := s.state()
		switch {
		case frozen:
			if err := s.foldStep(ctx); err != nil {
				return err
			}
		case active:
			freeze()
		default:
			return nil
		}
	}
}

// Fold folds everything that the log has.
func (s *Store) Fold(ctx context.Context) error {
	return persist.WhenFree(ctx, func() error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		defer release(s.turn)
		return s.drain(ctx)
	})
}
