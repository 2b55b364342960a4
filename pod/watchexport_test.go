package pod

// KeepForWatches sets how many of the newest changes those who watch find in
// memory.
func (p *Pods) KeepForWatches(n int) { p.hub.keeps, p.volatile.hub.keeps = n, n }
