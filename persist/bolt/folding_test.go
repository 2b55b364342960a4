package bolt

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// steps are changes of an entity, the first at a position of its own, as a log
// folds them.
func steps(k persist.Key, life, from, to uint64) (f persist.Fold) {
	for r := from; r <= to; r++ {
		f.Changes = append(f.Changes, persist.Change{Key: k, Position: life + 3*(r-1), Life: life, Revision: r, Type: "changed", Data: []byte("x")})
	}
	f.Filed = f.Changes
	f.Records = []persist.Stored{{Key: k, Record: lived(to, fmt.Sprint(to), life)}}
	return f
}

// lived is a record of a life.
func lived(revision uint64, state string, life uint64) snapshot.Record {
	r := record(revision, state)
	r.Life = life
	return *r
}

// join makes one batch of two, whose changes stay in the order of positions.
func join(a, b persist.Fold) persist.Fold {
	f := persist.Fold{Batch: persist.Batch{Records: append(a.Records, b.Records...)}}
	for i, j := 0, 0; i < len(a.Changes) || j < len(b.Changes); {
		if j == len(b.Changes) || i < len(a.Changes) && a.Changes[i].Position < b.Changes[j].Position {
			f.Changes, i = append(f.Changes, a.Changes[i]), i+1
		} else {
			f.Changes, j = append(f.Changes, b.Changes[j]), j+1
		}
	}
	f.Filed = f.Changes
	return f
}

func mustFold(t testing.TB, s *Store, f persist.Fold) {
	t.Helper()
	require.NoError(t, s.Fold(ctx, f))
}

func headsOf(t testing.TB, s *Store, names ...string) []persist.Head {
	t.Helper()
	keys := make([]persist.Key, len(names))
	for i, n := range names {
		keys[i] = rooms(n)
	}
	h, err := s.Heads(ctx, keys)
	require.NoError(t, err)
	return h
}

// dump is all that a closed file has in its buckets, by bucket and key.
func dump(t testing.TB, path string) map[string]string {
	out := map[string]string{}
	edit(t, path, func(tx *bbolt.Tx) error {
		for _, bucket := range buckets() {
			if err := tx.Bucket([]byte(bucket)).ForEach(func(k, v []byte) error {
				out[bucket+" "+string(k)] = string(v)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return out
}

func TestAFoldLeavesWhatCommitsLeave(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{tail: 4}
	plain, folded := mustOpen(t, filepath.Join(dir, "plain.db"), cfg), mustOpen(t, filepath.Join(dir, "folded.db"), cfg)
	o := mustCommit(t, plain, create(rooms("a"), "1"), create(rooms("b"), "1"))
	for r := uint64(1); r < 11; r++ {
		mustCommit(t, plain, step(rooms("a"), o[0].Life, r, "x"), step(rooms("b"), o[1].Life, r, "x"))
	}
	log, err := plain.Log(ctx, 0, 100)
	require.NoError(t, err)
	f := persist.Fold{Batch: persist.Batch{Changes: log}, Filed: log}
	for _, name := range []string{"a", "b"} {
		r, err := plain.Load(ctx, rooms(name))
		require.NoError(t, err)
		f.Records = append(f.Records, persist.Stored{Key: rooms(name), Record: r})
	}
	for range 3 {
		mustFold(t, folded, f)
	}
	require.NoError(t, plain.Close())
	require.NoError(t, folded.Close())
	require.Equal(t, dump(t, plain.path), dump(t, folded.path), "tails, too, byte by byte")
}

func TestWhatWasTrimmedLeavesNoEntryWhenItIsFiled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{tail: 4})
	a := steps(rooms("a"), 100, 1, 10)
	mustFold(t, s, persist.Fold{Batch: persist.Batch{Changes: a.Changes}, Filed: a.Filed[:2]})
	_, err := s.Trim(ctx, 0, 1000, 100)
	require.NoError(t, err)
	mustFold(t, s, persist.Fold{Filed: a.Filed[2:]})
	require.NoError(t, s.Close())
	for k := range dump(t, path) {
		require.True(t, strings.HasPrefix(k, metaBucket), "%q", k)
	}
}

func TestADamagedTailDoesNotStopAFold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	cfg := Config{tail: 4}
	s := mustOpen(t, path, cfg)
	mustFold(t, s, join(steps(rooms("a"), 100, 1, 7), steps(rooms("b"), 101, 1, 7)))
	require.NoError(t, s.Close())
	flip(t, path, tailsBucket, recordKey(rooms("a")), -1)
	s = mustOpen(t, path, cfg)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, []persist.Head{{Exists: true, Life: 100, Revision: 7}, {Exists: true, Life: 101, Revision: 7}}, headsOf(t, s, "a", "b"),
		"a commit would make the tail anew")
	more := join(steps(rooms("a"), 100, 6, 10), steps(rooms("b"), 101, 6, 10))
	for range 2 {
		mustFold(t, s, more)
		for _, name := range []string{"a", "b"} {
			require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, revisionsOf(t, s, rooms(name)))
		}
	}
	require.NoError(t, s.view(ctx, func(tx *bbolt.Tx) error {
		k := recordKey(rooms("a"))
		_, err := readTail(k, tx.Bucket([]byte(tailsBucket)).Get(k))
		return err
	}), "the tail is whole")
}

