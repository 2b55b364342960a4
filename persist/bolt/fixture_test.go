package bolt

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

// fixtureVariable names the file that TestWriteFixture makes; see
// testdata/README.md.
const fixtureVariable = "BOLT_FIXTURE"

// fixtureTrim is the position up to which a fixture's journal is trimmed.
const fixtureTrim = 40

// writeFixture fills a store with something of everything, always the same: the
// fixtures in testdata were written by it. Change nothing in it, or later
// versions would be compared with what was never written.
func writeFixture(t testing.TB, s interface {
	Commit(units []persist.Unit) []persist.Outcome
}, events bool) {
	at := func(revision uint64) time.Time {
		return time.Date(2024, 2, 29, 12, 0, 0, 123456789, time.UTC).Add(time.Duration(revision) * time.Minute)
	}
	unit := func(k persist.Key, life, expect uint64, state string, isEvent bool) persist.Unit {
		r := expect + 1
		u := persist.Unit{Key: k, Life: life, Expect: expect,
			Record:  &snapshot.Record{Revision: r, Reserved: r, Changed: at(r), Schema: 3, Codec: "json", State: []byte(state)},
			Changes: []persist.Change{{Revision: r, Time: at(r), Type: "changed", Schema: 3, Codec: "json", Data: []byte(state)}},
			Rows:    []persist.RowOp{{Kind: "outbox", ID: fmt.Sprint(r), Value: []byte(state)}}}
		setEvent(&u.Changes[0], isEvent)
		return u
	}
	names := []string{"a", "a/b", "a%2Fb", " ", "é", "🏢", strings.Repeat("n", 256)}
	for i, name := range names {
		for _, pod := range []string{"rooms", "floors", "$pods"} {
			k := persist.Key{Pod: pod, Name: name}
			o := s.Commit([]persist.Unit{unit(k, 0, 0, fmt.Sprintf("%s %d", pod, i), false)})
			if i == 1 {
				s.Commit([]persist.Unit{{Key: k, Life: o[0].Life, Expect: 1, Delete: true,
					Changes: []persist.Change{{Revision: 2, Time: at(2), Type: "deleted"}}}})
			}
		}
	}
	s.Commit([]persist.Unit{ // a new life, and a step of it
		unit(persist.Key{Pod: "rooms", Name: "a/b"}, 0, 0, "again", false),
		unit(persist.Key{Pod: "rooms", Name: "a/b"}, 0, 1, "again 2", false),
	})
	long := persist.Key{Pod: "meters", Name: "long"}
	other := persist.Key{Pod: "meters", Name: "other"}
	o := s.Commit([]persist.Unit{unit(long, 0, 0, "1", events), unit(other, 0, 0, "1", false)})
	for r := uint64(1); r < 100; r++ {
		u, v := unit(long, o[0].Life, r, fmt.Sprint(r+1), events), unit(other, o[1].Life, r, fmt.Sprint(r+1), false)
		for _, w := range []*persist.Unit{&u, &v} {
			w.Rows = []persist.RowOp{{Kind: "outbox", ID: fmt.Sprint(r), Delete: true}, {Kind: "outbox", ID: fmt.Sprint(r + 1), Value: []byte{byte(r)}},
				{Kind: "inbox", ID: "cursor", Value: []byte(fmt.Sprint(r))}}
		}
		s.Commit([]persist.Unit{u, v})
	}
	big := unit(persist.Key{Pod: "documents", Name: "big"}, 0, 0, strings.Repeat("0123456789abcdef", 1000), false)
	big.Rows = nil
	plain := persist.Unit{Key: persist.Key{Pod: "documents", Name: "no change"},
		Record: &snapshot.Record{Revision: 1, Reserved: 1000, Changed: at(1), State: []byte("x")}}
	s.Commit([]persist.Unit{big, plain})
}

func setEvent(c *persist.Change, event bool) { c.Event = event }

// committed lets writeFixture write to any store.
type committed struct {
	t testing.TB
	s persist.PersistenceService
}

func (c committed) Commit(units []persist.Unit) []persist.Outcome {
	o, err := c.s.Commit(ctx, units)
	require.NoError(c.t, err)
	for i := range o {
		require.NoError(c.t, o[i].Err)
	}
	return o
}

