package snapshot

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type jsonState struct {
	base
	*Marked
	Int    int64               `json:"int"`
	U64    uint64              `json:"u64"`
	F64    float64             `json:"f64"`
	F32    float32             `json:"f32"`
	Str    string              `json:"str"`
	Bytes  []byte              `json:"bytes"`
	Hash   [3]byte             `json:"hash"`
	List   []int               `json:"list"`
	Maybe  string              `json:"maybe,omitempty"`
	When   time.Time           `json:"when"`
	ByStr  map[string][]string `json:"byStr"`
	ByInt  map[int8]bool       `json:"byInt"`
	Number json.Number         `json:"number"`
	Any    any                 `json:"any"`
	Big    *big.Int            `json:"big"`
	Tree   *tree               `json:"tree"`
}

func TestJSONRoundTripsCanonically(t *testing.T) {
	c := JSON()
	require.NoError(t, c.Check(reflect.TypeFor[jsonState]()))
	rapid.Check(t, func(t *rapid.T) {
		in := jsonState{
			base: base{Name: draws(t, "name", rapid.String()), Owner: draws(t, "owner", rapid.String())},
			Int:  draws(t, "int", rapid.Int64()), U64: draws(t, "u64", rapid.Uint64()),
			F64: draws(t, "f64", rapid.Float64()), F32: draws(t, "f32", rapid.Float32()),
			Str: draws(t, "str", rapid.String()), Bytes: nilableSlice(t, "bytes", rapid.Byte()),
			List: nilableSlice(t, "list", rapid.Int()), When: drawTime(t, "when"),
			ByStr:  nilableMap(t, "byStr", rapid.String(), rapid.SliceOf(rapid.String())),
			ByInt:  nilableMap(t, "byInt", rapid.Int8(), rapid.Bool()),
			Number: json.Number(draws(t, "number", rapid.StringMatching(`-?[1-9][0-9]{0,25}(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?`))),
			Any:    draws(t, "any", jsonTree(2)),
		}
		data, err := c.Append([]byte("x"), &in)
		require.NoError(t, err)
		data = data[1:]
		canonical, err := CanonicalJSON(data)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(data))
		rendered, err := c.ToJSON(data)
		require.NoError(t, err)
		require.Equal(t, string(data), string(rendered))

		out := jsonState{Str: "left over", Maybe: "left over"}
		require.NoError(t, c.Decode(data, &out))
		require.Equal(t, in, out)

		out.ByStr, out.ByInt = reorder(out.ByStr), reorder(out.ByInt)
		again, err := c.Append(nil, out)
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	})
}

func TestDocumentsKeepTheTextOfNumbers(t *testing.T) {
	c := JSON()
	in := []byte(`{"big":2523232323232323232,"html":"<&>","list":[1.0,1E5,-0],"small":1.222e-11}`)
	var doc map[string]any
	require.NoError(t, c.Decode(in, &doc))
	for _, v := range []any{doc, &doc} {
		out, err := c.Append(nil, v)
		require.NoError(t, err)
		require.Equal(t, string(in), string(out))
	}
	type holder struct {
		Any any
		Raw json.RawMessage
	}
	data, err := c.Append(nil, holder{Any: doc, Raw: in})
	require.NoError(t, err)
	require.Equal(t, `{"Any":`+string(in)+`,"Raw":`+string(in)+`}`, string(data))
	var out holder
	require.NoError(t, c.Decode(data, &out))
	require.Equal(t, holder{Any: doc, Raw: in}, out)

	// Plain Go values in a document are taken too.
	out2, err := c.Append(nil, map[string]any{"a": 1.5, "b": []int{2}, "c": nil})
	require.NoError(t, err)
	require.Equal(t, `{"a":1.5,"b":[2],"c":null}`, string(out2))
}

func TestMethodsOnPointersAreFoundForValues(t *testing.T) {
	type state struct{ N big.Int }
	in := state{*big.NewInt(5)}
	a, err := JSON().Append(nil, in)
	require.NoError(t, err)
	b, err := JSON().Append(nil, &in)
	require.NoError(t, err)
	require.Equal(t, `{"N":5}`, string(a))
	require.Equal(t, a, b)
}

