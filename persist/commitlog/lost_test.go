package commitlog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// The one file of a log is begun anew, when all that it had is folded, and power
// goes in that commit: half of the new group lies over the old ones then, and what
// is in front of it must say that they do not count.
func TestTheOnlySegmentBegunAnew(t *testing.T) {
	opened := 0
	for seed := range uint64(60) {
		for skip := 0; ; skip++ {
			w, p := newWorld(seed), newPen(t)
			s := w.mustOpen(t)
			p.write(s, p.next("a", 1500))
			p.write(s, p.next("b", 1500))
			p.write(s, p.next("c", 1500))
			w.crash(true)
			s = w.mustOpen(t)
			require.NoError(t, s.Fold(ctx))
			w.plan(dies, skip)
			u := []persist.Unit{p.next("d", 2500)}
			_, err := s.Commit(ctx, u)
			if !w.fired {
				require.NoError(t, err)
				break
			}
			w.crash(false)
			s, err = w.open()
			require.NoError(t, err, "seed %d, operation %d", seed, skip)
			opened++
			got := imageIn(t, s)
			if got[0] != p.image()[0] {
				_, err := p.model.Commit(ctx, u)
				require.NoError(t, err)
			}
			require.Equal(t, p.image(), got)
		}
	}
	require.Greater(t, opened, 60)
}

// Wherever the last group ends, a file that is cut is refused, or has all of it.
func TestCutBehindGroupsOfEveryLength(t *testing.T) {
	for more := range 64 {
		w, p := newWorld(1), newPen(t)
		w.segment = 1 << 20
		s := w.mustOpen(t)
		p.write(s, p.next("a", 20_000+8*more))
		p.write(s, p.next("b", 40_000)) // is in two lengths of the file
		p.write(s, p.next("b", 90_000))
		p.steps(s, "c", "d")
		size := len(w.disk.Content("segment-1"))
		for cut := 64 << 10; cut < size; cut += 16 << 10 {
			other := w.restarted()
			other.disk.Truncate("segment-1", int64(cut))
			s, err := other.open()
			if err != nil {
				require.ErrorIs(t, err, commitlog.ErrDamaged)
				continue
			}
			require.Equal(t, p.image(), imageIn(t, s), "%d bytes more, cut at %d", more, cut)
		}
	}
}

// refusedWithoutNewest says that the log is refused when its newest segment with a
// group is removed, emptied, or has no header any more.
func refusedWithoutNewest(t *testing.T, w *world, p *pen) {
	t.Helper()
	p.has(w.restarted().mustOpen(t))
	name, number := "", uint64(0)
	names, err := w.disk.Names()
	require.NoError(t, err)
	for _, n := range names {
		b := w.disk.Content(n)
		if k := binary.BigEndian.Uint64(b[24:]); k > number && len(commitlog.Groups(b)) > 0 {
			name, number = n, k
		}
	}
	for how, harm := range map[string]func(d *logtest.Disk){
		"removed": func(d *logtest.Disk) { d.Remove(name) },
		"emptied": func(d *logtest.Disk) { d.Truncate(name, 0) },
		"cut":     func(d *logtest.Disk) { d.Truncate(name, 63) },
		"wiped": func(d *logtest.Disk) {
			b := d.Content(name)
			clear(b[64:])
			d.Put(name, b)
		},
	} {
		other := w.restarted()
		harm(other.disk)
		_, err := other.open()
		require.ErrorIs(t, err, commitlog.ErrDamaged, "%s %s", name, how)
	}
}

// Segments were begun and got no group before the next was.
func TestALostSegmentBehindAnEmptyOne(t *testing.T) {
	w, p, s := fourFiles(t)
	p.steps(s, "a")
	require.NoError(t, s.Fold(ctx)) // begins the second
	for _, n := range []string{"a", "b"} {
		gone := p.gone(n)
		gone.Force = true
		p.write(s, gone) // goes behind the log, and begins the next
	}
	p.steps(s, "e", "f")
	refusedWithoutNewest(t, w, p)
}

// A segment got a group that was never acknowledged, and the next took its number.
func TestALostSegmentBehindAVoidGroup(t *testing.T) {
	w, p := newWorld(3), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a")
	require.NoError(t, s.Fold(ctx))
	p.steps(s, "b")
	w.crash(true)
	s = w.mustOpen(t)
	p.steps(s, "c")
	w.disk.Fail = failingSync
	_, err := s.Commit(ctx, []persist.Unit{p.next("d", 0)})
	require.ErrorIs(t, err, persist.ErrUnknown)
	w.disk.Fail = nil
	require.NoError(t, s.Reopen(ctx))
	p.steps(s, "e", "f")
	refusedWithoutNewest(t, w, p)
}

