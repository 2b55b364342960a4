package commitlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// growing has one segment that was made longer several times.
func growing(t *testing.T) (*world, *pen) {
	w, p := newWorld(1), newPen(t)
	w.segment = 1 << 20 // made longer by 64 KiB
	s := w.mustOpen(t)
	for i := range 14 {
		p.write(s, p.next(fmt.Sprint("e", i), i*i*260))
	}
	require.Equal(t, 256<<10, len(w.disk.Content("segment-1")))
	p.has(w.restarted().mustOpen(t))
	return w, p
}

// TestCutSegment cuts the only segment to any length: whenever a group is gone
// that was acknowledged, it is refused.
func TestCutSegment(t *testing.T) {
	w, p := growing(t)
	content := w.disk.Content("segment-1")
	groups := commitlog.Groups(content)
	cuts := map[int]bool{}
	around := func(at int) {
		for _, d := range []int{-16, -8, -1, 0, 1, 7, 8, 15, 16, 17} {
			cuts[min(max(at+d, 1), len(content)-1)] = true
		}
	}
	for at := 0; at < len(content); at += 4 << 10 {
		around(at)
	}
	for _, g := range groups {
		around(g.From)
		around(g.End)
	}
	for cut := range cuts {
		other := w.restarted()
		other.disk.Truncate("segment-1", int64(cut))
		if cut < 64 {
			other.refused(t, commitlog.ErrMissing, "segment-1", "restore a backup")
		} else if cut < groups[len(groups)-1].End {
			other.refused(t, commitlog.ErrDamaged, "segment-1", "restore a backup")
		} else if s, err := other.open(); err == nil {
			p.has(s)
		} else {
			require.ErrorIs(t, err, commitlog.ErrDamaged)
		}
	}
	w.disk.Truncate("segment-1", 0)
	w.refused(t, commitlog.ErrMissing)
}

// TestCutWhereTheFileWasMadeLonger cuts a segment where it was made longer, and a
// group ends there.
func TestCutWhereTheFileWasMadeLonger(t *testing.T) {
	const grown = 64 << 10
	for more := grown - 400; ; more += 4 {
		w, p := newWorld(1), newPen(t)
		w.segment = 1 << 20
		s := w.mustOpen(t)
		p.write(s, p.next("a", more))
		groups := commitlog.Groups(w.disk.Content("segment-1"))
		require.LessOrEqual(t, groups[0].Next, grown)
		if groups[0].Next < grown {
			continue
		}
		other := w.restarted()
		p.has(other.mustOpen(t))
		p.steps(s, "b")
		w.disk.Truncate("segment-1", grown)
		w.refused(t, commitlog.ErrDamaged, "made 131072 long")
		return
	}
}

// TestCutWhenAllIsFolded harms what is not needed.
func TestCutWhenAllIsFolded(t *testing.T) {
	w, p := growing(t)
	require.NoError(t, w.mustOpen(t).Close())
	for _, cut := range []int64{0, 64, 1000, 64 << 10, 100_000} {
		other := w.restarted()
		other.disk.Truncate("segment-1", cut)
		p.has(other.mustOpen(t))
	}
}

// TestOlderLogsOpen opens logs whose headers say nothing of their length, whole
// and with an end that is cut off, and goes on in the same files.
func TestOlderLogsOpen(t *testing.T) {
	w, p := growing(t)
	content := w.disk.Content("segment-1")
	groups := commitlog.Groups(content)
	for _, cut := range []int{groups[13].End, groups[13].Next, 230_000, len(content)} {
		other := w.restarted()
		other.disk.Put("segment-1", commitlog.Older(content[:cut]))
		s := other.mustOpen(t)
		p.has(s)
		require.NoError(t, s.Close())
		other.leave()
		s = other.mustOpen(t)
		units := newPen(t).create("later")
		units[0].Record.State = make([]byte, 100_000)
		_, err := s.Commit(ctx, units)
		require.NoError(t, err)
		want := imageIn(t, s)
		other.crash(false)
		require.Equal(t, want, imageIn(t, other.mustOpen(t)))
		names, err := other.disk.Names()
		require.NoError(t, err)
		for _, name := range names {
			harmed := other.restarted()
			harmed.disk.Truncate(name, 64)
			harmed.refused(t, commitlog.ErrDamaged)
		}
	}
}

