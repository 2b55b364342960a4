package jsonfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// fixtureUnits are what the fixtures were made of.
func fixtureUnits() [][]persist.Unit {
	a, b := create(rooms("Tower-3"), `{"celsius":21.5}`), create(persist.Key{Pod: "halls", Name: "é/1"}, "\x81\xa1n\x01")
	a.Rows = []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte(`{"to":"b"}`)}, {Kind: "inbox", ID: "x", Value: []byte{0xff}}}
	b.Record.Codec, b.Changes[0].Codec, b.Changes[0].Event = "msgpack", "msgpack", true
	return [][]persist.Unit{{a, b, create(rooms("gone"), `1`)}, {step(rooms("Tower-3"), 1, 1, `{"celsius":22}`), remove(rooms("gone"), 3, 1)}}
}

// TestFixture opens a backup that format 1 wrote; README.md beside it says how
// it was made.
func TestFixture(t *testing.T) {
	path := filepath.Join("testdata", "format-1.tar")
	if os.Getenv("JSONFILE_FIXTURE") != "" {
		s := mustOpen(t, filepath.Join(t.TempDir(), "store"), Config{Flush: -1})
		for _, units := range fixtureUnits() {
			mustCommit(t, s, units...)
		}
		var b bytes.Buffer
		require.NoError(t, s.Backup(ctx, &b))
		require.NoError(t, s.Close())
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, Restore(dir, bytes.NewReader(b)))
	s := mustOpen(t, dir, Config{})
	defer func() { require.NoError(t, s.Close()) }()
	units := fixtureUnits()
	a, err := s.Load(ctx, rooms("Tower-3"))
	require.NoError(t, err)
	want := *units[1][0].Record
	want.Life = 1
	require.Equal(t, want, a)
	h, err := s.Load(ctx, units[0][1].Key)
	require.NoError(t, err)
	require.Equal(t, units[0][1].Record.State, h.State)
	_, err = s.Load(ctx, rooms("gone"))
	require.ErrorIs(t, err, persist.ErrNotFound)
	log, err := s.Log(ctx, 0, 10)
	require.NoError(t, err)
	require.Len(t, log, 5)
	require.True(t, log[1].Event)
	rows, err := s.Rows(ctx, "", nil, 10)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []byte{0xff}, rows[0].Value)
	mustCommit(t, s, step(rooms("Tower-3"), 1, 2, `{"celsius":23}`))
	trimmed, err := s.Trim(ctx, 0, 6, 100)
	require.NoError(t, err)
	require.Equal(t, 5, trimmed.Dropped, "all but the event")
}

// TestBytesComeBackExactly has states that look like something else.
func TestBytesComeBackExactly(t *testing.T) {
	s := tempStore(t)
	states := []string{"", "null", `"x"`, "1e400", `{"a":1,"a":2}`, `{"b":1, "a":2}`, "{}\n", "\xff\xfe", "\u2028<&>", `"\ud800"`, "0", " ",
		`{"text":"}{","n":-0.0}`, "\x00\x01", `["\u0000"]`, "text\r\nwith\tall"}
	for _, codec := range []string{"json", "msgpack", "", "other"} {
		for i, st := range states {
			k := persist.Key{Pod: "p" + codec, Name: string(rune('a' + i))}
			u := persist.Unit{Key: k, Record: &snapshot.Record{Revision: 1, Codec: codec, State: []byte(st)},
				Rows: []persist.RowOp{{Kind: "k", ID: st + "i", Value: []byte(st)}}}
			if st == "\xff\xfe" || st == "\x00\x01" {
				u.Rows[0].ID = "i"
			}
			mustCommit(t, s, u)
		}
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, s.dir, Config{})
	defer func() { require.NoError(t, s.Close()) }()
	for _, codec := range []string{"json", "msgpack", "", "other"} {
		for i, st := range states {
			k := persist.Key{Pod: "p" + codec, Name: string(rune('a' + i))}
			require.Equal(t, st, state(t, s, k), "%q", st)
			rows, err := s.RowsOf(ctx, k)
			require.NoError(t, err)
			require.Equal(t, st, string(rows[0].Value))
		}
	}
}
