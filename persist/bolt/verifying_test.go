package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// held opens a store whose check of the rest of the file begins with begin.
func held(path string) (s *Store, begin func(), err error) {
	hold := make(chan struct{})
	s, err = Open(path, Config{hold: hold})
	return s, func() { close(hold) }, err
}

// within is a context that ends at once, for what has to wait.
func within(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(ctx, time.Millisecond)
	t.Cleanup(cancel)
	return c
}

func TestNothingIsWrittenOrCopiedBeforeTheFileIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fill(t, path)
	was, err := os.ReadFile(path)
	require.NoError(t, err)
	s, begin, err := held(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	batch := persist.Batch{Position: 1 << 30}
	for what, do := range map[string]func(context.Context) error{
		"commit": func(c context.Context) error {
			_, err := s.Commit(c, []persist.Unit{create(rooms("new"), "x")})
			return err
		},
		"trim":     func(c context.Context) error { _, err := s.Trim(c, 0, 1<<40, 1); return err },
		"import":   func(c context.Context) error { return s.Import(c, batch) },
		"compact":  s.Compact,
		"backup":   func(c context.Context) error { return s.Backup(c, &bytes.Buffer{}) },
		"verified": s.Verified,
	} {
		err := do(within(t))
		require.ErrorIs(t, err, persist.ErrUnavailable, what)
		require.ErrorIs(t, err, context.DeadlineExceeded, what)
	}
	// Nothing writes, not even what did not wait.
	err = s.update(func(*bbolt.Tx) error { return nil })
	require.ErrorIs(t, err, persist.ErrUnavailable)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, was, now, "opening has written nothing new either")

	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, []persist.Unit{create(rooms("new"), "x")})
		done <- err
	}()
	begin()
	require.NoError(t, <-done)
	require.NoError(t, s.Verified(ctx))
	require.Equal(t, "x", state(t, s, rooms("new")))
}

func TestReadsDoNotWaitForTheCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	s := mustOpen(t, path, Config{VerifyFirst: true})
	want := readings(t, s, names)
	pods, err := s.Pods(ctx)
	require.NoError(t, err)
	position, err := s.Position(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s, _, err = held(path)
	require.NoError(t, err)
	require.Equal(t, want, readings(t, s, names))
	got, err := s.Pods(ctx)
	require.NoError(t, err)
	require.Equal(t, pods, got)
	p, err := s.Position(ctx)
	require.NoError(t, err)
	require.Equal(t, position, p)
	_, err = s.Load(ctx, rooms("nobody"))
	require.ErrorIs(t, err, persist.ErrNotFound)
	rows, err := s.RowsOf(ctx, rooms("r05"))
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.NoError(t, s.Close(), "closing does not wait for it either")
	require.ErrorIs(t, s.Verified(ctx), persist.ErrUnavailable)
	require.NotErrorIs(t, s.Verified(ctx), ErrDamaged)
}

// requireNothingHidden requires that what is read before a damaged file was
// checked is what was written, or an error.
func requireNothingHidden(t testing.TB, what string, want, got map[string]any) {
	whole := true
	for k, v := range got {
		if err, ok := v.(error); ok {
			require.True(t, errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, persist.ErrUnavailable), "%s: %s: %v", what, k, err)
			require.NotErrorIs(t, err, persist.ErrNotFound, "%s: %s", what, k)
			whole = false
			continue
		}
		require.Equal(t, want[k], v, "%s: %s", what, k)
	}
	if whole {
		require.Len(t, got, len(want), "%s: something is missing", what)
	}
}

// lazily opens a damaged file and reads from it before it is checked. refused
// says that the damage was found.
func lazily(t testing.TB, path, what string, want map[string]any, names map[string]string) (refused bool) {
	s, begin, err := held(path)
	if err != nil {
		require.ErrorIs(t, err, ErrDamaged, what)
		require.ErrorContains(t, err, path, what)
		require.ErrorContains(t, err, "page ", what)
		require.NotContains(t, err.Error(), "panic", what)
		return true
	}
	defer func() { require.NoError(t, s.Close()) }()
	requireNothingHidden(t, what, want, readings(t, s, names))
	begin()
	if err = s.Verified(ctx); err == nil {
		requireHonest(t, what, want, readings(t, s, names))
		mustCommit(t, s, create(rooms("new"), "works"))
		return false
	}
	require.ErrorIs(t, err, ErrDamaged, what)
	require.ErrorContains(t, err, "page ", what)
	require.NotErrorIs(t, err, persist.ErrUnavailable, what)
	requireOutOfService(t, s, what)
	return true
}

