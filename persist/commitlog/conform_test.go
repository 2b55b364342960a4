package commitlog

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small makes a log go through many segments.
var small = Config{SegmentSize: 64 << 10, FoldAfter: 1, FoldKeys: 7, MaxRecord: 2 << 20}

// never folds by itself: what the suite writes is read from the log.
var never = Config{NoBackground: true, MaxRecord: 2 << 20}

func TestConformsInFrontOfBolt(t *testing.T) {
	for name, cfg := range map[string]Config{"small": small, "never": never} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			persisttest.Run(t, func(t *testing.T) persisttest.Fixture { return boltFixture(t, cfg) })
		})
	}
}

func boltFixture(t *testing.T, cfg Config) persisttest.Fixture {
	dir := t.TempDir()
	return persisttest.Fixture{
		Store:     openBolt(t, dir, cfg),
		Reopen:    func(t *testing.T) persist.PersistenceService { return openBolt(t, dir, cfg) },
		MaxRecord: cfg.MaxRecord,
		Restore: func(t *testing.T, backup io.Reader) persist.PersistenceService {
			dir := t.TempDir()
			require.NoError(t, bolt.Restore(filepath.Join(dir, "test.db"), backup))
			return openBolt(t, dir, cfg)
		},
	}
}

func openBolt(t testing.TB, dir string, cfg Config) *Store {
	t.Helper()
	behind, err := bolt.Open(filepath.Join(dir, "test.db"), bolt.Config{MaxRecord: cfg.MaxRecord, CommitLog: true})
	require.NoError(t, err)
	s, err := Open(filepath.Join(dir, "log"), behind, cfg)
	require.NoError(t, err)
	return s
}
