package filter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/filter"
)

// TestSiftIsMatch: what is said of many rows at once is what is said of each.
func TestSiftIsMatch(t *testing.T) {
	sifted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(anyExpression(2), rapid.Just(`state.a > 1.5 && name.startsWith("t")`)).Draw(t, "expression")
		f, err := filter.Compile(text)
		if err != nil {
			t.Skip("is refused: ", err) // another is drawn; too many of them fail the test
		}
		paths, ok := f.Paths()
		if !ok {
			t.Skip("looks at more than values") // as above
		}
		rows := &filter.Rows{Pod: "rooms", Columns: make([][]filter.Value, len(paths))}
		for i := range rapid.IntRange(1, 20).Draw(t, "rows") {
			rows.Names = append(rows.Names, rapid.SampledFrom([]string{"tower-1", "t", "other"}).Draw(t, "name")+fmt.Sprint(i))
			r := encoded(t, anyObject(3).Draw(t, "state"))[rapid.IntRange(0, 1).Draw(t, "codec")]
			s := filter.NewSubject("rooms", rows.Names[i], &r)
			for c, p := range paths {
				v, _ := p.Value(s)
				rows.Columns[c] = append(rows.Columns[c], v)
			}
		}
		var s filter.Subject
		from := rapid.IntRange(0, len(rows.Names)-1).Draw(t, "from")
		found, _, ok := f.Sift(&s, rows, from, len(rows.Names), []int{-1})
		if !ok {
			return
		}
		sifted++
		want := []int{-1}
		for n := from; n < len(rows.Names); n++ {
			s.ResetRow(rows, n)
			ok, err := f.Match(context.Background(), &s)
			require.NoError(t, err)
			if ok {
				want = append(want, n)
			}
		}
		require.Equal(t, want, found, text)
	})
	require.Positive(t, sifted)
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
