package filter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
	"pgregory.net/rapid"
)

func stated(t require.TestingT, state map[string]any) *snapshot.Record {
	text, err := json.Marshal(state)
	require.NoError(t, err)
	return &snapshot.Record{Codec: "json", State: text}
}

// forms are the ways to a pattern: a literal for the filter's own node and for
// cel-go, one that is put together, and those of the state.
func forms(pattern string) []string {
	q := strconv.Quote(pattern)
	return []string{
		`state.s.matches(` + q + `)`,
		`matches(state.s, ` + q + `)`,
		`[state.s].all(s, s.matches(` + q + `))`,
		`state.s.matches("" + ` + q + `)`,
		`state.s.matches(dyn(` + q + `))`,
		`state.s.matches(state.p)`,
		`[state.p].exists(p, state.s.matches(p))`,
	}
}

func TestCountedRepetitions(t *testing.T) {
	for pattern, texts := range map[string]map[string]bool{
		`^[0-9]{4}$`:                    {"1234": true, "123": false, "12345": false},
		`^[a-f]{2,3}$`:                  {"a": false, "ab": true, "abc": true, "abcd": false},
		`^(?:ab){2,}$`:                  {"ab": false, "abab": true, "ababab": true},
		`(?i)AB`:                        {"xab": true, "xa": false},
		`x{0}y{0,1}z{3}`:                {"zz": false, "zzz": true},
		`^[0-9a-f]{8}(-[0-9a-f]{4}){3}`: {"01234567-89ab-cdef-0123": true, "01234567-89ab": false},
	} {
		for text, want := range texts {
			r := stated(t, map[string]any{"s": text, "p": pattern})
			for _, form := range forms(pattern) {
				f, err := filter.Compile(form)
				require.NoError(t, err, form)
				got, err := f.Match(context.Background(), filter.NewSubject("p", "n", r))
				require.NoError(t, err, form)
				require.Equal(t, want, got, "%s over %q", form, text)
			}
		}
	}
}

func anyPattern(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if depth == 0 {
			return rapid.SampledFrom([]string{"a", "b", "ab", ".", "[ab]", "[^a]", `\d`, `\pL`, "ä", "�", "^", "$", `\b`, "(?i)A", "", "(?:)", `\Qa.\E`}).Draw(t, "atom")
		}
		inner := func() string { return anyPattern(depth-1).Draw(t, "inner") }
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return inner() + inner()
		case 1:
			return "(" + inner() + "|" + inner() + ")"
		case 2:
			from := rapid.IntRange(0, 3).Draw(t, "from")
			return fmt.Sprintf("(?:%s){%d,%d}", inner(), from, from+rapid.IntRange(0, 3).Draw(t, "more"))
		case 3:
			return "(?:" + inner() + ")" + rapid.SampledFrom([]string{"*", "+", "?", "*?", "{2}", "{3,}", "{0}", "{0,}"}).Draw(t, "repeated")
		}
		return inner()
	})
}

// Whichever way a pattern comes, it matches what it does in Go, and never has
// more instructions than are counted.
func TestPatternsAgreeWithGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := anyPattern(3).Draw(t, "pattern")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "A", "1", " ", "ä", "�", "a."}), 0, 12).Draw(t, "text"), "")
		want, err := regexp.MatchString(pattern, text)
		require.NoError(t, err)
		r := stated(t, map[string]any{"s": text, "p": pattern})
		for _, form := range forms(pattern) {
			f, err := filter.Compile(form)
			require.NoError(t, err, form)
			got, err := f.Match(context.Background(), filter.NewSubject("p", "n", r))
			require.NoError(t, err, form)
			require.Equal(t, want, got, "%s over %q", form, text)
		}
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		require.NoError(t, err)
		program, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err)
		require.GreaterOrEqual(t, filter.Instructions(parsed)+2, len(program.Inst))
	})
}

// A text with bytes that are none of UTF-8 is for a pattern what it is in Go.
func TestPatternsOverBytes(t *testing.T) {
	state := []byte("{\"p\":\"\uFFFD\",\"s\":\"a\xff\"}") // as no codec here writes it
	for _, form := range forms("\uFFFD") {
		f, err := filter.Compile(form)
		require.NoError(t, err, form)
		ok, err := f.Match(context.Background(), filter.NewSubject("p", "n", &snapshot.Record{Codec: "json", State: state}))
		require.NoError(t, err)
		require.True(t, ok, form)
	}
}

// What the filter's own nodes do and what cel-go does is one sum.
func TestCostIsOneSum(t *testing.T) {
	s := filter.NewSubject("p", "n", stated(t, map[string]any{"s": strings.Repeat("a", 1<<20), "l": make([]int, 15_000)}))
	all := "state.l.all(x, x == 0)"
	spent := func(text string) (int, error) {
		f, err := filter.Compile(text)
		require.NoError(t, err, text)
		_, err = f.Match(context.Background(), s)
		return s.Spent(), err
	}
	own, err := spent(`state.s.contains("b") || state.s.contains("c")`)
	require.NoError(t, err)
	require.Equal(t, 2<<16, own)
	loop, err := spent(all)
	require.NoError(t, err)
	require.Greater(t, own+loop, filter.MaxCost)
	_, err = spent(`state.s.contains("b") || state.s.contains("c") || ` + all)
	require.ErrorIs(t, err, filter.ErrTooCostly)
}

