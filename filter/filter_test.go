package filter_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
)

const document = `{"a":1,"big":18446744073709551616,"celsius":21,"d":{"e":[1,2,{"f":"deep"}],"n":null},"floor":"3","lit":true,"odd name":"x","since":"2024-05-01T00:00:00Z","tags":["x","y"]}`

func match(t *testing.T, text, state string) bool {
	t.Helper()
	f, err := filter.Compile(text)
	require.NoError(t, err, text)
	s := filter.NewSubject("rooms", "tower-1", &snapshot.Record{Life: 7, Revision: 3, Changed: nowhere, Codec: "json", State: []byte(state)})
	ok, err := f.Match(context.Background(), s)
	require.NoError(t, err, text)
	return ok
}

func TestMatch(t *testing.T) {
	for text, want := range map[string]bool{
		`true`:                                        true,
		`state.celsius > 20.5`:                        true,
		`state.celsius == 21.0`:                       true,
		`state.celsius in [1, 21.0]`:                  true,
		`state.big > 1e19`:                            true,
		`21 <= state.celsius`:                         true,
		`state.floor > 1`:                             false, // a string
		`!(state.floor > 1)`:                          false,
		`state.floor > 1 || true`:                     true,
		`true || state.floor > 1`:                     true,
		`state.nowhere > 1`:                           false,
		`state.nowhere != 1`:                          false,
		`state.nowhere.more == null`:                  false,
		`state.d.n == null`:                           true,
		`state.d.n > 1`:                               false,
		`has(state.d.n)`:                              true,
		`has(state.d.x)`:                              false,
		`!has(state.d.x)`:                             true,
		`has(state.a.x)`:                              false,
		`!has(state.a.x)`:                             true,
		`!has(state.x.y)`:                             false,
		`state["odd name"] == "x"`:                    true,
		`state.d.e[2].f.endsWith("ep")`:               true,
		`state.d.e[3] == 1`:                           false,
		`state.lit`:                                   true,
		`!state.lit`:                                  false,
		`state.a`:                                     false, // no bool
		`"x" in state.tags`:                           true,
		`"z" in state.tags`:                           false,
		`"e" in state.d`:                              true,
		`state.tags.exists(t, t == "y")`:              true,
		`state.tags.all(t, t == "y")`:                 false,
		`state.floor.matches("^[0-9]$")`:              true,
		`name.startsWith("tower-")`:                   true,
		`pod == "rooms" && life == 7`:                 true,
		`revision >= 3 && revision < 4`:               true,
		`changed > timestamp("2024-01-01T00:00:00Z")`: true,
		`changed - timestamp("2024-05-06T00:00:00Z") < duration("8h")`: true,
		`timestamp(state.since).getFullYear() == 2024`:                 true,
		`state.celsius * 2 == 42`:                                      true,
		`state.celsius / 0 == 1 || true`:                               true,
		`state.celsius / 0 == 1`:                                       false,
		`state.d.e[0] + state.d.e[1] == 3`:                             true,
		`state.d.e == [1, 2, {"f":"deep"}]`:                            true,
		`state.d == state.d`:                                           true,
		`state.tags != state.d.e`:                                      true,
		`size(state.tags) == 2 ? state.lit : false`:                    true,
		`state.floor.upperAscii() == "3"`:                              true,
		`state.exists(k, k == "floor") && size(state) == 9`:            true,
	} {
		require.Equal(t, want, match(t, text, document), text)
	}
}

