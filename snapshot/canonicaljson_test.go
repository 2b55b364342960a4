package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : 1 , "a" : [ ] , "" : { } } `:                `{"":{},"a":[],"b":1}`,
		`2523232323232323232`:                                 `2523232323232323232`,
		`[1.222e-11,1E5,-0,-0.0,1.0,1,1e+2]`:                  `[1.222e-11,1E5,-0,-0.0,1.0,1,1e+2]`,
		`123456789012345678901234567890.123456789`:            `123456789012345678901234567890.123456789`,
		`"<>&\u003c\u2028"`:                                   "\"<>&<\u2028\"",
		`"\/\"\\\b\f\n\r\t\u0000\u001f\u007f"`:                `"/\"\\\b\f\n\r\t\u0000\u001f` + "\x7f\"",
		`"\ud83d\ude00\u00e9\uFFFD"`:                          `"😀é` + "\ufffd\"",
		`{"\u0061":1,"B":2,"é":3,"a ":4}`:                     `{"B":2,"a":1,"a ":4,"é":3}`,
		"\t\r\n null ":                                        `null`,
		`[true,false,null]`:                                   `[true,false,null]`,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	} {
		out, err := CanonicalJSON([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, string(out), in)
		again, err := CanonicalJSON(out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	}
}

func TestMalformedJSONIsRefusedWithItsOffset(t *testing.T) {
	for in, want := range map[string]string{
		``:                         "at offset 0: JSON ends where a JSON value should stand",
		`  `:                       "at offset 2: JSON ends where a JSON value should stand",
		`{} {}`:                    "at offset 3: JSON value is followed by '{': send one value",
		`1,`:                       "at offset 1: JSON value is followed by ','",
		`{"a":1,"a":2}`:            `at offset 7: object has the key "a" twice`,
		`{"a":1,"\u0061":2}`:       `at offset 7: object has the key "a" twice`,
		`{"a":1,}`:                 "at offset 7: '}' stands where an object's key should",
		`{a:1}`:                    "at offset 1: 'a' stands where an object's key should",
		`{"a" 1}`:                  "at offset 5: '1' stands where ':' should",
		`{"a":1 "b":2}`:            `at offset 7: '"' stands where ',' or '}' should`,
		`{"a":1`:                   "at offset 6: JSON ends where ',' or '}' should stand",
		`[1 2]`:                    "at offset 3: '2' stands where ',' or ']' should",
		`[1,]`:                     "at offset 3: ']' stands where a JSON value should",
		`[`:                        "at offset 1: JSON ends where a JSON value should stand",
		`01`:                       "at offset 0: number begins with a surplus 0",
		`-`:                        "at offset 1: JSON ends where a digit should stand",
		`-a`:                       "at offset 1: 'a' stands where a digit should",
		`1.`:                       "at offset 2: JSON ends where a digit should stand",
		`1e`:                       "at offset 2: JSON ends where a digit should stand",
		`+1`:                       "at offset 0: '+' stands where a JSON value should",
		`.5`:                       "at offset 0: '.' stands where a JSON value should",
		`NaN`:                      "at offset 0: 'N' stands where a JSON value should",
		`tru`:                      "at offset 0: malformed literal: did you mean true?",
		`nul`:                      "at offset 0: malformed literal: did you mean null?",
		`falsy`:                    "at offset 0: malformed literal: did you mean false?",
		`"a`:                       "at offset 2: JSON ends inside a string",
		"\"a\nb\"":                 `at offset 2: string has the control character 0x0a: write it as \u000a`,
		"\"a\x00\"":                "at offset 2: string has the control character 0x00",
		"\x00":                     `at offset 0: '\x00' stands where a JSON value should`,
		"\"a\xffb\"":               "at offset 2: string is not valid UTF-8",
		"\"\xed\xa0\x80\"":         "at offset 1: string is not valid UTF-8",
		"{\"\xc3\":1}":             "at offset 2: string is not valid UTF-8",
		`"a\x"`:                    "at offset 2: string has an unknown escape",
		`"a\`:                      "at offset 2: string has an unknown escape",
		`"\u12"`:                   `at offset 1: \u needs four hexadecimal digits`,
		`"\u12g4"`:                 `at offset 1: \u needs four hexadecimal digits`,
		`"\u+123"`:                 `at offset 1: \u needs four hexadecimal digits`,
		`"\ud83d"`:                 "at offset 1: string has half of a surrogate pair",
		`"\ude00"`:                 "at offset 1: string has half of a surrogate pair",
		`"\ude00\ud83d"`:           "at offset 1: string has half of a surrogate pair",
		`"\ud83d\u0041"`:           "at offset 1: string has half of a surrogate pair",
		`"\ud83dxxxxxx"`:           "at offset 1: string has half of a surrogate pair",
		"\ufeff1":                  "at offset 0: '\\ufeff' stands where a JSON value should",
		strings.Repeat("[", 1001):  "at offset 1000: JSON nests deeper than 1000 levels",
		strings.Repeat("[", 1<<20): "at offset 1000: JSON nests deeper than 1000 levels",
	} {
		_, err := CanonicalJSON([]byte(in))
		require.ErrorContains(t, err, want, "%.40q", in)
		_, err = ParseJSON([]byte(in))
		require.ErrorContains(t, err, want, "%.40q", in)
	}
}

func TestAppendJSONRefusesWhatIsNoTree(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["me"] = cyclic
	ring := []any{nil}
	ring[0] = ring
	for want, v := range map[string]any{
		"a: int is not part of a JSON tree":              map[string]any{"a": 1},
		"a[0].b: float64 is not part of a JSON tree":     map[string]any{"a": []any{map[string]any{"b": 1.5}}},
		`"1.e5" is not a JSON number`:                    json.Number("1.e5"),
		`"1 " is not a JSON number`:                      json.Number("1 "),
		`"" is not a JSON number`:                        json.Number(""),
		`"NaN" is not a JSON number`:                     json.Number("NaN"),
		`is not valid UTF-8: keep such text as []byte`:   "a\xff",
		`"k\xff" is not valid UTF-8`:                     map[string]any{"k\xff": nil},
		"nests deeper than 1000 levels, or holds itself": cyclic,
		"[0]: nests deeper than 1000 levels":             ring,
	} {
		out, err := AppendJSON([]byte("kept"), v)
		require.ErrorContains(t, err, want)
		require.Equal(t, "kept", string(out))
	}
	out, err := AppendJSON([]byte("x"), []any{map[string]any(nil), []any(nil)})
	require.NoError(t, err)
	require.Equal(t, "x[null,null]", string(out))
}

// jsonTree draws what ParseJSON can give.
func jsonTree(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?`),
			func(s string) any { return json.Number(s) }),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(jsonTree(depth-1), 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.String(), jsonTree(depth-1), 0, 4), func(m map[string]any) any { return m }))
}

func TestJSONTreesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := jsonTree(3).Draw(t, "tree")
		out, err := AppendJSON(nil, v)
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		back, err := ParseJSON(out)
		require.NoError(t, err)
		require.Equal(t, v, back)
	})
}

func TestNumbersAreWrittenAsEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		want, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, string(want), string(numberOf(f, 64)))
		g := rapid.Float32().Draw(t, "g")
		want, err = json.Marshal(g)
		require.NoError(t, err)
		require.Equal(t, string(want), string(numberOf(float64(g), 32)))
	})
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":[1.222e-11,2523232323232323232],"a":"\ud83d\ude00\u0000"}`, `{"a":1,"a":2}`,
		`"\ud800"`, `[[[]]]`, `-0.0e+0`, "\"\xff\"", ` null `, `{}x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := CanonicalJSON(data)
		if err != nil {
			return
		}
		// What passes is JSON to everyone, means the same, and is stable.
		require.True(t, json.Valid(data))
		again, err := CanonicalJSON(out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
		var before, after any
		require.NoError(t, unmarshalNumbers(data, &before))
		require.NoError(t, unmarshalNumbers(out, &after))
		require.Equal(t, before, after)
	})
}

func unmarshalNumbers(data []byte, into *any) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	return d.Decode(into)
}
