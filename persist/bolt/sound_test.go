package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Whatever page is damaged, what is read around it is what was written, nothing
// that is lost seems absent, a copy comes to its end, and the file stays as it
// is.
func TestAroundEachDamagedPage(t *testing.T) {
	t.Parallel()
	path, whole, want, all := filled(t)
	saved, lost, partly := 0, 0, 0 // partly: the most records that were read where others were lost
	for page := 2; page < len(whole)/testPage; page++ {
		for n, spoil := range []func(b []byte){
			func(b []byte) { noise(b, uint64(page)) },
			func(b []byte) { copy(b[headerSize+elementSize:], bytes.Repeat([]byte{0xa5}, 16)) },
			func(b []byte) { clear(b) },
		} {
			what := fmt.Sprintf("page %d spoiled in the way %d", page, n)
			bad := damagedCopy(t, path, page, func(b []byte) { spoil(b[page*testPage:][:testPage]) })
			before, err := os.ReadFile(bad)
			require.NoError(t, err)
			s, err := Open(bad, Config{ReadOnly: true, NoVerify: true})
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged, what)
				continue
			}
			if n := requireAround(t, s, what, want, all); n > 0 {
				partly = max(partly, len(want)-n)
			}
			if saved++; len(s.Lost()) > 0 {
				lost++
			}
			require.NoError(t, s.Close())
			after, err := os.ReadFile(bad)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after), "%s: it was written to", what)
		}
	}
	require.Greater(t, lost, 30)
	require.Greater(t, partly, len(want)/2, "the walk ends at a damaged page")
	t.Logf("of %d damaged files that could be read %d had lost a part", saved, lost)
}

func requireAround(t *testing.T, s *Store, what string, want map[string]string, all map[string]any) (records int) {
	got := readings(t, s, want)
	for name, state := range want {
		switch v := got["record "+name].(type) {
		case error:
			require.ErrorIs(t, v, snapshot.ErrCorrupt, what)
			require.NotErrorIs(t, v, persist.ErrNotFound, "%s: %s seems absent", what, name)
			if errors.Is(v, ErrDamaged) { // and not its value alone
				records++
			}
		default:
			require.Equal(t, state, v, what)
			require.Equal(t, state, got["listed "+name], "%s: %s is not listed", what, name)
		}
	}
	for k, v := range got {
		for _, scanned := range []string{"listed ", "logged ", "row "} {
			if _, bad := v.(error); !bad && strings.HasPrefix(k, scanned) {
				require.Equal(t, all[k], v, "%s: %s", what, k)
			}
		}
	}
	parts := s.Lost()
	single := 0
	for _, v := range got {
		if err, ok := v.(error); ok && !errors.Is(err, ErrDamaged) {
			single++
		}
	}
	if records > 0 {
		require.NotEmpty(t, parts, "%s: nobody says what is missing", what)
	}
	if len(parts) == 0 && single == 0 {
		require.Equal(t, all["log"], got["log"], what)
		require.Equal(t, all["rows"], got["rows"], what)
	}
	to := memory.Open(memory.Config{})
	if len(parts) > 0 {
		_, err := persist.Copy(ctx, s, to, persist.CopyOptions{})
		require.ErrorContains(t, err, "unreadable part", what)
	}
	report, err := persist.Copy(ctx, s, to, persist.CopyOptions{SkipUnreadable: true})
	require.NoError(t, err, what)
	require.GreaterOrEqual(t, report.SkippedCount, len(parts), what)
	unfinished, err := persist.CopyUnfinished(ctx, to)
	require.NoError(t, err)
	require.False(t, unfinished, what)
	for name := range want {
		if _, failed := got["record "+name].(error); failed {
			rows, err := to.RowsOf(ctx, rooms(name))
			require.NoError(t, err)
			require.Empty(t, rows, "%s: rows of %s, which has no record", what, name)
		}
	}
	check, err := persist.Check(ctx, s, persist.CheckOptions{Pods: []string{"rooms"}})
	require.NoError(t, err, what)
	require.Equal(t, len(parts), check.Counts[persist.LostPart], what)
	return records
}

