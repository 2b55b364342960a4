package actors

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// longestBackoff is the most that any rule has a restart wait, which is what a
// strategy does that says nothing of it.
const longestBackoff = time.Second

// rule is a strategy, and what it is to do. The nil rule is the default one.
type rule struct {
	form      form
	allForOne bool
	limit     int
	within    time.Duration
	min, max  time.Duration
}

// form is how a rule decides.
type form int

const (
	choosing form = iota
	deciding
	byError
	panicking
	forms
)

func (r *rule) String() string {
	if r == nil {
		return "default"
	}
	return fmt.Sprintf("form %d all=%v limit=%d within=%v %v-%v", r.form, r.allForOne, r.limit, r.within, r.min, r.max)
}

func (g *generator) rule() *rule {
	if g.rng.IntN(4) == 0 {
		return nil
	}
	r := &rule{
		form:      form(g.rng.IntN(int(forms))),
		allForOne: g.rng.IntN(3) == 0,
		limit:     one(g.rng, 0, 1, 3, -1),
		within:    one(g.rng, 0, 30*time.Millisecond, time.Second),
		min:       one(g.rng, 0, -1, time.Millisecond),
		max:       one(g.rng, 0, 5*time.Millisecond),
	}
	if r.limit < 0 && r.min < 0 {
		r.min = time.Millisecond // or it would go on for ever, and no time would pass
	}
	return r
}

// decide says what is to become of a failure.
func (r *rule) decide(err error) (d actor.Directive, delay time.Duration) {
	var f *failure
	known := errors.As(err, &f)
	if r == nil || !known {
		return actor.Restart, 0
	}
	_, escalated := errors.AsType[actor.Failed](err)
	_, panicked := errors.AsType[*actor.PanicError](err)
	switch r.form {
	case choosing, deciding:
		d, delay = f.directive, f.delay
		if escalated {
			d, delay = f.above, 0
		}
		if r.form == deciding {
			delay = 0
		}
	case byError:
		switch {
		case escalated:
			d = actor.Resume
		case panicked:
			d = actor.Escalate
		case f.number%3 == 0:
			d, delay = actor.Stop, 5*time.Millisecond
		default:
			d = actor.Restart
		}
	case panicking:
		if d = actor.Restart; f.number%2 == 0 {
			d = actor.Stop
		}
	}
	return d, delay
}

// strategy is the rule as the runtime is given it.
func (r *rule) strategy() *actor.Strategy {
	if r == nil {
		return nil
	}
	s := &actor.Strategy{AllForOne: r.allForOne, MaxRestarts: r.limit, Within: r.within, MinBackoff: r.min, MaxBackoff: r.max}
	switch r.form {
	case choosing:
		s.Choose = func(f actor.Failure) actor.Decision {
			d, delay := r.decide(f.Err)
			return actor.Decision{Directive: d, Delay: delay}
		}
	case deciding:
		s.Decide = func(err error) actor.Directive {
			d, _ := r.decide(err)
			return d
		}
	case byError:
		s.Choose = actor.ByError(actor.Restart,
			actor.Rule{Match: func(err error) bool { return !errors.As(err, new(*failure)) }, Decision: actor.Decision{Directive: actor.Restart}},
			actor.WhenType[actor.Failed](actor.Resume),
			actor.WhenType[*actor.PanicError](actor.Escalate),
			actor.When(errNever, actor.Stop),
			actor.Rule{
				Match:    func(err error) bool { f, ok := errors.AsType[*failure](err); return ok && f.number%3 == 0 },
				Decision: actor.Decision{Directive: actor.Stop, Delay: 5 * time.Millisecond},
			})
	default:
		s.Decide = func(err error) actor.Directive {
			if f, ok := errors.AsType[*failure](err); ok && f.number%2 == 0 {
				panic(err)
			}
			return actor.Restart
		}
	}
	return s
}

var errNever = errors.New("an error that nobody returns")

// past is when there were restarts.
type past []time.Time

// spend counts a restart. It returns how long to wait for it, and whether there
// may be one.
func (r *rule) spend(p *past, now time.Time) (wait time.Duration, ok bool) {
	var of rule
	if r != nil {
		of = *r
	}
	if of.limit == 0 {
		of.limit = 5
	}
	if of.within == 0 {
		of.within = time.Minute
	}
	*p = slices.DeleteFunc(*p, func(t time.Time) bool { return now.Sub(t) >= of.within })
	n := len(*p)
	if of.limit > 0 && n >= of.limit {
		return 0, false
	}
	*p = append(*p, now)
	switch {
	case of.min < 0:
		return 0, true
	case of.min == 0:
		of.min = 50 * time.Millisecond
	}
	if of.max == 0 {
		of.max = time.Second
	}
	for range min(n, 20) {
		of.min *= 2
	}
	return min(of.min, of.max), true
}

// lanes is a Queue in which urgent letters go first.
type lanes struct {
	limit        int
	urgent, rest []actor.Message
}

// Push refuses what is too much.
func (q *lanes) Push(m actor.Message) (*actor.Message, error) {
	if q.limit > 0 && q.Len() >= q.limit {
		return nil, actor.ErrMailboxFull
	}
	if p := parcelOf(m.Payload); p != nil && p.letter.urgent {
		q.urgent = append(q.urgent, m)
	} else {
		q.rest = append(q.rest, m)
	}
	return nil, nil
}

// Pop takes an urgent one if there is one.
func (q *lanes) Pop() (m actor.Message, ok bool) {
	from := &q.urgent
	if len(*from) == 0 {
		from = &q.rest
	}
	if len(*from) == 0 {
		return m, false
	}
	m, *from = (*from)[0], (*from)[1:]
	return m, true
}

// Len is how many wait.
func (q *lanes) Len() int { return len(q.urgent) + len(q.rest) }

// Cap is how many may.
func (q *lanes) Cap() int { return q.limit }
