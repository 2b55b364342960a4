package filter_test

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
	"pgregory.net/rapid"
)

// of reads the value that a document has.
func of(t require.TestingT, text string) filter.Value {
	p, err := filter.ParsePath("state.v")
	require.NoError(t, err)
	v, ok := p.Value(filter.NewSubject("p", "n", &snapshot.Record{Codec: "json", State: []byte(`{"v":` + text + `}`)}))
	require.True(t, ok, text)
	return v
}

func anyFilterValue() *rapid.Generator[filter.Value] {
	edges := []int64{0, 1, -1, 1 << 53, 1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, 1<<62 + 1}
	floats := []float64{0, math.Copysign(0, -1), 0.5, -0.5, 1, 1 << 53, 1 << 63, -1 << 63, 1 << 64, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, 1<<62 + 4096}
	return rapid.Custom(func(t *rapid.T) filter.Value {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return filter.Value{}
		case 1:
			return of(t, rapid.SampledFrom([]string{"null", "[]", "[1]", `{"a":1}`, "18446744073709551615", "9223372036854775808", "18446744073709549568"}).Draw(t, "json"))
		case 2:
			return filter.BoolValue(rapid.Bool().Draw(t, "bool"))
		case 3:
			return filter.IntValue(rapid.SampledFrom(edges).Draw(t, "edge"))
		case 4:
			return filter.IntValue(rapid.Int64().Draw(t, "int"))
		case 5:
			return filter.FloatValue(rapid.SampledFrom(floats).Draw(t, "edge"))
		case 6:
			return filter.FloatValue(rapid.Float64().Draw(t, "float"))
		case 7:
			return filter.StringValue(rapid.SampledFrom([]string{"", "\x00", "a", "a\x00", "a\x00\xff", "ab", "b", "\xff"}).Draw(t, "text"))
		case 8:
			return filter.StringValue(rapid.String().Draw(t, "text"))
		}
		return filter.TimeValue(time.Unix(rapid.Int64Range(-1<<33, 1<<33).Draw(t, "second"), rapid.Int64Range(0, 2).Draw(t, "nano")))
	})
}

// The order is total, and keys sort in the same order.
func TestOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyFilterValue().Draw(t, "a"), anyFilterValue().Draw(t, "b"), anyFilterValue().Draw(t, "c")
		require.Equal(t, a.Compare(b), -b.Compare(a), "antisymmetric")
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 {
			require.LessOrEqual(t, a.Compare(c), 0, "transitive")
		}
		require.Equal(t, a.Compare(b), bytes.Compare(a.AppendKey(nil), b.AppendKey(nil)), "keys")
		require.Equal(t, cmp.Or(a.Compare(b), c.Compare(a)), bytes.Compare(c.AppendKey(a.AppendKey(nil)), a.AppendKey(b.AppendKey(nil))), "keys in a row")
		x, y := a.AppendKey(nil), b.AppendKey(nil)
		filter.Descend(x)
		filter.Descend(y)
		require.Equal(t, b.Compare(a), bytes.Compare(x, y), "descending")
		require.Zero(t, a.Compare(a.Clone()))
	})
}

// Numbers compare as what they are worth, integers with floats too.
func TestNumbersCompareExactly(t *testing.T) {
	exact := func(v filter.Value) *big.Float {
		if n, ok := v.Int(); ok {
			return new(big.Float).SetPrec(200).SetInt64(n)
		}
		if f, ok := v.Float(); ok && filter.FloatValue(f) == v { // which its text need not be exactly
			return new(big.Float).SetPrec(200).SetFloat64(f)
		}
		out, _, err := big.ParseFloat(v.String(), 10, 200, big.ToNearestEven)
		if err != nil {
			return nil
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(
			rapid.Map(rapid.Int64(), filter.IntValue),
			rapid.Map(rapid.Int64Range(1<<53-3, 1<<53+3), filter.IntValue),
			rapid.Map(rapid.Int64Range(1<<53-3, 1<<53+3), func(n int64) filter.Value { return filter.FloatValue(float64(n)) }),
			rapid.Map(rapid.Int64(), func(n int64) filter.Value { return filter.FloatValue(float64(n)) }),
			rapid.Map(rapid.Uint64Range(1<<63, 1<<63+4096), func(n uint64) filter.Value { return of(t, big.NewInt(0).SetUint64(n).String()) }),
		)
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		require.Equal(t, exact(a).Cmp(exact(b)), a.Compare(b), "%v %v", a, b)
	})
}

// What a document has is what it comes back as.
func TestValuesOfDocuments(t *testing.T) {
	for _, text := range []string{`null`, `true`, `false`, `0`, `-1`, `21.5`, `0.001`, `123456789012345678`, `18446744073709551615`, `1e-7`, `"a"`, `"ä\n\"\\"`, `""`, `[1,"x"]`, `{"a":[null]}`} {
		v := of(t, text)
		require.Equal(t, text, v.String())
		require.Zero(t, v.Compare(of(t, text)))
	}
	kinds := map[string]filter.Kind{`null`: filter.Null, `true`: filter.Bool, `1.5`: filter.Number, `"a"`: filter.String, `[]`: filter.Other, `{}`: filter.Other}
	for text, kind := range kinds {
		require.Equal(t, kind, of(t, text).Kind())
	}
	require.Equal(t, filter.Missing, filter.Value{}.Kind())
	f, ok := of(t, "1e400").Float()
	require.True(t, ok)
	require.True(t, math.IsInf(f, 1))
}

