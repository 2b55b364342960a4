package actors

// Known deviations of package actor from what it says. Each makes the checks
// look away from it, so that they still see everything else. Set one to false
// when the runtime is mended.
const (
	// rawDeadLetters: when the system stops, a child of an actor with an
	// OnAbsent leaves its piped results and timers as dead letters in the
	// runtime's own wrappers, and those of stopped timers too.
	rawDeadLetters = true
	// ownTimersOffered: an actor's own timer that fires after Retire, while the
	// handler still runs, goes to the parent's OnAbsent.
	ownTimersOffered = true
)