// TestOlderLogBegunAnew begins a file anew in which an older program's first group
// was torn, and dies before another stands there: it is not taken for one that
// was begun in this use and cut off.
func TestOlderLogBegunAnew(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	before := p.image()
	p.write(s, p.next("a", 40_000))
	mark, err := w.behind.Mark(ctx)
	require.NoError(t, err)
	mark.Reached = 0
	require.NoError(t, w.behind.Fold(ctx, persist.Fold{Mark: mark}))
	w.disk.Put("segment-1", commitlog.Older(w.disk.Content("segment-1")[:300]))
	for skip := 0; ; skip++ {
		other := w.restarted()
		s := other.mustOpen(t)
		require.Equal(t, before, imageIn(t, s))
		other.plan(dies, skip)
		if _, err := s.Commit(ctx, newPen(t).create("b")); err == nil {
			require.Greater(t, skip, 3)
			return
		}
		other.crash(true)
		require.Contains(t, []string{"position 0", "position 1"}, imageIn(t, other.mustOpen(t))[0])
	}
}

// newestHarmed harms the newest segment in every way that leaves none of its
// groups: they are missed.
func newestHarmed(t *testing.T, w *world, name string) {
	t.Helper()
	for how, harm := range map[string]func(d *logtest.Disk){
		"removed": func(d *logtest.Disk) { d.Remove(name) },
		"emptied": func(d *logtest.Disk) { d.Truncate(name, 0) },
		"cut":     func(d *logtest.Disk) { d.Truncate(name, 64) },
		"shorter": func(d *logtest.Disk) { d.Truncate(name, 400) },
		"zeros": func(d *logtest.Disk) {
			b := d.Content(name)
			clear(b[64:])
			d.Put(name, b)
		},
	} {
		t.Run(how, func(t *testing.T) {
			other := w.restarted()
			harm(other.disk)
			_, err := other.open()
			require.Error(t, err)
			require.True(t, persistLogLost(err), "%v", err)
		})
	}
}

func persistLogLost(err error) bool {
	for _, kind := range []error{commitlog.ErrDamaged, commitlog.ErrMissing} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// TestFirstGroupIsMissed loses what only the newest segment had, and no segment
// before tells of.
func TestFirstGroupIsMissed(t *testing.T) {
	t.Run("of a log", func(t *testing.T) {
		w, p := newWorld(1), newPen(t)
		p.steps(w.mustOpen(t), "a")
		newestHarmed(t, w, "segment-1")
	})
	t.Run("after a stop in order", func(t *testing.T) {
		w, p := newWorld(1), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a")
		require.NoError(t, s.Fold(ctx))
		require.NoError(t, s.Close())
		w.leave()
		p.steps(w.mustOpen(t), "b")
		newestHarmed(t, w, "segment-1")
	})
	t.Run("when one file is used again", func(t *testing.T) {
		w, p := newWorld(1), newPen(t)
		w.disk.Full = 64 << 10
		s := w.mustOpen(t)
		p.steps(s, "a")
		require.NoError(t, s.Fold(ctx))
		p.steps(s, "b")
		newestHarmed(t, w, "segment-1")
	})
}

// TestWhatAFoldSaysOfTheLog folds while commits go on, and then loses the groups
// that the fold knew of, though not the file's length.
func TestWhatAFoldSaysOfTheLog(t *testing.T) {
	disk, p := logtest.New(), newPen(t)
	behind := &halting{Store: memory.Open(memory.Config{}), halted: make(chan struct{}), goOn: make(chan struct{}), folded: make(chan *memory.Store, 1)}
	s, err := commitlog.Open("log", behind, commitlog.Config{FoldKeys: 1, FoldAfter: time.Millisecond, Disk: disk, SegmentSize: 1})
	require.NoError(t, err)
	p.steps(s, "a")
	<-behind.halted
	p.steps(s, "b", "c")
	log := disk.Copy()
	close(behind.goOn)
	store := <-behind.folded
	require.NoError(t, s.Close())
	for i, g := range commitlog.Groups(log.Content("segment-2")) {
		b := log.Content("segment-2")
		clear(b[g.From:])
		harmed := newWorld(1)
		harmed.enter(log.Copy(), store)
		harmed.disk.Put("segment-2", b)
		harmed.refused(t, commitlog.ErrDamaged, fmt.Sprintf("ends with group %d, and the store knows that it had 3", i+1))
	}
}

// halting is a store that halts in its first fold, and keeps what it is when the
// first generation is folded.
type halting struct {
	*memory.Store
	halted, goOn chan struct{}
	folded       chan *memory.Store
	did          bool
}

func (h *halting) Fold(ctx context.Context, f persist.Fold) error {
	if len(f.Changes) > 0 && !h.did {
		h.did = true
		close(h.halted)
		<-h.goOn
	}
	err := h.Store.Fold(ctx, f)
	if h.did && f.Mark.Log != 0 && len(h.folded) == 0 && f.Mark.Through == 1 {
		h.folded <- h.Fork()
	}
	return err
}

// TestCrashWhereverALogGrows lets the process, or the machine, die at every
// operation of a log whose segments begin, grow, are folded and used again, and
// begin anew after a stop: it opens with what was acknowledged, and goes on.
func TestCrashWhereverALogGrows(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		for skip := 0; ; skip++ {
			w, p := newWorld(seed), newPen(t)
			w.segment = 1 << 20
			w.plan(dies, skip)
			tried, err := p.grow(w)
			if !w.fired {
				require.NoError(t, err)
				require.Greater(t, skip, 100)
				break
			}
			w.crash(seed%2 == 0)
			got := imageIn(t, w.mustOpen(t))
			if want := p.image(); tried != nil && got[0] != want[0] {
				_, err := p.model.Commit(ctx, tried)
				require.NoError(t, err)
			}
			require.Equal(t, p.image(), got, "seed %d, %d operations", seed, skip)
			w.crash(seed%4 < 2)
			s := w.mustOpen(t)
			p.has(s)
			p.write(s, p.next("later", 90_000))
			w.crash(false)
			p.has(w.mustOpen(t))
		}
	}
}