// encoding/json alone would read the removed field A into a.
func TestARemovedFieldIsNotReadIntoAnotherCase(t *testing.T) {
	type inner struct {
		A int
		B int `json:"a"`
	}
	type before struct {
		L []inner
		M map[string]*inner
	}
	type innerAfter struct {
		A int
	}
	type after struct {
		L []innerAfter
		M map[string]*innerAfter
	}
	c := JSON()
	data, err := c.Append(nil, before{[]inner{{1, 2}}, map[string]*inner{"x": {3, 4}, "X": {5, 6}}})
	require.NoError(t, err)
	var out after
	require.NoError(t, c.Decode(data, &out))
	require.Equal(t, after{[]innerAfter{{1}}, map[string]*innerAfter{"x": {3}, "X": {5}}}, out)
}

func TestJSONRefusesValuesWithTheirPath(t *testing.T) {
	type inner struct {
		Celsius float64
		Name    string
	}
	type state struct {
		Rooms map[string][]inner
		Text  map[string]int
		Any   any
		Loop  *tree
		Num   json.Number
		When  time.Time
	}
	loop := &tree{}
	loop.Left = loop
	ring := map[string]any{}
	ring["me"] = ring
	c := JSON()
	for want, v := range map[string]state{
		`Rooms["a"][1].Celsius: NaN cannot be kept`:                       {Rooms: map[string][]inner{"a": {{}, {Celsius: math.NaN()}}}},
		`Rooms["a"][0].Name: "x\xff" is not valid UTF-8`:                  {Rooms: map[string][]inner{"a": {{Name: "x\xff"}}}},
		`Text[key]: "\xff" is not valid UTF-8`:                            {Text: map[string]int{"\xff": 1}},
		`Any["a"][0]: +Inf cannot be kept`:                                {Any: map[string]any{"a": []any{math.Inf(1)}}},
		`Any["me"]["me"]`:                                                 {Any: ring},
		"Left.Left.Value: nests deeper than 1000 levels, or holds itself": {Loop: loop},
		"invalid number literal":                                          {Num: "1.e"},
		"year outside of range":                                           {When: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		out, err := c.Append([]byte("kept"), v)
		require.ErrorContains(t, err, want)
		require.Equal(t, "kept", string(out))
	}
	var none *state
	for want, v := range map[string]any{"pointer is nil": none, "nil has no type": nil} {
		_, err := c.Append(nil, v)
		require.ErrorContains(t, err, want)
	}
	now := time.Now()
	_, err := c.Append(nil, map[time.Time]int{now: 1, now.Round(0): 2})
	require.ErrorContains(t, err, "twice")
}

func TestJSONDecodeIsStrict(t *testing.T) {
	c := JSON()
	type target struct {
		A int8
		D string
		M oddText
	}
	for data, want := range map[string]string{
		`{} `:            "",
		`{"A":1,"Z":{}}`: "",
		`{} {}`:          "JSON value is followed by '{'",
		`{"A":1,"A":2}`:  "twice",
		`{"A":`:          "JSON ends where",
		``:               "JSON ends where",
		`{"A":128}`:      "cannot unmarshal number 128",
		`{"A":"x"}`:      "cannot unmarshal string",
		`[]`:             "cannot unmarshal array",
		`{"M":"no!"}`:    "unmarshalling panicked: not mine",
	} {
		out := target{D: "kept"}
		err := c.Decode([]byte(data), &out)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, data)
		require.Equal(t, target{D: "kept"}, out)
	}
	for _, into := range []any{nil, target{}, (*target)(nil)} {
		require.ErrorContains(t, c.Decode([]byte(`{}`), into), "a pointer is needed")
	}
	var doc map[string]any
	require.ErrorContains(t, c.Decode([]byte(`[]`), &doc), "decoding an object")
	_, err := c.ToJSON([]byte(`{`))
	require.Error(t, err)
}
