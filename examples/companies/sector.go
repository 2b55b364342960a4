package main

import (
	"context"

	"github.com/twinsrv/twinsrv/entity"
)

// Sector is the state of an entity of the pod sectors.
type Sector struct {
	Total     Tally            `json:"total"`
	Companies map[string]Tally `json:"companies"` // those that were mentioned, by symbol
}

// CompanyChanged is the message "company": what a company comes to now.
type CompanyChanged struct {
	Company string `json:"company"`
	Now     Tally  `json:"now"`
}

// TellTop is the message "top": which companies are mentioned most. The answer
// has so many at most.
type TellTop struct {
	N int `json:"n"`
}

// Sectors is the pod sectors. A sector is there once one of its companies was
// mentioned, and comes to exactly what its companies do, once nothing is on its
// way any more.
var Sectors = entity.Type[Sector]{
	Name: "sectors",
	Init: func(context.Context, string) (Sector, error) { return Sector{Companies: map[string]Tally{}}, nil },
	Handlers: entity.Handlers[Sector]{
		"company": entity.On(func(_ *entity.Context, s *Sector, m CompanyChanged) error {
			s.Total = s.Total.changed(s.Companies[m.Company], m.Now)
			s.Companies[m.Company] = m.Now
			return nil
		}),
		"tally": entity.Query(func(_ *entity.Context, s *Sector, _ TellTally) (Tally, error) { return s.Total, nil }),
		"top": entity.Query(func(c *entity.Context, s *Sector, m TellTop) ([]Ranked, error) {
			list := make([]Ranked, 0, len(s.Companies))
			for symbol, t := range s.Companies {
				list = append(list, Ranked{Symbol: symbol, Sector: c.Name(), Mentions: t.Mentions, Sentiment: t.Sentiment})
			}
			return top(list, max(m.N, 0)), nil
		}),
	},
	Create: entity.Creation{By: []string{"company"}},
}
