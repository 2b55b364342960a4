package entity

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// heavy is a pattern that each byte of a text takes hundreds of instructions for.
var heavy = strings.Repeat("(a|b|ab)", 120)

func repeated(n int, text string) string {
	return strings.TrimSuffix(strings.Repeat(text+",", n), ",")
}

// TestPatternsRefused: what costs too much on each byte is no definition.
func TestPatternsRefused(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf(`"%d":{"pattern":"%da{900}"}`, i, i))
	}
	for text, says := range map[string]string{
		`{"properties":{"a":{"pattern":"` + heavy + `"}}}`:                                    "",
		`{"properties":{"a":{"pattern":"a{998}"}}}`:                                           "",
		`{"properties":{"a":{"pattern":"^a{998}"}}}`:                                          "at /properties/a/pattern: the pattern is too costly: it compiles to 1001 instructions",
		`{"properties":{"a":{"pattern":"` + strings.Repeat("(a|b){1000}", 500) + `"}}}`:       "at /properties/a/pattern: the pattern is too costly",
		`{"items":{"patternProperties":{"^(a{10}){100}":true}}}`:                              "at /items/patternProperties: the pattern is too costly",
		`{"anyOf":[true,{"propertyNames":{"pattern":"^(a{10}){100}"}}]}`:                      "at /anyOf/1/propertyNames/pattern: the pattern is too costly",
		`{"properties":{` + strings.Join(many, ",") + `}}`:                                    "the patterns are too costly: together they compile to more than 20000 instructions",
		`{"allOf":[` + repeated(60, `{"pattern":"a{900}"}`) + `]}`:                            "", // once compiled
		`{"properties":{"pattern":{"const":{"pattern":"(a{10}){100}b","x":"(a{10}){100}"}}}}`: "",
	} {
		_, err := Document{Name: "docs", Schema: json.RawMessage(text)}.Spec()
		if says == "" {
			require.NoError(t, err, "%.100s", text)
			continue
		}
		require.ErrorIs(t, err, ErrDefinition, "%.100s", text)
		require.ErrorContains(t, err, says, "%.100s", text)
	}
}

// TestInstructions: they are those of the compiler, or a few more.
func TestInstructions(t *testing.T) {
	for _, text := range []string{
		"", "a", "abc", "(a|)*", "a{0}", "x{3,}", "(ab?){2,5}", `[^\x00-\x{10FFFF}]`, "(?i)hello+?$", `^[\w.]+@\pL*\b`, "(a*)*", "((a{2}){3}){0,4}",
		"a|b|cd|", "(|a)+", "(?:)", "(?:){3,5}", "a{0,1}", "(a?){0,7}b{1}", "(a|bc){3,40}?", "(?s).{1,64}.", heavy,
	} {
		re, err := syntax.Parse(text, syntax.Perl)
		require.NoError(t, err)
		counted := instructions(re)
		prog, err := syntax.Compile(re.Simplify())
		require.NoError(t, err)
		require.GreaterOrEqual(t, counted, len(prog.Inst), text)
		require.LessOrEqual(t, counted, len(prog.Inst)+2, text)
	}
}

// TestTooCostlyToJudge: what is large in the state or in the schema counts by
// its size, and with it a little less is judged.
func TestTooCostlyToJudge(t *testing.T) {
	list := func(n int, v any) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	precise := json.Number("1." + strings.Repeat("0", 997) + "1")
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("%q", fmt.Sprint("k", i)))
	}
	deep := map[string]any{}
	for range 30 {
		deep = map[string]any{"a": deep}
	}
	for name, c := range map[string]struct {
		schema string
		a      any // a member of the state
		over   bool
	}{
		"a pattern again and again": {`{"properties":{"a":{"allOf":[` + repeated(10, `{"$ref":"#/$defs/p"}`) + `]}},"$defs":{"p":{"pattern":"` + heavy + `"}}}`, strings.Repeat("ab", 25_000), true},
		"a pattern once":            {`{"properties":{"a":{"pattern":"` + heavy + `"}}}`, strings.Repeat("ab", 25_000), false},
		"a simple pattern":          {`{"properties":{"a":{"pattern":"^[a-z]*$"}}}`, strings.Repeat("ab", 500_000), false},
		"a pattern of names":        {`{"additionalProperties":{"patternProperties":{"` + heavy + `":true}}}`, map[string]any{strings.Repeat("ab", 25_000): true}, true},
		"a pattern of a name":       {`{"additionalProperties":{"propertyNames":{"allOf":[` + repeated(2, `{"pattern":"`+heavy+`"}`) + `]}}}`, map[string]any{strings.Repeat("ab", 25_000): true}, true},
		"a large const":             {`{"additionalProperties":{"items":{"const":[` + repeated(5000, "null") + `]}}}`, list(500, list(5000, nil)), true},
		"a const of another shape":  {`{"additionalProperties":{"items":{"const":[` + repeated(5000, "null") + `]}}}`, list(500, list(5001, nil)), false},
		"an enum of large values":   {`{"additionalProperties":{"items":{"enum":[` + repeated(10, `[`+repeated(500, "1")+`]`) + `]}}}`, list(400, list(500, json.Number("2"))), true},
		"an enum of long texts":     {`{"additionalProperties":{"items":{"enum":[` + repeated(10, `"`+strings.Repeat("x", 5000)+`"`) + `]}}}`, list(5000, strings.Repeat("y", 5000)), true},
		"an enum and long numbers":  {`{"additionalProperties":{"items":{"enum":[` + repeated(200, "1") + `]}}}`, list(100, precise), true},
		"long numbers":              {`{"additionalProperties":{"items":{"allOf":[` + repeated(100, `{"multipleOf":0.1}`) + `]}}}`, list(100, precise), true},
		"large exponents":           {`{"additionalProperties":{"items":{"allOf":[` + repeated(100, `{"multipleOf":0.1}`) + `]}}}`, list(100, json.Number("1e-1000")), true},
		"short numbers":             {`{"additionalProperties":{"items":{"allOf":[` + repeated(100, `{"multipleOf":0.1}`) + `]}}}`, list(100, json.Number("1")), false},
		"few, but all unique":       {`{"additionalProperties":{"uniqueItems":true}}`, list(20, list(5000, json.Number("1"))), true},
		"all that is required":      {`{"additionalProperties":{"items":{"required":[` + strings.Join(names, ",") + `]}}}`, list(5000, map[string]any{}), true},
		"elements remembered":       {`{"additionalProperties":{"unevaluatedItems":true,"allOf":[` + repeated(1000, `{"minItems":1}`) + `]}}`, list(10_000, nil), true},
		"long names":                {`{"additionalProperties":{"allOf":[` + repeated(300, `{"properties":{"x":true}}`) + `]}}`, map[string]any{strings.Repeat("x", 1<<20): true}, true},
		"the old dependencies":      {`{"dependencies":{"a":{"allOf":[` + repeated(2, `{"properties":{"a":{"$ref":"#"}}}`) + `]}}}`, deep, true},
	} {
		err := compiled(t, c.schema).judge(map[string]any{"a": c.a})
		over := err != nil && strings.Contains(err.Error(), "too long to be judged")
		require.Equal(t, c.over, over, "%s: %v", name, err)
	}
}
