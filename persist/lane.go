package persist

import (
	"fmt"
)

// Lane is one activation's ordered way into a committer.
//
// Its units are committed in the order of Submit, and each gets exactly one
// Result, in that order. After the first failure the lane is poisoned: every
// later unit is refused without reaching the store, since it was computed on
// the one that failed. A poisoned lane never recovers; the activation loads
// anew and takes a new one.
//
// Submit must be called by one goroutine at a time.
type Lane struct {
	c       *Committer
	deliver func([]Result)

	// The committer's running job alone touches these.
	life    uint64 // given by the store when a unit of this lane created
	poison  error
	settled []Result
}

// Result is one unit's outcome with the tag that was submitted with it.
type Result struct {
	Tag     any
	Outcome Outcome
}

// Lane opens a lane. deliver is called with results in order, on the
// committer's job: it must not block and must not call Submit.
func (c *Committer) Lane(deliver func([]Result)) *Lane {
	return &Lane{c: c, deliver: deliver}
}

// Submit queues a unit. It never blocks; the outcome, also a refusal because
// the store is down, comes through the lane's deliver.
func (l *Lane) Submit(u Unit, tag any) {
	l.c.submit(pending{lane: l, unit: u, tag: tag})
}

func (l *Lane) settle(p pending, o Outcome) {
	if o.Err != nil && l.poison == nil {
		l.poison = o.Err
	}
	switch {
	case o.Err != nil:
	case p.unit.Delete:
		l.life = 0 // what follows belongs to a life that is still to begin
	default:
		l.life = o.Life
	}
	l.settled = append(l.settled, Result{Tag: p.tag, Outcome: o})
}

// refusal is the outcome of a unit behind one that failed: it certainly was
// not applied.
func (l *Lane) refusal(k Key) error {
	return fmt.Errorf("%s: %w: an earlier change of it failed: %v", k, undone(l.poison), l.poison)
}
