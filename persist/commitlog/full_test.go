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
	cfg.SegmentSize = 16 << 20 // grows by 4 MiB at a time
	s, err := commitlog.Open("log", w.behind, cfg)
	require.NoError(t, err)
	require.Positive(t, p.fill(s, 100<<10))
	p.has(s)
	_, err = s.Commit(ctx, []persist.Unit{p.next("x", 100<<10)})
	require.ErrorIs(t, err, logtest.ErrFull)
	full := w.restarted()
	cfg.Disk = full.disk
	reopened, err := commitlog.Open("log", full.behind, cfg)
	require.ErrorIs(t, err, logtest.ErrFull, "there is no room for another segment")
	require.Nil(t, reopened)
	w.disk.Full = 12 << 20
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
		err := s.Fold(ctx)
		require.ErrorIs(t, err, errStruck)
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
