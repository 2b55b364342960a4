package postgres

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Of a group, bad units fail alone, whatever is bad about them.
func TestBadUnitsInAGroup(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url+"&max_stack_depth=250", Config{MaxRecord: 1 << 20})
	old := mustCommit(t, s, create(rooms("old"), `"old"`))[0]
	units := make([]persist.Unit, 256)
	for i := range units {
		units[i] = create(rooms(fmt.Sprintf("r%03d", i)), fmt.Sprintf(`{"n":%d}`, i))
	}
	bad := map[int]error{}
	spoil := func(i int, target error, u persist.Unit) { units[i], bad[i] = u, target }
	spoil(3, persist.ErrInvalid, create(rooms("nul\x00"), "{}"))
	spoil(40, persist.ErrInvalid, create(rooms("not utf-8 \xff"), "{}"))
	spoil(41, persist.ErrInvalid, create(persist.Key{Pod: "\xc3\x28", Name: "a"}, "{}"))
	spoil(77, persist.ErrConflict, create(rooms("old"), "{}"))
	spoil(78, persist.ErrConflict, step(rooms("old"), old.Life, 9, "{}"))
	spoil(79, persist.ErrConflict, step(rooms("nobody"), 7, 1, "{}"))
	spoil(80, persist.ErrConflict, step(rooms("old"), math.MaxUint64, math.MaxInt64-1, "{}"))
	spoil(120, persist.ErrInvalid, create(rooms("large"), strings.Repeat("x", 1<<20+1)))
	huge := create(rooms("huge"), "{}")
	huge.Record.Revision, huge.Changes[0].Revision = math.MaxInt64+1, math.MaxInt64+1
	spoil(200, persist.ErrInvalid, huge)
	row := create(rooms("row"), "{}")
	row.Rows = []persist.RowOp{{Kind: "outbox", ID: "a\x00"}}
	spoil(255, persist.ErrInvalid, row)
	// These are good, if hard to show: what is no text or JSON has no derived form.
	units[10].Record.State = []byte(`{"a":"\u0000"}`)
	units[11].Record.State = []byte("\x00\xff not JSON")
	units[12].Changes[0].Type = "typ\x00\xff"
	units[13].Record.Codec = "\x00"
	units[14].Record.State = []byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)) // too deep for this server
	units[15].Rows = []persist.RowOp{{Kind: "outbox", ID: "\xff\xfe", Value: []byte{0}}}

	o, err := s.Commit(ctx, units)
	require.NoError(t, err)
	last := uint64(1)
	for i := range o {
		if want, ok := bad[i]; ok {
			require.ErrorIs(t, o[i].Err, want, "unit %d", i)
			require.ErrorContains(t, o[i].Err, units[i].Key.String())
			continue
		}
		require.NoError(t, o[i].Err, "unit %d", i)
		require.Equal(t, last+1, o[i].Position)
		last = o[i].Position
		r, err := s.Load(ctx, units[i].Key)
		require.NoError(t, err)
		require.Equal(t, units[i].Record.State, r.State)
		require.Equal(t, units[i].Record.Codec, r.Codec)
		c, err := s.Changes(ctx, units[i].Key, o[i].Life, 0, 10)
		require.NoError(t, err)
		require.Len(t, c, 1)
		require.Equal(t, units[i].Changes[0].Type, c[0].Type)
	}
	require.Equal(t, `"old"`, state(t, s, rooms("old")))
	require.Equal(t, int64(256-len(bad)+1), ask[int64](t, url, `SELECT count(*) FROM records`))
	require.Equal(t, int64(4), ask[int64](t, url, `SELECT count(*) FROM records WHERE state IS NULL`))
	rows, err := s.RowsOf(ctx, units[15].Key)
	require.NoError(t, err)
	require.Equal(t, "\xff\xfe", rows[0].ID)
}

