package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

func backupOf(t testing.TB, s *Store) []byte {
	var b bytes.Buffer
	require.NoError(t, s.Backup(ctx, &b))
	return b.Bytes()
}

func TestRestoreRefusesWhatIsThere(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	backup := backupOf(t, s)
	for _, there := range []string{s.path, filepath.Join(t.TempDir(), "text")} {
		if there != s.path {
			require.NoError(t, os.WriteFile(there, nil, 0o600))
		}
		before, err := os.ReadFile(there)
		require.NoError(t, err)
		err = Restore(there, bytes.NewReader(backup))
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, there)
		after, err := os.ReadFile(there)
		require.NoError(t, err)
		require.Equal(t, before, after)
		requireAlone(t, there)
	}
	require.Equal(t, "A", state(t, s, rooms("a")))
}

func TestRestoreRefusesWhatIsNoWholeBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fill(t, path)
	s := mustOpen(t, path, Config{})
	backup := backupOf(t, s)
	require.NoError(t, s.Close())
	theirs := filepath.Join(t.TempDir(), "theirs.db")
	edit(t, theirs, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
	other, err := os.ReadFile(theirs)
	require.NoError(t, err)
	spoiled := bytes.Clone(backup)
	m, _, err := readMetas(bytes.NewReader(backup), "the backup") // other pages may be free
	require.NoError(t, err)
	noise(spoiled[m.root*testPage:][:testPage], 3)

	for what, test := range map[string]struct {
		backup []byte
		is     error
	}{
		"nothing":             {nil, ErrDamaged},
		"zeros":               {make([]byte, newFilePages*os.Getpagesize()), ErrDamaged},
		"text":                {[]byte("not a backup"), ErrDamaged},
		"cut in a page":       {backup[:len(backup)-100], ErrDamaged},
		"cut between pages":   {backup[:len(backup)-testPage], ErrDamaged},
		"cut early":           {backup[:testPage+100], ErrDamaged},
		"a page of noise":     {spoiled, ErrDamaged},
		"another's bbolt":     {other, ErrFormat},
		"a reader that fails": {nil, errReader},
	} {
		to := filepath.Join(t.TempDir(), "new.db")
		var r interface{ Read([]byte) (int, error) } = bytes.NewReader(test.backup)
		if errors.Is(test.is, errReader) {
			r = failingReader{bytes.NewReader(backup[:2*testPage])}
		}
		err := Restore(to, r)
		require.ErrorIs(t, err, test.is, what)
		require.ErrorContains(t, err, to, what)
		entries, err := os.ReadDir(filepath.Dir(to))
		require.NoError(t, err)
		require.Empty(t, entries, what)
	}
	to := filepath.Join(t.TempDir(), "new.db")
	require.NoError(t, Restore(to, bytes.NewReader(backup)))
	requireAlone(t, to)
	direct := filepath.Join(t.TempDir(), "direct.db")
	require.NoError(t, os.WriteFile(direct, backup, 0o600))
	for _, path := range []string{to, direct} { // a backup is a file of the store
		s := mustOpen(t, path, Config{})
		require.Contains(t, state(t, s, rooms("r30")), "r30")
		mustCommit(t, s, create(rooms("new"), "x"))
		require.NoError(t, s.Close())
	}
}

var errReader = errors.New("the line is cut")

type failingReader struct{ r *bytes.Reader }

func (f failingReader) Read(b []byte) (int, error) {
	if f.r.Len() == 0 {
		return 0, errReader
	}
	return f.r.Read(b)
}

func TestABackupGivesWayToClosing(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "test.db"), Config{})
	mustCommit(t, s, create(rooms("a"), strings.Repeat("x", 1<<20)))
	s.leaving.Store(true) // as while somebody waits to close the file
	err := s.Backup(ctx, new(bytes.Buffer))
	require.ErrorIs(t, err, persist.ErrUnavailable)
	s.leaving.Store(false)
	require.NotEmpty(t, backupOf(t, s))
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Backup(ctx, new(bytes.Buffer)), persist.ErrUnavailable)
	requireAlone(t, s.path)
}

// What waits for a backup to begin does not wait for the copy.
func TestABackupTellsThatItHasBegunBeforeItCopies(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), strings.Repeat("x", 1<<20)))
	var b bytes.Buffer
	begun := 0
	err := s.BackupTelling(ctx, &b, func() {
		begun++
		s.leaving.Store(true) // ends a copy, and nothing else
	})
	s.leaving.Store(false)
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.Equal(t, 1, begun)
	require.Zero(t, b.Len())
}

func TestCompactGivesRoomBack(t *testing.T) {
	s := tempStore(t)
	require.NoError(t, os.Chmod(s.path, 0o640))
	var units []persist.Unit
	for i := range 2000 {
		units = append(units, create(rooms(fmt.Sprintf("r%04d", i)), fmt.Sprintf("%01000d", i)))
	}
	o := mustCommit(t, s, units...)
	units = nil
	for i := range 1950 {
		units = append(units, persist.Unit{Key: rooms(fmt.Sprintf("r%04d", i)), Life: o[i].Life, Expect: 1, Delete: true})
	}
	mustCommit(t, s, units...)
	_, err := s.Trim(ctx, 0, o[1949].Position, 5000)
	require.NoError(t, err)
	before, err := os.Stat(s.path)
	require.NoError(t, err)
	require.NoError(t, s.Compact(ctx))
	after, err := os.Stat(s.path)
	require.NoError(t, err)
	require.Less(t, after.Size(), before.Size()/8)
	require.Equal(t, before.Mode(), after.Mode())
	requireAlone(t, s.path)
	_, err = Open(s.path, Config{})
	require.ErrorIs(t, err, ErrLocked, "the new file is locked")
	mustCommit(t, s, step(rooms("r1999"), o[1999].Life, 1, "goes on"))
	require.NoError(t, s.Close())
	s = mustOpen(t, s.path, Config{})
	require.Equal(t, "goes on", state(t, s, rooms("r1999")))
	require.NoError(t, s.Close())
}

func TestCompactThatCannotFinishLeavesTheFileAsItWas(t *testing.T) {
	s := tempStore(t)
	var units []persist.Unit
	for i := range 100 {
		units = append(units, create(rooms(fmt.Sprintf("r%03d", i)), fmt.Sprintf("<r%03d>%01000d", i, i)))
	}
	o := mustCommit(t, s, units...)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, s.Compact(cancelled))
	require.NoError(t, os.Mkdir(compactPath(s.path), 0o700)) // nothing can be made there
	require.NoError(t, os.WriteFile(filepath.Join(compactPath(s.path), "x"), nil, 0o600))
	require.Error(t, s.Compact(ctx))
	require.NoError(t, os.RemoveAll(compactPath(s.path)))
	mustCommit(t, s, step(rooms("r000"), o[0].Life, 1, "goes on"))
	require.NoError(t, s.Compact(ctx))
	require.Equal(t, "goes on", state(t, s, rooms("r000")))
	requireAlone(t, s.path)
}

func TestWhatACompactLeftThatWasCutOffIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	require.NoError(t, os.WriteFile(compactPath(path), []byte("half"), 0o600))
	require.NoError(t, mustOpen(t, path, Config{}).Close())
	requireAlone(t, path)
}

func TestAFileThatWasReplacedWhileItWasOpenedIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	require.NoError(t, mustOpen(t, path, Config{}).Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, mustOpen(t, path, Config{}).Close())
	_, _, err = prepare(f, path, Config{})
	require.ErrorIs(t, err, ErrLocked, "else two stores would write, one of them to nowhere")
}
