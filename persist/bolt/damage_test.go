package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const testPage = 4096

// fill writes a file that has pages of every kind: branches, leaves, overflow
// pages of a large value (with a key of another on them), free pages.
func fill(t testing.TB, path string) map[string]string {
	s := mustOpen(t, path, Config{})
	want := map[string]string{}
	for i := range 36 {
		name := fmt.Sprintf("r%02d", i)
		want[name] = strings.Repeat(name, 40)
		if i%25 == 7 {
			want[name] = strings.Repeat(name, 1800)
		}
		u := create(rooms(name), want[name])
		u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte(want[name][:30])}}
		mustCommit(t, s, u)
	}
	for i := range 10 {
		k := rooms(fmt.Sprintf("gone%d", i))
		o := mustCommit(t, s, create(k, strings.Repeat("x", 1000)))
		mustCommit(t, s, persist.Unit{Key: k, Life: o[0].Life, Expect: 1, Delete: true})
	}
	_, err := s.Trim(ctx, 0, 1<<40, 20)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	if os.Getpagesize() != testPage {
		t.Skip("the machine has pages of another size")
	}
	return want
}

// readings reads everything that a store has and notes values and errors.
func readings(t testing.TB, s *Store, names map[string]string) map[string]any {
	got := map[string]any{}
	note := func(what string, v any, err error) {
		if err != nil {
			v = err
		}
		got[what] = v
	}
	for name := range names {
		r, err := s.Load(ctx, rooms(name))
		note("record "+name, string(r.State), err)
		c, err := s.Changes(ctx, rooms(name), 0, 0, 10)
		note("changes "+name, len(c), err)
		for _, c := range c {
			note(fmt.Sprintf("change %s %d", name, c.Revision), describe(c), c.Err)
		}
	}
	page, err := s.List(ctx, "rooms", persist.ListOptions{Limit: 1000})
	note("list", len(page.Items), err)
	for _, item := range page.Items {
		note("listed "+item.Name, string(item.Record.State), item.Err)
	}
	log, err := s.Log(ctx, 0, 1000)
	note("log", len(log), err)
	for _, c := range log {
		note(fmt.Sprint("logged ", c.Position), describe(c), c.Err)
	}
	rows, err := s.Rows(ctx, "outbox", nil, 1000)
	note("rows", len(rows), err)
	for _, r := range rows {
		note(fmt.Sprintf("row %s %s", r.Key, r.ID), string(r.Value), r.Err)
	}
	return got
}

func describe(c persist.Change) string {
	return fmt.Sprintf("%d %s %d %d %s %s %s", c.Position, c.Key, c.Life, c.Revision, c.Type, c.Time, c.Data)
}

// requireHonest requires that what is read from a damaged file is what was
// written, or an error of damage.
func requireHonest(t testing.TB, what string, want, got map[string]any) (errors int) {
	whole := true // no scan failed
	for k, v := range got {
		if err, ok := v.(error); ok {
			require.ErrorIs(t, err, snapshot.ErrCorrupt, "%s: %s", what, k)
			errors++
			whole = whole && !strings.HasPrefix(k, "changes ")
			continue
		}
		require.Equal(t, want[k], v, "%s: %s", what, k)
	}
	for _, scan := range []string{"list", "log", "rows"} {
		_, failed := got[scan].(error)
		whole = whole && !failed
	}
	if whole {
		require.Len(t, got, len(want), "%s: something is missing", what)
	}
	return errors
}

// filled is a file of fill's: where it is, its bytes, what was written to it, and
// what is read of it.
func filled(t testing.TB) (path string, whole []byte, want map[string]string, all map[string]any) {
	path = filepath.Join(t.TempDir(), "test.db")
	want = fill(t, path)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	s := mustOpen(t, path, Config{VerifyFirst: true})
	all = readings(t, s, want)
	require.NoError(t, s.Close())
	return path, whole, want, all
}

// damagedCopy writes a copy of a file that was changed by spoil.
func damagedCopy(t testing.TB, from string, n int, spoil func(b []byte)) string {
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	spoil(b)
	to := filepath.Join(filepath.Dir(from), fmt.Sprintf("copy%d.db", n%4))
	require.NoError(t, os.WriteFile(to, b, 0o600))
	return to
}

// usedPages returns how many pages of a file are in use or were.
func usedPages(t testing.TB, path string) int {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	m, _, err := readMetas(f, path)
	require.NoError(t, err)
	return int(m.pages)
}

