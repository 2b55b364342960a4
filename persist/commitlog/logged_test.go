package commitlog_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
)

func inFrontOfBolt(t testing.TB, dir string, cfg commitlog.Config) *commitlog.Store {
	t.Helper()
	behind, err := bolt.Open(filepath.Join(dir, "test.db"), bolt.Config{CommitLog: true})
	require.NoError(t, err)
	s, err := commitlog.Open(filepath.Join(dir, "log"), behind, cfg)
	require.NoError(t, err)
	return s
}

// TestStoreWithoutItsLog opens a file without the log that stands in front of it.
func TestStoreWithoutItsLog(t *testing.T) {
	dir, p := t.TempDir(), newPen(t)
	s := inFrontOfBolt(t, dir, commitlog.Config{NoBackground: true})
	p.steps(s, "a", "b")
	require.NoError(t, s.Behind().Close()) // the process ends without closing the log
	_, err := bolt.Open(filepath.Join(dir, "test.db"), bolt.Config{})
	require.ErrorIs(t, err, bolt.ErrLogged)

	s = inFrontOfBolt(t, dir, commitlog.Config{})
	p.has(s)
	p.steps(s, "c")
	require.NoError(t, s.Close())
	plain, err := bolt.Open(filepath.Join(dir, "test.db"), bolt.Config{})
	require.NoError(t, err)
	p.has(plain)
	units := p.create("a") // without the log
	got, err := plain.Commit(ctx, units)
	require.NoError(t, err)
	p.wrote(units, got)
	require.NoError(t, plain.Close())

	s = inFrontOfBolt(t, dir, commitlog.Config{})
	p.has(s)
	p.steps(s, "a", "d")
	p.has(s)
	require.NoError(t, s.Close())
}
