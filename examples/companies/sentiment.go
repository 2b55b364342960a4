package main

// opinions are words that say whether news is good or bad.
var opinions = map[string]int{
	"beats": 2, "record": 1, "profit": 1, "strong": 1, "grows": 1, "gain": 1, "raises": 1, "agree": 1, "wins": 1, "approval": 1,
	"misses": -2, "warns": -1, "weak": -1, "fall": -1, "lower": -1, "cuts": -1, "loses": -1, "costs": -1, "delays": -1, "recall": -1,
}

// maxScore is the score of a text that could not be better, and its negative
// that of one that could not be worse.
const maxScore = 3

// score adds up the words of a text.
func score(words []string) int {
	sum := 0
	for _, w := range words {
		sum += opinions[w]
	}
	return min(max(sum, -maxScore), maxScore)
}