func noise(b []byte, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

func TestAPageOfNoiseIsNeverTakenForData(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	pages := usedPages(t, path) + 1
	require.Less(t, pages, int(info.Size()/testPage))
	s := mustOpen(t, path, Config{})
	want := readings(t, s, names)
	require.NoError(t, s.Close())

	spoils := map[string]func(b []byte, page int){
		"noise": func(b []byte, page int) { noise(b[page*testPage:][:testPage], uint64(page)) },
		"noise behind its header": func(b []byte, page int) {
			noise(b[page*testPage+headerSize:][:testPage-headerSize], uint64(page))
		},
		"noise in its second half": func(b []byte, page int) {
			noise(b[page*testPage+testPage/2:][:testPage/2], uint64(page))
		},
		"zeros":        func(b []byte, page int) { clear(b[page*testPage:][:testPage]) },
		"another page": func(b []byte, page int) { copy(b[page*testPage:][:testPage], b[((page+3)%pages)*testPage:]) },
	}
	refused, corrupt, harmless := 0, 0, 0
	for what, spoil := range spoils {
		for page := range pages {
			what := fmt.Sprintf("%s on page %d of %d", what, page, pages)
			bad := damagedCopy(t, path, page, func(b []byte) { spoil(b, page) })
			s, err := Open(bad, Config{VerifyFirst: true})
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged, what)
				require.ErrorContains(t, err, bad, what)
				require.ErrorContains(t, err, "page ", what)
				require.NotContains(t, err.Error(), "panic", what)
				refused++
				if !strings.HasPrefix(what, "zeros") {
					readAroundDamage(t, bad, what, want, names)
				}
				continue
			}
			if requireHonest(t, what, want, readings(t, s, names)) > 0 {
				corrupt++
			} else {
				harmless++
			}
			mustCommit(t, s, create(rooms("new"), "works"))
			require.NoError(t, s.Close())
		}
	}
	t.Logf("%d pages: %d refused, %d harm single values, %d harmless", len(spoils)*pages, refused, corrupt, harmless)
	require.NotZero(t, refused)
	require.NotZero(t, corrupt)
	require.NotZero(t, harmless)
}

// readAroundDamage opens a file without verification, reads what can be read
// and writes: nothing may panic, and what is read must be what was written.
func readAroundDamage(t testing.TB, path, what string, want map[string]any, names map[string]string) {
	s, err := Open(path, Config{NoVerify: true})
	if err != nil {
		require.ErrorContains(t, err, path, what)
		return
	}
	defer func() { _ = s.Close() }()
	for k, v := range readings(t, s, names) {
		if strings.HasPrefix(k, "record ") {
			if err, ok := v.(error); !ok {
				require.Equal(t, want[k], v, "%s: %s", what, k)
			} else if !errors.Is(err, persist.ErrNotFound) { // see Config.NoVerify
				require.ErrorIs(t, err, snapshot.ErrCorrupt, "%s: %s", what, k)
			}
		}
	}
	var units []persist.Unit
	for name := range names {
		units = append(units, step(rooms(name), 1, 1, "next"), create(rooms(name+"-new"), "x"))
	}
	for len(units) > 0 { // groups, as the committer makes them
		n := min(40, len(units))
		if _, err := s.Commit(ctx, units[:n]); errors.Is(err, persist.ErrUnknown) || errors.Is(err, persist.ErrUnavailable) {
			break
		}
		units = units[n:]
	}
}

func TestAFlippedBitIsNeverTakenForData(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	size := int64(usedPages(t, path) * testPage)
	s := mustOpen(t, path, Config{})
	want := readings(t, s, names)
	require.NoError(t, s.Close())
	rng := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range 150 {
		at := rng.Int64N(size)
		if i%2 == 0 {
			at = at/testPage*testPage + rng.Int64N(200) // headers and elements
		}
		what := fmt.Sprintf("bit flipped in byte %d of page %d", at%testPage, at/testPage)
		bad := damagedCopy(t, path, i, func(b []byte) { b[at] ^= 1 << (i % 8) })
		s, err := Open(bad, Config{VerifyFirst: true})
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged, what)
			refused++
			continue
		}
		requireHonest(t, what, want, readings(t, s, names))
		require.NoError(t, s.Close())
	}
	t.Logf("150 flips: %d refused", refused)
	require.NotZero(t, refused)
}