// A sync failed of a file that was made longer. One that succeeds later does not
// make that length durable by itself, which the header speaks of.
func TestAFileThatWasMadeLongerInVain(t *testing.T) {
	for seed := range uint64(40) {
		w, p := newWorld(seed), newPen(t)
		s := w.mustOpen(t)
		w.disk.Fail = failingSync
		_, err := s.Commit(ctx, []persist.Unit{p.next("a", 0)})
		require.ErrorIs(t, err, errStruck)
		w.disk.Fail = nil
		if seed%2 == 0 {
			w.crash(true)
			s = w.mustOpen(t)
		}
		p.steps(s, "b")
		w.crash(false)
		p.has(w.mustOpen(t))
	}
}

// A segment with groups could not be made longer: what the disk has of that file is
// not known any more, and nothing is written to it in this use.
func TestASegmentWithGroupsMadeLongerInVain(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	w.segment = 1 << 20
	s := w.mustOpen(t)
	p.steps(s, "a")
	w.disk.Fail = failingSync
	_, err := s.Commit(ctx, []persist.Unit{p.next("b", 70_000)})
	require.ErrorIs(t, err, errStruck)
	require.ErrorContains(t, err, "nothing was done")
	w.disk.Fail = nil
	_, err = s.Commit(ctx, []persist.Unit{p.next("b", 0)})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	before := w.disk.Content("segment-1")
	require.NoError(t, s.Reopen(ctx))
	p.steps(s, "b", "c")
	require.Len(t, commitlog.Groups(before), len(commitlog.Groups(w.disk.Content("segment-1"))))
	require.Len(t, commitlog.Groups(w.disk.Content("segment-2")), 2)
	w.crash(false)
	p.has(w.mustOpen(t))
}

// grow works until something fails; tried is what may have been done then.
func (p *pen) grow(w *world) (tried []persist.Unit, err error) {
	s, err := w.open()
	for i, more := range []int{0, 100_000, -1, 10, 70_000, -2, 150_000, 0, -1, -2, 0, -1, 30} {
		switch {
		case err != nil:
		case more == -1:
			err = s.Fold(ctx)
		case more == -2:
			if err = s.Close(); err == nil && !w.dead {
				w.enter(w.disk.Kill(), w.behind.Fork())
				s, err = w.open()
			}
		default:
			tried = []persist.Unit{p.next(fmt.Sprint("e", i%3), more)}
			var got []persist.Outcome
			if got, err = s.Commit(ctx, tried); err == nil {
				p.wrote(tried, got)
				tried = nil
			}
		}
		if err != nil || w.dead {
			return tried, err
		}
	}
	return nil, nil
}