// A typed state's times and bytes are what they are; those of its maps' keys
// that are no strings are named as in JSON.
func TestTypedStates(t *testing.T) {
	type typed struct {
		Since time.Time      `json:"since"`
		Key   []byte         `json:"key"`
		Floor map[int]string `json:"floor"`
		ID    uint64         `json:"id"`
		Small float32        `json:"small"`
	}
	state, err := snapshot.Msgpack().Append(nil, &typed{
		Since: nowhere, Key: []byte("k"), Floor: map[int]string{-3: "cellar", 1000: "sky"}, ID: 1<<64 - 1, Small: 0.5,
	})
	require.NoError(t, err)
	var s filter.Subject
	s.Reset("rooms", "r", &snapshot.Record{Codec: "msgpack", State: state})
	for _, text := range []string{
		`state.since == timestamp("2024-05-06T07:08:09.00000001Z")`,
		`timestamp(state.since) > timestamp("2024-01-01T00:00:00Z")`,
		`state.since.getMonth() == 4`,
		`state.key == b"k"`,
		`state.floor["-3"] == "cellar" && has(state.floor.x) == false`,
		`state.floor.exists(k, k == "1000")`,
		`state.id == 18446744073709551615u && state.id > 5`,
		`state.small == 0.5`,
	} {
		f, err := filter.Compile(text)
		require.NoError(t, err, text)
		ok, err := f.Match(context.Background(), &s)
		require.NoError(t, err)
		require.True(t, ok, text)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]struct {
		line, column int
		message      string
	}{
		`state.a >`:            {1, 10, "something is missing at the end"},
		`state.a > ) && true`:  {1, 11, "column 11: unexpected ')'"},
		`(state.a`:             {1, 9, "missing ')' at the end"},
		`state.x and true`:     {1, 9, "column 9: unexpected 'and'"},
		`state.x == #`:         {1, 12, "not understood: '#'"},
		"true &&\n  name == 3": {2, 8, "no matching overload"},
		`"ä" == nme`:           {1, 8, "undeclared reference to 'nme'"},
		`name`:                 {1, 1, "expression gives string"},
		`state.a + state.b`:    {1, 9, "expression gives no bool"},
		`-state.a`:             {1, 1, "expression gives no bool"},
		`state.a + 1 == 2 && state.s.replace("a", "b") == "c"`: {1, 36, "function replace is not allowed"},
		`name.matches("(")`:                                          {1, 14, "invalid matches argument"},
		`state.a == state.b.format([1])`:                             {1, 26, "function format is not allowed"},
		strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200): {1, 0, ""},
		"true" + strings.Repeat(" ", filter.MaxText):                 {1, 1, "at most 8192"},
		`name.matches("(a{1,1000}){1,1000}")`:                        {1, 0, ""},
		"\xff":                                                       {1, 1, "UTF-8"},
		"":                                                           {1, 0, ""},
	} {
		_, err := filter.Compile(text)
		var syntax *filter.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.Equal(t, want.line, syntax.Line, "%q: %v", text, err)
		if want.column > 0 {
			require.Equal(t, want.column, syntax.Column, "%q: %v", text, err)
		}
		require.Contains(t, err.Error(), want.message)
		require.Less(t, len(err.Error()), 4000)
	}
}

// The work for one entity is bounded, whoever does it.
func TestCostIsBounded(t *testing.T) {
	list := "[" + strings.Repeat("1,", 2000) + "1]"
	long := strings.Repeat("a", 1<<20)
	state := `{"l":` + list + `,"s":"` + long + `"}`
	s := filter.NewSubject("rooms", "r", &snapshot.Record{Codec: "json", State: []byte(state)})
	for _, text := range []string{
		`state.l.all(a, state.l.all(b, state.l.all(c, true)))`,
		`state.l.all(a, state.l == state.l)`,
		strings.Repeat("state.s + ", 50) + `state.s == ""`,
		`state.l.map(a, state.s + state.s).size() == 1`,
		`state.l.all(a, !state.s.matches("b"))`,
		strings.Repeat(`state.s.matches("b$") || `, 200) + "false",
		strings.Repeat(`state.s.contains("b") || `, 200) + "false",
	} {
		f, err := filter.Compile(text)
		require.NoError(t, err, text)
		ok, err := f.Match(context.Background(), s)
		require.ErrorIs(t, err, filter.ErrTooCostly, text)
		require.False(t, ok)
	}
}

func TestMatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	list := "[" + strings.Repeat("1,", 2000) + "1]"
	s := filter.NewSubject("rooms", "r", &snapshot.Record{Codec: "json", State: []byte(`{"l":` + list + `}`)})
	f, err := filter.Compile(`state.l.all(a, a == 1)`)
	require.NoError(t, err)
	_, err = f.Match(ctx, s)
	require.ErrorIs(t, err, context.Canceled)
	ok, err := f.Match(context.Background(), s)
	require.NoError(t, err)
	require.True(t, ok)
}