func TestATailThatMayLackAnEventIsItsHeadsErrorAndStopsNoFold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	o := mustCommit(t, s, event(create(rooms("a"), "1")), event(create(rooms("b"), "1")))
	last := mustCommit(t, s, event(step(rooms("a"), o[0].Life, 1, "2")))[0]
	require.NoError(t, s.Close())
	flip(t, path, tailsBucket, recordKey(rooms("a")), -1)
	flip(t, path, logBucket, positionKey(last.Position), sealSize+5) // its head: it is an event, nobody knows whose
	s = mustOpen(t, path, Config{})
	defer func() { require.NoError(t, s.Close()) }()

	h := headsOf(t, s, "b", "a", "none")
	require.Equal(t, persist.Head{Exists: true, Life: o[1].Life, Revision: 1}, h[0])
	require.Equal(t, persist.Head{}, h[2])
	require.True(t, h[1].Exists)
	require.ErrorIs(t, h[1].Err, persist.ErrInvalid)
	require.ErrorContains(t, h[1].Err, "rooms/a")
	u := event(step(rooms("a"), o[0].Life, 2, "3"))
	_, err := s.Commit(ctx, []persist.Unit{u})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorIs(t, h[1].Admits(&u, 0), persist.ErrInvalid, "as a commit says")

	// It was acknowledged before the damage, say.
	a, b := steps(rooms("a"), 1, 3, 4), steps(rooms("b"), o[1].Life, 2, 3)
	for i := range a.Changes {
		a.Changes[i].Position, b.Changes[i].Position = last.Position+1+uint64(2*i), last.Position+2+uint64(2*i)
	}
	for range 2 {
		mustFold(t, s, join(a, b))
		require.Equal(t, []uint64{1, 2, 3}, revisionsOf(t, s, rooms("b")))
		_, err = s.Changes(ctx, rooms("a"), 0, 0, 10)
		require.ErrorIs(t, err, snapshot.ErrCorrupt, "an event must not be passed over")
	}
	require.ErrorIs(t, headsOf(t, s, "a")[0].Err, persist.ErrInvalid)
	mustCommit(t, s, persist.Unit{Key: rooms("a"), Delete: true, Force: true, Changes: []persist.Change{{Type: "deleted"}}})
	require.Equal(t, []uint64{1, 3, 4, 5}, revisionsOf(t, s, rooms("a")), "what was folded is filed")
}

