package commitlog_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
	"github.com/twinsrv/twinsrv/persist/memory"
)

func TestMissingLog(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a")
	lost := w.restarted()
	lost.enter(logtest.New(), w.behind.Fork())
	lost.refused(t, commitlog.ErrMissing, "bring the folder back")
	require.NoError(t, s.Close())
	lost.enter(logtest.New(), w.behind.Fork())
	p.has(lost.mustOpen(t)) // everything had been folded
}

func TestLogOfAnotherStore(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	p.steps(w.mustOpen(t), "a", "b")
	fresh := w.restarted()
	fresh.enter(fresh.disk, memory.Open(memory.Config{}))
	fresh.refused(t, commitlog.ErrForeign, "move the folder of the log away")

	theirs, q := newWorld(2), newPen(t)
	s := theirs.mustOpen(t)
	q.steps(s, "x")
	mixed := w.restarted()
	mixed.enter(mixed.disk, theirs.behind.Fork())
	mixed.refused(t, commitlog.ErrForeign)
	require.NoError(t, s.Close())
	mixed.enter(w.disk.Copy(), theirs.behind.Fork())
	mixed.refused(t, commitlog.ErrForeign)
}

// TestOlderLog puts an older copy of the log in front of a store that has more.
func TestOlderLog(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a", "b")
	old := w.disk.Copy()
	p.steps(s, "c", "d")
	require.NoError(t, s.Fold(ctx))
	p.steps(s, "e") // which only the newer log has
	other := w.restarted()
	other.enter(old, w.behind.Fork())
	other.refused(t, commitlog.ErrDamaged, "older copy")
}

// TestOlderStore puts the log in front of an older copy of its store. Either that
// is refused, or the log has all that the copy lacks.
func TestOlderStore(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	refused, served := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{rt: rt, Assertions: require.New(rt), w: newWorld(1), models: []*memory.Store{memory.Open(memory.Config{MaxRecord: maxRecord})}}
		h.start()
		copied := rapid.IntRange(0, 20).Draw(rt, "copied at")
		var old *memory.Store
		for i := range rapid.IntRange(copied+1, 30).Draw(rt, "steps") {
			if i == copied {
				old = h.w.behind.Fork()
			}
			h.w.plan(none, 0)
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0:
				h.NoError(h.s.Fold(ctx))
			case 1:
				h.restart()
			case 2:
				h.crash()
			case 3:
				last, err := h.models[0].Position(ctx)
				h.NoError(err)
				b := persist.Batch{Position: last + 1}
				h.try(h.s.Import(ctx, b), func(m *memory.Store) { h.NoError(m.Import(ctx, b)) })
			default:
				h.commit()
			}
		}
		h.w.crash(true)
		other := h.w.restarted()
		other.enter(other.disk, old)
		s, err := other.open()
		if err != nil {
			h.True(errors.Is(err, commitlog.ErrForeign) || errors.Is(err, commitlog.ErrDamaged), "%v", err)
			refused++
			return
		}
		served++
		h.compare(s)
	})
	if !t.Failed() {
		require.Positive(t, refused)
		require.Positive(t, served)
	}
}

// TestStoreThatWentOnAlone puts a log that has gone on in front of a copy of its
// store that was let go, and has gone on by itself.
func TestStoreThatWentOnAlone(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a", "b")
	require.NoError(t, s.Close())
	alone, q := w.behind.Fork(), newPen(t)
	q.model = alone
	w.leave()
	p.steps(w.mustOpen(t), "a", "c")
	_, err := alone.Commit(ctx, q.create("b"))
	require.NoError(t, err)
	mixed := w.restarted()
	mixed.enter(mixed.disk, alone)
	mixed.refused(t, commitlog.ErrForeign, "move the folder of the log away")
}