func TestDerivedState(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	m := snapshot.Msgpack()
	packed, err := m.Append(nil, map[string]any{"celsius": 21.5, "name": "é\x00"})
	require.NoError(t, err)
	good, err := m.Append(nil, map[string]any{"celsius": 21.5, "open": true})
	require.NoError(t, err)
	for i, c := range []struct {
		codec, state, want string
	}{
		{"json", `{"b":1,"a":[null,"x\u00e9\ud83c\udfe2"]}`, `{"a": [null, "xé🏢"], "b": 1}`},
		{"json", `12345678901234567890.10`, `12345678901234567890.10`},
		{"json", `1e4096`, "1" + strings.Repeat("0", 4096)},
		{"json", `1e4097`, ``},
		{"json", `1E-99999999`, ``},
		{"json", `"\ud83c"`, ``},
		{"json", `"\udfe2\ud83c"`, ``},
		{"json", `"\\u0000"`, `"\\u0000"`},
		{"json", `"a\\\u0000"`, ``},
		{"json", `{"\u0000":1}`, ``},
		{"json", `"\n\"e9999999"`, `"\n\"e9999999"`},
		{"json", "\"\xff\"", ``},
		{"json", ``, ``},
		{"msgpack", string(good), `{"open": true, "celsius": 21.5}`},
		{"msgpack", string(packed), ``},
		{"msgpack", "\xc1", ``},
		{"other", `{}`, ``},
	} {
		k := rooms(fmt.Sprint(i))
		u := create(k, c.state)
		u.Record.Codec = c.codec
		mustCommit(t, s, u)
		require.Equal(t, c.want, ask[string](t, url, `SELECT coalesce(state::text, '') FROM records WHERE name = $1`, k.Name), "%s", c.state)
		require.Equal(t, c.state, state(t, s, k))
	}
	far := create(rooms("far"), "{}")
	far.Record.Changed, far.Changes[0].Time = time.Unix(1<<55, 7), time.Unix(-1<<55, 7)
	mustCommit(t, s, far)
	r, err := s.Load(ctx, rooms("far"))
	require.NoError(t, err)
	require.True(t, far.Record.Changed.Equal(r.Changed))
	require.Equal(t, int64(0), ask[int64](t, url, `SELECT count(changed) FROM records WHERE name = 'far'`))
}

// Pages begin behind and within any bytes, also those that are no text.
func TestBoundsOfLists(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, freshURL(t), Config{})
	names := []string{"A", "Z", "a", "a b", "a-b", "ab", "b", "e", "é", "é1", "ê", "\U0010FFFF", "\U0010FFFFx", "🏢"}
	for _, n := range names {
		u := create(rooms(n), "{}")
		u.Rows = []persist.RowOp{{Kind: "k", ID: n}}
		mustCommit(t, s, u)
	}
	slices.Sort(names)
	bounds := append([]string{"", "\x00", "a\x00", "a\xff", "\xc3", "\xc3\xa9", "\xc3\xff", "\xff", "é\xff", "\xf4", "nobody"}, names...)
	for _, after := range bounds {
		for _, prefix := range bounds {
			want := []string{}
			for _, n := range names {
				if (after == "" || n > after) && strings.HasPrefix(n, prefix) {
					want = append(want, n)
				}
			}
			page, err := s.List(ctx, "rooms", persist.ListOptions{After: after, Prefix: prefix, Limit: 5})
			require.NoError(t, err)
			got := []string{}
			for _, item := range page.Items {
				got = append(got, item.Name)
			}
			require.Equal(t, want[:min(5, len(want))], got, "after %q with prefix %q", after, prefix)
			require.Equal(t, len(want) > 5, page.More)
		}
		rows, err := s.Rows(ctx, "k", &persist.Row{Key: rooms(after)}, 100)
		require.NoError(t, err)
		want := 0
		for _, n := range names {
			if n >= after {
				want++
			}
		}
		require.Len(t, rows, want, "rows behind %q", after)
	}
	for _, pod := range []string{"\xff", "a\x00", ""} {
		page, err := s.List(ctx, pod, persist.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, page.Items)
		_, err = s.Load(ctx, persist.Key{Pod: pod, Name: "a"})
		require.ErrorIs(t, err, persist.ErrNotFound)
	}
}

// An index takes no key of 8 KB; long ids are told apart all the same.
func TestLongRowIDs(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, freshURL(t), Config{})
	k := persist.Key{Pod: strings.Repeat("p", 256), Name: strings.Repeat("n", 1024)}
	var ids []string
	for _, tail := range []string{"", "\x00", "a", "b", strings.Repeat("b", 4000)} {
		ids = append(ids, strings.ReplaceAll(strings.Repeat("\xf1\xe7", 256)+tail, "\x00", "\x01"))
	}
	ids = append(ids, strings.Repeat("\xf2", 511), strings.Repeat("\xf2", 8192))
	for i := range 3 {
		u := create(k, "{}")
		if i > 0 {
			r, err := s.Load(ctx, k)
			require.NoError(t, err)
			u = step(k, r.Life, r.Revision, "{}")
		}
		for _, id := range slices.Backward(ids) {
			u.Rows = append(u.Rows, persist.RowOp{Kind: "k", ID: id, Value: []byte(fmt.Sprint(i))})
		}
		mustCommit(t, s, u)
	}
	for _, limit := range []int{1, 2, 100} {
		var got []string
		var after *persist.Row
		for {
			rows, err := s.Rows(ctx, "", after, limit)
			require.NoError(t, err)
			for _, r := range rows {
				require.NoError(t, r.Err)
				require.Equal(t, "2", string(r.Value))
				got = append(got, r.ID)
			}
			if len(rows) < limit {
				break
			}
			after = &rows[len(rows)-1]
		}
		require.Equal(t, ids, got)
	}
	r, err := s.Load(ctx, k)
	require.NoError(t, err)
	u := step(k, r.Life, 3, "{}")
	u.Rows = []persist.RowOp{{Kind: "k", ID: ids[3], Delete: true}}
	mustCommit(t, s, u)
	rows, err := s.RowsOf(ctx, k)
	require.NoError(t, err)
	require.Len(t, rows, len(ids)-1)
}

