package commitlog_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// fill writes until that is refused.
func (p *pen) fill(s *commitlog.Store, size int) (written int) {
	p.Helper()
	for written < 1000 {
		units := []persist.Unit{p.next(fmt.Sprint("e", p.count%5), size)}
		got, err := s.Commit(ctx, units)
		if err != nil {
			require.ErrorIs(p, err, persist.ErrUnavailable)
			require.NotErrorIs(p, err, persist.ErrUnknown)
			return written
		}
		p.wrote(units, got)
		written++
	}
	return written
}

func TestFullDiskWhileASegmentGrows(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	w.disk.Full = 4<<20 + 1000
	cfg := w.tiny()
	cfg.SegmentSize = 64 << 20 // grows by 4 MiB at a time
	s, err := commitlog.Open("log", w.behind, cfg)
	require.NoError(t, err)
	require.Positive(t, p.fill(s, 100<<10))
	p.has(s)
	_, err = s.Commit(ctx, []persist.Unit{p.next("x", 100<<10)})
	require.ErrorIs(t, err, logtest.ErrFull)
	require.ErrorIs(t, err, persist.ErrNoRoom)
	for range 2 {
		require.ErrorIs(t, s.Reopen(ctx), persist.ErrUnavailable, "nobody need write to find out")
	}
	w.disk.Full = 8<<20 - 1
	require.ErrorIs(t, s.Reopen(ctx), logtest.ErrFull)
	w.disk.Full = 12 << 20
	require.NoError(t, s.Reopen(ctx))
	require.Positive(t, p.fill(s, 100<<10))
	p.has(s)
	w.disk.Full = 0
	w.crash(false)
	p.has(w.mustOpen(t))
}

func TestFullDiskBetweenSegments(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	w.disk.Full = 64 << 10
	require.Positive(t, p.fill(s, 5<<10))
	p.has(s)
	p.steps(s, "small") // which fits
	w.disk.Full = 128 << 10
	require.Equal(t, 200, func() (n int) {
		for ; n < 200; n++ {
			p.write(s, p.next("a", 5<<10))
		}
		return n
	}(), "two segments are enough for ever")
	p.has(s)
	w.crash(false)
	w.disk.Full = 0
	p.has(w.mustOpen(t))
}

// TestOneSegmentIsEnough has a disk with room for no other: what it has is folded,
// and then it is written again.
func TestOneSegmentIsEnough(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	w.disk.Full = 64 << 10
	for i := range 200 {
		p.write(s, p.next("a", 5<<10))
		if i%50 == 0 {
			p.has(s)
			w.crash(false)
			s = w.mustOpen(t)
		}
	}
	p.has(s)
	w.crash(false)
	p.has(w.mustOpen(t))
}

// TestOpenOnAFullDisk opens logs whose last group is whole, or is not, where no
// file can become longer. It reads what counts, time and again, and goes on once
// there is room.
func TestOpenOnAFullDisk(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	s := w.mustOpen(t)
	p.steps(s, "a", "b", "a")
	before := p.image()
	p.write(s, p.next("a", 700), p.next("c", 3))
	after := p.image()
	content := w.disk.Content("segment-1")
	groups := commitlog.Groups(content)
	last := groups[len(groups)-1]
	for cut := last.From; cut <= last.Next; cut += 31 {
		want := before
		if cut >= last.End || allZero(content[cut:last.End]) {
			want = after
		}
		t.Run(fmt.Sprint("cut off at ", cut), func(t *testing.T) {
			other := w.restarted()
			other.disk.Put("segment-1", commitlog.Older(content[:cut]))
			if cut < last.End {
				want = before
			}
			other.full(t, want)
		})
		t.Run(fmt.Sprint("zeros from ", cut), func(t *testing.T) {
			other := w.restarted()
			other.disk.Put("segment-1", append(content[:cut:cut], make([]byte, len(content)-cut)...))
			other.full(t, want)
		})
	}
	t.Run("stopped", func(t *testing.T) {
		require.NoError(t, s.Close())
		w.leave()
		w.disk.Put("segment-1", commitlog.Older(content[:last.Next]))
		w.full(t, after)
	})
}