// A page's last element may end anywhere, so a damaged length of its key does
// not show by where the next begins. Behind it bbolt leaves what the page's
// memory had before, or zeros.
func TestADamagedLengthOfAPagesLastElementIsNeverTakenForData(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	names := fill(t, path)
	s := mustOpen(t, path, Config{})
	want := readings(t, s, names)
	require.NoError(t, s.Close())
	refused, opened := 0, 0
	for page := 2; page < usedPages(t, path); page++ {
		for bit := range 64 { // of the two lengths
			what := fmt.Sprintf("bit %d of the lengths of the last element of page %d", bit, page)
			leaf := false
			bad := damagedCopy(t, path, page, func(b []byte) {
				b = b[page*testPage:]
				h := parseHeader(b)
				if leaf = h.id == uint64(page) && h.flags == leafFlag && h.count > 0; !leaf {
					return
				}
				e := b[headerSize+(h.count-1)*elementSize:]
				key, value := binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
				end := binary.NativeEndian.Uint32(e[4:]) + key + value
				run := (int(h.overflow) + 1) * testPage
				clear(e[end : run-headerSize-(h.count-1)*elementSize])
				e[8+bit/8] ^= 1 << (bit % 8)
			})
			if !leaf {
				break
			}
			s, err := Open(bad, Config{VerifyFirst: true})
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged, what)
				refused++
				continue
			}
			opened++
			requireHonest(t, what, want, readings(t, s, names))
			require.NoError(t, s.Close())
		}
	}
	t.Logf("%d refused, %d opened", refused, opened)
	require.NotZero(t, refused)
	require.NotZero(t, opened)
}

func TestAFlippedBitInARecordHarmsThatOneAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	o := mustCommit(t, s, create(rooms("a"), "A"), create(rooms("b"), "B"), create(rooms("c"), "C"))
	require.NoError(t, s.Close())
	for _, index := range []int{sealSize + 16 + 3, -1, -6} { // behind the head, in the checksum, in the state
		flip(t, path, recordsBucket, recordKey(rooms("b")), index)
		s = mustOpen(t, path, Config{})
		_, err := s.Load(ctx, rooms("b"))
		require.ErrorIs(t, err, snapshot.ErrCorrupt)
		require.ErrorContains(t, err, "rooms/b")
		require.Equal(t, "A", state(t, s, rooms("a")))
		require.Equal(t, "C", state(t, s, rooms("c")))
		require.NoError(t, s.Close())
		flip(t, path, recordsBucket, recordKey(rooms("b")), index)
	}

	// So does one in the seal or the head, by which verification tells keys from
	// values.
	for index := range sealSize + 16 {
		flip(t, path, recordsBucket, recordKey(rooms("b")), index)
		s = mustOpen(t, path, Config{})
		_, err := s.Load(ctx, rooms("b"))
		require.ErrorIs(t, err, snapshot.ErrCorrupt)
		require.Equal(t, "A", state(t, s, rooms("a")))
		require.NoError(t, s.Close())
		flip(t, path, recordsBucket, recordKey(rooms("b")), index)
	}
	flip(t, path, recordsBucket, recordKey(rooms("b")), sealSize+3)
	s = mustOpen(t, path, Config{})
	defer func() { require.NoError(t, s.Close()) }()
	got, err := s.Commit(ctx, []persist.Unit{step(rooms("b"), o[1].Life, 1, "B2"), step(rooms("c"), o[2].Life, 1, "C2"), create(rooms("b"), "blank")})
	require.NoError(t, err)
	require.ErrorIs(t, got[0].Err, persist.ErrConflict)
	require.NoError(t, got[1].Err)
	require.ErrorIs(t, got[2].Err, persist.ErrConflict, "an unreadable record never becomes a blank entity")
	mustCommit(t, s, persist.Unit{Key: rooms("b"), Delete: true, Force: true, Changes: []persist.Change{{Type: "deleted"}}})
	_, err = s.Load(ctx, rooms("b"))
	require.ErrorIs(t, err, persist.ErrNotFound)
	c, err := s.Changes(ctx, rooms("b"), o[1].Life, 0, 10)
	require.NoError(t, err)
	require.Len(t, c, 2, "the deletion joins the life that the journal knows")
}

// rekey changes a bit of a key, and leaves the value as it is.
func rekey(t testing.TB, path, bucket string, key []byte, index int) {
	edit(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		v := bytes.Clone(b.Get(key))
		if err := b.Delete(key); err != nil {
			return err
		}
		other := bytes.Clone(key)
		other[index] ^= 0x04
		return b.Put(other, v)
	})
}

func TestADamagedKeyIsDamageOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	u := create(rooms("a"), "A")
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}}
	o := mustCommit(t, s, u)
	require.NoError(t, s.Close())
	for bucket, key := range map[string][]byte{
		recordsBucket: recordKey(rooms("a")), rowsBucket: rowKey("outbox", rooms("a"), "1"), logBucket: positionKey(o[0].Position),
	} {
		for index := range key {
			bad := damagedCopy(t, path, 1, func([]byte) {})
			rekey(t, bad, bucket, key, index)
			_, err := Open(bad, Config{VerifyFirst: true})
			require.ErrorIs(t, err, ErrDamaged, "byte %d of a key of %s: else an entity would seem absent", index, bucket)
		}
	}
}

func TestAValueCutShortHarmsItselfAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	u := create(rooms("b"), "B")
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}, {Kind: "outbox", ID: "2", Value: []byte("row 2")}}
	o := mustCommit(t, s, create(rooms("a"), "A"), u, create(rooms("c"), "C"))
	require.NoError(t, s.Close())
	for what, cut := range map[string]func(v []byte) []byte{
		"to nothing": func([]byte) []byte { return []byte{} },
		"to a byte":  func(v []byte) []byte { return v[:1] },
		"by a byte":  func(v []byte) []byte { return v[:len(v)-1] },
		"to zeros":   func(v []byte) []byte { return make([]byte, len(v)) },
	} {
		bad := damagedCopy(t, path, 1, func([]byte) {})
		edit(t, bad, func(tx *bbolt.Tx) error {
			for bucket, key := range map[string][]byte{
				recordsBucket: recordKey(rooms("b")), rowsBucket: rowKey("outbox", rooms("b"), "1"), logBucket: positionKey(o[1].Position),
			} {
				b := tx.Bucket([]byte(bucket))
				if err := b.Put(key, cut(bytes.Clone(b.Get(key)))); err != nil {
					return err
				}
			}
			return nil
		})
		s := mustOpen(t, bad, Config{})
		_, err := s.Load(ctx, rooms("b"))
		require.ErrorIs(t, err, snapshot.ErrCorrupt, what)
		require.Equal(t, "A", state(t, s, rooms("a")))
		require.Equal(t, "C", state(t, s, rooms("c")))
		log, err := s.Log(ctx, 0, 10)
		require.NoError(t, err)
		require.Len(t, log, 3)
		require.ErrorIs(t, log[1].Err, snapshot.ErrCorrupt, what)
		require.Equal(t, o[1].Position, log[1].Position)
		require.NoError(t, log[2].Err)
		c, err := s.Changes(ctx, rooms("b"), 0, 0, 10)
		require.NoError(t, err)
		require.Len(t, c, 1)
		require.ErrorIs(t, c[0].Err, snapshot.ErrCorrupt, what)
		r, err := s.RowsOf(ctx, rooms("b"))
		require.NoError(t, err)
		require.Len(t, r, 2)
		require.ErrorIs(t, r[0].Err, snapshot.ErrCorrupt, what)
		require.NoError(t, r[1].Err)

		got, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), "blank"), step(rooms("a"), o[0].Life, 1, "A2")})
		require.NoError(t, err)
		require.ErrorIs(t, got[0].Err, persist.ErrConflict, "it never becomes a blank entity")
		require.NoError(t, got[1].Err)
		trimmed, err := s.Trim(ctx, 0, o[2].Position, 10)
		require.NoError(t, err)
		require.Equal(t, 3, trimmed.Dropped, "there are no events in this file")
		mustCommit(t, s, persist.Unit{Key: rooms("b"), Delete: true, Force: true}, create(rooms("b"), "new"))
		require.Equal(t, "new", state(t, s, rooms("b")))
		require.NoError(t, s.Close())
	}
}

func TestADamagedChangeOrRowHarmsItselfAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	u := create(rooms("a"), "A")
	u.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("row")}, {Kind: "outbox", ID: "2", Value: []byte("row 2")}}
	o := mustCommit(t, s, u, create(rooms("b"), "B"))
	require.NoError(t, s.Close())
	flip(t, path, logBucket, positionKey(o[0].Position), -1)
	flip(t, path, rowsBucket, rowKey("outbox", rooms("a"), "1"), -1)
	s = mustOpen(t, path, Config{})
	defer func() { require.NoError(t, s.Close()) }()
	c, err := s.Changes(ctx, rooms("a"), 0, 0, 10)
	require.NoError(t, err)
	require.Len(t, c, 1)
	require.ErrorIs(t, c[0].Err, snapshot.ErrCorrupt)
	require.ErrorContains(t, c[0].Err, "rooms/a")
	require.Equal(t, o[0].Life, c[0].Life)
	require.Equal(t, uint64(1), c[0].Revision)
	c, err = s.Log(ctx, 0, 10)
	require.NoError(t, err)
	require.Len(t, c, 2)
	require.ErrorIs(t, c[0].Err, snapshot.ErrCorrupt)
	require.Equal(t, o[0].Position, c[0].Position)
	require.NoError(t, c[1].Err)
	for _, read := range []func() ([]persist.Row, error){
		func() ([]persist.Row, error) { return s.Rows(ctx, "outbox", nil, 10) },
		func() ([]persist.Row, error) { return s.Rows(ctx, "", nil, 10) },
		func() ([]persist.Row, error) { return s.RowsOf(ctx, rooms("a")) },
	} {
		r, err := read()
		require.NoError(t, err)
		require.Len(t, r, 2)
		require.ErrorIs(t, r[0].Err, snapshot.ErrCorrupt)
		require.ErrorContains(t, r[0].Err, "rooms/a")
		require.Nil(t, r[0].Value)
		require.Equal(t, persist.Row{Kind: "outbox", Key: rooms("a"), ID: "2", Value: []byte("row 2")}, r[1])
	}
	n, err := s.Trim(ctx, 0, o[0].Position, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n.Dropped, "a damaged change can be trimmed")
	c, err = s.Changes(ctx, rooms("a"), 0, 0, 10)
	require.NoError(t, err)
	require.Empty(t, c)
}

func TestAFileThatWasCutShortIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fill(t, path)
	for i, size := range []int{1, 100, testPage, testPage + 100, 2 * testPage, 20 * testPage} {
		bad := damagedCopy(t, path, i, func([]byte) {})
		require.NoError(t, os.Truncate(bad, int64(size)))
		for _, noVerify := range []bool{false, true} {
			_, err := Open(bad, Config{NoVerify: noVerify})
			require.ErrorIs(t, err, ErrDamaged, "%d bytes", size)
			if size >= 2*testPage {
				require.ErrorContains(t, err, "cut short")
			}
			require.ErrorContains(t, err, bad)
		}
	}
}

func TestADamagedMetaPageIsPassedOverOnDemandAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	s := mustOpen(t, path, Config{})
	mustCommit(t, s, create(rooms("a"), "A"))
	mustCommit(t, s, create(rooms("b"), "B"))
	require.NoError(t, s.Close())
	for page := range 2 {
		bad := damagedCopy(t, path, page, func(b []byte) { noise(b[page*testPage:][:testPage], 5) })
		_, err := Open(bad, Config{VerifyFirst: true})
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, fmt.Sprintf("page %d:", page))
		s := mustOpen(t, bad, Config{NoVerify: true})
		require.Equal(t, "A", state(t, s, rooms("a")))
		require.NoError(t, s.Close())
	}
}