func trimFixture(t testing.TB, s persist.PersistenceService) {
	_, err := s.Trim(ctx, 0, fixtureTrim, 1000)
	require.NoError(t, err)
}

// contents is all that a store has.
type contents struct {
	Pods     []string
	Lists    map[string][]persist.Item
	Log      []persist.Change
	Changes  map[persist.Key][]persist.Change
	Rows     []persist.Row
	Position uint64
}

func contentsOf(t testing.TB, s persist.PersistenceService) (c contents) {
	c.Lists, c.Changes = map[string][]persist.Item{}, map[persist.Key][]persist.Change{}
	var err error
	c.Pods, err = s.Pods(ctx)
	require.NoError(t, err)
	for _, pod := range c.Pods {
		page, err := s.List(ctx, pod, persist.ListOptions{Limit: 1000})
		require.NoError(t, err)
		c.Lists[pod] = page.Items
		for _, item := range page.Items {
			k := persist.Key{Pod: pod, Name: item.Name}
			c.Changes[k], err = s.Changes(ctx, k, 0, 0, 1000)
			require.NoError(t, err)
		}
	}
	c.Log, err = s.Log(ctx, 0, 10_000)
	require.NoError(t, err)
	c.Rows, err = s.Rows(ctx, "", nil, 10_000)
	require.NoError(t, err)
	c.Position, err = s.Position(ctx)
	require.NoError(t, err)
	return c
}

// unpack returns the path of a copy of a fixture.
func unpack(t testing.TB, fixture string) string {
	b, err := os.ReadFile(fixture)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	b, err = io.ReadAll(z)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "fixture.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestDatabasesOfEarlierVersionsAreRead(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("bbolt's files are in the machine's byte order, and the fixtures were made on a little-endian one")
	}
	fixtures, err := filepath.Glob("testdata/*.db.gz")
	require.NoError(t, err)
	require.NotEmpty(t, fixtures)
	for _, fixture := range fixtures {
		t.Run(filepath.Base(fixture), func(t *testing.T) {
			events := !strings.HasPrefix(filepath.Base(fixture), "format1-")
			model := memory.Open(memory.Config{})
			writeFixture(t, committed{t, model}, events)
			trimFixture(t, model)

			path := unpack(t, fixture)
			s := mustOpen(t, path, Config{})
			defer func() { require.NoError(t, s.Close()) }()
			want := contentsOf(t, model)
			require.Equal(t, want, contentsOf(t, s))
			require.Len(t, want.Pods, 5)
			require.Greater(t, len(want.Log), 150)

			// It goes on as if this version had written it.
			for _, store := range []persist.PersistenceService{model, s} {
				c := committed{t, store}
				long := persist.Key{Pod: "meters", Name: "long"}
				r, err := store.Load(ctx, long)
				require.NoError(t, err)
				u := step(long, r.Life, r.Revision, "goes on")
				u.Changes[0].Event = true
				gone := persist.Key{Pod: "rooms", Name: "a/b"}
				r, err = store.Load(ctx, gone)
				require.NoError(t, err)
				c.Commit([]persist.Unit{u, create(persist.Key{Pod: "rooms", Name: "new"}, "x"),
					{Key: gone, Life: r.Life, Expect: r.Revision, Delete: true}, {Key: persist.Key{Pod: "floors", Name: "a"}, Delete: true, Force: true}})
				_, err = store.Trim(ctx, 0, 150, 1000)
				require.NoError(t, err)
			}
			want = contentsOf(t, model)
			for range 2 {
				require.Equal(t, want, contentsOf(t, s))
				require.NoError(t, s.Compact(ctx))
				require.NoError(t, s.Close())
				s = mustOpen(t, path, Config{})
			}
		})
	}
}

func TestWriteFixture(t *testing.T) {
	to := os.Getenv(fixtureVariable)
	if to == "" {
		t.Skipf("set %s to the file that is to be made; see testdata/README.md", fixtureVariable)
	}
	path := filepath.Join(t.TempDir(), "fixture.db")
	s := mustOpen(t, path, Config{})
	writeFixture(t, committed{t, s}, !strings.HasPrefix(filepath.Base(to), "format1-"))
	trimFixture(t, s)
	require.NoError(t, s.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(b)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(to, packed.Bytes(), 0o644))
}
