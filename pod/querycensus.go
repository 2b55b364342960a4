package pod

import "github.com/twinsrv/twinsrv/internal/mutant"

// A pod does not know how many entities its store has. A query that went through
// all of the store and found every entity in memory has taken a census; it holds
// until an entity leaves memory. As long as it holds, the slots are all that
// there is: whoever is created is in memory.
//
// A query whose filter demands a beginning of names goes through those alone.
// When it has found all of them in memory, that promises a census, and the next
// one like it goes through all of the store for it, once: if the census fails,
// that is remembered until somebody leaves.

// census is one being taken.
type census struct {
	pod        *Pod // nil: it has failed, or none is taken
	part       bool // of the names with some beginning alone
	promised   bool
	seen       bool // anybody
	departures uint64
}

// takeCensus begins a census, of the whole of the store or a part of it.
func (p *Pod) takeCensus(part bool) *census {
	departures := p.slots.departures.Load()
	return &census{pod: p, part: part, promised: p.slots.promised.Load() == departures+1, departures: departures}
}

// isPromised says whether to look through the whole of the store for a census.
func (p *Pod) isPromised() bool {
	departures := p.slots.departures.Load()
	return p.slots.promised.Load() == departures+1 && p.slots.failed.Load() != departures+1
}

// saw notes a chunk of the store.
func (c *census) saw(page Page) {
	for i := range page.Items {
		if c.pod == nil {
			return
		}
		if c.pod.slots.get(page.Items[i].Name) == nil {
			if !c.part && c.promised {
				c.pod.slots.failed.Store(c.departures + 1)
			}
			c.pod = nil
		}
		c.seen = true
	}
}

// finish makes the census, or the promise of one, known.
func (c *census) finish() {
	switch {
	case c.pod == nil:
	case !c.part || mutant.On(mutant.CensusOfPart):
		c.pod.slots.census.Store(c.departures + 1)
	case c.seen:
		c.pod.slots.promised.Store(c.departures + 1)
	}
}

// allResident returns the slots of the pod if a census says that they are all
// there is.
func (p *Pod) allResident() ([]*slot, bool) {
	before := p.slots.departures.Load()
	if p.slots.census.Load() != before+1 {
		return nil, false
	}
	all := p.slots.all(func(*slot) bool { return true })
	return all, p.slots.departures.Load() == before
}