// TestEachCheckOfAPage spoils one thing at a time, which noise does not.
func TestEachCheckOfAPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	fill(t, path)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	m, _, err := readMetas(bytes.NewReader(b), path)
	require.NoError(t, err)
	free := m.freelist * testPage
	var leaf, branch uint64 // a page of each kind that is in use
	used := map[uint64]bool{}
	for page := uint64(2); page < m.pages; page++ {
		used[page] = true
	}
	for i := range uint64(parseHeader(b[free:]).count) {
		delete(used, binary.NativeEndian.Uint64(b[free+headerSize+8*i:]))
	}
	for page := range m.pages {
		first := b[page*testPage+headerSize:] // a leaf's first element
		isRow := bytes.HasPrefix(first[min(uint64(binary.NativeEndian.Uint32(first[4:])), testPage):], []byte("outbox"))
		switch h := parseHeader(b[page*testPage:]); {
		case !used[page]:
		case h.id == page && h.flags == leafFlag && h.count > 3 && h.overflow == 0 && isRow:
			leaf = page * testPage
		case h.id == page && h.flags == branchFlag:
			branch = page * testPage
		}
	}
	require.NotZero(t, leaf)
	require.NotZero(t, branch)
	put16 := func(at uint64, v uint16) func(b []byte) {
		return func(b []byte) { binary.NativeEndian.PutUint16(b[at:], v) }
	}
	put32 := func(at uint64, v uint32) func(b []byte) {
		return func(b []byte) { binary.NativeEndian.PutUint32(b[at:], v) }
	}
	put64 := func(at uint64, v uint64) func(b []byte) {
		return func(b []byte) { binary.NativeEndian.PutUint64(b[at:], v) }
	}
	element := func(page, i uint64) uint64 { return page + headerSize + i*elementSize }

	for what, test := range map[string]struct {
		spoil func(b []byte)
		says  string
	}{
		"a page in use is listed as free":      {put64(free+headerSize, leaf/testPage), "two places"},
		"a page is listed as free twice":       {put64(free+headerSize, binary.NativeEndian.Uint64(b[free+headerSize+8:])), "two places"},
		"a free page beyond the end":           {put64(free+headerSize, m.pages), "not all within"},
		"the free list is larger than its run": {put16(free+10, 5000), "has room for"},
		"the free list is huge": {func(b []byte) {
			binary.NativeEndian.PutUint16(b[free+10:], freeMany)
			binary.NativeEndian.PutUint64(b[free+headerSize:], 1<<60)
		}, "has room for"},
		"a run goes beyond the end":   {put32(leaf+12, 1<<20), "not all within"},
		"a branch has a child twice":  {put64(element(branch, 1)+8, binary.NativeEndian.Uint64(b[element(branch, 0)+8:])), "two places"},
		"a branch refers to a meta":   {put64(element(branch, 0)+8, 1), "referred to but not within"},
		"a branch refers to nowhere":  {put64(element(branch, 0)+8, 1<<50), "referred to but not within"},
		"a branch refers to itself":   {put64(element(branch, 0)+8, branch/testPage), "two places"},
		"a branch without children":   {put16(branch+10, 0), "without children"},
		"a branch's key is outside":   {put32(element(branch, 1), 5000), "not inside"},
		"children change their place": {swap(element(branch, 0)+8, element(branch, 1)+8, 8), "out of order"},
		"elements change their place": {func(b []byte) {
			swap(element(leaf, 0), element(leaf, 1), elementSize)(b)
			binary.NativeEndian.PutUint32(b[element(leaf, 0)+4:], binary.NativeEndian.Uint32(b[element(leaf, 0)+4:])+elementSize)
			binary.NativeEndian.PutUint32(b[element(leaf, 1)+4:], binary.NativeEndian.Uint32(b[element(leaf, 1)+4:])-elementSize)
		}, "does not begin where"},
		"a leaf of too many elements": {put16(leaf+10, 300), "do not fit"},
		"a leaf of too few elements":  {put16(leaf+10, 2), "does not begin where"},
		"a leaf of no elements":       {put16(leaf+10, 0), "not empty"},
		"a leaf that is emptied":      {func(b []byte) { clear(b[leaf+10:][:headerSize-10+elementSize]) }, "no page of a bucket"},
		"a branch of too few":         {put16(branch+10, 1), "does not begin where"},
		"a key outside":               {put32(element(leaf, 1)+4, 5000), "not inside"},
		"a key of no bytes":           {put32(element(leaf, 1)+8, 0), "not inside"},
		"a value beyond the end":      {put32(element(leaf, 1)+12, 1<<16), "not inside"},
		"a value cut short":           {put32(element(leaf, 1)+12, 2), "does not begin where"},
		"a bucket in a bucket":        {put32(element(leaf, 1), bucketElement), "not expected"},
		"a page of another kind":      {put16(leaf+8, freeFlag), "not expected"},
		"a page of two kinds":         {put16(leaf+8, leafFlag|branchFlag), "not expected"},
	} {
		bad := damagedCopy(t, path, 0, test.spoil)
		_, err := Open(bad, Config{VerifyFirst: true})
		require.ErrorIs(t, err, ErrDamaged, what)
		require.ErrorContains(t, err, test.says, what)
	}
}

// swap exchanges two runs of n bytes.
func swap(i, j, n uint64) func(b []byte) {
	return func(b []byte) {
		saved := bytes.Clone(b[i : i+n])
		copy(b[i:i+n], b[j:j+n])
		copy(b[j:j+n], saved)
	}
}
