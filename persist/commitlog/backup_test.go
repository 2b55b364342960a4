package commitlog_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

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
