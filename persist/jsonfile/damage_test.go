package jsonfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// filled makes a closed store of two entities, the first with a row.
func filled(t *testing.T) (dir string, o []persist.Outcome) {
	dir = t.TempDir()
	s := mustOpen(t, dir, Config{})
	u := create(rooms("a"), `{"celsius":21.5,"floor":"3"}`)
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte(`{"to":"b"}`)}}
	o = mustCommit(t, s, u, create(rooms("b"), `{"celsius":1}`))
	require.NoError(t, s.Close())
	return dir, o
}

func TestAnyDamageToAFileIsItsEntitysAlone(t *testing.T) {
	dir, o := filled(t)
	path := entityPath(dir, rooms("a"))
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	damages := map[string][]byte{"empty": {}, "zeros": make([]byte, len(good)), "doubled": append(bytes.Clone(good), good...),
		"an edit": bytes.Replace(good, []byte("21.5"), []byte("22.5"), 1)}
	for i := 0; i < len(good); i += 7 {
		damages["cut"+string(rune(i))] = good[:i]
		flipped := bytes.Clone(good)
		flipped[i] ^= 1 << (i % 8)
		damages["flipped"+string(rune(i))] = flipped
	}
	for what, bad := range damages {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		s := mustOpen(t, dir, Config{Flush: -1})
		require.JSONEq(t, `{"celsius":1}`, state(t, s, rooms("b")))
		r, err := s.Load(ctx, rooms("a"))
		if err == nil { // a row or the last checksum alone
			require.JSONEq(t, `{"celsius":21.5,"floor":"3"}`, string(r.State))
			rows, err := s.RowsOf(ctx, rooms("a"))
			require.NoError(t, err)
			require.Len(t, rows, 1)
			require.True(t, rows[0].Err != nil || string(rows[0].Value) == `{"to":"b"}`)
		} else {
			require.ErrorIs(t, err, snapshot.ErrCorrupt, what)
			require.ErrorContains(t, err, path)
			page, err := s.List(ctx, "rooms", persist.ListOptions{})
			require.NoError(t, err)
			require.Len(t, page.Items, 2)
			require.ErrorIs(t, page.Items[0].Err, snapshot.ErrCorrupt)
			got, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), o[0].Life, 1, "{}"), create(rooms("a"), "{}")})
			require.NoError(t, err)
			require.ErrorIs(t, got[0].Err, persist.ErrConflict)
			require.ErrorIs(t, got[1].Err, persist.ErrConflict)
		}
		require.NoError(t, s.Close())
		require.NoError(t, os.WriteFile(path, good, 0o600))
	}
	s := mustOpen(t, dir, Config{Flush: -1})
	require.Equal(t, `{"celsius":21.5,"floor":"3"}`, state(t, s, rooms("a")))
	require.NoError(t, s.Close())
}

func TestAnEditIsAChangeWhenItSaysSo(t *testing.T) {
	dir, o := filled(t)
	path := entityPath(dir, rooms("a"))
	edit := func(b []byte) []byte { return bytes.Replace(b, []byte("21.5"), []byte("22.5"), 1) }
	change(t, path, edit)
	s := mustOpen(t, dir, Config{})
	_, err := s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	require.ErrorContains(t, err, `"edited"`, "it says what to do")
	require.NoError(t, s.Close())

	change(t, path, func(b []byte) []byte {
		i := strings.LastIndex(string(b), "crc32c")
		return append(append(b[:i:i], edited...), b[i+len("crc32c 01234567"):]...)
	})
	for range 2 {
		s = mustOpen(t, dir, Config{Flush: -1})
		r, err := s.Load(ctx, rooms("a"))
		require.NoError(t, err)
		require.Equal(t, uint64(2), r.Revision)
		require.Equal(t, `{"celsius":22.5,"floor":"3"}`, string(r.State))
		changes, err := s.Changes(ctx, rooms("a"), o[0].Life, 0, 10)
		require.NoError(t, err)
		require.Len(t, changes, 2)
		require.Equal(t, "edited", changes[1].Type)
		rows, err := s.RowsOf(ctx, rooms("a"))
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.NoError(t, s.Close())
	}
}

