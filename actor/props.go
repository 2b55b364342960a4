package actor

import (
	"fmt"
	"math"
)

// Policy says what a mailbox does with a message when it is full.
type Policy uint8

const (
	// Unbounded mailboxes are never full; Mailbox.Capacity is not used.
	Unbounded Policy = iota
	// Fail refuses the message with a *FullError.
	Fail
	// Block has the sender wait for room, in the order in which senders came.
	// Nothing waits inside a turn, where waiting could be for ever: handlers
	// get a *FullError, as with Fail. (A sequence of iter.Pull has a stack of its
	// own; what a handler sends from within one it sends by its Context.)
	Block
	// DropNewest takes no more: the message becomes a dead letter whose reason
	// is a *FullError, and its ask fails with that. The sender gets no error.
	DropNewest
	// DropOldest takes the message, and the one that has waited longest
	// becomes the dead letter.
	DropOldest
)

// String returns the policy's name.
func (p Policy) String() string {
	switch p {
	case Unbounded:
		return "unbounded"
	case Fail:
		return "fail"
	case Block:
		return "block"
	case DropNewest:
		return "drop newest"
	case DropOldest:
		return "drop oldest"
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// Mailbox describes an actor's user mailbox. The zero value is unbounded.
// Terminated, PoisonPill, timers and results of PipeTo are taken also when it
// is full, and never dropped.
type Mailbox struct {
	Capacity int // messages waiting, without the one in progress; at least 1 unless Unbounded
	Policy   Policy
	// New makes a mailbox of one's own, in the call that spawns the actor; then
	// Capacity and Policy stay zero.
	New func() Queue
}

// Props say how to make an actor. They are copied at Spawn.
type Props struct {
	// New makes the instance: at the start and at each restart, on the
	// actor's own turn. It must be set.
	New func() Actor
	// Mailbox is the user mailbox; the zero value is unbounded.
	Mailbox Mailbox
	// Supervisor decides about failures of this actor's children. Nil is the
	// default: one for one, restart, 5 a minute, backoff 50 ms to 1 s.
	Supervisor *Strategy
	// OnAbsent is called for a message to a child of this actor that does not
	// exist or has stopped, in the sender's call and so on any goroutine, also
	// concurrently. True says that it took the message, else it becomes a dead
	// letter. It must not block. What a child left in its mailbox comes here
	// in order, ahead of what is sent to it later. Terminated, PoisonPill and
	// an actor's own timers and piped results never come here.
	OnAbsent func(name string, m Message) bool
	// IgnoreChildren spares the actor the Terminated that it gets otherwise of
	// each of its children; it hears then only of those that it watches. It is
	// for parents of very many that come and go.
	IgnoreChildren bool
	// Held starts the actor with its user mailbox held, until Context.Resume.
	Held bool
	// OwnPoison delivers PoisonPill to Receive instead of stopping.
	OwnPoison bool
}

// PropsOf returns Props with only New set.
func PropsOf(f func() Actor) Props { return Props{New: f} }

// PropsFunc returns Props for an actor that is only a function.
func PropsFunc(f ActorFunc) Props { return Props{New: func() Actor { return f }} }

// Check says, with an error that wraps ErrInvalid, why no actor can be made of the
// props, or returns nil. Spawn checks by itself.
func (p *Props) Check() error {
	switch {
	case p.New == nil:
		return fmt.Errorf("%w: Props.New is nil; set the function that makes the actor", ErrInvalid)
	case p.Mailbox.New != nil && (p.Mailbox.Policy != Unbounded || p.Mailbox.Capacity != 0):
		return fmt.Errorf("%w: a mailbox with New has neither Policy nor Capacity; its Queue decides", ErrInvalid)
	case p.Mailbox.Policy > DropOldest:
		return fmt.Errorf("%w: unknown mailbox policy %d", ErrInvalid, p.Mailbox.Policy)
	case p.Mailbox.Policy != Unbounded && p.Mailbox.Capacity < 1:
		return fmt.Errorf("%w: a bounded mailbox needs a Capacity of at least 1, not %d", ErrInvalid, p.Mailbox.Capacity)
	}
	return nil
}

// spec is what Refs, of which there may be millions, share of their Props. It
// does not change.
type spec struct {
	Supervisor *Strategy
	OnAbsent   func(name string, m Message) bool
	policy     Policy
	Held       bool
	OwnPoison  bool

	IgnoreChildren bool
}

// spec returns shared when that says the same, and sys's when there is nothing
// to say. shared may be nil.
func (p *Props) spec(sys *System, shared *spec) *spec {
	if p.Supervisor == nil && p.OnAbsent == nil && p.Mailbox.Policy == Unbounded && !p.Held && !p.OwnPoison && !p.IgnoreChildren {
		return &sys.plain
	}
	if s := shared; s != nil && s.OnAbsent == nil && p.OnAbsent == nil && s.Supervisor == p.Supervisor && s.policy == p.Mailbox.Policy &&
		s.Held == p.Held && s.OwnPoison == p.OwnPoison && s.IgnoreChildren == p.IgnoreChildren {
		return s
	}
	return &spec{
		Supervisor: p.Supervisor, OnAbsent: p.OnAbsent, policy: p.Mailbox.Policy,
		Held: p.Held, OwnPoison: p.OwnPoison, IgnoreChildren: p.IgnoreChildren,
	}
}

// capacity is the mailbox's; 0 when it is unbounded, below when it is a lane.
func (m *Mailbox) capacity() int32 {
	switch {
	case m.New != nil || m.Policy == Block || m.Policy == DropOldest:
		return -1
	case m.Policy != Unbounded:
		return int32(min(m.Capacity, math.MaxInt32))
	}
	return 0
}
