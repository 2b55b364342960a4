package snapshot

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStrictJSON(t *testing.T) {
	type part struct {
		Name string `json:"name"`
	}
	type whole struct {
		Parts []part          `json:"parts"`
		ByKey map[string]part `json:"byKey"`
		One   *part           `json:"one"`
		Any   any             `json:"any"`
		N     int             `json:"n"`
	}
	var s StrictJSON
	var got whole
	require.NoError(t, s.Decode([]byte(`{"parts":[{"name":"a"}],"byKey":{"Any":{"name":"b"}},"one":null,"any":{"Free":1.50},"n":3}`), &got))
	require.Equal(t, "a", got.Parts[0].Name)
	require.Equal(t, map[string]any{"Free": json.Number("1.50")}, got.Any)
	for text, path := range map[string]string{
		`{"x":1}`:                         ".x",
		`{"N":1}`:                         ".N",
		`{"n":1,"N":2}`:                   ".N",
		`{"parts":[{},{"nam":1}]}`:        ".parts[1].nam",
		`{"byKey":{"k":{"Name":"a"}}}`:    ".byKey.k.Name",
		`{"one":{"name":"a","age":1}}`:    ".one.age",
		`{"parts":[{"name":1,"NAME":2}]}`: ".parts[0].NAME",
	} {
		var unknown *UnknownFieldError
		require.ErrorAs(t, s.Decode([]byte(text), &whole{}), &unknown, text)
		require.Equal(t, path, unknown.Path, text)
	}
	type must struct {
		A int `json:"a" required:"true"`
		B int `json:"b"`
	}
	var lacks *MissingFieldError
	require.ErrorAs(t, s.Decode([]byte(`{"b":1}`), &must{}), &lacks)
	require.Equal(t, ".a", lacks.Path)
	require.NoError(t, s.Decode([]byte(`{"a":0}`), &must{}))
	for _, text := range []string{`null`, `[]`, `{"n":"1"}`, `{"n":1.5}`, `{"parts":{}}`} {
		var wrong *json.UnmarshalTypeError
		require.ErrorAs(t, s.Decode([]byte(text), &whole{}), &wrong, text)
	}
	for _, text := range []string{``, `{`, `{"n":1,"n":1}`, `{} {}`, `{"n":01}`} {
		require.Error(t, s.Decode([]byte(text), &whole{}), text)
	}
}

func TestStrictJSONTakesNullForReferencesOnly(t *testing.T) {
	type set struct {
		Pointer string `json:"pointer" required:"true"`
		Value   any    `json:"value" required:"true"`
	}
	var s StrictJSON
	for _, text := range []string{`{"pointer":null,"value":{}}`} {
		require.Error(t, s.Decode([]byte(text), &set{}), text)
	}
	p := new(set)
	require.Error(t, s.Decode([]byte(`{"value":{}}`), &p), "a pointer to a message")
	type n struct {
		N int            `json:"n"`
		M map[string]int `json:"m"`
		L []int          `json:"l"`
		S []n1           `json:"s"`
	}
	for _, text := range []string{`{"n":null}`, `{"m":{"a":null}}`, `{"l":[null]}`, `{"s":[null]}`} {
		require.Error(t, s.Decode([]byte(text), &n{}), text)
	}
}

type n1 struct{ A int }

func TestStrictJSONRequiresEmbeddedFields(t *testing.T) {
	type In struct {
		A int `json:"a" required:"true"`
	}
	type out struct {
		*In
		B int `json:"b"`
	}
	var s StrictJSON
	require.NoError(t, s.Decode([]byte(`{"a":1}`), &out{}))
	require.Error(t, s.Decode([]byte(`{"b":1}`), &out{}))
	type out2 struct {
		In `json:"in"`
	}
	require.NoError(t, s.Decode([]byte(`{"in":{"a":1}}`), &out2{}))
}

// Of several faults the one of the first key is told, whatever the order in which
// a map gives them.
func TestStrictJSONTellsOfTheFirstKey(t *testing.T) {
	type inner struct {
		N int `json:"n"`
	}
	type whole struct {
		A, B, C inner
	}
	var s StrictJSON
	for range 50 {
		var unknown *UnknownFieldError
		require.ErrorAs(t, s.Decode([]byte(`{"Z":1,"C":{"x":1},"B":{"y":1,"x":1},"A":{"n":1}}`), &whole{}), &unknown)
		require.Equal(t, ".B.x", unknown.Path)
		var wrong *json.UnmarshalTypeError
		require.ErrorAs(t, s.Decode([]byte(`{"C":null,"B":{"n":null},"A":{"n":1}}`), &whole{}), &wrong)
		require.Equal(t, "B.n", wrong.Field)
	}
}

// What is decoded without a decoder of its own must not hold untyped values,
// wherever they are.
func TestStrictJSONKeepsTheTextOfUntypedNumbers(t *testing.T) {
	type deep struct {
		Next *deep
		List []map[string][1]any
	}
	var s StrictJSON
	var got deep
	require.NoError(t, s.Decode([]byte(`{"Next":{"Next":null,"List":[{"k":[1.50]}]},"List":null}`), &got))
	require.Equal(t, json.Number("1.50"), got.Next.List[0]["k"][0])
}