// A subject goes from one entity to the next without carrying anything along.
func TestSubjectIsReused(t *testing.T) {
	f, err := filter.Compile(`state.a == 1 || state.l.exists(x, x == 2)`)
	require.NoError(t, err)
	var s filter.Subject
	for state, want := range map[string]bool{`{"a":1}`: true, `{"l":[2]}`: true, `{}`: false, `{"l":[3]}`: false, `not JSON`: false, ``: false} {
		s.Reset("p", "n", &snapshot.Record{Codec: "json", State: []byte(state)})
		ok, err := f.Match(context.Background(), &s)
		require.NoError(t, err)
		require.Equal(t, want, ok, state)
	}
	s.Reset("p", "n", nil)
	ok, err := f.Match(context.Background(), &s)
	require.NoError(t, err)
	require.False(t, ok)
	s.Reset("p", "n", &snapshot.Record{Codec: "unheard of", State: []byte(`{"a":1}`)})
	ok, err = f.Match(context.Background(), &s)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestMatchAllocatesNothing(t *testing.T) {
	f, err := filter.Compile(`state.celsius > 20.5 && name.startsWith("tower-") && "x" in state.tags && has(state.d.e) && state.floor in ["3"]`)
	require.NoError(t, err)
	r := &snapshot.Record{Codec: "json", State: []byte(document)}
	var s filter.Subject
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Reset("rooms", "tower-1", r)
		if ok, err := f.Match(ctx, &s); !ok || err != nil {
			t.Error(ok, err)
		}
	}))
}

func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		`state.celsius > 21.0 && name.startsWith("tower-")`, `has(state.a.b) || !state.c[0]`, `state["a"].all(x, x in [1, 2u])`,
		`timestamp("2024-01-01T00:00:00Z") < changed`, `name.matches("^a+$")`, `(`, `state.`, `"\xff"`, `-9223372036854775808 == state.n`,
		`state.a ? state.b : state.c`, `[1, 2].map(x, x * 2)[0] == 2`, `state[1.5]`, `b"a" == state.k`,
	} {
		f.Add(text, []byte(document), "json")
		f.Add(text, []byte{0x81, 0xa1, 'a', 0x92, 0x01, 0xcb}, "msgpack")
	}
	f.Fuzz(func(t *testing.T, text string, state []byte, codec string) {
		compiled, err := filter.Compile(text)
		if err != nil {
			var syntax *filter.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Positive(t, syntax.Line)
			require.Positive(t, syntax.Column)
			return
		}
		ctx := context.Background()
		s := filter.NewSubject("rooms", "tower-1", &snapshot.Record{Codec: codec, State: state})
		if _, err := compiled.Match(ctx, s); err != nil {
			require.ErrorIs(t, err, filter.ErrTooCostly)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, text := range []string{`state.a[0]["b"]`, `name`, `state`, `state["\u00e4\""]`, `state[`, `state[99999999999]`} {
		f.Add(text, []byte(document), "json")
		f.Add(text, []byte{0x82, 0xa1, 'a', 0x92, 0x01, 0xc7, 0x0c, 0xff, 0x01, 0x02}, "msgpack")
	}
	f.Fuzz(func(t *testing.T, text string, state []byte, codec string) {
		p, err := filter.ParsePath(text)
		if err != nil {
			var syntax *filter.SyntaxError
			require.ErrorAs(t, err, &syntax)
			return
		}
		again, err := filter.ParsePath(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
		s := filter.NewSubject("rooms", "tower-1", &snapshot.Record{Codec: codec, State: state})
		p.Value(s)
		filter.NewProjection([]filter.Path{p}).AppendJSON(nil, s)
	})
}

// How many lists and objects an expression makes is bounded, those of macros among
// them; how many elements these have is not.
func TestListsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		one    string
		counts int // lists and objects
	}{
		"empty lists":   {`[] == state.l`, 1},
		"empty objects": {`{} == state.l`, 1},
		"lists":         {`state.n in [1, 2, 3, 4]`, 1},
		"objects":       {`{"a": 1} == state.l`, 1},
		"within others": {`[[{}]] == state.l`, 3},
		"joined":        {`[1] + [2] == state.l`, 2},
		"map":           {`state.l.map(x, x) == state.l`, 2},
		"filter":        {`state.l.filter(x, true) == state.l`, 2},
	} {
		most := filter.MaxLists / c.counts
		_, err := filter.Compile(c.one + strings.Repeat("||"+c.one, most-1))
		require.NoError(t, err, name)
		_, err = filter.Compile(c.one + strings.Repeat("||"+c.one, most))
		var syntax *filter.SyntaxError
		require.ErrorAs(t, err, &syntax, name)
		require.Contains(t, syntax.Message, "more than 100 lists and objects", name)
		require.Greater(t, syntax.Column, most*(len(c.one)+2), name)
	}
	_, err := filter.Compile(`state.n in [` + strings.Repeat("1, ", 2000) + `1]`)
	require.NoError(t, err)
}
