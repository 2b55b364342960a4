package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
)

// Ranking is the state of an entity of the pod rankings: the companies that are
// mentioned most.
type Ranking struct {
	Asked    int       `json:"asked"`    // how often it was asked for
	Answered int       `json:"answered"` // the question that the rest is the answer to
	At       time.Time `json:"at"`
	Complete bool      `json:"complete"` // every sector has answered in time
	Top      []Ranked  `json:"top"`
	Error    string    `json:"error,omitempty"`
}

// Refresh is the message "refresh": find out which companies are mentioned most
// now. The answer comes a moment later, as the ranking's state.
type Refresh struct{}

// Reaped is the message "reaped": what the sectors have answered.
type Reaped struct {
	Question int      `json:"question"`
	Complete bool     `json:"complete"`
	Top      []Ranked `json:"top"`
}

// ranked is how many companies a ranking has.
const ranked = 10

// reapTime is how long sectors have to answer.
const reapTime = 10 * time.Second

// desk is what rankings ask: the reaper, and the sectors that it asks. It is set
// when the server runs.
type desk struct {
	reaper  *actor.Ref
	sectors []actor.Target
}

var errClosedDesk = errors.New("the desk is not open yet; ask again")

// rank asks the sectors. Each knows its own companies, so nothing is searched
// for in the store.
func (d *desk) rank(ctx context.Context, question int) (Reaped, error) {
	if d == nil {
		return Reaped{}, errClosedDesk
	}
	r, err := actor.Ask[patterns.Reaped](ctx, d.reaper, patterns.Reap{Message: TellTop{N: ranked}, Targets: d.sectors, Timeout: reapTime})
	if err != nil {
		return Reaped{}, err
	}
	all := Reaped{Question: question, Complete: true, Top: []Ranked{}}
	for _, s := range r.Results {
		list, _ := s.Value.([]Ranked)
		all.Top = append(all.Top, list...)
		// A sector that is not there has no company that was mentioned.
		all.Complete = all.Complete && (s.Err == nil || errors.Is(s.Err, entity.ErrNotFound))
	}
	all.Top = top(all.Top, ranked)
	return all, nil
}

// rankingType is the pod rankings. What it has can be found out again at any
// time, so it is not kept.
func rankingType(at *atomic.Pointer[desk]) entity.Type[Ranking] {
	return entity.Type[Ranking]{
		Name: "rankings", Durability: entity.Volatile(),
		Init: func(context.Context, string) (Ranking, error) { return Ranking{Top: []Ranked{}}, nil },
		Handlers: entity.Handlers[Ranking]{
			"refresh": entity.On(func(c *entity.Context, r *Ranking, _ Refresh) error {
				r.Asked++
				r.Error = ""
				question := r.Asked
				c.PipeTo(func(ctx context.Context) (any, error) { return at.Load().rank(ctx, question) })
				return nil
			}),
			"reaped": entity.On(func(c *entity.Context, r *Ranking, m Reaped) error {
				if m.Question > r.Answered {
					*r = Ranking{Asked: r.Asked, Answered: m.Question, At: c.Now().UTC(), Complete: m.Complete, Top: m.Top}
				}
				return nil
			}),
			"failed": entity.On(func(_ *entity.Context, r *Ranking, m entity.PipeFailed) error {
				r.Error = m.Error
				return nil
			}),
		},
		Create: entity.Creation{By: []string{"refresh"}},
	}
}
