package filter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/filter"
)

// A search takes time in proportion to both texts. By comparing at each place anew
// these would take longer than tests may.
func TestSearchesAreLinear(t *testing.T) {
	s := filter.NewSubject("p", "n", stated(t, map[string]any{
		"s": strings.Repeat("a", 1<<21), "t": strings.Repeat("a", 1<<20) + "b", "u": "b" + strings.Repeat("a", 1<<20),
	}))
	for _, text := range []string{`state.s.indexOf(state.t) == -1`, `state.s.lastIndexOf(state.u) == -1`} {
		f, err := filter.Compile(text)
		require.NoError(t, err)
		matches, err := f.Match(context.Background(), s)
		require.NoError(t, err)
		require.True(t, matches, text)
	}
}

// Searches say what cel-go's say.
func TestSearchesAgree(t *testing.T) {
	texts := []any{"", "a", "b", "ab", "ba", "aab", "äa", "aä", "äöüäöü", "öü", "aé\U0001F600a", "\U0001F600", 1, nil}
	at := []any{-1, 0, 1, 2, 3, 4, 5, 6, 7, 1 << 40, "a", nil}
	for _, call := range []string{
		`state.s.indexOf(state.t)`, `state.s.lastIndexOf(state.t)`, `state.s.indexOf(state.t, state.at)`, `state.s.lastIndexOf(state.t, state.at)`,
	} {
		equal, err := filter.Compile(call + ` == state.want`)
		require.NoError(t, err)
		answered, err := filter.Compile(call + ` > -9`)
		require.NoError(t, err)
		theirs := program(t, call)
		for _, text := range texts {
			for _, sub := range texts {
				for _, from := range at {
					state := map[string]any{"s": text, "t": sub, "at": from}
					want, _, err := theirs.Eval(map[string]any{"state": state})
					state["want"] = 0
					if err == nil {
						state["want"] = want.Value()
					}
					s := filter.NewSubject("p", "n", stated(t, state))
					for _, f := range []*filter.Filter{equal, answered} {
						matches, failure := f.Match(context.Background(), s)
						require.NoError(t, failure)
						require.Equal(t, err == nil, matches, "%s of %v, which is %v, %v", f, state, want, err)
					}
				}
			}
		}
	}
}