// The process died when a segment's first group was durable, and nothing else said
// so. Who opens the log then shows that group.
func TestALostSegmentThatAnotherProcessBegan(t *testing.T) {
	for _, before := range []bool{false, true} { // there is a segment before
		tried := 0
		for skip := range 20 {
			w, p := newWorld(1), newPen(t)
			s := w.mustOpen(t)
			if before {
				p.steps(s, "a")
				w.crash(true)
				s = w.mustOpen(t)
			}
			u := []persist.Unit{p.next("b", 0)}
			w.plan(dies, skip)
			_, err := s.Commit(ctx, u)
			if !w.fired {
				require.NoError(t, err)
				break
			}
			w.crash(true)
			s = w.mustOpen(t)
			if imageIn(t, s)[0] == p.image()[0] {
				continue // it was not
			}
			_, err = p.model.Commit(ctx, u)
			require.NoError(t, err)
			if !before {
				p.steps(s, "c") // tells the store behind
			}
			refusedWithoutNewest(t, w, p)
			tried++
		}
		require.Positive(t, tried)
	}
}

// A segment and an older copy of it: which of them is read would be chance.
func TestACopyOfASegmentBesideIt(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a", "b")
	old := w.disk.Content("segment-1")
	p.steps(s, "c", "d")
	other := w.restarted()
	other.disk.Put("segment-7", old)
	_, err := other.open()
	require.ErrorIs(t, err, commitlog.ErrDamaged)
	require.ErrorContains(t, err, "segment-1 and segment-7 are the same segment")
}

// What tells of a segment could not be written, or somebody else had the folding:
// it is tried again with the next group.
func TestALostSegmentThatCouldNotBeNotedAtOnce(t *testing.T) {
	for skip := range 20 {
		w, p := newWorld(1), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a")
		w.crash(true)
		s = w.mustOpen(t)
		u := []persist.Unit{p.next("b", 0)}
		w.plan(fails, skip)
		got, err := s.Commit(ctx, u)
		if !w.fired {
			require.Greater(t, skip, 4)
			return
		}
		if err != nil {
			continue
		}
		p.wrote(u, got) // the fault was met behind the group
		p.steps(s, "c")
		refusedWithoutNewest(t, w, p)
	}
	require.Fail(t, "no commit was without a fault")
}

// fourFiles is a log with so many files, and all of it folded.
func fourFiles(t *testing.T) (*world, *pen, *commitlog.Store) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	for _, n := range []string{"a", "b", "c", "d"} {
		p.steps(s, n)
		w.crash(true)
		s = w.mustOpen(t)
	}
	require.NoError(t, s.Fold(ctx))
	return w, p, s
}

// What tells of a segment could not be written, so that what tells of the next
// stands in front of a segment that has a group.
func TestALostSegmentBehindOneThatCouldNotBeNoted(t *testing.T) {
	for how, next := range map[string]func(p *pen, s *commitlog.Store){
		"nor the next": func(p *pen, s *commitlog.Store) { p.steps(s, "c") },
		"and an empty one": func(p *pen, s *commitlog.Store) {
			gone := p.gone("d")
			gone.Force = true
			p.write(s, gone) // goes behind the log, and begins the next
		},
	} {
		w, p, s := fourFiles(t)
		p.steps(s, "a")
		require.NoError(t, s.Fold(ctx))
		w.disk.Fail = func(op logtest.Op, name string) error {
			if op == logtest.Write && name == "segment-1" {
				return errStruck
			}
			return nil
		}
		p.steps(s, "b")
		require.NoError(t, s.Fold(ctx))
		next(p, s)
		require.NoError(t, s.Fold(ctx))
		w.disk.Fail = nil
		p.steps(s, "e")
		t.Run(how, func(t *testing.T) { refusedWithoutNewest(t, w, p) })
	}
}

// The process died between two transactions of a fold, and then the last group is
// damaged: the store behind has a part of it, and so must know that it was there.
func TestDamageToAGroupThatIsPartlyFolded(t *testing.T) {
	refused := 0
	for skip := range 8 {
		w, p := newWorld(1), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a")
		require.NoError(t, s.Fold(ctx))
		p.write(s, p.next("a", 0), p.next("b", 0), p.next("c", 0))
		p.steps(s, "a")
		last := p.count
		w.crash(true)
		s = w.mustOpen(t)
		w.plan(dies, skip)
		if s.Fold(ctx) == nil {
			break
		}
		w.crash(true)
		position, err := w.behind.Store.Position(ctx)
		require.NoError(t, err)
		name := "segment-2"
		groups := commitlog.Groups(w.disk.Content(name))
		w.disk.Flip(name, int64(groups[len(groups)-1].From+20), 1)
		_, err = w.open()
		if position >= uint64(last) {
			require.ErrorIs(t, err, commitlog.ErrDamaged, "position %d", position)
			refused++
		}
	}
	require.Positive(t, refused)
}

