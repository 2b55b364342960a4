package entity

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/snapshot"
)

func tree(t require.TestingT, text string) any {
	v, err := snapshot.ParseJSON([]byte(text))
	require.NoError(t, err)
	return v
}

func text(t require.TestingT, v any) string {
	b, err := snapshot.AppendJSON(nil, v)
	require.NoError(t, err)
	return string(b)
}

// TestMergePatch holds the cases of RFC 7396 whose target and patch a document
// can have, and some of its own.
func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":{"b":1}}`, `{"a":{"b":{"c":2}}}`, `{"a":{"b":{"c":2}}}`},
		{`{"n":1}`, `{"n":1.222e-11,"m":2523232323232323232}`, `{"m":2523232323232323232,"n":1.222e-11}`},
	} {
		o := Object(tree(t, c.target).(map[string]any))
		o.merge(Merge(tree(t, c.patch).(map[string]any)))
		require.JSONEq(t, c.want, text(t, map[string]any(o)), "%s with %s", c.target, c.patch)
		require.Equal(t, c.want, text(t, map[string]any(o)))
	}
}

func TestSetAndRemove(t *testing.T) {
	for _, c := range []struct{ op, state, pointer, value, want string }{
		{"set", `{}`, "/a", `1`, `{"a":1}`},
		{"set", `{}`, "/a/b/c", `[]`, `{"a":{"b":{"c":[]}}}`},
		{"set", `{"a":1}`, "", `{"b":2}`, `{"b":2}`},
		{"set", `{"a":1}`, "", `2`, "rejected"},
		{"set", `{"a":[1,2]}`, "/a/1", `3`, `{"a":[1,3]}`},
		{"set", `{"a":[1]}`, "/a/-", `{"x":1}`, `{"a":[1,{"x":1}]}`},
		{"set", `{"a":[1]}`, "/a/1", `3`, "rejected"},
		{"set", `{"a":[1]}`, "/a/01", `3`, "rejected"},
		{"set", `{"a":1}`, "/a/b", `3`, "rejected"},
		{"set", `{"a":null}`, "/a/b", `3`, `{"a":{"b":3}}`},
		{"set", `{}`, "/a~1b/~0", `3`, `{"a/b":{"~":3}}`},
		{"set", `{}`, "/~2", `3`, "rejected"},
		{"set", `{}`, "a", `3`, "rejected"},
		{"set", `{}`, "/", `3`, `{"":3}`},
		{"remove", `{"a":1,"b":2}`, "/a", ``, `{"b":2}`},
		{"remove", `{"a":{"b":1}}`, "/a/b", ``, `{"a":{}}`},
		{"remove", `{"a":[1,2,3]}`, "/a/1", ``, `{"a":[1,3]}`},
		{"remove", `{"a":[1]}`, "/a/-", ``, "rejected"},
		{"remove", `{"a":1}`, "/b", ``, "rejected"},
		{"remove", `{"a":1}`, "/a/b", ``, "rejected"},
		{"remove", `{"a":1}`, "", ``, "rejected"},
	} {
		o := Object(tree(t, c.state).(map[string]any))
		var err error
		if c.op == "set" {
			err = o.set(Set{Pointer: c.pointer, Value: tree(t, c.value)})
		} else {
			err = o.remove(Remove{Pointer: c.pointer})
		}
		if c.want == "rejected" {
			var r *RejectedError
			require.ErrorAs(t, err, &r, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.want, text(t, map[string]any(o)), "%+v", c)
	}
}

// TestSetThenRemove: what was set at a new name can be removed again, and the
// document is as before but for the objects made on the way.
func TestSetThenRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Object{"k": json.Number("1")}
		pointer, p := "", rapid.SliceOfN(rapid.StringMatching(`[a-z/~]{0,3}`), 1, 4).Draw(t, "path")
		for _, token := range p {
			pointer += "/" + escape("x"+token)
		}
		require.NoError(t, o.set(Set{Pointer: pointer, Value: "v"}))
		require.NoError(t, o.remove(Remove{Pointer: pointer}))
		require.Error(t, o.remove(Remove{Pointer: pointer}))
		require.Equal(t, json.Number("1"), o["k"])
	})
}

func escape(token string) string {
	out := ""
	for _, r := range token {
		switch r {
		case '~':
			out += "~0"
		case '/':
			out += "~1"
		default:
			out += string(r)
		}
	}
	return out
}

func TestDocumentMessages(t *testing.T) {
	spec, err := Document{Name: "docs"}.Spec()
	require.NoError(t, err)
	for name, bodies := range map[string]map[string]error{
		"merge":  {`{"a":1}`: nil, `[]`: ErrMalformed, `null`: ErrMalformed, `1`: ErrMalformed, `{"a":1`: ErrMalformed, ``: ErrMalformed, `{"a":1,"a":2}`: ErrMalformed},
		"set":    {`{"pointer":"/a","value":1}`: nil, `{"pointer":"/a","value":null}`: nil, `{"value":1}`: ErrMalformed, `{"pointer":"/a"}`: ErrMalformed, ``: ErrMalformed, `{"pointer":1}`: ErrMalformed, `{"path":"/a"}`: ErrUnknownField},
		"remove": {`{"pointer":"/a"}`: nil, `{"pointer":"/a","value":1}`: ErrUnknownField},
		"burn":   {`{}`: ErrUnknownMessage},
	} {
		for body, want := range bodies {
			_, err := spec.Parse(name, []byte(body))
			require.ErrorIs(t, err, want, "%s %s", name, body)
		}
	}
	for _, body := range []string{``, `[]`, `null`, `"x"`, strconv.Itoa(1), `{"a":"\ud800"}`, "{\"a\":\"\xff\"}"} {
		_, err := spec.Replace([]byte(body))
		require.ErrorIs(t, err, ErrMalformed, "%s", body)
	}
}

// TestDocumentDepth: a state nests at most 1,000 levels, whatever led to it.
func TestDocumentDepth(t *testing.T) {
	nested := func(levels int) any {
		var v any = "leaf"
		for range levels {
			v = []any{v}
		}
		return v
	}
	codec := snapshot.JSON()
	for levels, fits := range map[int]bool{1: true, 500: true, 998: true, 999: true, 1000: false, 5000: false} {
		o := Object{}
		o.merge(Merge{"a": nested(levels)})
		err := o.checkDepth()
		if !fits {
			var r *RejectedError
			require.ErrorAs(t, err, &r, "%d levels", levels)
			continue
		}
		require.NoError(t, err, "%d levels", levels)
		enc, err := codec.Append(nil, &o)
		require.NoError(t, err, "%d levels", levels)
		var back Object
		require.NoError(t, codec.Decode(enc, &back))
	}
	o := Object{}
	require.NoError(t, o.set(Set{Pointer: strings.Repeat("/a", 1000), Value: "leaf"}))
	require.NoError(t, o.checkDepth())
	require.NoError(t, o.set(Set{Pointer: strings.Repeat("/a", 1000), Value: []any{}}))
	require.Error(t, o.checkDepth())
	require.Error(t, o.set(Set{Pointer: strings.Repeat("/a", 1001), Value: "leaf"}))
}
