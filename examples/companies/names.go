package main

import (
	"slices"
	"strings"
)

// spoken returns the words of a company's name as the news has it: without a
// class of shares in brackets and without its legal form.
func spoken(name string) []string {
	name, _, _ = strings.Cut(name, " (")
	words := wordsOf(name)
	for len(words) > 1 && slices.Contains(legalForms, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	return words
}

var legalForms = []string{"Inc", "plc", "Corporation", "Corp", "Company", "Co", "&", "Ltd", "Limited", "Holdings", "Group"}

// wordsOf splits a text into words, without the punctuation around them.
func wordsOf(text string) []string {
	var words []string
	for _, w := range strings.Fields(text) {
		w = strings.TrimSuffix(strings.Trim(w, `.,;:!?"“”()`), "’s")
		if w != "" {
			words = append(words, w)
		}
	}
	return words
}

// finder finds companies by their names. Where several have the same name it is
// the first one's.
type finder struct {
	byWord map[string][]named // by a name's first word, longer names first
	named  []fact             // those that can be found, in the order of the file
}

type named struct {
	words  []string
	symbol string
}

func newFinder(f *facts) *finder {
	all := &finder{byWord: map[string][]named{}}
	for _, c := range f.companies {
		words := spoken(c.name)
		same := func(n named) bool { return slices.Equal(n.words, words) }
		first := words[0]
		if slices.ContainsFunc(all.byWord[first], same) {
			continue
		}
		all.named = append(all.named, c)
		all.byWord[first] = append(all.byWord[first], named{words, c.symbol})
	}
	for _, names := range all.byWord {
		slices.SortStableFunc(names, func(a, b named) int { return len(b.words) - len(a.words) })
	}
	return all
}

// find returns the symbols of the companies that words name, each once, in the
// order of the text.
func (f *finder) find(words []string) []string {
	var found []string
	for i := 0; i < len(words); {
		n := f.at(words[i:])
		if n.symbol == "" {
			i++
			continue
		}
		if !slices.Contains(found, n.symbol) {
			found = append(found, n.symbol)
		}
		i += len(n.words)
	}
	return found
}

// at returns the longest name that words begin with.
func (f *finder) at(words []string) named {
	for _, n := range f.byWord[words[0]] {
		if len(n.words) <= len(words) && slices.Equal(n.words, words[:len(n.words)]) {
			return n
		}
	}
	return named{}
}
