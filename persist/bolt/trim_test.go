package bolt

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

func event(u persist.Unit) persist.Unit {
	for i := range u.Changes {
		u.Changes[i].Event = true
	}
	return u
}

// length returns how many bytes a value of a closed file has.
func length(t testing.TB, path, bucket string, key []byte) (n int) {
	edit(t, path, func(tx *bbolt.Tx) error {
		n = len(tx.Bucket([]byte(bucket)).Get(key))
		return nil
	})
	return n
}

func TestADamagedEventStaysWhileItsLifeMayLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	o := mustCommit(t, s, event(create(rooms("a"), "one")), create(rooms("b"), "B"))
	last := mustCommit(t, s, event(step(rooms("a"), o[0].Life, 1, "two")))[0]
	require.NoError(t, s.Close())
	key := positionKey(last.Position)
	size := length(t, path, logBucket, key)
	dropped := 0
	for index := range size {
		bad := damagedCopy(t, path, index, func([]byte) {})
		flip(t, bad, logBucket, key, index)
		s := mustOpen(t, bad, Config{})
		trimmed, err := s.Trim(ctx, 0, last.Position, 10)
		require.NoError(t, err)
		require.Equal(t, 1, trimmed.Dropped, "b's state; byte %d of %d is damaged", index, size)
		c, err := s.Changes(ctx, rooms("a"), o[0].Life, 0, 10)
		require.NoError(t, err)
		require.Len(t, c, 2, "recovery must not take the first event for the last")
		require.NoError(t, c[0].Err)
		require.ErrorIs(t, c[1].Err, snapshot.ErrCorrupt)
		require.ErrorContains(t, c[1].Err, "rooms/a")
		require.Equal(t, uint64(2), c[1].Revision)
		require.True(t, c[1].Event)

		mustCommit(t, s, persist.Unit{Key: rooms("a"), Delete: true, Force: true})
		trimmed, err = s.Trim(ctx, 0, last.Position, 10)
		require.NoError(t, err)
		require.GreaterOrEqual(t, trimmed.Dropped, 1)
		dropped += trimmed.Dropped - 1
		require.NoError(t, s.Close())
	}
	require.Greater(t, dropped, 4, "whose an event is, is known when its data alone is damaged")
	require.Less(t, dropped, size)
}

func TestTheFirstEventMakesTheFileUnreadableForProgramsThatWouldTrimIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	format := func() (n uint64) {
		edit(t, path, func(tx *bbolt.Tx) (err error) {
			n, _, err = getNumber(tx.Bucket([]byte(metaBucket)), formatKey)
			return err
		})
		return n
	}
	s := mustOpen(t, path, Config{})
	o := mustCommit(t, s, create(rooms("a"), "one"))
	require.NoError(t, s.Close())
	require.EqualValues(t, formatFirst, format())
	s = mustOpen(t, path, Config{})
	mustCommit(t, s, event(step(rooms("a"), o[0].Life, 1, "two")))
	mustCommit(t, s, step(rooms("a"), o[0].Life, 2, "three"))
	require.NoError(t, s.Close())
	require.EqualValues(t, formatEvents, format())
	s = mustOpen(t, path, Config{})
	require.Equal(t, []uint64{1, 2, 3}, revisionsOf(t, s, rooms("a")))
	require.NoError(t, s.Close())
	require.EqualValues(t, formatEvents, format())
}

func TestHolesInTheJournalAreNoDamageAndLostChangesAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	cfg := Config{tail: 4}
	s := mustOpen(t, path, cfg)
	o := mustCommit(t, s, event(create(rooms("e"), "1")), create(rooms("a"), "1"))
	for r := uint64(1); r < 11; r++ {
		mustCommit(t, s, step(rooms("a"), o[1].Life, r, fmt.Sprint(r+1)))
	}
	log, err := s.Log(ctx, 0, 100)
	require.NoError(t, err)
	trimmed, err := s.Trim(ctx, 0, log[9].Position, 100) // a's entries in the tail lose their changes too
	require.NoError(t, err)
	require.Equal(t, 9, trimmed.Dropped)
	for range 2 {
		require.Equal(t, []uint64{10, 11}, revisionsOf(t, s, rooms("a")))
		require.Equal(t, []uint64{1}, revisionsOf(t, s, rooms("e")))
		require.NoError(t, s.Close())
		s = mustOpen(t, path, cfg)
	}
	for r := uint64(11); r < 14; r++ { // the tail is moved
		mustCommit(t, s, step(rooms("a"), o[1].Life, r, "x"))
	}
	require.Equal(t, []uint64{10, 11, 12, 13, 14}, revisionsOf(t, s, rooms("a")))
	require.NoError(t, s.Close())

	edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(logBucket)).Delete(positionKey(log[11].Position)) })
	s = mustOpen(t, path, cfg)
	c, err := s.Changes(ctx, rooms("a"), 0, 0, 100)
	require.NoError(t, err)
	require.Len(t, c, 5)
	require.ErrorIs(t, c[1].Err, snapshot.ErrCorrupt)
	require.ErrorContains(t, c[1].Err, "missing")
	require.Equal(t, uint64(11), c[1].Revision)
	require.NoError(t, s.Close())
}
