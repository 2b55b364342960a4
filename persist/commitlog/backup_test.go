package commitlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// copying is a store whose backup is its image, which it begins to write when it
// is told to.
type copying struct {
	*memory.Store
	t          *testing.T
	begun, end chan struct{}
}

var _ persist.TellingBackuper = (*copying)(nil)

func (c *copying) Backup(ctx context.Context, w io.Writer) error {
	return c.BackupTelling(ctx, w, func() {})
}

func (c *copying) BackupTelling(_ context.Context, w io.Writer, begun func()) error {
	of := c.Fork()
	begun()
	close(c.begun)
	<-c.end
	_, err := fmt.Fprint(w, imageIn(c.t, of))
	return err
}

// The log becomes full several times over while the store behind has begun a
// backup and has not written anything.
func TestCommitsGoOnWhileABackupIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(1), newPen(t)
		behind := &copying{w.behind.Store, t, make(chan struct{}), make(chan struct{})}
		s, err := commitlog.Open("log", behind, w.tiny())
		require.NoError(t, err)
		p.steps(s, "a", "b")
		var backup strings.Builder
		want, made := fmt.Sprint(p.image()), make(chan error)
		go func() { made <- s.Backup(ctx, &backup) }()
		<-behind.begun
		for range 100 {
			p.write(s, p.next("a", 5<<10))
		}
		close(behind.end)
		require.NoError(t, <-made)
		require.Equal(t, want, backup.String())
		require.NoError(t, s.Close())
		p.has(behind.Fork())
	})
}

// waiting is a store that has to wait with all that is folded until its backup is
// written.
type waiting struct{ copying }

func (c *waiting) Fold(ctx context.Context, f persist.Fold) error {
	select {
	case <-c.begun:
	default:
		return c.copying.Fold(ctx, f)
	}
	select {
	case <-c.end:
		return c.copying.Fold(ctx, f)
	default:
		return &persist.BusyError{Err: fmt.Errorf("busy: %w", persist.ErrUnavailable), Over: c.end}
	}
}

// BackupTelling ends with its context, too.
func (c *waiting) BackupTelling(ctx context.Context, w io.Writer, begun func()) error {
	stop := context.AfterFunc(ctx, func() { close(c.end) })
	defer stop()
	err := c.copying.BackupTelling(ctx, w, begun)
	return errors.Join(ctx.Err(), err)
}

func newWaiting(t *testing.T, w *world) *waiting {
	return &waiting{copying: copying{w.behind.Store, t, make(chan struct{}), make(chan struct{})}}
}

// Folding waits for a backup: commits go on until the log is full and wait then, as
// long as their contexts let them; reads go on.
func TestReadsGoOnWhileFoldingWaitsForABackup(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(1), newPen(t)
				behind, cfg := newWaiting(t, w), w.tiny()
				cfg.NoBackground, cfg.FoldAfter = !background, time.Millisecond
				s, err := commitlog.Open("log", behind, cfg)
				require.NoError(t, err)
				p.steps(s, "a", "b")
				var backup strings.Builder
				want, made := fmt.Sprint(p.image()), make(chan error)
				go func() { made <- s.Backup(ctx, &backup) }()
				<-behind.begun
				for range 6 { // more than half a segment, after which commits help with folding
					p.write(s, p.next("a", 5<<10))
					<-time.After(time.Millisecond)
				}
				var got []persist.Outcome
				var units []persist.Unit
				for err == nil {
					units = []persist.Unit{p.next("b", 5<<10)}
					short, cancel := context.WithTimeout(ctx, time.Minute)
					if got, err = s.Commit(short, units); err == nil {
						p.wrote(units, got)
					}
					cancel()
				}
				require.ErrorIs(t, err, persist.ErrUnavailable)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				p.has(s)
				require.NoError(t, s.Reopen(ctx), "it has not failed")
				short, cancel := context.WithTimeout(ctx, time.Minute)
				_, err = s.Trim(short, 0, 100, 10)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				wrote := make(chan struct{})
				go func() {
					p.write(s, units...)
					close(wrote)
				}()
				synctest.Wait()
				close(behind.end)
				<-wrote
				require.NoError(t, <-made)
				require.Equal(t, want, backup.String())
				p.has(s)
				require.NoError(t, s.Close())
				p.has(behind.Fork())
			})
		})
	}
}

// Closing folds everything, and does not wait for a backup.
func TestClosingCutsOffTheBackupThatFoldingWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(1), newPen(t)
		behind := newWaiting(t, w)
		s, err := commitlog.Open("log", behind, w.tiny())
		require.NoError(t, err)
		p.steps(s, "a", "b")
		made := make(chan error)
		go func() { made <- s.Backup(ctx, io.Discard) }()
		<-behind.begun
		p.steps(s, "a", "b")
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		err = <-made
		require.ErrorIs(t, err, persist.ErrUnavailable)
		require.NotErrorIs(t, err, context.Canceled, "nobody has cancelled it")
		require.NoError(t, <-closed)
		m, err := behind.Fork().Mark(ctx)
		require.NoError(t, err)
		require.True(t, m.Detached)
		p.has(behind.Fork())
	})
}
