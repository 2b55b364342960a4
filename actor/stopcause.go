package actor

import "fmt"

// StopCause says what made an actor stop. Of several things at a time it is the
// first.
type StopCause uint8

const (
	// CauseStop is a call of Stop or StopChild, whoever made it.
	CauseStop StopCause = iota
	// CauseSelf is the actor's own StopSelf or Retire.
	CauseSelf
	// CausePoison is a PoisonPill.
	CausePoison
	// CauseFailure is a failure that the supervisor answered with Stop, one more
	// than there may be restarts, or one that left nobody to decide. The reason
	// says which.
	CauseFailure
	// CauseDieIn is a dead-man's handle (Context.DieIn); the reason is ErrDieIn.
	CauseDieIn
	// CauseParent says that the parent has stopped or restarts.
	CauseParent
	// CauseSystem says that the whole system stops.
	CauseSystem
)

// String returns the cause in a few words.
func (c StopCause) String() string {
	switch c {
	case CauseStop:
		return "stopped"
	case CauseSelf:
		return "stopped itself"
	case CausePoison:
		return "poison pill"
	case CauseFailure:
		return "failed"
	case CauseDieIn:
		return "out of time"
	case CauseParent:
		return "parent stopped or restarted"
	case CauseSystem:
		return "system stopped"
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}
