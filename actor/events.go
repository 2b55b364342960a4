package actor

import (
	"fmt"
	"time"
)

// EventKind is what happened to an actor.
type EventKind uint8

const (
	// ActorStarted says that the first PreStart has returned.
	ActorStarted EventKind = iota + 1
	// ActorRestarted says that PreStart has returned after a restart.
	ActorRestarted
	// ActorFailed comes with the failure and what the supervisor's strategy
	// says, before that is done.
	ActorFailed
	// ActorStopped says that the actor has stopped wholly: its name is free.
	ActorStopped
)

// String returns the kind in a word.
func (k EventKind) String() string {
	switch k {
	case ActorStarted:
		return "started"
	case ActorRestarted:
		return "restarted"
	case ActorFailed:
		return "failed"
	case ActorStopped:
		return "stopped"
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is something that happened to an actor.
type Event struct {
	Kind      EventKind
	Ref       *Ref
	Cause     StopCause // of ActorStopped
	Reason    error     // of ActorFailed, and of ActorStopped when a failure ended the actor
	Directive Directive // of ActorFailed
	At        time.Time // the system's
}

// Events is what happens to a system's actors, for those who subscribe. The
// events of one actor come in order. That it has stopped comes before AwaitStop
// returns, and before its parent stops.
type Events struct {
	sys *System
	hub hub[Event]
}

// Events returns the system's events.
func (s *System) Events() *Events { return &s.events }

// Subscribe has f called for each event from now on, in the turn of the actor
// that it is about, so also concurrently. f must not block; a panic in it is
// logged.
func (e *Events) Subscribe(f func(Event)) (cancel func()) {
	return e.hub.add(&subscription[Event]{f: f})
}

// SubscribeRef has r told each Event from now on, until it stops. It is told
// nothing while its mailbox is full. The same comes of sending Subscribe to
// /system/events, and twice is once.
func (e *Events) SubscribeRef(r *Ref) (cancel func()) { return e.hub.addRef(r) }

func (e *Events) publish(ev Event) {
	if e.hub.heard() {
		ev.At = e.sys.Now()
		e.hub.publish(e.sys, ev, nil)
	}
}

func (r *Ref) tellStarted() {
	kind := ActorStarted
	if x := r.extra; x != nil && x.restarted {
		kind = ActorRestarted
	}
	r.sys.events.publish(Event{Kind: kind, Ref: r})
}

// tellStopped comes before anyone stops waiting for r, so that who saw it end
// finds that the subscribers have been told.
func (r *Ref) tellStopped() {
	events := &r.sys.events
	if !events.hub.heard() {
		return
	}
	if r.parent != nil {
		r.parent.freeName(r)
	}
	r.mu.Lock()
	var reason error
	if r.rare != nil {
		reason = r.rare.reason
	}
	r.mu.Unlock()
	events.publish(Event{Kind: ActorStopped, Ref: r, Cause: r.cause, Reason: reason})
}
