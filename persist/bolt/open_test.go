package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

func TestANewerFormatIsRefusedAsSuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	mustCommit(t, s, create(rooms("a"), "A"))
	require.NoError(t, s.Close())
	edit(t, path, func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte("another")); err != nil {
			return err
		}
		// The newer layout's values need not look like this one's.
		if err := tx.Bucket([]byte(recordsBucket)).Put([]byte("rooms\x00z"), []byte("?")); err != nil {
			return err
		}
		return putNumber(tx.Bucket([]byte(metaBucket)), formatKey, formatVersion+1)
	})
	for _, noVerify := range []bool{false, true} {
		_, err := Open(path, Config{NoVerify: noVerify})
		require.ErrorIs(t, err, ErrFormat)
		require.NotErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, fmt.Sprint("version ", formatVersion+1))
		require.ErrorContains(t, err, "newer program")
	}
}

func TestAnotherProgramsFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	edit(t, path, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = Open(path, Config{})
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "theirs")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after, "it was not touched")

	text := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte("not a database"), 0o600))
	_, err = Open(text, Config{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, text)
}

func TestAMissingBucketIsDamage(t *testing.T) {
	for _, bucket := range []string{recordsBucket, logBucket, changesBucket, tailsBucket, rowsBucket} {
		path := filepath.Join(t.TempDir(), "test.db")
		require.NoError(t, mustOpen(t, path, Config{}).Close())
		edit(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucket)) })
		_, err := Open(path, Config{})
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, bucket)
	}
}

func TestAFileThatWasNeverCommittedToIsNew(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{"empty": {}, "zeros": make([]byte, newFilePages*os.Getpagesize())} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		s := mustOpen(t, path, Config{})
		mustCommit(t, s, create(rooms("a"), "A"))
		require.NoError(t, s.Close())
	}
	path := filepath.Join(dir, "pages of bbolt alone")
	edit(t, path, func(*bbolt.Tx) error { return nil })
	s := mustOpen(t, path, Config{})
	mustCommit(t, s, create(rooms("a"), "A"))
	require.NoError(t, s.Close())
}

func TestAMissingFolderIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "such", "test.db")
	_, err := Open(path, Config{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
}

func TestAnUnsyncedFreeListIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(*bbolt.Tx) error { return nil }))
	require.NoError(t, db.Close())
	s := mustOpen(t, path, Config{NoVerify: true})
	for name, want := range names {
		require.Equal(t, want, state(t, s, rooms(name)))
	}
	require.NoError(t, s.Close())
	page := usedPages(t, path) / 2
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(*bbolt.Tx) error { return nil }))
	require.NoError(t, db.Close())
	for page := range page {
		bad := damagedCopy(t, path, page, func(b []byte) { noise(b[page*testPage:][:testPage], 9) })
		if s, err := Open(bad, Config{NoVerify: true}); err == nil {
			require.NoError(t, s.Close())
		}
	}
}

// fakeDisk has what its file shows and what a power loss leaves of it. A page
// whose sync failed is shown and counts as written, but is not on the disk: a
// later sync does not bring it there.
type fakeDisk struct {
	shown, kept []byte
	dirty       [][2]int64
	fail        bool
}

func (d *fakeDisk) ReadAt(b []byte, off int64) (int, error) { return copy(b, d.shown[off:]), nil }

func (d *fakeDisk) WriteAt(b []byte, off int64) (int, error) {
	d.dirty = append(d.dirty, [2]int64{off, off + int64(len(b))})
	return copy(d.shown[off:], b), nil
}

func (d *fakeDisk) Sync() error {
	dirty := d.dirty
	d.dirty = nil
	if d.fail {
		return errors.New("input/output error")
	}
	for _, r := range dirty {
		copy(d.kept[r[0]:r[1]], d.shown[r[0]:r[1]])
	}
	return nil
}

func TestTheNewestMetaPageIsDurableBeforeAnythingIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	mustCommit(t, s, create(rooms("a"), "A"))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	// The meta page's sync failed: the commit's other pages are on the disk.
	m, ok, err := readMetas(&fakeDisk{shown: after}, path)
	require.NoError(t, err)
	require.True(t, ok)
	d := &fakeDisk{shown: after, kept: append([]byte(nil), after...)}
	at := int64(m.page) * m.pageSize
	copy(d.kept[at:], before[at:at+m.pageSize])
	require.NoError(t, d.Sync())
	require.NotEqual(t, d.shown, d.kept, "a sync alone does not help")

	d.fail = true
	require.Error(t, settle(d, m, path))
	d.fail = false
	require.NoError(t, settle(d, m, path))
	require.Equal(t, d.shown, d.kept)
}

func TestReadsShowOnlyWhatIsDurable(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	newest := s.durable.Load()
	s.durable.Store(newest - 1) // as while the newest transaction is being synced
	s.turn <- struct{}{}
	released := false
	defer func() {
		if !released {
			s.release()
		}
	}()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err := s.Load(short, rooms("a"))
	require.ErrorIs(t, err, persist.ErrUnavailable, "the read waits for the sync")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	loaded := make(chan error, 1)
	go func() {
		_, err := s.Load(ctx, rooms("a"))
		loaded <- err
	}()
	s.durable.Store(newest)
	released = true
	s.release()
	require.NoError(t, <-loaded)
}

func TestPositionsAndKindsOfRowsOutliveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	u := create(rooms("a"), "A")
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("x")}}
	o := mustCommit(t, s, u)
	require.NoError(t, s.Close())
	s = mustOpen(t, path, Config{})
	defer func() { require.NoError(t, s.Close()) }()
	next := mustCommit(t, s, persist.Unit{Key: rooms("a"), Life: o[0].Life, Expect: 1, Delete: true})
	require.Greater(t, next[0].Position, o[0].Position)
	rows, err := s.Rows(ctx, "outbox", nil, 10)
	require.NoError(t, err)
	require.Empty(t, rows)
}

func TestACallWithNothingToApplyWritesNothing(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	before := s.durable.Load()
	o, err := s.Commit(ctx, []persist.Unit{create(rooms("a"), "again"), create(rooms("\x00"), "bad")})
	require.NoError(t, err)
	require.ErrorIs(t, o[0].Err, persist.ErrConflict)
	require.ErrorIs(t, o[1].Err, persist.ErrInvalid)
	n, err := s.Trim(ctx, 0, 0, 10)
	require.NoError(t, err)
	require.Zero(t, n.Dropped)
	var txid int
	require.NoError(t, s.view(ctx, func(tx *bbolt.Tx) error { txid = tx.ID(); return nil }))
	require.Equal(t, before, uint64(txid))
}

func TestUntouchedIsAFileWithItsMetaPagesWhole(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	require.True(t, s.untouched(s.file))
	newest := s.durable.Load()
	s.durable.Store(newest - 1)
	require.False(t, s.untouched(s.file), "a newer transaction has been written")
	s.durable.Store(newest)
	for page := range int64(2) {
		at := page * int64(s.db.Info().PageSize)
		was, other := make([]byte, 1), []byte{0}
		_, err := s.file.ReadAt(was, at+40)
		require.NoError(t, err)
		other[0] = was[0] ^ 1
		_, err = s.file.WriteAt(other, at+40)
		require.NoError(t, err)
		require.False(t, s.untouched(s.file), "page %d was half written", page)
		_, err = s.file.WriteAt(was, at+40)
		require.NoError(t, err)
	}
	require.True(t, s.untouched(s.file))
}