func TestADamagedTailLacksNoEventWhereThereIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	cfg := Config{CommitLog: true}
	s := mustOpen(t, path, cfg)
	f := join(steps(rooms("a"), 100, 1, 3), steps(rooms("b"), 101, 1, 3))
	f.Mark = persist.Mark{Log: 7} // its format is above that of files with events
	mustFold(t, s, f)
	require.NoError(t, s.Close())
	flip(t, path, tailsBucket, recordKey(rooms("a")), -1)
	edit(t, path, func(tx *bbolt.Tx) error { // the seal, which would say that it is none
		b, k := tx.Bucket([]byte(logBucket)), positionKey(103)
		v := bytes.Clone(b.Get(k))
		clear(v[:sealSize])
		return b.Put(k, v)
	})
	s = mustOpen(t, path, cfg)
	defer func() { require.NoError(t, s.Close()) }()
	log, err := s.Log(ctx, 102, 1)
	require.NoError(t, err)
	require.ErrorIs(t, log[0].Err, snapshot.ErrCorrupt)
	require.NoError(t, headsOf(t, s, "a")[0].Err)
	mustFold(t, s, join(steps(rooms("a"), 100, 4, 5), steps(rooms("b"), 101, 4, 5)))
	require.Equal(t, []uint64{1, 3, 4, 5}, revisionsOf(t, s, rooms("a")))
	mustCommit(t, s, step(rooms("a"), 100, 5, "x"))
}

func TestHeadsOfAFileThatIsBeingChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fillWide(t, path)
	s, begin, err := held(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	page, err := s.List(ctx, "rooms", persist.ListOptions{Limit: 3})
	require.NoError(t, err)
	for _, item := range page.Items {
		require.True(t, headsOf(t, s, item.Name)[0].Exists)
	}
	require.Zero(t, headsOf(t, s, "none")[0])
	begin()
	require.NoError(t, s.Verified(ctx))
}

func TestManyLargeRecordsAreReadInChunks(t *testing.T) {
	s := tempStore(t)
	var units []persist.Unit
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint(i), fmt.Sprint("none", i))
		units = append(units, create(rooms(names[2*i]), strings.Repeat("x", chunkBytes/3)))
	}
	mustCommit(t, s, units...)
	for i, h := range headsOf(t, s, names...) {
		require.Equal(t, i%2 == 0, h.Exists)
		require.NoError(t, h.Err)
	}
}

// formatOf reads the format of a closed file.
func formatOf(t testing.TB, path string) (n uint64) {
	edit(t, path, func(tx *bbolt.Tx) (err error) {
		n, _, err = getNumber(tx.Bucket([]byte(metaBucket)), formatKey)
		return err
	})
	return n
}

func TestAFileWithALogInFrontIsOpenedWithItAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	mustCommit(t, s, create(rooms("a"), "A"))
	require.ErrorIs(t, s.Fold(ctx, persist.Fold{Mark: persist.Mark{Log: 7}}), persist.ErrInvalid, "it could not be opened again as it was")
	require.NoError(t, s.Close())
	require.EqualValues(t, formatFirst, formatOf(t, path))

	s = mustOpen(t, path, Config{CommitLog: true})
	require.NoError(t, s.Close())
	require.EqualValues(t, formatFirst, formatOf(t, path), "the first mark makes it another")
	s = mustOpen(t, path, Config{CommitLog: true})
	m := persist.Mark{Log: 7, Through: 12}
	mustFold(t, s, persist.Fold{Mark: m})
	require.NoError(t, s.Close())
	require.EqualValues(t, formatLogged, formatOf(t, path))
	for _, first := range []bool{false, true} {
		_, err := Open(path, Config{VerifyFirst: first})
		require.ErrorIs(t, err, ErrLogged)
		require.NotErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "commitlog.Open")
	}
	s = mustOpen(t, path, Config{NoVerify: true})
	require.Equal(t, "A", state(t, s, rooms("a")), "data can be saved from it all the same")
	require.NoError(t, s.Close())

	// What passes the log by keeps the mark, and the format below is kept.
	s = mustOpen(t, path, Config{CommitLog: true})
	mustCommit(t, s, event(create(rooms("e"), "E")))
	mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7, Through: 13}})
	require.NoError(t, s.Compact(ctx))
	require.NoError(t, s.Close())
	require.EqualValues(t, formatLogged, formatOf(t, path))
	s = mustOpen(t, path, Config{CommitLog: true})
	got, err := s.Mark(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Mark{Log: 7, Through: 13}, got)
	require.EqualValues(t, formatEvents, s.format)

	mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7, Through: 14, Detached: true}})
	require.NoError(t, s.Close())
	require.EqualValues(t, formatEvents, formatOf(t, path))
	s = mustOpen(t, path, Config{})
	got, err = s.Mark(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Mark{Log: 7, Through: 14, Detached: true}, got, "the log knows it again")
	mustCommit(t, s, create(rooms("b"), "B"))
	require.NoError(t, s.Close())
	s = mustOpen(t, path, Config{CommitLog: true})
	mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7, Through: 15}})
	require.NoError(t, s.Close())
	_, err = Open(path, Config{})
	require.ErrorIs(t, err, ErrLogged)
}

