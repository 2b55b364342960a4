package bolt

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

func TestAPageDamagedUnderTheStoreIsTheErrorOfItsHeadsAlone(t *testing.T) {
	s := tempStore(t)
	var units []persist.Unit
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("r%02d", i))
		units = append(units, persist.Unit{Key: rooms(names[i]), Record: record(1, fmt.Sprintf("<r%02d>%200d", i, i))})
	}
	mustCommit(t, s, units...)
	overwrite(t, s, "<r05>")
	bad := 0
	for i, h := range headsOf(t, s, names...) {
		u := step(rooms(names[i]), h.Life, 1, "new")
		if h.Err != nil {
			bad++
			require.ErrorIs(t, h.Err, ErrDamaged)
			require.ErrorIs(t, h.Admits(&u, 0), persist.ErrInvalid)
			u = create(rooms(names[i]), "blank")
			require.ErrorIs(t, h.Admits(&u, 0), persist.ErrInvalid)
			continue
		}
		require.True(t, h.Exists)
		require.NoError(t, h.Admits(&u, 0))
	}
	require.Greater(t, bad, 5)
	require.Less(t, bad, 40)

	stored := func(i int) persist.Stored { return persist.Stored{Key: rooms(names[i]), Record: lived(2, "new", 1)} }
	err := s.Fold(ctx, persist.Fold{Batch: persist.Batch{Records: []persist.Stored{stored(55), stored(5)}}})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorIs(t, err, ErrDamaged)
	require.Contains(t, state(t, s, rooms("r55")), "<r55>", "nothing of it was taken")
	mustFold(t, s, persist.Fold{Batch: persist.Batch{Records: []persist.Stored{stored(55)}}})
	require.Equal(t, "new", state(t, s, rooms("r55")))
}

func TestAFullTailOnADamagedPageIsItsHeadsError(t *testing.T) {
	s := mustOpen(t, t.TempDir()+"/test.db", Config{tail: 4})
	defer func() { _ = s.Close() }()
	a, b := steps(rooms("a"), 100, 1, 400), steps(rooms("b"), 101, 1, 3)
	mustFold(t, s, join(a, b))
	prefix := string(changesPrefix(rooms("a")))
	overwrite(t, s, prefix+"\x00\x00\x00\x00\x00\x00\x00\x64\x00\x00\x00\x00\x00\x00\x01\x8c") // of the last that has moved
	h := headsOf(t, s, "a", "b")
	require.ErrorIs(t, h[0].Err, persist.ErrInvalid)
	require.ErrorIs(t, h[0].Err, ErrDamaged)
	require.Equal(t, persist.Head{Exists: true, Life: 101, Revision: 3}, h[1])
	_, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), 100, 400, "x")})
	require.ErrorIs(t, err, persist.ErrInvalid, "as a commit says")
	mustCommit(t, s, step(rooms("b"), 101, 3, "x"))
}

func TestADamagedTailStopsNoFoldWhenTheLogIsDamagedToo(t *testing.T) {
	path := t.TempDir() + "/test.db"
	s := mustOpen(t, path, Config{})
	a, b := steps(rooms("a"), 100, 1, 100), steps(rooms("b"), 101, 1, 100)
	for i := range b.Changes {
		b.Changes[i].Data = fmt.Appendf(nil, "<log%d>%0200d", i, i)
	}
	mustFold(t, s, join(a, b))
	require.NoError(t, s.Close())
	flip(t, path, tailsBucket, recordKey(rooms("a")), -1)
	s = mustOpen(t, path, Config{})
	defer func() { _ = s.Close() }()
	require.NoError(t, s.Verified(ctx))
	overwrite(t, s, "<log50>")
	h := headsOf(t, s, "a", "b")
	require.ErrorIs(t, h[0].Err, persist.ErrInvalid)
	require.ErrorIs(t, h[0].Err, ErrDamaged)
	require.Equal(t, persist.Head{Exists: true, Life: 101, Revision: 100}, h[1])
	got, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), 100, 100, "x")})
	require.ErrorIs(t, err, persist.ErrInvalid, "as a commit says: %v", got)
	mustFold(t, s, join(steps(rooms("a"), 100, 101, 102), steps(rooms("b"), 101, 101, 102)))
	c, err := s.Changes(ctx, rooms("b"), 101, 101, 10)
	require.NoError(t, err)
	require.Len(t, c, 2)
	mustCommit(t, s, step(rooms("b"), 101, 102, "x"))
}

func TestAFoldOfUnknownOutcomeLeavesTheMarkToReopening(t *testing.T) {
	s := mustOpen(t, t.TempDir()+"/test.db", Config{CommitLog: true})
	defer func() { _ = s.Close() }()
	mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7, Through: 1}})
	cannotWrite(t, s)
	f := steps(rooms("a"), 100, 1, 3)
	f.Mark = persist.Mark{Log: 7, Through: 2}
	require.ErrorIs(t, s.Fold(ctx, f), persist.ErrUnknown)
	_, err := s.Mark(ctx)
	require.ErrorIs(t, err, persist.ErrUnavailable)
	_, err = s.Heads(ctx, []persist.Key{rooms("a")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.NoError(t, s.Reopen(ctx))
	m, err := s.Mark(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Mark{Log: 7, Through: 1}, m)
	mustFold(t, s, f)
	require.Equal(t, []uint64{1, 2, 3}, revisionsOf(t, s, rooms("a")))
}