// A file that was cut short is read as far as it goes.
func TestAroundACut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	want := fill(t, path)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	m, _, err := readMetas(bytes.NewReader(b), path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(m.root+1)*testPage))
	s, err := Open(path, Config{ReadOnly: true, NoVerify: true})
	if err != nil {
		require.ErrorIs(t, err, ErrDamaged)
		return
	}
	require.NotEmpty(t, readings(t, s, want))
	require.NoError(t, s.Close())
}

// A file that is only read stays as it is, and takes nothing.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	want := fill(t, path)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o400))
	s := mustOpen(t, path, Config{ReadOnly: true})
	for name, state := range want {
		r, err := s.Load(ctx, rooms(name))
		require.NoError(t, err)
		require.Equal(t, state, string(r.State))
	}
	_, err = s.Commit(ctx, []persist.Unit{create(rooms("new"), "x")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.ErrorContains(t, err, "for reading alone")
	_, err = s.Load(ctx, rooms("r01"))
	require.NoError(t, err, "it serves on")
	require.NoError(t, s.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))

	bad := damagedCopy(t, path, 0, func(b []byte) { noise(b[20*testPage:][:testPage], 3) })
	if _, err = Open(bad, Config{VerifyFirst: true}); err != nil {
		_, err = Open(bad, Config{ReadOnly: true})
		require.ErrorIs(t, err, ErrDamaged, "all of it is checked")
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = Open(empty, Config{ReadOnly: true})
	require.ErrorIs(t, err, ErrDamaged)
	_, err = Open(filepath.Join(t.TempDir(), "none.db"), Config{ReadOnly: true})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A branch whose key is damaged says wrongly what the page has that is lost by
// it: what that has is not taken for absent.
func TestAroundADamagedSeparator(t *testing.T) {
	path, whole, want, all := filled(t)
	lost := 0
	for page := 2; page < len(whole)/testPage; page++ {
		b := whole[page*testPage:][:testPage]
		if h := parseHeader(b); h.id != uint64(page) || h.flags != branchFlag {
			continue
		}
		for at := headerSize; at < len(bytes.TrimRight(b, "\x00")); at++ {
			bad := damagedCopy(t, path, at, func(b []byte) { b[page*testPage+at] ^= 1 << (at % 8) })
			if s, err := Open(bad, Config{ReadOnly: true, NoVerify: true}); err == nil {
				lost += requireAround(t, s, fmt.Sprintf("page %d, byte %d", page, at), want, all)
				require.NoError(t, s.Close())
			}
			require.NoError(t, os.Remove(bad))
		}
	}
	require.Positive(t, lost)
}

// One of the store's own numbers cannot be read: every record can.
func TestAroundADamagedNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	want := fill(t, path)
	s := mustOpen(t, path, Config{VerifyFirst: true, CommitLog: true})
	require.NoError(t, s.Fold(ctx, persist.Fold{Mark: persist.Mark{Log: 77, Through: 1}}))
	all := readings(t, s, want)
	position, err := s.Position(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, key := range []string{formatKey, trimmedKey, logKey, foldedKey, plainKey, nextKey} {
		found := 0
		for at := range whole {
			head := make([]byte, 8)
			if !bytes.HasPrefix(whole[at:], []byte(key)) || at+len(key)+12 > len(whole) {
				continue
			}
			copy(head, whole[at+len(key)+sealSize:])
			if binary.BigEndian.Uint32(whole[at+len(key):]) != sum(metaBucket, []byte(key), head) {
				continue
			}
			found++
			bad := damagedCopy(t, path, at, func(b []byte) { b[at+len(key)+sealSize+7] ^= 4 })
			s, err := Open(bad, Config{ReadOnly: true, NoVerify: true})
			require.NoError(t, err, key)
			requireAround(t, s, key, want, all)
			require.Zero(t, len(want)-len(recordsOf(t, s)), key)
			got, err := s.Position(ctx)
			require.NoError(t, err)
			least := position // also of a page that is not in use any more
			if key == nextKey {
				least-- // nothing is left of the last deletion
			}
			require.GreaterOrEqual(t, got, least, key)
			require.LessOrEqual(t, got, position, key)
			require.NoError(t, s.Close())
		}
		require.Positive(t, found, key)
	}
}

func recordsOf(t *testing.T, s *Store) []persist.Item {
	page, err := s.List(ctx, "rooms", persist.ListOptions{Limit: 1000})
	require.NoError(t, err)
	return page.Items
}
