package persisttest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

var ctx = context.Background()

func room(name string) persist.Key { return persist.Key{Pod: "rooms", Name: name} }

func create(name string) persist.Unit {
	return persist.Unit{
		Key:     room(name),
		Record:  &snapshot.Record{Revision: 1, State: []byte(name)},
		Changes: []persist.Change{{Revision: 1, Type: "made"}},
	}
}

func commit(t *testing.T, s persist.PersistenceService, units ...persist.Unit) []persist.Outcome {
	t.Helper()
	o, err := s.Commit(ctx, units)
	require.NoError(t, err)
	return o
}

func has(t *testing.T, s persist.PersistenceService, name string) bool {
	t.Helper()
	_, err := s.Load(ctx, room(name))
	if errors.Is(err, persist.ErrNotFound) {
		return false
	}
	require.NoError(t, err)
	return true
}

func TestCrashKeepsWhatWasSyncedAndCommitsInProgressWhollyOrNotAtAll(t *testing.T) {
	kept := 0
	for seed := range uint64(64) {
		c := persisttest.NewCrashStore()
		commit(t, c, create("synced"))
		var after *persisttest.CrashStore
		c.Pause = func(context.Context) error {
			require.False(t, has(t, c, "a"), "reads show only what is synced")
			after = c.Crash(seed)
			return nil
		}
		_, err := c.Commit(ctx, []persist.Unit{create("a"), create("b")})
		require.ErrorIs(t, err, persist.ErrUnknown)
		_, err = c.Load(ctx, room("synced"))
		require.ErrorIs(t, err, persist.ErrUnavailable, "the old store is gone")
		require.True(t, has(t, after, "synced"))
		require.Equal(t, has(t, after, "a"), has(t, after, "b"))
		if has(t, after, "a") {
			kept++
		}
	}
	require.Greater(t, kept, 10)
	require.Less(t, kept, 54)
}

func TestCrashOfOneSeedIsAlwaysTheSame(t *testing.T) {
	for seed := range uint64(16) {
		var found []bool
		for range 2 {
			c := persisttest.NewCrashStore()
			var after *persisttest.CrashStore
			c.Pause = func(context.Context) error { after = c.Crash(seed); return nil }
			_, err := c.Commit(ctx, []persist.Unit{create("a")})
			require.ErrorIs(t, err, persist.ErrUnknown)
			found = append(found, has(t, after, "a"))
		}
		require.Equal(t, found[0], found[1])
	}
}

func TestAFailedPauseLosesTheCommit(t *testing.T) {
	c := persisttest.NewCrashStore()
	fail := errors.New("no power")
	c.Pause = func(context.Context) error { return fail }
	_, err := c.Commit(ctx, []persist.Unit{create("a")})
	require.ErrorIs(t, err, persist.ErrUnknown)
	require.ErrorIs(t, err, fail)
	require.False(t, has(t, c, "a"))
	require.False(t, has(t, c.Crash(0), "a"))
}

func TestTheStoreAfterACrashGoesItsOwnWay(t *testing.T) {
	c := persisttest.NewCrashStore()
	a := commit(t, c, create("a"))
	one, two := c.Crash(1), c.Crash(1)
	b := commit(t, one, create("b"))
	require.Greater(t, b[0].Life, a[0].Life)
	require.False(t, has(t, two, "b"))
	commit(t, two, create("c"))
	log, err := one.Log(ctx, 0, 10)
	require.NoError(t, err)
	require.Equal(t, "b", log[1].Key.Name)
}

func TestACrashLosesAnImportThatWasNotSynced(t *testing.T) {
	batch := persist.Batch{Records: []persist.Stored{{Key: room("a"), Record: snapshot.Record{Life: 5, Revision: 2}}}, Position: 9}
	kept := 0
	for seed := range uint64(32) {
		c := persisttest.NewCrashStore()
		var after *persisttest.CrashStore
		c.Pause = func(context.Context) error {
			require.False(t, has(t, c, "a"))
			after = c.Crash(seed)
			return nil
		}
		require.ErrorIs(t, c.Import(ctx, batch), persist.ErrUnknown)
		if has(t, after, "a") {
			kept++
		}
		after.Pause = nil
		require.NoError(t, after.Import(ctx, batch), "it may be imported again")
		require.True(t, has(t, after.Crash(0), "a"))
	}
	require.Greater(t, kept, 4)
	require.Less(t, kept, 28)
}

func TestACrashLosesAFoldThatWasNotSynced(t *testing.T) {
	kept := 0
	for seed := range uint64(16) {
		c := persisttest.NewCrashStore()
		commit(t, c, create("a"))
		f := persist.Fold{Deleted: []persist.Key{room("a")}, Mark: persist.Mark{Log: 1, Through: 2}}
		var after *persisttest.CrashStore
		c.Pause = func(context.Context) error {
			m, err := c.Mark(ctx)
			require.NoError(t, err)
			require.Zero(t, m, "reads show only what is synced")
			after = c.Crash(seed)
			return nil
		}
		require.ErrorIs(t, c.Fold(ctx, f), persist.ErrUnknown)
		m, err := after.Mark(ctx)
		require.NoError(t, err)
		require.Equal(t, has(t, after, "a"), m == persist.Mark{}, "whole or not at all")
		if m == f.Mark {
			kept++
		}
		after.Pause = nil
		require.NoError(t, after.Fold(ctx, f), "it may be folded again")
		require.False(t, has(t, after, "a"))
	}
	require.NotZero(t, kept)
	require.Less(t, kept, 16)
}
