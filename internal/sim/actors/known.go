package actors

// What actor is known to do otherwise than its documentation says, each as
// narrow as it can be told. What is mended there is to be taken out here.

// knownPill: an actor with Props.OwnPoison that delegates passes a PoisonPill
// on to its delegate and does not get it itself, as Context.DelegateTo says. So
// l may end by a PoisonPill that was sent to such a delegator.
func (l *life) knownPill() bool {
	for _, d := range l.w.lives {
		if !d.props.ownPoison || d.delegates[l] == 0 {
			continue
		}
		if len(d.pills) > 0 || d.resized() || d.knownPill() { // who delegates is older, so this ends
			return true
		}
	}
	return false
}
