package filter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
	"pgregory.net/rapid"
)

// reference evaluates the whole expression with cel-go over a decoded state.
func reference(t require.TestingT, text string, vars map[string]any) bool {
	out, _, err := program(t, text).Eval(vars)
	return err == nil && out == types.True
}

// program is cel-go's of an expression.
func program(t require.TestingT, text string) cel.Program {
	env, err := cel.NewEnv(
		cel.Variable("pod", cel.StringType), cel.Variable("name", cel.StringType),
		cel.Variable("life", cel.IntType), cel.Variable("revision", cel.IntType),
		cel.Variable("changed", cel.TimestampType), cel.Variable("state", cel.DynType),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true), ext.Strings())
	require.NoError(t, err)
	checked, issues := env.Compile(text)
	require.NoError(t, issues.Err(), text)
	program, err := env.Program(checked)
	require.NoError(t, err, text)
	return program
}

// plain makes of a JSON tree what cel-go takes.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			out[k] = plain(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v {
			out = append(out, plain(inner))
		}
		return out
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(string(v), 64)
		return f
	}
	return v
}

// packed makes of a JSON tree what msgpack keeps of the same values.
func packed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			out[k] = packed(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v {
			out = append(out, packed(inner))
		}
		return out
	}
	return plain(v)
}

func anyNumber() *rapid.Generator[json.Number] {
	return rapid.Map(rapid.SampledFrom([]string{
		"0", "1", "-1", "2", "21", "21.0", "21.5", "-0.5", "1e3", "1000", "9007199254740992", "9007199254740993",
		"9007199254740992.0", "9223372036854775807", "9223372036854775808", "18446744073709551615", "1.8446744073709552e19",
		"9223372036854775807.0", "-9223372036854775808", "1e300", "127", "128", "-33", "65536", "4294967296", "0.1", "3.5",
	}), func(s string) json.Number { return json.Number(s) })
}

func anyText() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "a", "b", "ab", "tower-1", "tower-2", "ä\"\\\n", "x\u0000y", strings.Repeat("long", 80)})
}

func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 6
		if depth == 0 {
			most = 4
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return anyNumber().Draw(t, "number")
		case 3, 4:
			return anyText().Draw(t, "text")
		case 5:
			return rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "list")
		}
		return anyObject(depth-1).Draw(t, "object")
	})
}

func anyKey() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "odd \"name\"", ""})
}

func anyObject(depth int) *rapid.Generator[any] {
	depth = max(depth, 0)
	return rapid.Map(rapid.MapOfN(anyKey(), anyValue(depth), depth, 6), func(m map[string]any) any { return m })
}

func quote(s string) string { return strings.ReplaceAll(strconv.Quote(s), `\x00`, `\u0000`) }

func anyPath() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 9).Draw(t, "envelope") == 0 {
			return rapid.SampledFrom([]string{"pod", "name", "life", "revision", "changed"}).Draw(t, "member")
		}
		out := "state"
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				out += "." + rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "field")
			case 2:
				out += "[" + quote(anyKey().Draw(t, "key")) + "]"
			default:
				out += fmt.Sprintf("[%d]", rapid.IntRange(0, 3).Draw(t, "index"))
			}
		}
		return out
	})
}

func anyConstant() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 9).Draw(t, "constant") {
		case 0:
			return "null"
		case 1:
			return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
		case 2:
			return rapid.SampledFrom([]string{"5u", "18446744073709551615u", "b'ab'", `timestamp("2024-01-01T00:00:00Z")`, `duration("1h")`, `timestamp("no")`, "-1", "1 + 1", "1.0 / 0.0"}).Draw(t, "other")
		case 3, 4, 5:
			n := anyNumber().Draw(t, "number")
			if _, err := strconv.ParseInt(string(n), 10, 64); err != nil && !strings.ContainsAny(string(n), ".e") {
				return string(n) + "u"
			}
			return string(n)
		}
		return quote(anyText().Draw(t, "text"))
	})
}

func anyOperand() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 8).Draw(t, "operand") {
		case 0, 1, 2, 3:
			return anyPath().Draw(t, "path")
		case 4:
			return "size(" + anyPath().Draw(t, "path") + ")"
		case 5:
			return anyPath().Draw(t, "path") + " + " + anyPath().Draw(t, "path")
		}
		return anyConstant().Draw(t, "constant")
	})
}