// Every short number is the float64 that strconv finds.
func TestShortNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,15})?`).Draw(t, "number")
		want, _, err := big.ParseFloat(text, 10, 200, big.ToNearestEven)
		require.NoError(t, err)
		nearest, _ := want.Float64()
		got, ok := of(t, text).Float()
		require.True(t, ok)
		require.Equal(t, nearest, got, text)
	})
}

// Whatever a filter matches lies in the ranges that it names.
func TestRangesAreImplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyRangeExpression(3).Draw(t, "expression")
		f, err := filter.Compile(text)
		if err != nil {
			t.Skip("is refused: ", err) // another is drawn; too many of them fail the test
		}
		p, err := filter.ParsePath("state.v")
		require.NoError(t, err)
		ranges, ok := f.Ranges(p)
		for i := range ranges {
			require.LessOrEqual(t, ranges[i].Low.Compare(ranges[i].High), 0)
			if i > 0 {
				require.LessOrEqual(t, ranges[i-1].High.Compare(ranges[i].Low), 0, "in order")
			}
		}
		for range 8 {
			var s filter.Subject
			value := rapid.OneOf(anyNumber().AsAny(), anyText().AsAny(), anyValue(1)).Draw(t, "value")
			for _, r := range encoded(t, map[string]any{"v": value}) {
				s.Reset("rooms", "tower-1", &r)
				matched, err := f.Match(context.Background(), &s)
				require.NoError(t, err)
				v, there := p.Value(&s)
				if !matched || !ok {
					continue
				}
				require.True(t, there, "matches without a value")
				held := false
				for _, r := range ranges {
					held = held || r.Holds(v)
				}
				require.True(t, held, "%s matches %v, which is in none of %v", text, v, ranges)
			}
		}
	})
}

func anyRangeExpression(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth > 0 {
			switch rapid.IntRange(0, 4).Draw(t, "combined") {
			case 0, 1:
				return "(" + anyRangeExpression(depth-1).Draw(t, "left") + " && " + anyRangeExpression(depth-1).Draw(t, "right") + ")"
			case 2:
				return "(" + anyRangeExpression(depth-1).Draw(t, "left") + " || " + anyRangeExpression(depth-1).Draw(t, "right") + ")"
			}
		}
		c := anyConstant().Draw(t, "constant")
		switch rapid.IntRange(0, 9).Draw(t, "test") {
		case 0:
			return c + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= ", " == "}).Draw(t, "op") + "state.v"
		case 1:
			return "state.v in [" + c + ", " + anyConstant().Draw(t, "other") + "]"
		case 2:
			return "state.v.startsWith(" + quote(anyText().Draw(t, "prefix")) + ")"
		case 3:
			return rapid.SampledFrom([]string{"true", "state.v", "!state.v", "state.w == 1"}).Draw(t, "else")
		}
		return "state.v" + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= ", " == ", " != "}).Draw(t, "op") + c
	})
}

func TestPrefixOfARange(t *testing.T) {
	name := paths(t, "name")[0]
	for text, want := range map[string]string{
		`name.startsWith("tower-")`: "tower-", `name == "x"`: "x", `name.startsWith("a") && name.startsWith("ab")`: "ab", `name.startsWith("")`: "",
		`name > "a"`: "none", `name >= "a" && name < "c"`: "none", `name.startsWith("ab") && name < "abx"`: "none",
	} {
		f, err := filter.Compile(text)
		require.NoError(t, err)
		ranges, ok := f.Ranges(name)
		require.True(t, ok)
		require.Len(t, ranges, 1)
		got, ok := ranges[0].Prefix()
		require.Equal(t, want != "none", ok, text)
		if ok {
			require.Equal(t, want, got)
		}
	}
}

func TestRanges(t *testing.T) {
	p, err := filter.ParsePath("state.v")
	require.NoError(t, err)
	for text, want := range map[string]struct {
		ok    bool
		texts []string // low and high of each
	}{
		`state.v == "a"`:                       {true, []string{`"a"`, `"a"`}},
		`state["v"] in [3, 1] && state.w == 2`: {true, []string{`1`, `1`, `3`, `3`}},
		`state.v >= 1 && 3 > state.v`:          {true, []string{`1`, `3`}},
		`state.v == 1 && state.v == 2`:         {true, nil},
		`state.v > null`:                       {true, nil},
		`state.v == 1 || state.w == 2`:         {false, nil},
		`state.v == 1 || state.v == 2 `:        {true, []string{`1`, `1`, `2`, `2`}},
		`state.v.startsWith("ab")`:             {true, []string{`"ab"`, `"ac"`}},
		`!(state.v == 1)`:                      {false, nil},
		`state.v != 1`:                         {false, nil},
		`state.w == 1`:                         {false, nil},
		`state.v == state.w`:                   {false, nil},
		`state.v == 1 && state.v + 1 == 2`:     {true, []string{`1`, `1`}},
		`(state.v < 5 || state.v > 7) && state.v >= 2 && state.v <= 9`: {true, []string{`2`, `5`, `7`, `9`}},
	} {
		f, err := filter.Compile(text)
		require.NoError(t, err, text)
		ranges, ok := f.Ranges(p)
		require.Equal(t, want.ok, ok, text)
		var texts []string
		for _, r := range ranges {
			texts = append(texts, r.Low.String(), r.High.String())
		}
		require.Equal(t, want.texts, texts, text)
	}
}
