package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes headlines up. The one of a number is always the same, so that
// a feed that was interrupted can go on. What they say has not happened.
type generator struct {
	companies []string // their names, those that are talked about most first
	seed      uint64
}

// templates are headlines without names. Capital letters are for names alone.
var templates = []string{
	"%s beats expectations as demand grows",
	"%s reports record profit",
	"%s shares gain after strong quarter",
	"%s raises its outlook",
	"%s wins a contract from %s",
	"%s misses expectations",
	"%s warns of weak demand",
	"%s shares fall on lower guidance",
	"%s cuts its outlook as costs grow",
	"%s delays a product",
	"%s and %s agree on a partnership",
	"%s loses a customer to %s",
	"%s names a date for its annual meeting",
	"%s, %s to meet regulators",
	"no news from %s",
	"markets open without a direction",
}

func newGenerator(f *finder, seed uint64) *generator {
	g := &generator{seed: seed}
	for _, c := range f.named {
		g.companies = append(g.companies, strings.Join(spoken(c.name), " "))
	}
	return g
}

// headline returns the one of a number, from 1.
func (g *generator) headline(number int) string {
	dice := rand.New(rand.NewPCG(g.seed, uint64(number)))
	template := templates[dice.IntN(len(templates))]
	names := make([]any, strings.Count(template, "%s"))
	for i := range names {
		x := dice.Float64()
		names[i] = g.companies[int(float64(len(g.companies))*x*x)]
	}
	return fmt.Sprintf(template, names...)
}
