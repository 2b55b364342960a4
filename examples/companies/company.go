package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// recentMentions is how many mentions a company's sentiment is made of.
const recentMentions = 20

// Company is the state of an entity of the pod companies, whose name is the
// company's symbol.
type Company struct {
	Name   string `json:"name"`
	Sector string `json:"sector"`

	Mentions  int     `json:"mentions"`
	Positive  int     `json:"positive"`
	Negative  int     `json:"negative"`
	Recent    []int   `json:"recent"`    // scores of the last mentions, the newest last
	Sentiment float64 `json:"sentiment"` // their mean, from -3 to 3
	Headline  string  `json:"headline"`  // the last one

	Digests int     `json:"digests"` // that were made
	Digest  *Digest `json:"digest"`  // the last one
}

// Mentioned is the message "mentioned": a headline names the company.
type Mentioned struct {
	Headline string `json:"headline"`
	Score    int    `json:"score"`
}

// companyType is the pod companies. A company is there once it was mentioned:
// its first mention creates it, with what is known of it. A mention comes with
// an id, so that one that is sent again, after a crash, counts once.
//
// Its sector is told with SendOnce what all mentions come to, and not what
// changed. From its first mention on the company makes a digest every so often.
func companyType(f *facts, every time.Duration) entity.Type[Company] {
	return entity.Type[Company]{
		Name: "companies",
		Init: func(_ context.Context, symbol string) (Company, error) {
			known, ok := f.bySymbol[symbol]
			if !ok {
				return Company{}, fmt.Errorf("%s knows no company %s", f.file, symbol)
			}
			return Company{Name: known.name, Sector: known.sector, Recent: []int{}}, nil
		},
		Handlers: entity.Handlers[Company]{
			"mentioned": entity.On(func(c *entity.Context, s *Company, m Mentioned) error {
				if m.Score < -maxScore || m.Score > maxScore {
					return entity.Rejectf("a score is from %d to %d", -maxScore, maxScore)
				}
				if c.Revision() == 0 {
					remind(c, every)
				}
				s.mentioned(m)
				c.SendOnce("sectors", s.Sector, CompanyChanged{Company: c.Name(), Now: s.tally()})
				return nil
			}),
			"summarise": entity.On(func(c *entity.Context, s *Company, _ Summarise) error {
				s.summarise(c)
				return nil
			}),
			"tally": entity.Query(func(_ *entity.Context, s *Company, _ TellTally) (Tally, error) { return s.tally(), nil }),
		},
		Create: entity.Creation{By: []string{"mentioned"}, Names: symbols},
		// A feed sends again at most maxAhead headlines, as late as this.
		Repeats: entity.Window{Count: 2 * maxAhead, For: 365 * 24 * time.Hour},
		Index:   []string{"state.sector"},
	}
}

// TellTally asks a company or a sector for its Tally.
type TellTally struct{}

func (s *Company) mentioned(m Mentioned) {
	s.Mentions++
	switch {
	case m.Score > 0:
		s.Positive++
	case m.Score < 0:
		s.Negative++
	}
	s.Recent = append(s.Recent, m.Score)
	if n := len(s.Recent); n > recentMentions {
		s.Recent = s.Recent[n-recentMentions:]
	}
	s.Headline = m.Headline
	s.Sentiment = s.tally().Sentiment
}

func (s *Company) tally() Tally {
	t := Tally{Companies: 1, Mentions: s.Mentions, Positive: s.Positive, Negative: s.Negative, Recent: len(s.Recent)}
	for _, score := range s.Recent {
		t.Score += score
	}
	return Tally{}.changed(Tally{}, t)
}
