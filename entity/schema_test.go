package entity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSchemasRefused: what is no schema, or one that would be boundless, is
// refused with words that say where.
func TestSchemasRefused(t *testing.T) {
	for text, says := range map[string]string{
		`{`:                                    "offset",
		`[]`:                                   "an object or a boolean",
		`null`:                                 "an object or a boolean",
		`{"type":"objekt"}`:                    "at /type: a type is array, boolean, integer, null, number, object or string",
		`{"type":["string","objekt"]}`:         "at /type: a type is array, boolean, integer, null, number, object or string",
		`{"properties":{"type":{"type":7}}}`:   "at /properties/type/type: a type is array",
		`{"properties":{"type":"string"}}`:     "at /properties/type: got string, want boolean or object",
		`{"properties":{"a":{"minimum":"1"}}}`: "at /properties/a/minimum",
		`{"properties":{"a":{"pattern":"("}}}`: "/properties/a/pattern",
		`{"required":"a"}`:                     "at /required",
		`{"$ref":"https://example.com/other"}`: "https://example.com/other",
		`{"properties":{"a":{"$ref":"other.json"}}}`:                         "nothing is loaded",
		`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`:                 "nothing is loaded",
		`{"$ref":"#/$defs/a"}`:                                               "/$defs/a",
		`{"$ref":"#a"}`:                                                      "#a",
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`:              "at /$schema: the dialect is",
		`{"$schema":"https://example.com/mine"}`:                             "at /$schema: the dialect is",
		`{"properties":{"a":{"$id":"b","$schema":"http://x"}}}`:              "at /properties/a/$schema",
		`{"$dynamicRef":"#a"}`:                                               "$dynamicRef is not taken",
		`{"maximum":1e999999999}`:                                            "at /maximum",
		`{"enum":[[1,1e-1001]]}`:                                             "at /enum/0/1",
		`{"$ref":"#"}`:                                                       "at the root: it refers to itself",
		`{"dependencies":{"a":{"$ref":"#"}}}`:                                "at the root: it refers to itself",
		`{"items":{"$ref":"http://json-schema.org/draft-07/schema#"}}`:       "which is of another dialect",
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#"}]}}}`:        "refers to itself",
		`{"properties":{"a":{"anyOf":[{"not":{"$ref":"#/properties/a"}}]}}}`: "at /properties/a: it refers to itself",
		`{"title":"` + strings.Repeat("x", 64<<10) + `"}`:                    "at most 65536",
		strings.Repeat(`{"not":`, 98) + `{}` + strings.Repeat(`}`, 98):       "",
		strings.Repeat(`{"not":`, 101) + `{}` + strings.Repeat(`}`, 101):     "nests deeper",
	} {
		_, err := Document{Name: "docs", Schema: json.RawMessage(text)}.Spec()
		if says == "" {
			require.NoError(t, err, "%.100s", text)
			continue
		}
		require.ErrorIs(t, err, ErrDefinition, "%.100s", text)
		require.ErrorContains(t, err, says, "%.100s", text)
		require.NotContains(t, err.Error(), schemaURL, "%.100s", text)
	}
	spec, err := Document{Name: "docs", Schema: json.RawMessage("{ \"type\" : \"object\",\n\"maxProperties\":1.0 }")}.Spec()
	require.NoError(t, err)
	require.Equal(t, `{"maxProperties":1.0,"type":"object"}`, string(spec.Schema()))
	spec, err = Document{Name: "docs"}.Spec()
	require.NoError(t, err)
	require.Nil(t, spec.Schema())
}

func compiled(t testing.TB, text string) *schema {
	s, err := compileSchema([]byte(text))
	require.NoError(t, err)
	return s
}