// What is too large or no pattern is refused in the filter's text, and has no
// answer where the state has it.
func TestPatternsAreBounded(t *testing.T) {
	for pattern, message := range map[string]string{
		`(a{1,1000}){1,1000}`: "invalid repeat count",
		`a{999}`:              "has 1001 instructions",
		`(?:[ab]{100}){10}`:   "has 1002 instructions",
		`(?:` + strings.Repeat("abcdefgh", 100) + `){1000}`: "instructions",
		`(`:                         "missing closing",
		strings.Repeat(`\pL|`, 50):  "too many classes",
		strings.Repeat(`\P{L}`, 50): "too many classes",
		"(?i)[" + strings.Repeat("Б-豈", 50) + "]":               "too many classes",
		`(?i)[` + strings.Repeat(`\x{100}-\x{10000}`, 50) + `]`: "too many classes",
	} {
		for _, form := range []string{`state.s.matches(%s)`, `matches(state.s, %s)`, `[1].all(x, state.s.matches(%s))`} {
			_, err := filter.Compile(fmt.Sprintf(form, strconv.Quote(pattern)))
			var refused *filter.SyntaxError
			require.ErrorAs(t, err, &refused, pattern)
			require.Equal(t, strings.Index(form, "%")+1, refused.Column)
			require.ErrorContains(t, err, "invalid matches argument")
			require.ErrorContains(t, err, message)
		}
		for _, form := range forms(pattern)[4:] {
			f, err := filter.Compile(form)
			require.NoError(t, err, form)
			ok, err := f.Match(context.Background(), filter.NewSubject("p", "n", stated(t, map[string]any{"s": strings.Repeat("a", 2000), "p": pattern})))
			require.False(t, ok, form)
			if message == "too many classes" {
				require.ErrorIs(t, err, filter.ErrTooCostly, form)
			} else {
				require.NoError(t, err, form)
			}
		}
	}
	_, err := filter.Compile(`name.matches("a{998}") || name.matches("\\pL{90}") || name.matches("[0-9a-zA-Z_-]+")`)
	require.NoError(t, err)
}

// What a pattern costs is what it may have to do: each of its instructions looks
// at each byte.
func TestPatternsCostWhatTheyAre(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, pattern := range []string{
		strings.Repeat("(a|b|ab)", 120) + "c",
		"(x|" + strings.Repeat("(a?)", 200) + ")$b",
		"(?:a?){450}b",
		"a*b",
	} {
		// 16 bytes that one instruction looks at are a step.
		most := filter.MaxCost * 16
		for _, form := range forms(pattern) {
			f, err := filter.Compile(form)
			require.NoError(t, err, form)
			s := filter.NewSubject("p", "n", stated(t, map[string]any{"s": long, "p": pattern}))
			_, err = f.Match(context.Background(), s)
			require.ErrorIs(t, err, filter.ErrTooCostly, form)

			parsed, err := syntax.Parse(pattern, syntax.Perl)
			require.NoError(t, err)
			length := 1000
			require.Less(t, filter.Instructions(parsed)*length, most)
			s = filter.NewSubject("p", "n", stated(t, map[string]any{"s": long[:length], "p": pattern}))
			ok, err := f.Match(context.Background(), s)
			require.NoError(t, err, form)
			require.False(t, ok)
			require.GreaterOrEqual(t, s.Spent(), filter.Instructions(parsed)*length/16, form)
		}
		if pattern == "a*b" {
			continue
		}
		// Also many times little is much.
		for _, form := range []string{
			`state.l.exists(x, state.s.matches(` + strconv.Quote(pattern) + `))`,
			`state.l.exists(x, state.s.matches(state.p))`,
			strings.Repeat(`state.s.matches(state.p) || `, 200) + `false`,
			strings.Repeat(`state.s.matches(state.p + "") || `, 200) + `false`,
		} {
			f, err := filter.Compile(form)
			require.NoError(t, err, form)
			s := filter.NewSubject("p", "n", stated(t, map[string]any{"s": long[:1000], "p": pattern, "l": make([]int, 2000)}))
			_, err = f.Match(context.Background(), s)
			require.ErrorIs(t, err, filter.ErrTooCostly, form)
			require.Less(t, s.Spent(), 2*filter.MaxCost)
		}
	}
	f, err := filter.Compile(`state.s.matches("plain text")`)
	require.NoError(t, err)
	s := filter.NewSubject("p", "n", stated(t, map[string]any{"s": long}))
	_, err = f.Match(context.Background(), s)
	require.NoError(t, err)
	require.Equal(t, 1<<16, s.Spent())
}

// A fault of what compiles expressions is an error of the expression.
func TestCompilePanics(t *testing.T) {
	err := filter.Caught(func() { panic("fault") })
	var syntax *filter.SyntaxError
	require.ErrorAs(t, err, &syntax)
	require.ErrorContains(t, err, "fault")
	require.NoError(t, filter.Caught(func() {}))
}
