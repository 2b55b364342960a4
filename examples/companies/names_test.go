package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpokenNames(t *testing.T) {
	for name, want := range map[string]string{
		"Apple Inc.":                     "Apple",
		"Alphabet Inc. (Class A)":        "Alphabet",
		"Coca-Cola Company (The)":        "Coca-Cola",
		"Arthur J. Gallagher & Co.":      "Arthur J Gallagher",
		"Block, Inc.":                    "Block",
		"A. O. Smith":                    "A O Smith",
		"Group":                          "Group",
		"Johnson & Johnson":              "Johnson & Johnson",
		"AT&T":                           "AT&T",
		"Apollo Global Management":       "Apollo Global Management",
		"Marsh & McLennan Companies Inc": "Marsh & McLennan Companies",
	} {
		require.Equal(t, want, strings.Join(spoken(name), " "), name)
	}
	require.Empty(t, spoken(" "))
}

func TestFindingNames(t *testing.T) {
	f := &facts{bySymbol: map[string]fact{}}
	for _, c := range []fact{
		{"AXP", "American Express", "F"}, {"AMT", "American Tower", "R"}, {"AAL", "American", "I"}, {"AAPL", "Apple Inc.", "T"},
		{"GOOGL", "Alphabet Inc. (Class A)", "C"}, {"GOOG", "Alphabet Inc. (Class C)", "C"}, {"T", "AT&T", "C"}, {"JNJ", "Johnson & Johnson", "H"},
	} {
		require.NoError(t, f.add(c))
	}
	names := newFinder(f)
	for text, want := range map[string][]string{
		"American Express beats American": {"AXP", "AAL"},
		"the American Tower":              {"AMT"},
		"American":                        {"AAL"},
		"Apple’s shares; Apple, AT&T.":    {"AAPL", "T"},
		"Alphabet and (Apple)":            {"GOOGL", "AAPL"},
		"Johnson & Johnson & Johnson":     {"JNJ"},
		"apple pie":                       nil,
		"":                                nil,
	} {
		require.Equal(t, want, names.find(wordsOf(text)), text)
	}
}

func TestScores(t *testing.T) {
	for text, want := range map[string]int{
		"Apple beats expectations as demand grows":  3,
		"record profit beats strong quarter":        maxScore,
		"Boeing misses expectations":                -2,
		"misses, warns, cuts: weak.":                -maxScore,
		"shares gain, costs rise":                   0,
		"Apple names a date for its annual meeting": 0,
		"": 0,
	} {
		require.Equal(t, want, score(wordsOf(text)), text)
	}
}

// A headline of a number is always the same, and no name in it is overlooked.
func TestHeadlines(t *testing.T) {
	f, err := sampleFacts()
	require.NoError(t, err)
	names := newFinder(f)
	a, b, other := newGenerator(names, 1), newGenerator(names, 1), newGenerator(names, 2)
	seen, scores, same := map[string]int{}, map[int]int{}, 0
	for n := 1; n <= 2000; n++ {
		text := a.headline(n)
		require.Equal(t, text, b.headline(n))
		if text == other.headline(n) {
			same++
		}
		found := names.find(wordsOf(text))
		capitals := strings.FieldsFunc(text, func(r rune) bool { return r < 'A' || r > 'Z' })
		require.Equal(t, len(capitals) > 0, len(found) > 0, text)
		for _, symbol := range found {
			seen[symbol]++
		}
		scores[score(wordsOf(text))]++
	}
	require.Less(t, same, 200)
	require.Len(t, seen, 14)
	require.Greater(t, seen["AAPL"], 3*seen["NEE"], "some are in the news more often")
	for s := -2; s <= 3; s++ {
		require.NotZero(t, scores[s], s)
	}
}
