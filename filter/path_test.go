package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
	"pgregory.net/rapid"
)

func paths(t require.TestingT, texts ...string) []filter.Path {
	var out []filter.Path
	for _, text := range texts {
		p, err := filter.ParsePath(text)
		require.NoError(t, err, text)
		out = append(out, p)
	}
	return out
}

func TestPathErrors(t *testing.T) {
	for text, column := range map[string]int{
		"": 1, "status": 1, "name.x": 5, "state.": 7, "state..a": 7, "state[": 7, "state[1": 8, "state[-1]": 7, "state[1.5]": 8, `state["a]`: 7,
		`state["ä"]x`: 11, "state a": 6, "state[99999999999]": 7, `state["\q"]`: 7, strings.Repeat("a", 2000): 1, "state" + strings.Repeat(".a", 65): 134, "state.a\xff": 1,
	} {
		_, err := filter.ParsePath(text)
		var syntax *filter.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.Equal(t, column, syntax.Column, "%q: %v", text, err)
		require.Equal(t, 1, syntax.Line)
	}
}

func TestPathTexts(t *testing.T) {
	for text, want := range map[string]string{
		"name": "name", `state["floor"]`: "state.floor", `state["odd name"].x[0]`: `state["odd name"].x[0]`, `state[""]`: `state[""]`, `state["\u00e4"]`: `state["ä"]`,
	} {
		require.Equal(t, want, paths(t, text)[0].String())
	}
}

func TestPathValues(t *testing.T) {
	r := &snapshot.Record{Life: 7, Revision: 3, Changed: nowhere, Codec: "json", State: []byte(document)}
	s := filter.NewSubject("rooms", "tower-1", r)
	for text, want := range map[string]string{
		"pod": `"rooms"`, "name": `"tower-1"`, "life": "7", "revision": "3", "changed": `"` + nowhere.Format(time.RFC3339Nano) + `"`,
		"state.celsius": "21", `state["odd name"]`: `"x"`, "state.d.e[2].f": `"deep"`, "state.tags": `["x","y"]`, "state.d.n": "null", "state": document,
	} {
		v, ok := paths(t, text)[0].Value(s)
		require.True(t, ok, text)
		require.Equal(t, want, v.String(), text)
	}
	for _, text := range []string{"state.x", "state.a.b", "state.tags.x", "state.tags[2]", "state[0]", "state.d.n.x"} {
		v, ok := paths(t, text)[0].Value(s)
		require.False(t, ok, text)
		require.Equal(t, filter.Missing, v.Kind())
	}
}

func TestProjection(t *testing.T) {
	r := &snapshot.Record{Life: 7, Revision: 3, Changed: nowhere, Codec: "json", State: []byte(document)}
	s := filter.NewSubject("rooms", "tower-1", r)
	for want, texts := range map[string][]string{
		`{}`:                                                   nil,
		`{"name":"tower-1","life":7}`:                          {"life", "name"},
		`{"state":{"d":{"e":[1,{"f":"deep"}]}}}`:               {"state.d.e[2].f", "state.d.e[0]", "state.d.e[5]"},
		`{"state":{"d":{"n":null},"floor":"3"}}`:               {"state.floor", "state.d.n", "state.d.x"},
		`{"state":{"d":{"e":[1,2,{"f":"deep"}],"n":null}}}`:    {"state.d.n", "state.d", "state.d.e[0]"},
		`{"pod":"rooms"}`:                                      {"state.x.y", "state.tags.x", "state.a.b", "pod"},
		`{"revision":3,"state":{"odd name":"x","tags":["y"]}}`: {"state.tags[1]", `state["odd name"]`, "state.nowhere", "revision"},
	} {
		require.Equal(t, want, string(filter.NewProjection(paths(t, texts...)).AppendJSON(nil, s)))
	}
	require.Equal(t, `x{"state":`+document+`}`, string(filter.NewProjection(paths(t, "state", "state.a")).AppendJSON([]byte("x"), s)))
}

// Both codecs show the same, and what is shown is what the paths find.
func TestPathsOfBothCodecs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := anyObject(3).Draw(t, "state")
		p := paths(t, anyPath().Draw(t, "path"))
		var first filter.Value
		for i, r := range encoded(t, tree) {
			s := filter.NewSubject("rooms", "tower-1", &r)
			v, ok := p[0].Value(s)
			if i == 0 {
				first = v
			}
			if v.Kind() != filter.Other { // whose numbers keep their text in documents alone
				require.Zero(t, first.Compare(v), "%v %v", first, v)
			}
			shown, err := snapshot.ParseJSON(filter.NewProjection(p).AppendJSON(nil, s))
			require.NoError(t, err)
			require.Equal(t, ok, len(shown.(map[string]any)) == 1)
		}
	})
}
