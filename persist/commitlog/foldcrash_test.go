package commitlog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// busy has in its log what deletes, makes again, goes on and removes rows.
func busy(t *testing.T, seed uint64) (*world, *pen, *commitlog.Store) {
	w, p := newWorld(seed), newPen(t)
	s := w.mustOpen(t)
	for i := range 6 {
		p.steps(s, fmt.Sprint("e", i))
	}
	require.NoError(t, s.Fold(ctx))
	p.write(s, p.gone("e0"))
	p.write(s, p.gone("e1"))
	p.steps(s, "e1", "e2", "e2", "new")
	u := p.next("e3", 10)
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "last", Delete: true}}
	p.write(s, u)
	p.write(s, p.next("e4", 0), p.next("short", 0))
	p.write(s, p.gone("short"))
	return w, p, s
}

func TestCrashBetweenTheStepsOfAFold(t *testing.T) {
	for seed := range uint64(6) {
		for skip := 0; ; skip++ {
			w, p, s := busy(t, seed)
			w.plan(dies, skip)
			err := s.Fold(ctx)
			if !w.fired {
				require.NoError(t, err)
				require.Greater(t, skip, 6)
				break
			}
			w.crash(seed%2 == 0)
			s = w.mustOpen(t)
			p.has(s)
			p.steps(s, "e0", "e5")
			p.has(s)
			require.NoError(t, s.Close())
			p.has(w.behind.Fork())
		}
	}
}

// TestCrashInTheFirstCommit has the store behind know of its log before that is
// used: when it does, the log must be there.
func TestCrashInTheFirstCommit(t *testing.T) {
	for seed := range uint64(40) {
		for skip := 0; ; skip++ {
			w, p := newWorld(seed), newPen(t)
			s := w.mustOpen(t)
			w.plan(dies, skip)
			_, err := s.Commit(ctx, p.create("a"))
			if !w.fired {
				require.NoError(t, err)
				break
			}
			w.crash(false)
			s = w.mustOpen(t)
			lines := imageIn(t, s)
			require.Contains(t, []string{"position 0", "position 1"}, lines[0])
			require.NoError(t, s.Close())
		}
	}
}

// TestReadsBetweenTheStepsOfAFold looks at the log after each failed step.
func TestReadsBetweenTheStepsOfAFold(t *testing.T) {
	for skip := 0; ; skip++ {
		w, p, s := busy(t, 7)
		w.plan(fails, skip)
		err := s.Fold(ctx)
		w.behind.down = false
		if !w.fired {
			require.NoError(t, err)
			return
		}
		p.has(s)
		p.steps(s, "e0", "e5")
		p.write(s, p.gone("e2"))
		p.has(s)
		require.NoError(t, s.Fold(ctx))
		p.has(s)
		p.has(w.behind.Fork())
	}
}

// TestTrimBesideHalfAFold trims when changes are in the store behind and their
// entity is not: its events stay.
func TestTrimBesideHalfAFold(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	u := p.next("a", 0)
	u.Changes[0].Event = true
	p.write(s, u)
	p.steps(s, "b", "c", "d", "e")
	for skip := 0; ; skip++ {
		other := w.restarted()
		s := other.mustOpen(t)
		other.plan(dies, skip)
		if err := s.Fold(ctx); err == nil {
			return
		}
		other.crash(true)
		s = other.mustOpen(t)
		model := p.model.Fork()
		want, err := model.Trim(ctx, 0, 1, 10)
		require.NoError(t, err)
		got, err := s.Trim(ctx, 0, 1, 10)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, imageIn(t, model), imageIn(t, s))
	}
}

// TestTrimAfterADeletion trims events that were folded of an entity that is only
// in the log gone: nobody would look at them again.
func TestTrimAfterADeletion(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	u := p.next("a", 0)
	u.Changes[0].Event = true
	p.write(s, u)
	require.NoError(t, s.Fold(ctx))
	p.write(s, p.gone("a"))
	got, err := s.Trim(ctx, 0, 1, 10)
	require.NoError(t, err)
	require.Equal(t, persist.Trimmed{Dropped: 1, Through: 1}, got)
}

// TestErrorsOfTheFoldAreNotTheCommits has the store behind refuse a fold for its
// data: a commit that waits for it has nothing to do with that.
func TestErrorsOfTheFoldAreNotTheCommits(t *testing.T) {
	p := newPen(t)
	behind := &ailing{Store: memory.Open(memory.Config{})}
	s, err := commitlog.Open("log", behind, newWorld(1).tiny())
	require.NoError(t, err)
	p.fill(s, 1<<10) // the store behind knows of the log
	for _, cause := range []error{persist.ErrInvalid, persist.ErrUnknown} {
		behind.ill.Store(&cause)
		p.fill(s, 5<<10)
		big := p.next("big", 100<<10)
		_, err = s.Commit(ctx, []persist.Unit{big})
		require.ErrorIs(t, err, persist.ErrUnavailable)
		require.NotErrorIs(t, err, cause)
	}
	p.has(s)
}

// picky is a store that refuses what a batch has of one entity, as for a damaged page.
type picky struct {
	*memory.Store
	refuses string
}

func (b *picky) Fold(ctx context.Context, f persist.Fold) error {
	for _, r := range append(f.Rows, f.RowsGone...) {
		if r.Key.Name == b.refuses {
			return fmt.Errorf("%w: a page is damaged", persist.ErrInvalid)
		}
	}
	return b.Store.Fold(ctx, f)
}

// TestAFoldNamesWhatIsRefused does so however large the batch is, and folds what
// comes before.
func TestAFoldNamesWhatIsRefused(t *testing.T) {
	for keys := 1; keys < 20; keys += 3 {
		p, behind := newPen(t), &picky{memory.Open(memory.Config{}), "c"}
		cfg := newWorld(1).tiny()
		cfg.FoldKeys = keys
		s, err := commitlog.Open("log", behind, cfg)
		require.NoError(t, err)
		p.steps(s, "a", "b", "c", "d")
		for range 2 {
			err = s.Fold(ctx)
			require.ErrorIs(t, err, persist.ErrInvalid)
			require.ErrorContains(t, err, "rooms/c")
			p.has(s)
		}
		of := behind.Fork()
		rows, err := of.RowsOf(ctx, persist.Key{Pod: "rooms", Name: "b"})
		require.NoError(t, err)
		require.NotEmpty(t, rows)
		behind.refuses = ""
		p.steps(s, "c")
		require.NoError(t, s.Fold(ctx))
		p.has(behind.Fork())
	}
}