// TestViolations: what does not fit is listed, each where it is, in a stable
// order.
func TestViolations(t *testing.T) {
	const rooms = `{
		"type": "object",
		"required": ["floor", "name"],
		"additionalProperties": false,
		"patternProperties": {"^x-": true},
		"properties": {
			"name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
			"floor": {"type": "integer", "minimum": -2, "maximum": 99},
			"price": {"multipleOf": 0.1},
			"tags": {"type": "array", "uniqueItems": true, "items": {"enum": ["a", "b", 1]}},
			"seat": {"oneOf": [{"required": ["row"]}, {"required": ["table"]}]},
			"door": {"anyOf": [{"type": "string"}, {"type": "null"}]},
			"size": {"if": {"properties": {"round": {"const": true}}, "required": ["round"]}, "then": {"required": ["radius"]}},
			"sub": {"$ref": "#/$defs/tree"},
			"a/b~": {"not": {"type": "number"}}
		},
		"$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}}
	}`
	s := compiled(t, rooms)
	for state, want := range map[string][]string{
		`{"name":"x","floor":1}`:                                    nil,
		`{"name":"x","floor":1.0,"x-y":[]}`:                         nil,
		`{"name":"x","floor":1e1,"price":0.3,"sub":{"a":{"b":{}}}}`: nil,
		`{}`:                                                {` "floor" is missing`, ` "name" is missing`},
		`{"name":"x","floor":1,"z":0,"y":0}`:                {"/y it is not allowed here", "/z it is not allowed here"},
		`{"name":"x","floor":1.5}`:                          {"/floor got number, want integer"},
		`{"name":7,"floor":"1"}`:                            {"/floor got string, want integer", "/name got number, want string"},
		`{"name":"ABCDEFG","floor":100}`:                    {"/floor maximum: got 100, want 99", "/name 'ABCDEFG' does not match pattern '^[a-z]*$'", "/name maxLength: got 7, want 5"},
		`{"name":"x","floor":1,"price":0.25}`:               {"/price multipleOf: got 0.25, want 0.1"},
		`{"name":"x","floor":1,"tags":["a","c",1.0,1]}`:     {"/tags items at 2 and 3 are equal", "/tags/1 value must be one of 'a', 'b', 1"},
		`{"name":"x","floor":1,"seat":{}}`:                  {"/seat \"row\" is missing", "/seat \"table\" is missing", "/seat it fits none of 2 alternatives"},
		`{"name":"x","floor":1,"seat":{"row":1,"table":1}}`: {"/seat it fits more than one alternative, and must fit one alone"},
		`{"name":"x","floor":1,"door":1}`:                   {"/door got number, want null", "/door got number, want string", "/door it fits none of 2 alternatives"},
		`{"name":"x","floor":1,"size":{"round":true}}`:      {"/size \"radius\" is missing"},
		`{"name":"x","floor":1,"sub":{"a":{"b":1}}}`:        {"/sub/a/b got number, want object"},
		`{"name":"x","floor":1,"a/b~":1}`:                   {"/a~1b~0 'not' failed"},
		`{"name":"x","floor":1e5000}`:                       {"/floor a number of more than 1000 digits, or with an exponent beyond that, cannot be judged"},
		`{"name":"x","floor":1e99999999999999999999}`:       {"/floor a number of more than 1000 digits, or with an exponent beyond that, cannot be judged"},
	} {
		for range 5 { // the library goes through maps
			err := s.judge(tree(t, state).(map[string]any))
			if want == nil {
				require.NoError(t, err, state)
				continue
			}
			var unfit *SchemaError
			require.ErrorAs(t, err, &unfit, state)
			var got []string
			for _, v := range unfit.Violations {
				got = append(got, v.Pointer+" "+v.Message)
			}
			require.Equal(t, want, got, state)
			require.Zero(t, unfit.More)
			var rejected *RejectedError
			require.ErrorAs(t, err, &rejected)
			require.Contains(t, rejected.Reason, unfit.Violations[0].Message)
		}
	}
}

// TestViolationsBounded: however much is wrong, the list is short.
func TestViolationsBounded(t *testing.T) {
	s := compiled(t, `{"additionalProperties":{"type":"string","maxLength":3}}`)
	state := map[string]any{}
	for i := range 5000 {
		state[fmt.Sprint("k", i)] = json.Number("1")
	}
	var unfit *SchemaError
	require.ErrorAs(t, s.judge(state), &unfit)
	require.Len(t, unfit.Violations, maxViolations)
	require.Equal(t, 5000-maxViolations, unfit.More)
	require.Contains(t, unfit.Error(), "and 4997 more")

	state = map[string]any{}
	for i := range 100 {
		state[strings.Repeat("k", 900)+fmt.Sprint(i)] = strings.Repeat("é", 10_000)
	}
	state[strings.Repeat("k", 100_000)] = json.Number("1")
	require.ErrorAs(t, s.judge(state), &unfit)
	enc, err := json.Marshal(unfit.Violations)
	require.NoError(t, err)
	require.Less(t, len(enc), 2*maxListedBytes)
	require.Positive(t, unfit.More)

	for i := range 300_000 {
		state[fmt.Sprint("k", i)] = json.Number("1")
	}
	require.ErrorAs(t, s.judge(state), &unfit)
	require.Equal(t, []Violation{{Message: "the state does not fit the pod's schema, and is too large to say where"}}, unfit.Violations)
}