func TestDetachLeavesNothingOfTheLog(t *testing.T) {
	for _, events := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "test.db")
		u := create(rooms("a"), "A")
		setEvent(&u.Changes[0], events)
		s := mustOpen(t, path, Config{CommitLog: true})
		mustCommit(t, s, u)
		require.NoError(t, s.Detach(ctx), "nothing is done without a mark")
		require.NoError(t, s.Close())
		before, format := dump(t, path), formatOf(t, path)
		for _, m := range []persist.Mark{{Log: 7, Through: 1}, {Log: 7, Through: 1, Detached: true}} {
			s = mustOpen(t, path, Config{CommitLog: true})
			mustFold(t, s, persist.Fold{Mark: m})
			require.NoError(t, s.Detach(ctx))
			got, err := s.Mark(ctx)
			require.NoError(t, err)
			require.Zero(t, got)
			require.NoError(t, s.Close())
			require.Equal(t, format, formatOf(t, path))
			require.Equal(t, before, dump(t, path))
			s = mustOpen(t, path, Config{})
			require.ErrorIs(t, s.Fold(ctx, persist.Fold{Mark: persist.Mark{Log: 7}}), persist.ErrInvalid)
			require.NoError(t, s.Close())
		}
	}
}

func TestABackupHasNoMark(t *testing.T) {
	for _, m := range []persist.Mark{{}, {Log: 7, Through: 5}, {Log: 7, Through: 5, Detached: true}} {
		path := filepath.Join(t.TempDir(), "test.db")
		s := mustOpen(t, path, Config{CommitLog: true})
		mustFold(t, s, steps(rooms("a"), 100, 1, 40))
		mustCommit(t, s, event(create(rooms("e"), strings.Repeat("E", 10_000))))
		mustFold(t, s, persist.Fold{Mark: m})
		backup := backupOf(t, s)
		got, err := s.Mark(ctx)
		require.NoError(t, err)
		require.Equal(t, m, got, "it stays in the file")
		restored := filepath.Join(t.TempDir(), "restored.db")
		require.NoError(t, Restore(restored, bytes.NewReader(backup)))
		r := mustOpen(t, restored, Config{VerifyFirst: true})
		require.Equal(t, contentsOf(t, s), contentsOf(t, r))
		got, err = r.Mark(ctx)
		require.NoError(t, err)
		require.Zero(t, got)
		require.NoError(t, r.Close())
		require.EqualValues(t, formatEvents, formatOf(t, restored))
		require.NoError(t, s.Close())
		requireAlone(t, path)
	}
}

func TestACopyOfAFileWithALogIsNoBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{CommitLog: true})
	mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7}})
	var raw bytes.Buffer
	require.NoError(t, s.view(ctx, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&raw)
		return err
	}))
	require.NoError(t, s.Close())
	require.ErrorIs(t, Restore(filepath.Join(t.TempDir(), "restored.db"), &raw), ErrLogged)
}

func TestDatabasesOfEarlierVersionsTakeALog(t *testing.T) {
	for fixture, format := range map[string]uint64{"testdata/format1-94bbb85.db.gz": formatFirst, "testdata/format2-first.db.gz": formatEvents} {
		path := unpack(t, fixture)
		s := mustOpen(t, path, Config{CommitLog: true})
		before := contentsOf(t, s)
		mustFold(t, s, persist.Fold{Mark: persist.Mark{Log: 7}})
		require.Equal(t, before, contentsOf(t, s))
		require.NoError(t, s.Close())
		require.EqualValues(t, formatLogged, formatOf(t, path))
		s = mustOpen(t, path, Config{CommitLog: true})
		require.NoError(t, s.Detach(ctx))
		require.NoError(t, s.Close())
		require.Equal(t, format, formatOf(t, path))
		s = mustOpen(t, path, Config{})
		require.Equal(t, before, contentsOf(t, s))
		require.NoError(t, s.Close())
	}
}