// A file that was renamed, or copied where another was removed, leaves the number
// of files as it is. The entity that has none now would pass for absent.
func TestRenamedFilesAreNoticed(t *testing.T) {
	for how, harm := range map[string]func(a, b, other string) error{
		"renamed": func(a, _, other string) error { return os.Rename(a, other) },
		"copied where one was removed": func(a, b, other string) error {
			content, err := os.ReadFile(b)
			return errors.Join(err, os.Remove(a), os.WriteFile(other, content, 0o600))
		},
	} {
		dir, _ := filled(t)
		a, b := entityPath(dir, rooms("a")), entityPath(dir, rooms("b"))
		require.NoError(t, harm(a, b, entityPath(dir, rooms("other"))), how)
		_, err := Open(dir, Config{})
		require.ErrorIs(t, err, ErrDamaged, how)
		require.ErrorContains(t, err, "copied or renamed", how)
		require.ErrorContains(t, err, "--ignore-missing", how)
		s := mustOpen(t, dir, Config{IgnoreMissing: true})
		_, err = s.Load(ctx, rooms("a"))
		require.Error(t, err, how)
		require.NoError(t, s.Close())
	}
	// A copy that was taken for what it is does not keep the rest from being read.
	dir, _ := filled(t)
	content, err := os.ReadFile(entityPath(dir, rooms("b")))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(entityPath(dir, rooms("copy")), content, 0o600))
	s := mustOpen(t, dir, Config{IgnoreMissing: true})
	mustCommit(t, s, create(rooms("c"), `{}`))
	require.NoError(t, s.Close())
	s = mustOpen(t, dir, Config{})
	_, err = s.Load(ctx, rooms("copy"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	require.ErrorContains(t, err, "copied or renamed")
	require.NoError(t, s.Close())
}

func TestFilesThatWentOrCameAreNoticed(t *testing.T) {
	dir, _ := filled(t)
	path := entityPath(dir, rooms("a"))
	require.NoError(t, os.Rename(path, path+"~"))
	_, err := Open(dir, Config{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "2 files of entities were written and 1 are there (missing: a.json)")
	require.ErrorContains(t, err, "--ignore-missing")
	s := mustOpen(t, dir, Config{IgnoreMissing: true})
	_, err = s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, persist.ErrNotFound)
	require.NoError(t, s.Close())
	_, err = Open(dir, Config{})
	require.ErrorIs(t, err, ErrDamaged, "who only reads does not make it so")
	require.NoError(t, os.Rename(path+"~", path))

	s = mustOpen(t, dir, Config{})
	o := mustCommit(t, s, create(rooms("gone"), `"x"`))
	require.NoError(t, s.Flush(ctx))
	gone := entityPath(dir, rooms("gone"))
	content, err := os.ReadFile(gone)
	require.NoError(t, err)
	mustCommit(t, s, remove(rooms("gone"), o[0].Life, 1))
	require.NoError(t, s.Close())
	for _, added := range []string{gone, entityPath(dir, rooms("stranger"))} {
		require.NoError(t, os.WriteFile(added, content, 0o600))
		_, err = Open(dir, Config{})
		require.ErrorContains(t, err, "2 files of entities were written and 3 are there (added: "+filepath.Base(added)+")")
		require.NoError(t, os.Remove(added))
	}
	require.NoError(t, mustOpen(t, dir, Config{}).Close())
}

func TestDamageToWhatHoldsTheStoreTogetherIsRefused(t *testing.T) {
	for what, spoil := range map[string]func(dir, segment string) error{
		"store.json is missing": func(dir, _ string) error { return os.Remove(filepath.Join(dir, manifestName)) },
		"its checksum":          func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, manifestName), []byte("{}"), 0o600) },
		"no such file":          func(_, segment string) error { return os.Remove(segment) },
		"at least":              func(_, segment string) error { return os.Truncate(segment, 200) },
		"not named as this store": func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, podsName, "rooms", "A copy.json"), nil, 0o600)
		},
	} {
		dir, _ := filled(t)
		segments, err := filepath.Glob(filepath.Join(dir, journalName, "*"))
		require.NoError(t, err)
		require.NoError(t, spoil(dir, segments[0]))
		_, err = Open(dir, Config{})
		require.ErrorIs(t, err, ErrDamaged, what)
		require.ErrorContains(t, err, what)
		require.ErrorContains(t, err, dir)
	}
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o600))
	_, err := Open(other, Config{})
	require.ErrorIs(t, err, ErrFormat)
}

func TestADamagedLineThatTheFilesNeedIsNeverPassedOver(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Config{Flush: -1})
	o := mustCommit(t, s, create(rooms("a"), `"first state"`), create(rooms("b"), `"B"`))
	require.NoError(t, s.Flush(ctx))
	mustCommit(t, s, step(rooms("a"), o[0].Life, 1, `"second state"`))
	mustCommit(t, s, step(rooms("b"), o[1].Life, 1, `"B2"`))
	s.drop() // as if the process were killed
	require.NoError(t, s.lock.Close())
	segment := filepath.Join(dir, journalName, s.note.Segments[0].Name)
	whole, err := os.ReadFile(segment)
	require.NoError(t, err)

	flipIn(t, segment, `"value":"second`, 0)
	s = mustOpen(t, dir, Config{Flush: -1})
	_, err = s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt, "the file's older state is not the acknowledged one")
	require.Equal(t, `"B2"`, state(t, s, rooms("b")))
	s.drop()
	require.NoError(t, s.lock.Close())

	i := strings.LastIndex(string(whole), `"pod":"rooms","name":"a"`)
	whole[i+8] ^= 4
	require.NoError(t, os.WriteFile(segment, whole, 0o600))
	_, err = Open(dir, Config{})
	require.ErrorIs(t, err, ErrDamaged, "it cannot be told whose state this was")
}

func TestABackupThatWasCutIsNone(t *testing.T) {
	dir, _ := filled(t)
	s := mustOpen(t, dir, Config{})
	var b bytes.Buffer
	require.NoError(t, s.Backup(ctx, &b))
	require.NoError(t, s.Close())
	for _, n := range []int{0, 100, 512, b.Len() / 2, b.Len() - 2048} {
		to := filepath.Join(t.TempDir(), "restored")
		require.Error(t, Restore(to, bytes.NewReader(b.Bytes()[:n])), "%d of %d bytes", n, b.Len())
		_, err := os.Stat(to)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.Error(t, Restore(dir, bytes.NewReader(b.Bytes())), "there is a store")
}