// full has the disk take nothing more, opens the log, and requires that it is
// read as it is, now and later, and that what is written when there is room stays.
func (w *world) full(t *testing.T, want []string) {
	t.Helper()
	w.disk.Full = int64(len(w.disk.Content("segment-1")))
	var s *commitlog.Store
	for range 3 { // it is not worn by being opened
		s = w.mustOpen(t)
		require.Equal(t, want, imageIn(t, s))
		w.leave()
	}
	s = w.mustOpen(t)
	units := []persist.Unit{newPen(t).next("later", 3000)}
	_, err := s.Commit(ctx, units)
	if w.disk.Full < 64<<10 { // else the file is as long as it need be
		require.ErrorIs(t, err, logtest.ErrFull)
		require.ErrorIs(t, err, persist.ErrUnavailable)
		require.ErrorIs(t, s.Reopen(ctx), logtest.ErrFull)
		require.Equal(t, want, imageIn(t, s), "reads go on")
		w.disk.Full = 0
		require.NoError(t, s.Reopen(ctx))
		_, err = s.Commit(ctx, units)
	}
	require.NoError(t, err)
	want = imageIn(t, s)
	w.crash(false)
	require.Equal(t, want, imageIn(t, w.mustOpen(t)))
}

// TestALargeCommitKeepsNoSmallOneOut has it refused again and again, and others
// taken.
func TestALargeCommitKeepsNoSmallOneOut(t *testing.T) {
	w, p := newWorld(1), newPen(t)
	cfg := w.tiny()
	cfg.SegmentSize, cfg.MaxRecord = 64<<20, 16<<20
	s, err := commitlog.Open("log", w.behind, cfg)
	require.NoError(t, err)
	w.disk.Full = 8 << 20
	p.steps(s, "a")
	_, err = s.Commit(ctx, []persist.Unit{p.next("large", 9<<20)})
	require.ErrorIs(t, err, logtest.ErrFull)
	require.NoError(t, s.Reopen(ctx), "there is room for what most write")
	p.steps(s, "a", "b")
	p.has(s)
}

// TestReadsGoOnWithoutASegment deletes by force, which goes past the log, and
// fails the header behind it.
func TestReadsGoOnWithoutASegment(t *testing.T) {
	for seed := range uint64(20) {
		w, p := newWorld(seed), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a", "b")
		require.NoError(t, s.Fold(ctx))
		gone := p.gone("a")
		gone.Force = true
		failed := 0
		w.disk.Fail = func(op logtest.Op, _ string) error {
			if op == logtest.Write || op == logtest.Sync && seed%2 == 0 {
				failed++
				return errStruck
			}
			return nil
		}
		p.write(s, gone)
		require.Positive(t, failed)
		p.has(s)
		_, err := s.Commit(ctx, []persist.Unit{p.next("c", 0)})
		require.ErrorIs(t, err, persist.ErrUnavailable)
		p.has(s)
		w.disk.Fail = nil
		require.NoError(t, s.Reopen(ctx))
		p.steps(s, "a", "c")
		w.crash(false)
		p.has(w.mustOpen(t))
	}
}

// TestHeaderThatCannotBeWritten fails a write that may have been done all the
// same: then the new segment's header says that nothing behind it counts, and
// groups that went on in the old one would be lost.
func TestHeaderThatCannotBeWritten(t *testing.T) {
	for seed := range uint64(30) {
		w, p := newWorld(seed), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a")
		require.NoError(t, s.Fold(ctx))
		p.steps(s, "a", "b")
		writes := 0
		w.disk.Fail = func(op logtest.Op, _ string) error {
			if op == logtest.Write {
				if writes++; writes == 1 {
					return errStruck
				}
			}
			return nil
		}
		require.NoError(t, s.Fold(ctx), "folding needs no segment")
		require.Positive(t, writes)
		p.steps(s, "c")
		p.has(s)
		w.crash(seed%2 == 0)
		p.has(w.mustOpen(t))
	}
}

// ailing is a store whose folds fail while it is ill.
type ailing struct {
	*memory.Store
	ill   atomic.Pointer[error]
	tried atomic.Int64
}

func (a *ailing) Fold(ctx context.Context, f persist.Fold) error {
	if err := a.ill.Load(); err != nil {
		a.tried.Add(1)
		return fmt.Errorf("fold: %w", *err)
	}
	return a.Store.Fold(ctx, f)
}

func (a *ailing) Reopen(context.Context) error { return nil }

func TestFoldFailsForAMinute(t *testing.T) {
	for name, cause := range map[string]error{
		"full":    fmt.Errorf("%w: %w", persist.ErrUnavailable, logtest.ErrFull),
		"unknown": fmt.Errorf("%w: the sync failed", persist.ErrUnknown),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { foldFails(t, cause) })
		})
	}
}