func requireOutOfService(t testing.TB, s *Store, what string) {
	_, err := s.Load(ctx, rooms("nobody"))
	require.ErrorIs(t, err, persist.ErrUnavailable, what)
	require.ErrorIs(t, err, ErrDamaged, what)
	_, err = s.Commit(ctx, []persist.Unit{create(rooms("r00"), "blank")})
	require.ErrorIs(t, err, persist.ErrUnavailable, what)
	require.ErrorIs(t, err, ErrDamaged, what)
	err = s.Reopen(ctx)
	require.ErrorIs(t, err, persist.ErrUnavailable, what)
	require.ErrorIs(t, err, ErrDamaged, what)
	require.ErrorIs(t, s.Verified(ctx), ErrDamaged, what)
}

func TestAPageOfNoiseHidesNothingBeforeTheFileIsChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	pages := usedPages(t, path) + 1
	s := mustOpen(t, path, Config{VerifyFirst: true})
	want := readings(t, s, names)
	require.NoError(t, s.Close())
	refused, whole := 0, 0
	for what, spoil := range map[string]func(b []byte, page int){
		"noise": func(b []byte, page int) { noise(b[page*testPage:][:testPage], uint64(page)) },
		"noise behind its header": func(b []byte, page int) {
			noise(b[page*testPage+headerSize:][:testPage-headerSize], uint64(page))
		},
		"zeros":        func(b []byte, page int) { clear(b[page*testPage:][:testPage]) },
		"another page": func(b []byte, page int) { copy(b[page*testPage:][:testPage], b[((page+3)%pages)*testPage:]) },
	} {
		for page := range pages {
			what := fmt.Sprintf("%s on page %d of %d", what, page, pages)
			bad := damagedCopy(t, path, page, func(b []byte) { spoil(b, page) })
			if lazily(t, bad, what, want, names) {
				refused++
			} else {
				whole++
			}
		}
	}
	require.NotZero(t, refused)
	require.NotZero(t, whole)
}

func TestAFlippedBitHidesNothingBeforeTheFileIsChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	size := int64(usedPages(t, path) * testPage)
	s := mustOpen(t, path, Config{VerifyFirst: true})
	want := readings(t, s, names)
	require.NoError(t, s.Close())
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for i := range 150 {
		at := rng.Int64N(size)
		if i%2 == 0 {
			at = at/testPage*testPage + rng.Int64N(200) // headers and elements
		}
		what := fmt.Sprintf("bit flipped in byte %d of page %d", at%testPage, at/testPage)
		if lazily(t, damagedCopy(t, path, i, func(b []byte) { b[at] ^= 1 << (i % 8) }), what, want, names) {
			refused++
		}
	}
	require.NotZero(t, refused)
}

// fillWide writes a file whose buckets have branches, in which most reads need
// few of the pages.
func fillWide(t testing.TB, path string) {
	s := mustOpen(t, path, Config{})
	for group := range 40 {
		var units []persist.Unit
		for i := range 50 {
			u := create(rooms(fmt.Sprintf("r%02d%02d", group, i)), strings.Repeat("x", 100))
			u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}}
			units = append(units, u)
		}
		mustCommit(t, s, units...)
	}
	require.NoError(t, s.Close())
}

func TestDamageElsewhereIsFoundByTheWalkAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fillWide(t, path)
	// One key among two thousand is not the one that was written.
	edit(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(recordsBucket))
		key := recordKey(rooms("r2000"))
		v := bytes.Clone(b.Get(key))
		require.NoError(t, b.Delete(key))
		return b.Put(recordKey(rooms("r2000x")), v)
	})
	s, begin, err := held(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NotEmpty(t, state(t, s, rooms("r0001")))
	_, err = s.Load(ctx, rooms("r3900x"))
	require.ErrorIs(t, err, persist.ErrNotFound, "its path is whole")
	page, err := s.List(ctx, "rooms", persist.ListOptions{Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Items, 10)
	_, err = s.Commit(within(t), []persist.Unit{create(rooms("r2000"), "blank")})
	require.ErrorIs(t, err, persist.ErrUnavailable)

	committed := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, []persist.Unit{create(rooms("r2000"), "blank")})
		committed <- err
	}()
	begin()
	err = <-committed
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.ErrorIs(t, err, ErrDamaged)
	requireOutOfService(t, s, "")
}

