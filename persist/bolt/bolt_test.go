package bolt

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

func TestMain(m *testing.M) {
	if code, ok := runAsChild(); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

func TestConforms(t *testing.T) {
	t.Parallel()
	conform(t, Config{MaxRecord: 2 << 20, CommitLog: true})
}

func TestConformsWithShortTails(t *testing.T) {
	t.Parallel()
	conform(t, Config{MaxRecord: 2 << 20, CommitLog: true, tail: 2})
}

func conform(t *testing.T, cfg Config) {
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		path := filepath.Join(t.TempDir(), "test.db")
		return persisttest.Fixture{
			Store:     mustOpen(t, path, cfg),
			Reopen:    func(t *testing.T) persist.PersistenceService { return mustOpen(t, path, cfg) },
			Damage:    func(t *testing.T, k persist.Key) { flip(t, path, recordsBucket, recordKey(k), -10) },
			MaxRecord: cfg.MaxRecord,

			Restore: func(t *testing.T, backup io.Reader) persist.PersistenceService {
				path := filepath.Join(t.TempDir(), "restored.db")
				require.NoError(t, Restore(path, backup))
				return mustOpen(t, path, cfg)
			},
			DamageRow:    func(t *testing.T, r persist.Row) { flip(t, path, rowsBucket, rowKey(r.Kind, r.Key, r.ID), -1) },
			DamageChange: func(t *testing.T, c persist.Change) { flip(t, path, logBucket, positionKey(c.Position), -1) },
		}
	})
}

func mustOpen(t testing.TB, path string, cfg Config) *Store {
	t.Helper()
	if cfg.LockTimeout == 0 {
		// A child that another test starts just now has all open files, and so the
		// lock of one that is closed meanwhile, until it executes its program.
		cfg.LockTimeout = 10 * time.Second
	}
	s, err := Open(path, cfg)
	require.NoError(t, err)
	return s
}

// tempStore opens a store in a new file and closes it with the test.
func tempStore(t testing.TB) *Store {
	s := mustOpen(t, filepath.Join(t.TempDir(), "test.db"), Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func rooms(name string) persist.Key { return persist.Key{Pod: "rooms", Name: name} }

func create(k persist.Key, state string) persist.Unit {
	return persist.Unit{Key: k, Record: record(1, state), Changes: []persist.Change{{Revision: 1, Type: "made", Data: []byte(state)}}}
}

func step(k persist.Key, life, expect uint64, state string) persist.Unit {
	return persist.Unit{Key: k, Life: life, Expect: expect, Record: record(expect+1, state),
		Changes: []persist.Change{{Revision: expect + 1, Type: "changed", Data: []byte(state)}}}
}

func record(revision uint64, state string) *snapshot.Record {
	return &snapshot.Record{Revision: revision, Changed: time.Unix(int64(revision), 0), State: []byte(state)}
}

func mustCommit(t testing.TB, s *Store, units ...persist.Unit) []persist.Outcome {
	t.Helper()
	o, err := s.Commit(ctx, units)
	require.NoError(t, err)
	for i := range o {
		require.NoError(t, o[i].Err)
	}
	return o
}

func state(t testing.TB, s *Store, k persist.Key) string {
	t.Helper()
	r, err := s.Load(ctx, k)
	require.NoError(t, err)
	return string(r.State)
}

// edit changes a closed file through bbolt, past this package.
func edit(t testing.TB, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(fn))
	require.NoError(t, db.Close())
}

// flip flips a bit of a value in a closed file; a negative index counts from
// the value's end.
func flip(t testing.TB, path, bucket string, key []byte, index int) {
	t.Helper()
	edit(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		v := append([]byte(nil), b.Get(key)...)
		if len(v) == 0 {
			return fmt.Errorf("no value of %q in %s", key, bucket)
		}
		if index < 0 {
			index += len(v)
		}
		v[index] ^= 0x04
		return b.Put(key, v)
	})
}
