package actor

// Message is what a mailbox holds. Whoever sends one gives up what the payload
// points to.
type Message struct {
	Payload any      // what Receive gets
	Sender  *Ref     // nil when it was not sent by an actor
	Reply   *Promise // nil when it is no ask
}

// Target is anything that takes messages: a *Ref, or an address that resolves
// to one.
type Target interface {
	// Post hands over a message. An error says that it was not taken.
	Post(m Message) error
	// System is the system that the target lives in.
	System() *System
}

// PoisonPill stops the actor when it is reached in the user mailbox, behind
// everything sent before it. It is queued beyond a mailbox's capacity. With
// Props.OwnPoison it is delivered to Receive like any message.
type PoisonPill struct{}

// Terminated tells a watcher that Ref has stopped, and Ref's parent too, unless
// that has Props.IgnoreChildren, called Unwatch, or stops or restarts itself.
// It is queued in order with user messages and beyond a mailbox's capacity,
// behind everything that Ref sent from its handlers.
type Terminated struct {
	Ref    *Ref
	Cause  StopCause
	Reason error // the failure that ended it; nil when there was none
}

// PipeFailed is the message that Context.PipeTo sends when its function
// failed or panicked.
type PipeFailed struct{ Err error }

// Error says what failed.
func (p PipeFailed) Error() string { return "piped work failed: " + p.Err.Error() }

// Unwrap returns what failed.
func (p PipeFailed) Unwrap() error { return p.Err }

// Failed is the failure of an actor whose child's failure was escalated to it:
// what the actor's own supervisor decides about, and the reason that
// PreRestart and Resumed get.
type Failed struct {
	Child   *Ref
	Reason  error
	Message any // the message that the child failed on; nil when there was none
}

// Error names the child and its failure.
func (f Failed) Error() string { return "child " + f.Child.Path() + " failed: " + f.Reason.Error() }

// Unwrap returns the child's failure.
func (f Failed) Unwrap() error { return f.Reason }