func foldFails(t *testing.T, cause error) {
	const segment = 256 << 10
	p, behind := newPen(t), &ailing{Store: memory.Open(memory.Config{})}
	s, err := commitlog.Open("log", behind, commitlog.Config{SegmentSize: segment, FoldAfter: time.Second, FoldKeys: 10, Disk: logtest.New()})
	require.NoError(t, err)
	p.steps(s, "before")
	time.Sleep(2 * time.Second) //nolint:forbidigo // virtual time
	require.Equal(t, p.image(), imageIn(t, behind.Store), "what waits is folded after a second")

	behind.ill.Store(&cause)
	begun, unfolded, refused := time.Now(), 0, 0
	for i := 0; time.Since(begun) < time.Minute; i++ {
		units := []persist.Unit{p.next(fmt.Sprint("e", i), 1000)}
		got, err := s.Commit(ctx, units)
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // virtual time
		if err != nil {
			require.ErrorIs(t, err, persist.ErrUnavailable)
			require.NotErrorIs(t, err, persist.ErrUnknown)
			require.ErrorContains(t, err, "the commit log is full")
			require.ErrorContains(t, err, cause.Error())
			refused++
			continue
		}
		p.wrote(units, got)
		unfolded += len(units[0].Record.State)
	}
	require.Positive(t, refused)
	require.Greater(t, unfolded, segment, "it uses the room that it has")
	require.LessOrEqual(t, unfolded, 2*segment)
	require.Less(t, behind.tried.Load(), int64(refused+100), "the background waits between its tries")
	p.has(s)

	behind.ill.Store(nil)
	time.Sleep(10 * time.Second) //nolint:forbidigo // virtual time
	require.Equal(t, p.image(), imageIn(t, behind.Store), "everything is folded once that works")
	p.steps(s, "after", "e1")
	p.has(s)
	require.NoError(t, s.Close())
}

// TestCloseThatCannotFold leaves all to the next Open.
func TestCloseThatCannotFold(t *testing.T) {
	for skip := 0; ; skip++ {
		w, p := newWorld(uint64(skip)), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a", "b", "c", "d")
		w.plan(fails, skip)
		_ = s.Close()
		if !w.fired {
			require.Greater(t, skip, 5)
			return
		}
		w.leave()
		s = w.mustOpen(t)
		p.has(s)
		require.NoError(t, s.Close())
		p.has(w.behind.Fork())
	}
}

// TestCommitsFailOverAndOver reopens the log each time: it goes on with the files
// that it has.
func TestCommitsFailOverAndOver(t *testing.T) {
	for _, unfolded := range []bool{false, true} {
		w, p := newWorld(1), newPen(t)
		s := w.mustOpen(t)
		p.steps(s, "a")
		require.NoError(t, s.Fold(ctx))
		if unfolded {
			p.steps(s, "b")
		}
		for i := range 20 {
			w.disk.Fail = func(op logtest.Op, _ string) error {
				if op == logtest.Sync {
					return errStruck
				}
				return nil
			}
			_, err := s.Commit(ctx, []persist.Unit{p.next("a", i)})
			require.ErrorIs(t, err, errStruck)
			w.disk.Fail = nil
			require.NoError(t, s.Reopen(ctx))
			p.has(s)
			other := w.restarted()
			p.has(other.mustOpen(t))
		}
		names, err := w.disk.Names()
		require.NoError(t, err)
		require.LessOrEqual(t, len(names), 4)
		p.steps(s, "a", "c")
		w.crash(false)
		p.has(w.mustOpen(t))
	}
}

// refuser imports a batch, and says that it has not.
type refuser struct{ *behind }

func (r refuser) Import(ctx context.Context, b persist.Batch) error {
	if err := r.behind.Import(ctx, b); err != nil {
		return err
	}
	return fmt.Errorf("import: %w", persist.ErrInvalid)
}

// What the store behind says of an import reaches whoever asked, also where there is
// no room for the segment that would say how far the store has come.
func TestAnImportThatIsRefusedOnAFullDisk(t *testing.T) {
	w := newWorld(1)
	s, err := commitlog.Open("log", refuser{w.behind}, w.tiny())
	require.NoError(t, err)
	w.disk.Full = 1
	require.ErrorIs(t, s.Import(ctx, persist.Batch{Position: 100}), persist.ErrInvalid)
}