// A process died before it could note that a segment goes on, and the next ones
// could not do it either. The one after that tries again; and what goes on behind
// the segment is missed together with it.
func TestALostSegmentThatCouldNotBeNotedAtTheOpening(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	unnoted := func() {
		w.disk.Rand = nil // what fails has done nothing
		w.disk.Fail = func(op logtest.Op, name string) error {
			if op == logtest.Write && name == "segment-1" {
				return errStruck
			}
			return nil
		}
	}
	p.steps(w.mustOpen(t), "a")
	w.crash(true)
	s := w.mustOpen(t)
	unnoted()
	p.steps(s, "b")
	w.crash(true)
	unnoted()
	s = w.mustOpen(t)

	t.Run("opened again", func(t *testing.T) {
		other := w.restarted()
		other.mustOpen(t)
		refusedWithoutNewest(t, other, p)
	})
	t.Run("gone on", func(t *testing.T) {
		p.steps(s, "c")
		w.disk.Remove("segment-2")
		w.disk.Remove("segment-3")
		_, err := w.restarted().open()
		require.ErrorIs(t, err, commitlog.ErrDamaged)
	})
}

// telling is a store that fails when it is first told how far the log reached,
// and may have taken it all the same.
type telling struct {
	*memory.Store
	err   error
	takes bool
}

func (b *telling) Fold(ctx context.Context, f persist.Fold) error {
	if err := b.err; err != nil && f.Mark.Reached > 0 && len(f.Changes) == 0 {
		b.err = nil
		if b.takes {
			err = errors.Join(err, b.Store.Fold(ctx, f))
		}
		return err
	}
	return b.Store.Fold(ctx, f)
}

// warned is a logger that calls a function at a warning.
type warned func()

func (warned) Enabled(context.Context, slog.Level) bool    { return true }
func (f warned) Handle(context.Context, slog.Record) error { f(); return nil }
func (f warned) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f warned) WithGroup(string) slog.Handler             { return f }

// A fold comes between what tells the store behind of a segment's first group and
// the end of that commit. What the store was told it still knows afterwards.
func TestALostSegmentThatWasBegunBesideAFold(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s, err := commitlog.Open("log", &telling{Store: w.behind.Store, err: persist.ErrUnavailable}, w.tiny())
	require.NoError(t, err)
	p.steps(s, "a")
	w.crash(true)
	cfg, folded := w.tiny(), false
	cfg.Logger = slog.New(warned(func() {
		folded = true
		require.NoError(t, s.FoldFrozen(ctx))
	}))
	s, err = commitlog.Open("log", &telling{w.behind.Store, persist.ErrUnknown, true}, cfg)
	require.NoError(t, err)
	p.steps(s, "b")
	require.True(t, folded)
	w.crash(true)
	refusedWithoutNewest(t, w, p)
}

// slowTrim is a store that trims from begin to end.
type slowTrim struct {
	*memory.Store
	begun, end chan struct{}
}

func (b *slowTrim) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	close(b.begun)
	<-b.end
	return b.Store.Trim(ctx, after, through, limit)
}

// Retention has the folding while a file is used again of the segment before, so
// that the store behind cannot be told at once.
func TestALostSegmentThatWasBegunDuringATrim(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	b := &slowTrim{memory.Open(memory.Config{MaxRecord: maxRecord}), make(chan struct{}), make(chan struct{})}
	s, err := commitlog.Open("log", b, w.tiny())
	require.NoError(t, err)
	p.steps(s, "a")
	require.NoError(t, s.Fold(ctx)) // begins the second segment
	w.disk.Full = 128 << 10
	p.write(s, p.next("b", 70<<10)) // goes behind the log, and the first begins again
	trimmed := make(chan error, 1)
	go func() {
		_, err := s.Trim(ctx, 0, 0, 1)
		trimmed <- err
	}()
	<-b.begun
	p.steps(s, "c")
	close(b.end)
	require.NoError(t, <-trimmed)
	p.steps(s, "d")
	w.enter(w.disk.Copy(), b.Fork())
	refusedWithoutNewest(t, w, p)
}