func TestAnAbsenceIsNotBelievedOnADamagedPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fillWide(t, path)
	row, first, middle := rowKey("outbox", rooms("r2000"), "1"), recordKey(rooms("r0000")), recordKey(rooms("r2000"))
	for what, test := range map[string]struct {
		bucket string
		key    []byte
		read   func(s *Store) error
	}{
		"load": {recordsBucket, middle, func(s *Store) error { _, err := s.Load(ctx, rooms("r2000")); return err }},
		"list": {recordsBucket, middle, func(s *Store) error {
			_, err := s.List(ctx, "rooms", persist.ListOptions{Prefix: "r20"})
			return err
		}},
		"list to the end": {recordsBucket, middle, func(s *Store) error {
			_, err := s.List(ctx, "rooms", persist.ListOptions{Limit: 1 << 20, MaxBytes: 1 << 30})
			return err
		}},
		"pods":           {recordsBucket, first, func(s *Store) error { _, err := s.Pods(ctx); return err }},
		"rows":           {rowsBucket, row, func(s *Store) error { _, err := s.Rows(ctx, "outbox", nil, 1<<20); return err }},
		"rows of one":    {rowsBucket, row, func(s *Store) error { _, err := s.RowsOf(ctx, rooms("r2000")); return err }},
		"log":            {logBucket, positionKey(900), func(s *Store) error { _, err := s.Log(ctx, 899, 1); return err }},
		"changes of one": {tailsBucket, middle, func(s *Store) error { _, err := s.Changes(ctx, rooms("r2000"), 0, 0, 1); return err }},
	} {
		bad := damagedCopy(t, path, 0, func([]byte) {})
		edit(t, bad, func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(test.bucket))
			v := bytes.Clone(b.Get(test.key))
			require.NoError(t, b.Delete(test.key))
			return b.Put(append(bytes.Clone(test.key), 'x'), v) // on the same page
		})
		s, _, err := held(bad)
		require.NoError(t, err)
		err = test.read(s)
		require.ErrorIs(t, err, persist.ErrUnavailable, what)
		require.ErrorIs(t, err, ErrDamaged, what)
		require.NotErrorIs(t, err, persist.ErrNotFound, what)
		require.ErrorIs(t, s.Verified(ctx), ErrDamaged, "%s: nobody has to wait for the walk then", what)
		requireOutOfService(t, s, what)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(bad, whole, 0o600))
		requireOutOfService(t, s, what+": for good")
		require.NoError(t, s.Close())
	}
}

// recordsRoot returns the root page of the records in a file's bytes, which is a
// branch.
func recordsRoot(t testing.TB, b []byte) uint64 {
	c, m, err := checkStart(bytes.NewReader(b), int64(len(b)), "the file", false)
	require.NoError(t, err)
	w, err := walkLater(c, m)
	require.NoError(t, err)
	root := w.buckets[recordsBucket].page
	require.Equal(t, uint16(branchFlag), parseHeader(b[root*testPage:]).flags)
	return root
}

func TestABranchOutOfOrderMisleadsNoRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fillWide(t, path)
	bad := damagedCopy(t, path, 0, func(b []byte) {
		page := b[recordsRoot(t, b)*testPage:][:testPage]
		last := page[headerSize+(parseHeader(page).count-1)*elementSize:]
		last[binary.NativeEndian.Uint32(last)] ^= 0x10 // of its key
	})
	s, _, err := held(bad)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Load(ctx, rooms("r0001"))
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "out of order")
}

func TestABranchThatRefersToItselfEndsNoRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fillWide(t, path)
	bad := damagedCopy(t, path, 0, func(b []byte) {
		h := b[recordsRoot(t, b)*testPage:][:testPage]
		for i := range parseHeader(h).count {
			copy(h[headerSize+i*elementSize+8:][:8], h[:8]) // its own number
		}
	})
	s, _, err := held(bad)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Load(ctx, rooms("r0001"))
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "two places")
}

func TestAFileThatFailsWhileItIsCheckedIsNotDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	s, begin, err := held(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	s.fail(errors.New("input/output error"), false)
	begin()
	err = s.Verified(ctx)
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.NotErrorIs(t, err, ErrDamaged)
	require.NoError(t, s.Reopen(ctx), "it checks all of the file itself")
	require.NoError(t, s.Verified(ctx))
	for name, want := range names {
		require.Equal(t, want, state(t, s, rooms(name)))
	}
	mustCommit(t, s, create(rooms("new"), "works"))
}
