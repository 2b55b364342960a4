package actor

import "errors"

// NonDelegated marks messages that an actor handles itself, at once, also
// while it delegates (Context.DelegateTo).
type NonDelegated interface{ NonDelegated() }

// DelegationEnded is the message that an actor gets when its delegation has
// ended, ahead of whatever was not delegated any more.
type DelegationEnded struct {
	Delegate *Ref
	Payload  any   // what the delegate gave to EndDelegation
	Stopped  bool  // it ended because the delegate has stopped
	Reason   error // the failure that ended the delegate; nil when it was stopped
}

// delegation is one in progress.
type delegation struct {
	to      *Ref
	watched bool      // also by the user's own Watch, which has yet to be told
	before  heed      // of a child
	waiting []Message // came when the delegate took no more
}

// delegationEnd is an early end in the delegator's mailbox.
type delegationEnd struct {
	by      *Ref
	payload any
}

// DelegateTo has the messages that this actor gets from now on go to another,
// usually a child, with their senders and asks. What the actor still gets
// itself: messages that are NonDelegated, Terminated, its own timers and
// results of PipeTo, PoisonPill, and those of TellSystem. The delegation ends when the
// delegate stops or calls EndDelegation, which this actor is told by
// DelegationEnded; with Undelegate; and with a restart. Messages that a
// stopping delegate does not take wait and come back to this actor. Those that
// a full one does not take become dead letters.
//
// While an actor delegates, another DelegateTo replaces the delegate.
func (c *Context) DelegateTo(r *Ref) {
	c.must()
	if r == nil || r == c.ref() {
		panic("actor: DelegateTo needs another actor")
	}
	if c.ref().phase >= phaseStopping {
		return
	}
	waiting := c.ref().leaveDelegate()
	x := c.ref().extras()
	_, watched := x.watching[r]
	d := &delegation{to: r, watched: watched}
	if c.ref().hears(r) {
		d.before, d.watched = r.heed, r.heed == heedAsked && !r.heard
	}
	x.delegation = d
	c.ref().watch(r)
	c.ref().putBack(waiting)
}

// Undelegate ends the delegation, if there is one, without DelegationEnded.
func (c *Context) Undelegate() {
	c.must()
	c.ref().putBack(c.ref().leaveDelegate())
}

// EndDelegation ends the delegation from another actor to this one, in order
// with what this one sends it, and beyond its mailbox's capacity. That actor
// gets payload in DelegationEnded. This one goes on running. When there is no
// such delegation nothing happens.
func (c *Context) EndDelegation(from *Ref, payload any) {
	c.must()
	if from != nil {
		_ = from.enqueue(Message{Payload: &delegationEnd{c.ref(), payload}, Sender: c.ref()}, c.call.worker)
	}
}

func (r *Ref) delegatesTo(d *Ref) bool {
	x := r.extra
	return x != nil && x.delegation != nil && x.delegation.to == d
}

// delegate passes m on; false says that it is for r itself.
func (r *Ref) delegate(m Message) bool {
	if _, ok := m.Payload.(NonDelegated); ok {
		return false
	}
	d := r.extra.delegation
	switch err := d.to.enqueue(m, r.call.worker); {
	case err == nil:
	case errors.Is(err, ErrStopped):
		d.waiting = append(d.waiting, m) // its Terminated is coming
	default:
		r.sys.deadLetter(d.to.Path(), m, err)
	}
	return true
}

// endDelegation puts what waited back in front.
func (r *Ref) endDelegation() { r.putBack(r.leaveDelegate()) }

// leaveDelegate ends the delegation and returns what waited.
func (r *Ref) leaveDelegate() []Message {
	x := r.extra
	if x == nil || x.delegation == nil {
		return nil
	}
	d := x.delegation
	x.delegation = nil
	switch {
	case d.watched:
	case r.hears(d.to):
		d.to.heed = d.before
	default:
		r.unwatch(d.to)
	}
	return d.waiting
}

// terminated says whether Terminated is to be delivered. Of a delegate comes
// DelegationEnded first, and Terminated behind it if it was watched besides.
func (r *Ref) terminated(t Terminated) bool {
	if !r.forget(t.Ref) && !r.heeds(t.Ref) {
		return false
	}
	if !r.delegatesTo(t.Ref) {
		return true
	}
	watched := r.extra.delegation.watched
	waiting := r.leaveDelegate()
	back := []Message{{Payload: &again{DelegationEnded{Delegate: t.Ref, Stopped: true, Reason: t.Reason}}, Sender: t.Ref}}
	if watched {
		r.unhear(t.Ref)
		back = append(back, Message{Payload: t, Sender: t.Ref})
	}
	r.putBack(append(back, waiting...))
	return false
}
