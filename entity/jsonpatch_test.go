package entity

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	noPatch  = "no patch" // refused as it is read
	rejected = "rejected"
)

// TestPatch holds the examples of RFC 6902, appendix A, those of its rules that
// implementations get wrong, and the bounds of documents. What stands in an
// array in the RFC stands in a member here, since a document is an object.
func TestPatch(t *testing.T) {
	for name, c := range map[string]struct{ state, patch, want string }{
		"A.1 add a member":              {`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"baz":"qux","foo":"bar"}`},
		"A.2 add an element":            {`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		"A.3 remove a member":           {`{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		"A.4 remove an element":         {`{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
		"A.5 replace":                   {`{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
		"A.6 move a value":              {`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		"A.7 move an element":           {`{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
		"A.8 test, success":             {`{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`, `{"baz":"qux","foo":["a",2,"c"]}`},
		"A.9 test, error":               {`{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, rejected},
		"A.10 add a nested object":      {`{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"child":{"grandchild":{}},"foo":"bar"}`},
		"A.11 ignore unknown members":   {`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, `{"baz":"qux","foo":"bar"}`},
		"A.12 add to nothing":           {`{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, rejected},
		"A.13 op twice":                 {`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","op":"remove"}]`, noPatch},
		"A.14 escapes in their order":   {`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`},
		"A.15 a string is no number":    {`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, rejected},
		"A.16 append an array":          {`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`},
		"nothing to do":                 {`{"a":1}`, `[]`, `{"a":1}`},
		"add replaces a member":         {`{"a":1}`, `[{"op":"add","path":"/a","value":[]}]`, `{"a":[]}`},
		"add null":                      {`{}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`},
		"add the whole":                 {`{"a":1}`, `[{"op":"add","path":"","value":{"b":2}}]`, `{"b":2}`},
		"replace the whole":             {`{"a":1}`, `[{"op":"replace","path":"","value":{"b":2}}]`, `{"b":2}`},
		"the whole is no object":        {`{"a":1}`, `[{"op":"replace","path":"","value":[1]}]`, rejected},
		"the whole is null":             {`{"a":1}`, `[{"op":"add","path":"","value":null}]`, rejected},
		"no object in between":          {`{"a":1}`, `[{"op":"replace","path":"","value":[1]},{"op":"add","path":"","value":{"c":1}}]`, `{"c":1}`},
		"remove the whole":              {`{"a":1}`, `[{"op":"remove","path":""}]`, rejected},
		"test the whole":                {`{"a":1}`, `[{"op":"test","path":"","value":{"a":1.0}}]`, `{"a":1}`},
		"the empty key":                 {`{"":1}`, `[{"op":"test","path":"/","value":1},{"op":"replace","path":"/","value":{"":2}},{"op":"test","path":"//","value":2}]`, `{"":{"":2}}`},
		"add at the end":                {`{"a":[1]}`, `[{"op":"add","path":"/a/1","value":2}]`, `{"a":[1,2]}`},
		"add beyond the end":            {`{"a":[1]}`, `[{"op":"add","path":"/a/2","value":2}]`, rejected},
		"add at the front":              {`{"a":[1]}`, `[{"op":"add","path":"/a/0","value":0}]`, `{"a":[0,1]}`},
		"add at -1":                     {`{"a":[1]}`, `[{"op":"add","path":"/a/-1","value":0}]`, rejected},
		"add at 00":                     {`{"a":[1]}`, `[{"op":"add","path":"/a/00","value":0}]`, rejected},
		"add at +0":                     {`{"a":[1]}`, `[{"op":"add","path":"/a/+0","value":0}]`, rejected},
		"add at 1e0":                    {`{"a":[1,2]}`, `[{"op":"add","path":"/a/1e0","value":0}]`, rejected},
		"add to a string":               {`{"a":"x"}`, `[{"op":"add","path":"/a/0","value":0}]`, rejected},
		"remove nothing":                {`{"a":1}`, `[{"op":"remove","path":"/b"}]`, rejected},
		"remove beyond the end":         {`{"a":[1]}`, `[{"op":"remove","path":"/a/1"}]`, rejected},
		"remove -":                      {`{"a":[1]}`, `[{"op":"remove","path":"/a/-"}]`, rejected},
		"replace nothing":               {`{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`, rejected},
		"replace beyond the end":        {`{"a":[1]}`, `[{"op":"replace","path":"/a/1","value":1}]`, rejected},
		"replace an element":            {`{"a":[1,2]}`, `[{"op":"replace","path":"/a/0","value":{"b":[]}}]`, `{"a":[{"b":[]},2]}`},
		"move to itself":                {`{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/a/b"}]`, `{"a":{"b":1}}`},
		"move nothing to itself":        {`{"a":1}`, `[{"op":"move","from":"/b","path":"/b"}]`, rejected},
		"move into itself":              {`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, noPatch},
		"move the whole into itself":    {`{"a":{"b":1}}`, `[{"op":"move","from":"","path":"/c"}]`, noPatch},
		"move beside the like of it":    {`{"a":1}`, `[{"op":"move","from":"/a","path":"/aa"}]`, `{"aa":1}`},
		"move nothing":                  {`{"a":1}`, `[{"op":"move","from":"/b","path":"/c"}]`, rejected},
		"move up":                       {`{"a":{"b":{"c":1}}}`, `[{"op":"move","from":"/a/b","path":""}]`, `{"c":1}`},
		"copy":                          {`{"a":{"b":[1]}}`, `[{"op":"copy","from":"/a/b","path":"/c"},{"op":"add","path":"/c/-","value":2}]`, `{"a":{"b":[1]},"c":[1,2]}`},
		"copy the whole":                {`{"a":1}`, `[{"op":"add","path":"/b","value":2},{"op":"copy","from":"","path":"/c"}]`, `{"a":1,"b":2,"c":{"a":1,"b":2}}`},
		"copy nothing":                  {`{"a":1}`, `[{"op":"copy","from":"/b","path":"/c"}]`, rejected},
		"test null where nothing is":    {`{"a":1}`, `[{"op":"test","path":"/b","value":null}]`, rejected},
		"test null":                     {`{"a":null}`, `[{"op":"test","path":"/a","value":null}]`, `{"a":null}`},
		"test numbers":                  {`{"a":[1,1e2,0.5,-0,1E+2,12]}`, `[{"op":"test","path":"/a","value":[1.0,100,5e-1,0,1000e-1,1.2e1]}]`, `{"a":[1,1e2,0.5,-0,1E+2,12]}`},
		"test numbers beyond floats":    {`{"a":9007199254740993}`, `[{"op":"test","path":"/a","value":9007199254740992}]`, rejected},
		"test signs":                    {`{"a":1}`, `[{"op":"test","path":"/a","value":-1}]`, rejected},
		"test a bomb":                   {`{"a":1e999999999999}`, `[{"op":"test","path":"/a","value":10e999999999998}]`, `{"a":1e999999999999}`},
		"test members in another order": {`{"a":{"x":1,"y":2}}`, `[{"op":"test","path":"/a","value":{"y":2,"x":1}}]`, `{"a":{"x":1,"y":2}}`},
		"test a part":                   {`{"a":{"x":1,"y":2}}`, `[{"op":"test","path":"/a","value":{"y":2}}]`, rejected},
		"test elements in their order":  {`{"a":[1,2]}`, `[{"op":"test","path":"/a","value":[2,1]}]`, rejected},
		"test an array's beginning":     {`{"a":[1,2]}`, `[{"op":"test","path":"/a","value":[1]}]`, rejected},
		"test escapes of strings":       {`{"a":"é/"}`, `[{"op":"test","path":"/a","value":"\u00e9\/"}]`, `{"a":"é/"}`},
		"numbers keep their text":       {`{"a":1.50,"b":12345678901234567890,"c":1e400}`, `[{"op":"add","path":"/d","value":0.10},{"op":"copy","from":"/b","path":"/e"}]`, `{"a":1.50,"b":12345678901234567890,"c":1e400,"d":0.10,"e":12345678901234567890}`},
		"the last operation fails":      {`{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":1},{"op":"test","path":"/b","value":2}]`, rejected},

		"an object":           {`{}`, `{}`, noPatch},
		"null":                {`{}`, `null`, noPatch},
		"a text":              {`{}`, `"[]"`, noPatch},
		"no operation":        {`{}`, `[1]`, noPatch},
		"null as operation":   {`{}`, `[null]`, noPatch},
		"op missing":          {`{}`, `[{"path":"/a","value":1}]`, noPatch},
		"op unknown":          {`{}`, `[{"op":"spam","path":"/a","value":1}]`, noPatch},
		"op in capitals":      {`{}`, `[{"op":"ADD","path":"/a","value":1}]`, noPatch},
		"path missing":        {`{}`, `[{"op":"add","value":1}]`, noPatch},
		"path null":           {`{}`, `[{"op":"add","path":null,"value":1}]`, noPatch},
		"path a number":       {`{}`, `[{"op":"add","path":1,"value":1}]`, noPatch},
		"path no pointer":     {`{}`, `[{"op":"add","path":"a","value":1}]`, noPatch},
		"path escaped badly":  {`{}`, `[{"op":"add","path":"/~2","value":1}]`, noPatch},
		"value missing":       {`{}`, `[{"op":"add","path":"/a"}]`, noPatch},
		"value missing, test": {`{"a":null}`, `[{"op":"test","path":"/a"}]`, noPatch},
		"value missing, repl": {`{"a":null}`, `[{"op":"replace","path":"/a"}]`, noPatch},
		"from missing":        {`{"a":1}`, `[{"op":"copy","path":"/a"}]`, noPatch},
		"from no pointer":     {`{"a":1}`, `[{"op":"copy","from":"a","path":"/a"}]`, noPatch},
	} {
		spec, err := Document{Name: "docs"}.Spec()
		require.NoError(t, err)
		m, err := spec.Parse("patch", []byte(c.patch))
		if c.want == noPatch {
			require.ErrorIs(t, err, ErrMalformed, name)
			continue
		}
		require.NoError(t, err, name)
		o := Object(tree(t, c.state).(map[string]any))
		err = o.patch(m.body.(Patch), 1000)
		if c.want == rejected {
			var r *RejectedError
			require.ErrorAs(t, err, &r, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, text(t, map[string]any(o)), name)
	}
}

// TestPatchSaysWhere: a rejection names the operation.
func TestPatchSaysWhere(t *testing.T) {
	o := Object{"a": json.Number("1")}
	err := o.patch(Patch{{Op: "add", Path: "/b", Value: true}, {Op: "test", Path: "/a", Value: json.Number("2")}}, 100)
	require.ErrorContains(t, err, `operation 1 (test "/a")`)
}

// TestPatchFromGo: a patch made of Go values crosses as one that came as JSON,
// and what is none is refused when it is sent.
func TestPatchFromGo(t *testing.T) {
	spec, err := Document{Name: "docs"}.Spec()
	require.NoError(t, err)
	sent := Patch{{Op: "add", Path: "/a", Value: map[string]any{"n": 1}}, {Op: "move", From: "/a", Path: "/b"}, {Op: "add", Path: "/c"}}
	m, err := spec.Wrap(sent)
	require.NoError(t, err)
	require.JSONEq(t, `[{"op":"add","path":"/a","value":{"n":1}},{"op":"move","from":"/a","path":"/b"},{"op":"add","path":"/c","value":null}]`, string(m.enc))
	v, err := m.value(spec.codec)
	require.NoError(t, err)
	o := Object{}
	require.NoError(t, o.patch(v.(Patch), 100))
	require.Equal(t, `{"b":{"n":1},"c":null}`, text(t, map[string]any(o)))
	for _, bad := range []Patch{{{}}, {{Op: "add", Path: "a"}}, {{Op: "copy", Path: "/a", From: "~"}}} {
		_, err := spec.Wrap(bad)
		require.ErrorIs(t, err, ErrMalformed)
	}
}

// TestPatchBounds: neither copies that double nor work without end get far.
func TestPatchBounds(t *testing.T) {
	o := Object{"a": strings.Repeat("x", 100)}
	var doubling Patch
	for i := range 60 {
		doubling = append(doubling, PatchOperation{Op: "copy", From: "", Path: fmt.Sprintf("/c%d", i)})
	}
	require.ErrorContains(t, o.patch(doubling, 1<<20), "more than 1048576 bytes")

	o = Object{"a": make([]any, 100_000)}
	var front Patch
	for range 1000 {
		front = append(front, PatchOperation{Op: "add", Path: "/a/0", Value: true}, PatchOperation{Op: "remove", Path: "/a/0"})
	}
	require.ErrorContains(t, o.patch(front, 1<<20), "too costly")

	o = Object{"a": make([]any, 100_000)}
	var same Patch
	for range 1000 {
		same = append(same, PatchOperation{Op: "test", Path: "/a", Value: make([]any, 100_000)})
	}
	require.ErrorContains(t, o.patch(same, 1<<20), "too costly")

	again := func(n int, want any) (p Patch) {
		for range n {
			p = append(p, PatchOperation{Op: "test", Path: "/a", Value: want})
		}
		return p
	}
	zeros, text := strings.Repeat("0", 1<<20), strings.Repeat("x", 1<<20)
	o = Object{"a": json.Number("1." + zeros)}
	require.ErrorContains(t, o.patch(again(2000, json.Number("1")), 1<<20), "too costly")
	require.NoError(t, o.patch(again(20, json.Number("1")), 1<<20))
	for name, c := range map[string]struct {
		x, y  any
		least int
	}{
		"a long number":     {json.Number("1." + zeros), json.Number("1"), 100_000},
		"another":           {json.Number("1"), json.Number(zeros + ".1"), 100_000},
		"a long exponent":   {json.Number("1e" + zeros), json.Number("1"), 100_000},
		"long texts":        {text, strings.Clone(text), 30_000},
		"long names":        {map[string]any{text: true}, map[string]any{strings.Clone(text): true}, 30_000},
		"texts unlike":      {text, "x", 1},
		"a text, no number": {json.Number("1." + zeros), "1", 1},
	} {
		var w patching
		_, err := w.equal(c.x, c.y)
		require.NoError(t, err)
		require.GreaterOrEqual(t, w.work, c.least, name)
		require.LessOrEqual(t, w.work, 2*c.least, name)
		w.work = maxPatchWork
		_, err = w.equal(c.x, c.y)
		require.ErrorContains(t, err, "too costly", name)
	}
	o = Object{"a": "short"}
	require.NoError(t, o.patch(again(100_000, "short"), 1<<20))

	o = Object{"a": map[string]any{}}
	var deep Patch
	for i := range 60 {
		deep = append(deep, PatchOperation{Op: "copy", From: "", Path: strings.Repeat("/a", i+1)})
	}
	require.ErrorContains(t, o.patch(deep, 1<<20), "deeper than 1000 levels")
}

// TestSameNumber: numbers are compared by what they are, wherever their points
// and zeros stand.
func TestSameNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string {
			s := rapid.StringMatching(`-?(0|[12][0-2]{0,5})(\.[0-2]{1,5})?(e[+-]?[0-9])?`).Draw(t, label)
			if rapid.Bool().Draw(t, label+" zeros") {
				mantissa, exponent, has := cutExponent(s)
				if !strings.Contains(mantissa, ".") {
					mantissa += "."
				}
				if s = mantissa + "000"; has {
					s += "E" + exponent
				}
			}
			return s
		}
		x, y := text("x"), text("y")
		if rapid.Bool().Draw(t, "shifted") { // the same, written otherwise
			r, ok := new(big.Rat).SetString(x)
			require.True(t, ok)
			y = r.FloatString(20)
		}
		a, ok := new(big.Rat).SetString(x)
		require.True(t, ok)
		b, ok := new(big.Rat).SetString(y)
		require.True(t, ok)
		require.Equal(t, a.Cmp(b) == 0, sameNumber(json.Number(x), json.Number(y)), "%s %s", x, y)
		require.Equal(t, a.Cmp(b) == 0, sameNumber(json.Number(y), json.Number(x)), "%s %s", y, x)
	})
	long := json.Number("1." + strings.Repeat("0", 1000))
	require.Zero(t, testing.AllocsPerRun(10, func() { sameNumber(long, "1") }), "nothing is copied")
}

// TestPatchAgrees: where json-patch/v5 follows the RFC, both do the same.
func TestPatchAgrees(t *testing.T) {
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	rapid.Check(t, func(t *rapid.T) {
		state := map[string]any{"a": []any{"x", "y"}, "b": map[string]any{"a": "z", "b": []any{}}, "c": "w"}
		path := func() string {
			return rapid.SampledFrom([]string{"/a", "/b", "/c", "/a/0", "/a/1", "/a/2", "/a/-", "/b/a", "/b/b", "/b/c", "/b/b/0", "/b/a/x", "/d", "/d/a", "/a/0/b"}).Draw(t, "path")
		}
		value := func() any {
			return rapid.SampledFrom([]any{"w", "x", "z", []any{}, []any{"y"}, map[string]any{}, map[string]any{"a": "z"}}).Draw(t, "value")
		}
		var p Patch
		for range rapid.IntRange(1, 5).Draw(t, "operations") {
			o := PatchOperation{Op: rapid.SampledFrom([]string{"add", "remove", "replace", "move", "copy", "test"}).Draw(t, "op"), Path: path()}
			if o.hasValue() {
				o.Value = value()
			}
			if o.hasFrom() {
				o.From = path()
			}
			if o.check() == nil {
				p = append(p, o)
			}
		}
		body, err := p.MarshalJSON()
		require.NoError(t, err)
		before, err := snapshot.AppendJSON(nil, state)
		require.NoError(t, err)
		theirs, err := jsonpatch.DecodePatch(body)
		require.NoError(t, err)
		want, wantErr := theirs.ApplyWithOptions(before, options)

		var read Patch
		require.NoError(t, read.UnmarshalJSON(body))
		o := Object(tree(t, string(before)).(map[string]any))
		err = o.patch(read, 1000)
		require.Equal(t, wantErr == nil, err == nil, "%s\n%v\n%v", body, wantErr, err)
		if err == nil {
			require.JSONEq(t, string(want), text(t, map[string]any(o)), "%s", body)
		}
	})
}

func TestValueAt(t *testing.T) {
	state := `{"a":[1.50,{"b":null}],"":{"/":"~"},"c~d":2}`
	for pointer, want := range map[string]string{
		"": `{"":{"/":"~"},"a":[1.50,{"b":null}],"c~d":2}`, "/a/0": `1.50`, "/a/1/b": `null`, "/a/1": `{"b":null}`, "//~1": `"~"`, "/": `{"/":"~"}`, "/c~0d": `2`,
	} {
		got, err := ValueAt([]byte(state), pointer)
		require.NoError(t, err, pointer)
		require.Equal(t, want, string(got), pointer)
	}
	for pointer, want := range map[string]error{
		"/b": ErrNoValue, "/a/2": ErrNoValue, "/a/-": ErrNoValue, "/a/00": ErrNoValue, "/a/1/b/c": ErrNoValue, "/a/x": ErrNoValue,
		"a": ErrMalformed, "/~": ErrMalformed, "/~3": ErrMalformed,
	} {
		_, err := ValueAt([]byte(state), pointer)
		require.ErrorIs(t, err, want, pointer)
		_, err = Object(tree(t, state).(map[string]any)).At(pointer)
		require.ErrorIs(t, err, want, pointer)
	}
}

// TestMessagesAtPointers: what HTTP's .../state/{pointer} is made of.
func TestMessagesAtPointers(t *testing.T) {
	spec, err := Document{Name: "docs"}.Spec()
	require.NoError(t, err)
	o := Object{"a": map[string]any{"b": true, "c": true}}
	do := func(m *Message, err error) error {
		require.NoError(t, err)
		switch m := m.body.(type) {
		case Set:
			return o.set(m)
		case Remove:
			return o.remove(m)
		}
		return nil
	}
	require.NoError(t, do(spec.SetAt("/x/y", []byte(`[1.0]`))))
	require.NoError(t, do(spec.MergeAt("/a", []byte(`{"b":null,"d":{"e":null,"f":1}}`))))
	require.NoError(t, do(spec.MergeAt("/x/y/0", []byte(`{"g":null}`))))
	require.NoError(t, do(spec.MergeAt("/new/one", []byte(`{"g":null,"h":1}`))))
	require.NoError(t, do(spec.MergeAt("", []byte(`{"z":0}`))))
	require.Equal(t, `{"a":{"c":true,"d":{"f":1}},"new":{"one":{"h":1}},"x":{"y":[{}]},"z":0}`, text(t, map[string]any(o)))
	require.NoError(t, do(spec.RemoveAt("/x/y/0")))
	require.Error(t, do(spec.RemoveAt("/x/y/0")))
	for _, bad := range []func() (*Message, error){
		func() (*Message, error) { return spec.SetAt("x", []byte(`1`)) },
		func() (*Message, error) { return spec.SetAt("/x", []byte(`1,`)) },
		func() (*Message, error) { return spec.SetAt("", []byte(`1`)) },
		func() (*Message, error) { return spec.MergeAt("", []byte(`null`)) },
		func() (*Message, error) { return spec.RemoveAt("/~") },
	} {
		_, err := bad()
		require.ErrorIs(t, err, ErrMalformed)
	}
}
