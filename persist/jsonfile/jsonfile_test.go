package jsonfile

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	conform(t, Config{MaxRecord: 2 << 20})
}

// TestConformsWithSmallParts has a flush and a new part of the journal at every
// turn. It is part of the long form.
func TestConformsWithSmallParts(t *testing.T) {
	t.Parallel()
	if long(0, 1) == 0 {
		return // it takes a minute
	}
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		cfg := Config{MaxRecord: 2 << 20, MaxHeld: 1, Flush: time.Microsecond, segment: 1000, files: newDisk()}
		return persisttest.Fixture{
			Store:  mustOpen(t, "/store", cfg),
			Reopen: func(t *testing.T) persist.PersistenceService { return mustOpen(t, "/store", cfg) },
			Restore: func(t *testing.T, backup io.Reader) persist.PersistenceService {
				dir := filepath.Join(t.TempDir(), "restored")
				require.NoError(t, Restore(dir, backup))
				return mustOpen(t, dir, Config{})
			},
			MaxRecord: cfg.MaxRecord,
		}
	})
}

func conform(t *testing.T, cfg Config) {
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		dir := filepath.Join(t.TempDir(), "store")
		return persisttest.Fixture{
			Store:        mustOpen(t, dir, cfg),
			Reopen:       func(t *testing.T) persist.PersistenceService { return mustOpen(t, dir, cfg) },
			Damage:       func(t *testing.T, k persist.Key) { damageRecord(t, dir, k) },
			DamageRow:    func(t *testing.T, r persist.Row) { damageRow(t, dir, r) },
			DamageChange: func(t *testing.T, c persist.Change) { damageChange(t, dir, c) },
			Restore: func(t *testing.T, backup io.Reader) persist.PersistenceService {
				dir := filepath.Join(t.TempDir(), "restored")
				require.NoError(t, Restore(dir, backup))
				return mustOpen(t, dir, cfg)
			},
			MaxRecord: cfg.MaxRecord,
		}
	})
}

func mustOpen(t testing.TB, dir string, cfg Config) *Store {
	t.Helper()
	if cfg.LockTimeout == 0 {
		// A child that another test starts just now has all open files, and so the
		// lock of one that is closed meanwhile, until it executes its program.
		cfg.LockTimeout = 10 * time.Second
	}
	s, err := Open(dir, cfg)
	require.NoError(t, err)
	return s
}

// tempStore opens a store in a new folder and closes it with the test. It
// flushes when it is told to.
func tempStore(t testing.TB) *Store {
	s := mustOpen(t, filepath.Join(t.TempDir(), "store"), Config{Flush: -1})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func rooms(name string) persist.Key { return persist.Key{Pod: "rooms", Name: name} }

func create(k persist.Key, state string) persist.Unit {
	return persist.Unit{Key: k, Record: record(1, state), Changes: []persist.Change{{Revision: 1, Type: "made", Codec: "json", Data: []byte(state)}}}
}

func step(k persist.Key, life, expect uint64, state string) persist.Unit {
	return persist.Unit{Key: k, Life: life, Expect: expect, Record: record(expect+1, state),
		Changes: []persist.Change{{Revision: expect + 1, Type: "changed", Codec: "json", Data: []byte(state)}}}
}

func remove(k persist.Key, life, expect uint64) persist.Unit {
	return persist.Unit{Key: k, Life: life, Expect: expect, Delete: true,
		Changes: []persist.Change{{Revision: expect + 1, Type: "deleted"}}}
}

func record(revision uint64, state string) *snapshot.Record {
	return &snapshot.Record{Revision: revision, Reserved: revision, Changed: time.Unix(int64(revision), 5).UTC(), Codec: "json", State: []byte(state)}
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

// entityPath is where an entity's file is.
func entityPath(dir string, k persist.Key) string {
	return filepath.Join(dir, podsName, stem(k.Pod), stem(k.Name)+fileEnd)
}

// change edits a file.
func change(t testing.TB, path string, edit func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, edit(b), 0o600))
}

// flipIn flips a bit behind a text in a file.
func flipIn(t testing.TB, path, text string, behind int) {
	t.Helper()
	change(t, path, func(b []byte) []byte {
		i := indexOf(b, text)
		require.GreaterOrEqual(t, i, 0, "%s has no %q", path, text)
		b[i+len(text)+behind] ^= 0x04
		return b
	})
}

func indexOf(b []byte, text string) int {
	for i := 0; i+len(text) <= len(b); i++ {
		if string(b[i:i+len(text)]) == text {
			return i
		}
	}
	return -1
}

func damageRecord(t testing.TB, dir string, k persist.Key) {
	flipIn(t, entityPath(dir, k), `"codec": "`, 0)
}

func damageRow(t testing.TB, dir string, r persist.Row) {
	flipIn(t, entityPath(dir, r.Key), fmt.Sprintf(`{"kind":%q,"id":%q,"head":"`, r.Kind, r.ID), 13)
}

// damageChange flips a bit in the last byte of a change's line but those of its
// end.
func damageChange(t testing.TB, dir string, c persist.Change) {
	segments, err := filepath.Glob(filepath.Join(dir, journalName, "*"+segmentEnd))
	require.NoError(t, err)
	for _, path := range segments {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, p := range pieces(b) {
			if p.head.Pod == c.Key.Pod && p.head.Name == c.Key.Name && p.head.Position <= c.Position && c.Position <= p.head.last() && len(p.head.Revisions) > 0 {
				b[p.off+int64(p.size)-20] ^= 0x04
				require.NoError(t, os.WriteFile(path, b, 0o600))
				return
			}
		}
	}
	require.Fail(t, "no such change")
}
