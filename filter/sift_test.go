package filter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
)

// siftable draws filters that can be asked of many rows at once.
func siftable(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth > 0 {
			switch rapid.IntRange(0, 5).Draw(t, "combined") {
			case 0, 1:
				parts := rapid.SliceOfN(siftable(depth-1), 2, 3).Draw(t, "parts")
				return "(" + strings.Join(parts, rapid.SampledFrom([]string{" && ", " || "}).Draw(t, "by")) + ")"
			case 2:
				return "!(" + siftable(depth-1).Draw(t, "inner") + ")"
			}
		}
		key := rapid.SampledFrom([]string{"state.a", "state.b", "state.c", "state.a.b", "state.c[0]", "revision", "name", "pod"}).Draw(t, "path")
		constant := anyConstant().Draw(t, "constant")
		switch rapid.IntRange(0, 6).Draw(t, "test") {
		case 0, 1:
			return key + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= "}).Draw(t, "op") + rapid.SampledFrom([]string{"1.0", "1.5", "-0.5", "21.0", "9007199254740992.0", "1.0/0.0", constant}).Draw(t, "limit")
		case 2:
			return key + rapid.SampledFrom([]string{" == ", " != "}).Draw(t, "op") + constant
		case 3:
			return constant + rapid.SampledFrom([]string{" < ", " == "}).Draw(t, "op") + key
		case 4:
			return fmt.Sprintf("%s in [%s, %s]", key, constant, anyConstant().Draw(t, "other"))
		case 5:
			return key + rapid.SampledFrom([]string{".startsWith", ".endsWith"}).Draw(t, "function") + "(" + quote(anyText().Draw(t, "text")) + ")"
		}
		return rapid.SampledFrom([]string{key, "true", "false", `name.startsWith("tower-")`, `name.startsWith("")`}).Draw(t, "bool")
	})
}

// siftedState draws a state with values of all kinds where the filters look.
func siftedState() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		out := map[string]any{}
		for _, key := range []string{"a", "b", "c"} {
			v := rapid.OneOf(rapid.SampledFrom([]any{
				nil, true, false, json.Number("1"), json.Number("1.5"), json.Number("1.0"), json.Number("21.5"), json.Number("2e1"),
				"tower-1", []any{json.Number("1.5")}, map[string]any{"b": json.Number("1.5")},
			}), anyValue(1)).Draw(t, key)
			if rapid.IntRange(0, 4).Draw(t, "missing") > 0 {
				out[key] = v
			}
		}
		return out
	})
}

// TestSiftIsMatch: what is said of many rows at once is what is said of each, for
// every number of rows, from wherever they begin, and whatever other columns
// there are.
func TestSiftIsMatch(t *testing.T) {
	sifted := 0
	rapid.Check(t, func(t *rapid.T) {
		records := []snapshot.Record{}
		for _, state := range rapid.SliceOfN(siftedState(), 1, 8).Draw(t, "states") {
			records = append(records, encoded(t, state)[rapid.IntRange(0, 1).Draw(t, "codec")])
		}
		for range 8 {
			f, err := filter.Compile(siftable(3).Draw(t, "expression"))
			if err != nil {
				continue // a constant that no operator takes
			}
			if paths, ok := f.Paths(); ok && compareSifted(t, f, paths, records) {
				sifted++
			}
		}
	})
	require.Positive(t, sifted)
}

// compareSifted makes rows of records and has them judged both ways.
func compareSifted(t *rapid.T, f *filter.Filter, paths []filter.Path, records []snapshot.Record) bool {
	columns := len(paths) + rapid.IntRange(0, 2).Draw(t, "other columns")
	rows := &filter.Rows{Pod: "rooms", Columns: make([][]filter.Value, columns)}
	count := rapid.SampledFrom([]int{0, 1, 2, 7, filter.MostSifted - 1, filter.MostSifted, filter.MostSifted + 1, 2 * filter.MostSifted}).Draw(t, "rows")
	var s filter.Subject
	for i := range count {
		rows.Names = append(rows.Names, []string{"tower-1", "t", "other", ""}[i*i%7%4]+fmt.Sprint(i))
		s.Reset("rooms", rows.Names[i], &records[(i*i+i/3)%len(records)])
		for c := range columns {
			v := filter.BoolValue(true) // what no path leads to
			if c < len(paths) {
				v, _ = paths[c].Value(&s)
			}
			rows.Columns[c] = append(rows.Columns[c], v)
		}
	}
	from := rapid.IntRange(0, min(count, filter.MostSifted)).Draw(t, "from")
	to := min(count, from+rapid.SampledFrom([]int{0, 1, 3, filter.MostSifted - 1, filter.MostSifted}).Draw(t, "most"))
	found, _, ok := f.Sift(&s, rows, from, to, []int{-1})
	if !ok {
		require.Equal(t, []int{-1}, found)
		return false
	}
	want := []int{-1}
	for n := from; n < to; n++ {
		s.ResetRow(rows, n)
		ok, err := f.Match(context.Background(), &s)
		require.NoError(t, err)
		if ok {
			want = append(want, n)
		}
	}
	require.Equal(t, want, found, "%s from %d to %d", f, from, to)
	return true
}

// TestLongTextsAreNotSifted: the states say how long it takes to put two of their
// texts in order, so that is asked row by row, and has its bound.
func TestLongTextsAreNotSifted(t *testing.T) {
	f, err := filter.Compile("state.a < state.b")
	require.NoError(t, err)
	long := strings.Repeat("x", 17*filter.MaxCost)
	rows := &filter.Rows{Pod: "rooms", Names: []string{"short", "long", "mixed"}, Columns: [][]filter.Value{
		{filter.StringValue("a"), filter.StringValue(long), filter.StringValue(long)},
		{filter.StringValue("b"), filter.StringValue(long + "a"), filter.StringValue("y")},
	}}
	var s filter.Subject
	_, _, ok := f.Sift(&s, rows, 0, len(rows.Names), nil)
	require.False(t, ok)
	for n, name := range rows.Names {
		s.ResetRow(rows, n)
		matches, err := f.Match(context.Background(), &s)
		if name == "long" {
			require.ErrorIs(t, err, filter.ErrTooCostly)
			continue
		}
		require.NoError(t, err, name)
		require.True(t, matches, name)
	}
}

// What a row may cost is not what all of them may cost together.
func TestSiftIsBoundedByTheRow(t *testing.T) {
	text := "state.a in ["
	for i := range 1500 {
		text += fmt.Sprint(i, ",")
	}
	f, err := filter.Compile(text[:len(text)-1] + "]")
	require.NoError(t, err)
	rows := &filter.Rows{Pod: "rooms", Columns: [][]filter.Value{nil}}
	for i := range filter.MostSifted {
		rows.Names = append(rows.Names, fmt.Sprint(i))
		rows.Columns[0] = append(rows.Columns[0], filter.IntValue(int64(5*i)))
	}
	var s filter.Subject
	found, cost, ok := f.Sift(&s, rows, 0, len(rows.Names), nil)
	require.True(t, ok)
	require.Greater(t, cost, filter.MaxCost)
	require.Len(t, found, 300)
	require.Equal(t, 299, found[299])
}
