package pod

// KeepForWatches sets how many of the newest changes those who watch find in
// memory, and from how many positions on a watch of one entity reads its changes
// alone.
func (p *Pods) KeepForWatches(n int, far uint64) {
	for _, h := range []*hub{&p.hub, &p.volatile.hub} {
		h.keeps, h.far = n, far
	}
}
