package pod

// Departures says how often somebody who may have been an entity left memory.
func (p *Pod) Departures() uint64 { return p.slots.departures.Load() }

// IndexBytes counts the bytes of the keys in the pod's indexes.
func (p *Pod) IndexBytes() (n int) {
	x := p.indexes.Load()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, keys := range x.keys {
		for _, k := range keys {
			n += len(k)
		}
	}
	return n
}

// TableBytes counts the bytes of the values that the pod's tables own.
func (p *Pod) TableBytes() (n int) {
	r := p.slots.roster.Load()
	if r == nil || r.tables.Load() == nil {
		return 0
	}
	for _, t := range *r.tables.Load() {
		for _, column := range t.rows.Columns {
			for i := range column {
				n += owned(column[i])
			}
		}
	}
	return n
}

// Counted says whether a census holds.
func (p *Pod) Counted() bool { _, all := p.allResident(); return all }

// CountFailed says whether one that was promised failed since somebody left.
func (p *Pod) CountFailed() bool { return p.slots.failed.Load() == p.slots.departures.Load()+1 }

// Tables counts the tables that the pod has.
func (p *Pod) Tables() int {
	r := p.slots.roster.Load()
	if r == nil || r.tables.Load() == nil {
		return 0
	}
	return len(*r.tables.Load())
}

// Late counts the slots that the pod's roster has beside its rows.
func (p *Pod) Late() int {
	r := p.slots.roster.Load()
	if r == nil {
		return 0
	}
	return len(r.latecomers())
}

// Replace makes a slot of a name, whose one before must have stopped, and calls
// what is given before that is in its place.
func (p *Pod) Replace(name string, between func()) error {
	_, err := p.slots.ensure(name, func(succeeds bool) (*slot, error) {
		s, err := p.spawn(name, p.spec.Load(), succeeds)
		between()
		return s, err
	})
	return err
}
