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
