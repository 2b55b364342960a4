package persisttest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

func named(names ...string) func(persist.Unit) bool {
	return func(u persist.Unit) bool {
		for _, n := range names {
			if u.Key == room(n) {
				return true
			}
		}
		return false
	}
}

func TestFaultsOfACall(t *testing.T) {
	for _, test := range []struct {
		fault           persisttest.Fault
		is              error
		applied, broken bool
	}{
		{persisttest.FailBefore, persist.ErrUnavailable, false, false},
		{persisttest.UnknownApplied, persist.ErrUnknown, true, true},
		{persisttest.UnknownLost, persist.ErrUnknown, false, true},
		{persisttest.RefuseGroup, persist.ErrInvalid, false, false},
	} {
		f := persisttest.NewFaultStore(persisttest.NewMemory())
		f.OnCommit(2, test.fault)
		commit(t, f, create("a"))
		_, err := f.Commit(ctx, []persist.Unit{create("b"), create("c")})
		require.ErrorIs(t, err, test.is)
		_, err = f.Load(ctx, room("a"))
		if test.broken {
			require.ErrorIs(t, err, persist.ErrUnavailable)
			_, err = f.Commit(ctx, []persist.Unit{create("d")})
			require.ErrorIs(t, err, persist.ErrUnavailable)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, f.Reopen(ctx))
		require.Equal(t, test.applied, has(t, f, "b"))
		require.Equal(t, test.applied, has(t, f, "c"))
		commit(t, f, create("d"))
	}
}

func TestFaultsOfUnits(t *testing.T) {
	f := persisttest.NewFaultStore(persisttest.NewMemory())
	stop := f.OnUnits(named("b"), persisttest.RefuseUnit)
	f.OnUnits(named("d"), persisttest.ConflictUnit)
	o := commit(t, f, create("a"), create("b"), create("c"), create("d"))
	require.NoError(t, o[0].Err)
	require.ErrorIs(t, o[1].Err, persist.ErrInvalid)
	require.ErrorContains(t, o[1].Err, "rooms/b")
	require.NoError(t, o[2].Err)
	require.ErrorIs(t, o[3].Err, persist.ErrConflict)
	require.False(t, has(t, f, "b"))
	require.True(t, has(t, f, "c"))
	stop()
	require.NoError(t, commit(t, f, create("b"))[0].Err)

	f.OnCommit(f.Commits()+1, persisttest.RefuseUnit)
	o = commit(t, f, create("e"), create("f"))
	require.ErrorIs(t, o[0].Err, persist.ErrInvalid)
	require.ErrorIs(t, o[1].Err, persist.ErrInvalid)
}

func TestAGroupWithAGuiltyUnitCanBeBisected(t *testing.T) {
	f := persisttest.NewFaultStore(persisttest.NewMemory())
	f.OnUnits(named("c"), persisttest.RefuseGroup)
	_, err := f.Commit(ctx, []persist.Unit{create("a"), create("b"), create("c"), create("d")})
	require.ErrorIs(t, err, persist.ErrInvalid)
	commit(t, f, create("a"), create("b"))
	_, err = f.Commit(ctx, []persist.Unit{create("c"), create("d")})
	require.ErrorIs(t, err, persist.ErrInvalid)
	_, err = f.Commit(ctx, []persist.Unit{create("c")})
	require.ErrorIs(t, err, persist.ErrInvalid)
	commit(t, f, create("d"))
	require.False(t, has(t, f, "c"))
	require.True(t, has(t, f, "d"))
}

func TestReopensFailAsOftenAsTold(t *testing.T) {
	f := persisttest.NewFaultStore(persisttest.NewMemory())
	f.Break()
	f.FailReopens(2)
	require.ErrorIs(t, f.Reopen(ctx), persist.ErrUnavailable)
	require.ErrorIs(t, f.Reopen(ctx), persist.ErrUnavailable)
	_, err := f.Load(ctx, room("a"))
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.NoError(t, f.Reopen(ctx))
	require.Equal(t, 3, f.Reopens())
	commit(t, f, create("a"))
}

func TestAHealingStoreStaysInService(t *testing.T) {
	f := persisttest.NewFaultStore(persisttest.NewMemory())
	s := f.Healing()
	_, can := s.(persist.Reopener)
	require.False(t, can)
	f.OnCommit(1, persisttest.UnknownApplied)
	_, err := s.Commit(ctx, []persist.Unit{create("a")})
	require.ErrorIs(t, err, persist.ErrUnknown)
	require.True(t, has(t, s, "a"))
}

func TestFaultsOfLoads(t *testing.T) {
	f := persisttest.NewFaultStore(persisttest.NewMemory())
	commit(t, f, create("a"), create("b"))
	stop := f.OnLoads(func(k persist.Key) bool { return k == room("b") }, snapshot.ErrCorrupt)
	require.True(t, has(t, f, "a"))
	_, err := f.Load(ctx, room("b"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	require.ErrorContains(t, err, "rooms/b")
	page, err := f.List(ctx, "rooms", persist.ListOptions{})
	require.NoError(t, err)
	items := page.Items
	require.NoError(t, items[0].Err)
	require.ErrorIs(t, items[1].Err, snapshot.ErrCorrupt)
	stop()
	require.True(t, has(t, f, "b"))
}

func TestPauseRunsBeforeAnythingIsApplied(t *testing.T) {
	f := persisttest.NewFaultStore(persisttest.NewMemory())
	var fail error
	paused := 0
	f.Pause = func(context.Context) error {
		paused++
		require.False(t, has(t, f, "a"))
		return fail
	}
	fail = errors.New("cancelled")
	_, err := f.Commit(ctx, []persist.Unit{create("a")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.ErrorIs(t, err, fail)
	fail = nil
	commit(t, f, create("a"))
	require.True(t, has(t, f, "a"))
	require.Equal(t, 2, paused)
}

func TestFaultsOfImportsAndBackups(t *testing.T) {
	batch := persist.Batch{Records: []persist.Stored{{Key: room("a"), Record: snapshot.Record{Life: 5, Revision: 2, State: []byte("a")}}}}
	for _, taken := range []bool{true, false} {
		f := persisttest.NewFaultStore(persisttest.NewMemory())
		stop := f.OnImports(persist.ErrUnknown, taken)
		require.ErrorIs(t, f.Import(ctx, batch), persist.ErrUnknown)
		require.Equal(t, taken, has(t, f, "a"))
		stop()
		require.NoError(t, f.Import(ctx, batch))
		require.True(t, has(t, f, "a"))
		f.Break()
		require.ErrorIs(t, f.Import(ctx, batch), persist.ErrUnavailable)
		require.ErrorIs(t, f.Backup(ctx, io.Discard), persist.ErrUnavailable)
		require.NoError(t, f.Reopen(ctx))
		var backup bytes.Buffer
		require.NoError(t, f.Backup(ctx, &backup))
		restored, err := persisttest.Restore(ctx, bytes.NewReader(backup.Bytes()))
		require.NoError(t, err)
		require.True(t, has(t, restored, "a"))
		_, err = persisttest.Restore(ctx, bytes.NewReader(backup.Bytes()[:backup.Len()-10]))
		require.Error(t, err, "half a backup")
	}
	f := persisttest.NewFaultStore(persisttest.NewFaultStore(persisttest.NewMemory()).Healing())
	require.ErrorIs(t, f.Import(ctx, batch), persist.ErrInvalid, "the store inside has no such ability")
	require.Error(t, f.Backup(ctx, io.Discard))
}