// Who follows the log while others write misses nothing: no position appears
// behind one that was seen.
func TestReadersSeePositionsInOrder(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, freshURL(t), Config{})
	const writers, steps = 4, 40
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range steps {
				units := []persist.Unit{create(rooms(fmt.Sprintf("%d-%d", w, i)), "{}"), create(rooms(fmt.Sprintf("%d+%d", w, i)), "{}")}
				if _, err := s.Commit(ctx, units); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	seen, done := uint64(0), false
	for !done {
		p, err := s.Position(ctx)
		require.NoError(t, err)
		log, err := s.Log(ctx, seen, 1000)
		require.NoError(t, err)
		for _, c := range log {
			require.Equal(t, seen+1, c.Position)
			seen = c.Position
		}
		require.GreaterOrEqual(t, seen, p, "what has a position can be read")
		done = seen == 2*writers*steps
		select {
		case err := <-errs:
			require.NoError(t, err)
		default:
		}
	}
	wg.Wait()
}

// Whoever changes the tables by hand is noticed, not believed.
func TestColumnsAreChecked(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	a := mustCommit(t, s, create(rooms("a"), "{}"), create(rooms("b"), "{}"))[0]
	execSQL(t, url, `UPDATE records SET revision = 5 WHERE name = 'a'`)
	_, err := s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	execSQL(t, url, `UPDATE records SET revision = 1 WHERE name = 'a'`)
	mustCommit(t, s, step(rooms("a"), a.Life, 1, "{}"))
	execSQL(t, url, `UPDATE changes SET name = 'c' WHERE position = 2`)
	log, err := s.Log(ctx, 0, 10)
	require.NoError(t, err)
	require.Len(t, log, 3)
	require.ErrorIs(t, log[1].Err, snapshot.ErrCorrupt)
	require.NoError(t, log[2].Err)
	execSQL(t, url, `UPDATE records SET record = '' WHERE name = 'b'`)
	_, err = s.Load(ctx, rooms("b"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt, "cut to nothing")
	execSQL(t, url, `UPDATE changes SET change = '' WHERE position = 1`)
	log, err = s.Log(ctx, 0, 10)
	require.NoError(t, err)
	require.ErrorIs(t, log[0].Err, snapshot.ErrCorrupt)
}

// A trigger or a constraint of people's own that refuses a unit refuses that
// call; the committer halves it.
func TestPeoplesOwnConstraints(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	execSQL(t, url, `ALTER TABLE records ADD CONSTRAINT warm CHECK ((state->>'celsius')::int > 0)`)
	mustCommit(t, s, create(rooms("a"), `{"celsius":1}`))
	_, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), `{"celsius":2}`), create(rooms("c"), `{"celsius":-1}`)})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.Equal(t, int64(1), ask[int64](t, url, `SELECT count(*) FROM records`))
	mustCommit(t, s, create(rooms("b"), `{"celsius":2}`))
}

// A call may have more than fits into one statement.
func TestLargeCommit(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, freshURL(t), Config{Timeout: time.Minute})
	var units []persist.Unit
	for i := range 2500 {
		units = append(units, create(rooms(fmt.Sprint(i)), "{}"))
	}
	units = append(units, create(rooms("large"), strings.Repeat("x", 5<<20)), create(rooms("larger"), strings.Repeat("y", 9<<20)))
	mustCommit(t, s, units...)
	page, err := s.List(ctx, "rooms", persist.ListOptions{Prefix: "l", Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Items, 1, "a page ends early")
	require.True(t, page.More)
	require.Len(t, state(t, s, rooms("larger")), 9<<20)
	pods, err := s.Pods(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"rooms"}, pods)
}
