package pod

// A pod does not know how many entities its store has. A query that went through
// all of the store and found every entity in memory has taken a census; it holds
// until an entity leaves memory. As long as it holds, the slots are all that
// there is: whoever is created is in memory.

// census is one being taken.
type census struct {
	pod        *Pod // nil: it has failed
	departures uint64
}

// takeCensus begins a census, if the whole of the store is to be looked through.
func (p *Pod) takeCensus(whole bool) *census {
	if !whole {
		return &census{}
	}
	return &census{pod: p, departures: p.slots.departures.Load()}
}

// saw notes a chunk of the store.
func (c *census) saw(page Page) {
	for i := range page.Items {
		if c.pod == nil {
			return
		}
		if c.pod.slots.get(page.Items[i].Name) == nil {
			c.pod = nil
		}
	}
}

// finish makes the census known.
func (c *census) finish() {
	if c.pod != nil {
		c.pod.slots.census.Store(c.departures + 1)
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
