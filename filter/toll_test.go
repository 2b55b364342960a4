package filter_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/filter"
)

// Each turn of a loop pays for all that it does, before it does it.
func TestEachTurnPays(t *testing.T) {
	const turns = 20
	text := strings.Repeat("a", 1600) // 100 steps to look at
	wide := map[string]any{}
	for i := range 500 {
		wide[fmt.Sprint(i)] = i
	}
	state := func(n int) *filter.Subject {
		return filter.NewSubject("p", "n", stated(t, map[string]any{
			"l": make([]int, n), "s": text, "m": make([]int, 100), "i": []int{0}, "o": map[string]any{"a": 1}, "k": map[string]any{text: 1}, "w": wide,
		}))
	}
	spent := func(s *filter.Subject, text string) int {
		f, err := filter.Compile(text)
		require.NoError(t, err, text)
		_, err = f.Match(context.Background(), s)
		require.NoError(t, err, text)
		return s.Spent()
	}
	none, some := state(0), state(turns)
	for what, c := range map[string]struct {
		turn        string
		least, most int
	}{
		"nothing":                        {`true`, 3, 6},
		"terms that are literals":        {strings.Repeat("true && ", 200) + "true", 200, 450},
		"terms of or":                    {strings.Repeat("false || ", 200) + "true", 200, 450},
		"members":                        {`state` + strings.Repeat(".o", 60) + ` == 1`, 60, 80},
		"members by name":                {`state` + strings.Repeat(`["o"]`, 60) + ` == 1`, 60, 80},
		"members within one":             {`state.i[` + strings.Repeat(`state.i[`, 20) + `0` + strings.Repeat(`]`, 20) + `] == 0`, 40, 90},
		"members of one of two":          {`(x == 0 ? state.o` + strings.Repeat(".o", 60) + ` : state.o) == 1`, 60, 90},
		"members that there are":         {`has(state` + strings.Repeat(".o", 60) + `.a)`, 60, 140},
		"a list":                         {`[` + strings.Repeat("x, ", 200) + `x].size() == 201`, 400, 450},
		"an object":                      {`{` + strings.Repeat("x: 1, ", 200) + `"a": 2}.size() == 2`, 400, 850},
		"a text that is looked at":       {`state.s.contains("b")`, 100, 120},
		"a literal that is looked at":    {`"` + text + `".contains(state.s)`, 200, 230},
		"what looks":                     {`"b" in [state.s, state.s]`, 200, 230},
		"texts that are added":           {`(state.s + state.s).size() == 0`, 400, 420},
		"texts that are compared":        {`state.s + "a" == state.s + "b"`, 400, 440},
		"texts that are made":            {`state.s.upperAscii().size() == 1`, 300, 320},
		"lists that are compared":        {`state.m == state.m`, 200, 230},
		"lists that are joined":          {`(state.m + state.m).size() == 200`, 200, 230},
		"the length of a text":           {`state.s.size() == 1`, 100, 120},
		"the length of a list":           {`state.m.size() == 1`, 5, 20},
		"texts in order":                 {`state.s < state.s`, 200, 220},
		"the parts of a text":            {`state.s.split("").size() == 1`, 1600 + 1600, 3330},
		"a number in a text":             {`double(state.s) < 1.0`, 100, 120},
		"a key of an object":             {`state.s in state.w`, 100, 120},
		"an object that is none":         {`state.w == 1 || state.w != null`, 5, 30},
		"a list that is none":            {`1 == state.m || null != state.m`, 5, 30},
		"an element of a list":           {`x in state.m`, 100, 120},
		"an object in a list":            {`state.k in [state.o, state.k]`, 100, 140},
		"a bool in a text":               {`bool(state.s)`, 100, 120},
		"a zone in a text":               {`changed.getHours(state.s) == 30`, 300, 320},
		"keys":                           {`{state.s: 1, state.s + "a": 2}.size() == 3`, 300, 330},
		"a time in a text":               {`timestamp(state.s) < changed`, 100, 120},
		"a zone":                         {`changed.getHours("Europe/Berlin") == 30`, 200, 220},
		"texts in a list that was made":  {`"b" in state.i.map(y, state.s)`, 100, 130},
		"lists in a list that was made":  {`state.i.map(y, state.m) == []`, 100, 130},
		"objects that were made":         {`{"a": state.s} == state.o`, 100, 130},
		"names in an object":             {`state.k == state.o`, 100, 130},
		"names in an object that is new": {`{state.s: 1} == state.o`, 200, 230},
		"a loop within":                  {`state.m.all(y, y == x)`, 500, 1100},
	} {
		loop := `state.l.exists(x, (` + c.turn + `) && false)`
		each := (spent(some, loop) - spent(none, loop)) / turns
		require.GreaterOrEqual(t, each, c.least, what)
		require.LessOrEqual(t, each, c.most+10, what)
	}
}

// What has had its share ends there, also where CEL would go on behind an error.
func TestNoTurnFollowsTheLastStep(t *testing.T) {
	s := filter.NewSubject("p", "n", stated(t, map[string]any{"l": make([]int, 100_000), "i": []int{0, 1}}))
	for _, text := range []string{
		`state.l.exists(x, x == 1)`,
		`state.l.exists(x, x.y == 1) || true`,
		`state.l.map(x, x + 1).size() == 1 || name == "n"`,
		`state.l.all(x, state.l.all(y, y == 0)) ? true : true`,
		`state.i.map(x, state.l) == state.i.map(x, state.l)`,
		`state.l in state.i.map(x, state.l)`,
	} {
		f, err := filter.Compile(text)
		require.NoError(t, err, text)
		ok, err := f.Match(context.Background(), s)
		require.ErrorIs(t, err, filter.ErrTooCostly, text)
		require.ErrorContains(t, err, "p/n: ", text)
		require.False(t, ok, text)
		require.Less(t, s.Spent(), 2*filter.MaxCost, text)
	}
}

// A list that was made of others is one list: nothing that looks at it goes through
// those again, or copies them.
func TestJoinedListsAreOneList(t *testing.T) {
	s := filter.NewSubject("p", "n", stated(t, map[string]any{"l": make([]int, 70), "i": []int{1, 2}}))
	match := func(text string) (matches bool, allocated uint64, err error) {
		f, err := filter.Compile(text)
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		matches, err = f.Match(context.Background(), s)
		runtime.ReadMemStats(&after)
		return matches, after.TotalAlloc - before.TotalAlloc, err
	}
	for _, text := range []string{
		`state.i + [3] == [1, 2, 3]`, `([] + state.i) == state.i && (state.i + []) == state.i`, `(state.i + state.i)[3] == 2`,
		`3 in state.i + [3]`, `(state.i + state.i).exists_one(x, x == 1) || (state.i + ["a"]).exists(x, x == "a")`,
		`state.i.map(x, state.i + [x]) == [[1, 2, 1], [1, 2, 2]]`, `type(state.i + state.i) == list`,
	} {
		matches, _, err := match(text)
		require.NoError(t, err, text)
		require.True(t, matches, text)
	}
	doubled := "[[1]]"
	for range 17 {
		doubled += ".map(v, v + v)"
	}
	for what, text := range map[string]string{
		"many, one after the other": "state.l" + strings.Repeat(" + state.l", 90) + " == []",
		"doubled over and over":     doubled + ".exists(x, [x] + [x] == [])",
	} {
		_, allocated, err := match(text)
		require.ErrorIs(t, err, filter.ErrTooCostly, what)
		require.Less(t, allocated, uint64(32<<20), what)
	}
}
