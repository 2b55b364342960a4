package main

import (
	"cmp"
	"math"
	"slices"
)

// Tally is what the mentions of a company or of a sector come to. The zero value
// is that of one that was never mentioned.
//
// Scores add up as whole numbers, so that the sum of a sector is that of its
// companies in whatever order they were told.
type Tally struct {
	Companies int `json:"companies"` // that were mentioned
	Mentions  int `json:"mentions"`
	Positive  int `json:"positive"`
	Negative  int `json:"negative"`
	// Recent is how many mentions the sentiment is made of, and Score their sum.
	Recent    int     `json:"recent"`
	Score     int     `json:"score"`
	Sentiment float64 `json:"sentiment"` // their mean, from -3 to 3
}

// changed returns a total after one of its parts has changed.
func (t Tally) changed(was, now Tally) Tally {
	t.Companies += now.Companies - was.Companies
	t.Mentions += now.Mentions - was.Mentions
	t.Positive += now.Positive - was.Positive
	t.Negative += now.Negative - was.Negative
	t.Recent += now.Recent - was.Recent
	t.Score += now.Score - was.Score
	t.Sentiment = 0
	if t.Recent > 0 {
		t.Sentiment = math.Round(1000*float64(t.Score)/float64(t.Recent)) / 1000
	}
	return t
}

// Ranked is a company in a ranking.
type Ranked struct {
	Symbol    string  `json:"symbol"`
	Sector    string  `json:"sector"`
	Mentions  int     `json:"mentions"`
	Sentiment float64 `json:"sentiment"`
}

// top puts those first that are mentioned most, and keeps n of them.
func top(list []Ranked, n int) []Ranked {
	slices.SortFunc(list, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Mentions, a.Mentions), cmp.Compare(a.Symbol, b.Symbol))
	})
	return list[:min(n, len(list))]
}
