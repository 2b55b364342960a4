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

func revisionsOf(t *testing.T, s *Store, k persist.Key) (out []uint64) {
	t.Helper()
	changes, err := s.Changes(ctx, k, 0, 0, 1000)
	require.NoError(t, err)
	for _, c := range changes {
		out = append(out, c.Revision)
	}
	return out
}

func TestADamagedTailIsReadAroundUntilTheNextChangeRebuildsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	cfg := Config{tail: 4}
	s := mustOpen(t, path, cfg)
	o := mustCommit(t, s, create(rooms("a"), "1"), create(rooms("b"), "1"))
	for r := uint64(1); r < 7; r++ {
		mustCommit(t, s, step(rooms("a"), o[0].Life, r, "x"), step(rooms("b"), o[1].Life, r, "x"))
	}
	require.NoError(t, s.Close())
	flip(t, path, tailsBucket, recordKey(rooms("a")), -1)
	s = mustOpen(t, path, cfg)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7}, revisionsOf(t, s, rooms("a")))
	c, err := s.Changes(ctx, rooms("a"), o[0].Life, 3, 2)
	require.NoError(t, err)
	require.Len(t, c, 2)
	require.Equal(t, uint64(3), c[0].Revision)
	require.Len(t, revisionsOf(t, s, rooms("b")), 7)

	mustCommit(t, s, step(rooms("a"), o[0].Life, 7, "8"))
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8}, revisionsOf(t, s, rooms("a")))
}

func TestADamagedTailWithADamagedEventIsAnErrorOfItsEntityAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	o := mustCommit(t, s, event(create(rooms("a"), "1")), event(create(rooms("b"), "1")))
	last := mustCommit(t, s, event(step(rooms("a"), o[0].Life, 1, "2")))[0]
	require.NoError(t, s.Close())
	flip(t, path, tailsBucket, recordKey(rooms("a")), -1)
	flip(t, path, logBucket, positionKey(last.Position), sealSize+5) // its head: it is an event, nobody knows whose
	s = mustOpen(t, path, Config{})
	defer func() { require.NoError(t, s.Close()) }()
	_, err := s.Changes(ctx, rooms("a"), 0, 0, 10)
	require.ErrorIs(t, err, snapshot.ErrCorrupt, "an event must not be passed over")
	require.ErrorContains(t, err, "rooms/a")
	require.Len(t, revisionsOf(t, s, rooms("b")), 1)
	_, err = s.Commit(ctx, []persist.Unit{event(step(rooms("a"), o[0].Life, 2, "3"))})
	require.ErrorIs(t, err, persist.ErrInvalid)
	mustCommit(t, s, persist.Unit{Key: rooms("a"), Delete: true, Force: true, Changes: []persist.Change{{Type: "deleted"}}})
	require.Equal(t, []uint64{1, 2}, revisionsOf(t, s, rooms("a")), "what can be read is filed, with the end behind it")
	mustCommit(t, s, event(step(rooms("b"), o[1].Life, 1, "2")))
}

func TestTrimmingLeavesNoEntryBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{tail: 4})
	var last uint64
	for i := range 5 {
		k := rooms(fmt.Sprint(i))
		o := mustCommit(t, s, create(k, "1"))
		for r := uint64(1); r < uint64(2*i+1); r++ {
			last = mustCommit(t, s, step(k, o[0].Life, r, "x"))[0].Position
		}
	}
	newest, err := s.Load(ctx, rooms("4"))
	require.NoError(t, err)
	require.Equal(t, uint64(9), newest.Revision) // eight entries were moved, one is in the tail
	for r := uint64(9); r < 12; r++ {
		last = mustCommit(t, s, step(rooms("4"), newest.Life, r, "x"))[0].Position
	}
	_, err = s.Trim(ctx, 0, last-2, 1000) // half of the tail, which moves with the next change
	require.NoError(t, err)
	last = mustCommit(t, s, step(rooms("4"), newest.Life, 12, "x"))[0].Position
	require.Equal(t, []uint64{11, 12, 13}, revisionsOf(t, s, rooms("4")))
	_, err = s.Trim(ctx, 0, last, 1000)
	require.NoError(t, err)
	require.NoError(t, s.view(ctx, func(tx *bbolt.Tx) error {
		for _, bucket := range []string{logBucket, changesBucket, tailsBucket} {
			k, _ := tx.Bucket([]byte(bucket)).Cursor().First()
			require.Nil(t, k, bucket)
		}
		return nil
	}))
	require.NoError(t, s.Close())
}