// TestOfSeveralNumbersTheSameIsNamed: whatever the order of the members is.
func TestOfSeveralNumbersTheSameIsNamed(t *testing.T) {
	s := compiled(t, "{}")
	for range 50 {
		unfit := (*SchemaError)(nil)
		require.ErrorAs(t, s.judge(tree(t, `{"c":1e5000,"a":{"y":1e5000,"x":1e5000},"b":1e5000}`).(map[string]any)), &unfit)
		require.Equal(t, "/a/x", unfit.Violations[0].Pointer)
	}
}

// TestSchemaBombs: a schema whose steps double with every level of the state
// stops no server.
func TestSchemaBombs(t *testing.T) {
	for name, text := range map[string]string{
		"properties": `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
		"not":        `{"not":{"required":["z"]},"anyOf":[{"additionalProperties":{"$ref":"#"},"required":["z"]},{"patternProperties":{"":{"$ref":"#"}}}],"if":{"additionalProperties":{"$ref":"#"}}}`,
		"defs": `{"$ref":"#/$defs/a0","$defs":{` + func() string {
			var b strings.Builder
			for i := range 60 {
				fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
			}
			return b.String() + `"a60":{"type":"object"}}}`
		}(),
	} {
		s := compiled(t, text)
		state := map[string]any{}
		for range 200 {
			state = map[string]any{"a": state}
		}
		began := time.Now()
		err := s.judge(state)
		require.ErrorContains(t, err, "too long to be judged", name)
		require.Less(t, time.Since(began), 10*time.Second, name)
	}
	s := compiled(t, `{"properties":{"a":{"$ref":"#"}}}`)
	state := map[string]any{}
	for range 900 {
		state = map[string]any{"a": state}
	}
	require.NoError(t, s.judge(state), "one step for each level is none")
}

// TestCostCounts: the steps grow with what is judged.
func TestCostCounts(t *testing.T) {
	s := compiled(t, `{"items":{"type":"integer"},"properties":{"a":{"items":{"type":"integer"},"uniqueItems":true}},"propertyNames":{"maxLength":1}}`)
	for n, least := range map[int]int{1: 4, 1000: 2000} {
		array := make([]any, n)
		for i := range array {
			array[i] = json.Number(fmt.Sprint(i))
		}
		c := cost{most: maxJudged}
		c.add(s.whole, map[string]any{"a": array}, 0, 0)
		require.GreaterOrEqual(t, c.spent, least)
		require.Less(t, c.spent, 4*least+10)
	}
}

// TestSchemaErrorIsRemembered: an answer that is kept says what it said.
func TestSchemaErrorIsRemembered(t *testing.T) {
	unfit := &SchemaError{Violations: []Violation{{Pointer: "/a", Message: "no"}}, More: 2}
	require.False(t, later(unfit))
	require.NotErrorIs(t, unfit, ErrStale)
	var rejected *RejectedError
	require.True(t, errors.As(error(unfit), &rejected))
}

func BenchmarkJudge(b *testing.B) {
	s := compiled(b, `{"type":"object","required":["name","floor"],"properties":{"name":{"type":"string","maxLength":20},"floor":{"type":"integer","minimum":0},"celsius":{"type":"number"},"tags":{"type":"array","items":{"type":"string"}}}}`)
	state := tree(b, `{"name":"tower","floor":3,"celsius":21.5,"tags":["a","b","c"]}`).(map[string]any)
	for b.Loop() {
		if err := s.judge(state); err != nil {
			b.Fatal(err)
		}
	}
}
