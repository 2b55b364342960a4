package pod

// SlotStates counts the slots of names that are in memory, or are being read, by
// their state.
type SlotStates struct {
	// Activating are those whose entity is being read or made.
	Activating int
	// Active are those whose entity is in memory.
	Active int
	// Removing are those whose deletion is under way.
	Removing int
	// Passivating are those that have left and whose place is not free yet.
	Passivating int
}

// Slots counts the slots of all pods. It looks at every one.
func (p *Pods) Slots() (s SlotStates) {
	for _, pod := range p.All() {
		pod.slots.all(func(slot *slot) bool {
			switch {
			case slot.ref.Stopped():
				s.Passivating++
			case slot.ends.Load():
				s.Removing++
			case slot.view.Load() == nil:
				s.Activating++
			default:
				s.Active++
			}
			return false
		})
	}
	return s
}