func anyExpression(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		inner := anyExpression
		if depth > 0 {
			switch rapid.IntRange(0, 6).Draw(t, "combined") {
			case 0, 1:
				return "(" + inner(depth-1).Draw(t, "left") + " && " + inner(depth-1).Draw(t, "right") + ")"
			case 2, 3:
				return "(" + inner(depth-1).Draw(t, "left") + " || " + inner(depth-1).Draw(t, "right") + ")"
			case 4:
				return "!(" + inner(depth-1).Draw(t, "inner") + ")"
			}
		}
		a, b := anyOperand().Draw(t, "a"), anyOperand().Draw(t, "b")
		switch rapid.IntRange(0, 9).Draw(t, "test") {
		case 0, 1:
			return a + rapid.SampledFrom([]string{" == ", " != "}).Draw(t, "op") + b
		case 2, 3:
			return a + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= "}).Draw(t, "op") + b
		case 4:
			return a + " in [" + strings.Join(rapid.SliceOfN(anyConstant(), 0, 4).Draw(t, "list"), ", ") + "]"
		case 5:
			return b + " in " + anyPath().Draw(t, "in")
		case 6:
			return "(" + a + ")." + rapid.SampledFrom([]string{"startsWith", "endsWith", "contains", "matches"}).Draw(t, "function") + "(" + b + ")"
		case 7:
			return "has(" + anyPath().Draw(t, "inside") + ".a)"
		case 8:
			loop := rapid.SampledFrom([]string{
				"state.a.exists(x, x == %s)", "state.all(k, k != %s)", "state.b.map(x, x) == %s", "state.c.exists_one(x, x > %s)",
			}).Draw(t, "loop")
			return fmt.Sprintf(loop, b)
		}
		return anyPath().Draw(t, "path")
	})
}

var nowhere = time.Date(2024, 5, 6, 7, 8, 9, 10, time.UTC)

// What the filter answers is what cel-go answers over the decoded state, with
// both codecs.
func TestAgreesWithCEL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyExpression(2).Draw(t, "expression")
		f, err := filter.Compile(text)
		if err != nil {
			t.Skip("is refused: ", err) // another is drawn; too many of them fail the test
		}
		var s filter.Subject
		for range 4 {
			tree := anyObject(3).Draw(t, "state")
			vars := map[string]any{"pod": "rooms", "name": "tower-1", "life": int64(7), "revision": int64(21), "changed": nowhere, "state": plain(tree)}
			want := reference(t, text, vars)
			for _, r := range encoded(t, tree) {
				s.Reset("rooms", "tower-1", &r)
				got, err := f.Match(context.Background(), &s)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s: %s over %v", r.Codec, text, tree)
				paths, ok := f.Paths()
				if !ok {
					continue
				}
				rows := &filter.Rows{Pod: "rooms", Names: []string{"other", "tower-1"}, Columns: make([][]filter.Value, len(paths))}
				for i, p := range paths {
					v, _ := p.Value(&s)
					rows.Columns[i] = []filter.Value{{}, v}
				}
				s.ResetRow(rows, 1)
				got, err = f.Match(context.Background(), &s)
				require.NoError(t, err)
				if found, _, ok := f.Sift(&s, rows, 1, 2, nil); ok {
					require.Equal(t, want, len(found) == 1, "sifted: %s over %v", text, tree)
				}
				require.Equal(t, want, got, "by values: %s over %v", text, tree)
			}
		}
	})
}

// encoded keeps a JSON tree with each codec.
func encoded(t require.TestingT, tree any) []snapshot.Record {
	text, err := snapshot.AppendJSON(nil, tree)
	require.NoError(t, err)
	pack, err := snapshot.Msgpack().Append(nil, packed(tree))
	require.NoError(t, err)
	return []snapshot.Record{
		{Life: 7, Revision: 21, Changed: nowhere, Codec: "json", State: text},
		{Life: 7, Revision: 21, Changed: nowhere, Codec: "msgpack", State: pack},
	}
}
