package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// Context is what a handler gets beside the message. It belongs to the call
// that it was handed to, and is used again for the next message: keep none of
// it. Self, System, Parent, Grandparent, Children, Select, Stop, StopChild,
// Stopping, Logger and Now may be called at any time from any goroutine. The
// other methods panic outside a call, and must not be called from another
// goroutine than the handler's. To do something later, keep Self and send a
// message; to answer later, use Defer; to work in another goroutine, use PipeTo.
type Context Ref

// call is what a turn has in hand. It belongs to the worker, and so costs
// nothing for each actor.
type call struct {
	worker Worker
	msg    Message
	did    uint8
	active bool // a call is running
	own    bool // the message is the runtime's, for this actor alone
	user   bool // the call handles a user message
	hook   bool // the call is of an optional method
}

func (r *Ref) context() *Context { return (*Context)(r) }
func (c *Context) ref() *Ref     { return (*Ref)(c) }

// What the handler did with the message in progress.
const (
	didAnswer uint8 = 1 << iota
	didDefer
	didForward
	didStash
)

func (c *Context) begin(m Message) {
	t := c.call
	t.msg, t.did, t.own, t.user, t.hook, t.active = m, 0, false, false, false, true
}

func (c *Context) end() {
	t := c.call
	t.msg, t.active = Message{}, false
}

func (c *Context) must() {
	if c.call == nil || !c.call.active {
		panic("actor: a Context of " + c.ref().Path() + " was used outside the call that it belongs to")
	}
}

// Self returns the actor itself.
func (c *Context) Self() *Ref { return c.ref() }

// Parent returns the actor's parent.
func (c *Context) Parent() *Ref { return c.ref().parent }

// Grandparent returns the parent's parent; nil for the actors / and those
// directly under it.
func (c *Context) Grandparent() *Ref {
	if c.ref().parent == nil {
		return nil
	}
	return c.ref().parent.parent
}

// Children returns the actor's children; see Ref.Children.
func (c *Context) Children() []*Ref { return c.ref().Children() }

// System returns the actor's system.
func (c *Context) System() *System { return c.ref().sys }

// Logger returns the system's logger, which adds the actor's path as "actor" to
// what is logged. The path is made only for what is.
func (c *Context) Logger() *slog.Logger {
	return slog.New(pathHandler{c.ref().sys.log.Handler(), c.ref()})
}

// Now returns the system's time.
func (c *Context) Now() time.Time { return c.ref().sys.exec.Now() }

// Sender returns the actor that sent the message; nil when none did.
func (c *Context) Sender() *Ref {
	c.must()
	return c.call.msg.Sender
}

// Message returns the message in progress, whole. Whoever keeps its Reply
// should take it with Defer instead.
func (c *Context) Message() Message {
	c.must()
	c.call.msg.Reply.pin()
	return c.call.msg
}

// Context returns a context that is cancelled when the actor stops. It may be
// kept.
func (c *Context) Context() context.Context {
	c.must()
	x := c.ref().extras()
	if x.scope == nil {
		x.scope = newClockCtx(context.Background(), c.ref().sys.exec)
		if c.ref().phase >= phaseStopping {
			x.scope.cancel(context.Canceled)
		}
	}
	return x.scope
}

// Tell sends a message from this actor. It never waits. It returns nil, or a
// *FullError (which wraps ErrMailboxFull) when the message was not taken. To
// nil it is a dead letter.
func (c *Context) Tell(to *Ref, msg any) error {
	c.must()
	m := Message{Payload: msg, Sender: c.ref()}
	if to == nil {
		c.ref().sys.deadLetter("", m, errNobody)
		return nil
	}
	return to.postBy(m, c.call.worker)
}

var errNobody = errors.New("sent to nobody")

// Respond answers the message: the ask when it is one, else by a message to the
// sender; when there is neither, v is a dead letter. An answer that a full
// mailbox refuses is a dead letter too.
func (c *Context) Respond(v any) {
	c.must()
	if p := c.call.msg.Reply; p != nil {
		c.call.did |= didAnswer
		c.letGo()
		p.Complete(v)
		return
	}
	if err := c.Tell(c.call.msg.Sender, v); err != nil {
		c.ref().sys.deadLetter(c.call.msg.Sender.Path(), Message{Payload: v, Sender: c.ref()}, err)
	}
}

// acknowledge answers an ask, and nobody else.
func (c *Context) acknowledge() {
	if c.call.msg.Reply != nil {
		c.Respond(nil)
	}
}

// Fail answers the ask with an error, which the asker gets as it is. When the
// message is no ask, the error is only logged, at debug level.
func (c *Context) Fail(err error) {
	c.must()
	if p := c.call.msg.Reply; p != nil {
		c.call.did |= didAnswer
		c.letGo()
		p.Fail(err)
		return
	}
	c.ref().sys.log.Debug("failed a message that was no ask", "actor", c.ref().Name(), "err", err)
}

// letGo has the call hold no more of the ask, which others now may answer or use
// again. What is answered after that is a dead letter.
func (c *Context) letGo() {
	if c.call.msg.Reply != nil {
		c.call.msg.Reply = &c.sys.spent
	}
}

// Forward passes the message on with its sender and its ask, which this handler
// then can answer no more. An error says that it was not taken; then it is still
// this handler's. To nil it is a dead letter.
func (c *Context) Forward(to Target) error { return c.ForwardAs(to, c.call.msg.Payload) }

// ForwardAs is Forward with another payload in place of the message's. Whoever
// passes an ask on by other means must Defer before, not after: once it is sent
// on, it may be answered, and its promise belong to another ask.
func (c *Context) ForwardAs(to Target, payload any) error {
	c.must()
	m := c.call.msg
	m.Payload = payload
	if r, ok := to.(*Ref); to == nil || ok && r == nil {
		c.ref().sys.deadLetter("", m, errNobody)
	} else if ok {
		if err := r.postBy(m, c.call.worker); err != nil {
			return err
		}
	} else {
		m.Reply.pin()
		if err := to.Post(m); err != nil {
			return err
		}
	}
	c.call.did |= didForward
	c.letGo()
	return nil
}

// TryForward is Forward to an actor that may have stopped: then it returns
// ErrStopped instead of making a dead letter, and the message is still this
// handler's. To nil the error wraps ErrNotFound.
func (c *Context) TryForward(to *Ref) error {
	c.must()
	if to == nil {
		return fmt.Errorf("%w: %w", ErrNotFound, errNobody)
	}
	if err := to.enqueue(c.call.msg, c.call.worker); err != nil {
		return err
	}
	c.call.did |= didForward
	c.letGo()
	return nil
}

// Defer takes the ask over: the handler will not answer, and whoever has the
// promise must. It returns nil when the message is no ask. When the handler
// fails the ask fails with it all the same.
func (c *Context) Defer() *Promise {
	c.must()
	if c.call.msg.Reply == nil {
		return nil
	}
	c.call.did |= didDefer
	c.call.msg.Reply.pin()
	return c.call.msg.Reply
}

// Spawn makes a child; see Ref.Spawn.
func (c *Context) Spawn(name string, p Props) (*Ref, error) {
	c.must()
	return c.ref().spawnBy(name, p, c.call.worker)
}

// Stop asks a child, or any actor, to stop; see Ref.Stop. With nil it does nothing.
func (c *Context) Stop(child *Ref) {
	if child != nil {
		child.Stop()
	}
}

// StopChild asks the child of that name to stop; see Ref.StopChild.
func (c *Context) StopChild(name string) bool { return c.ref().StopChild(name) }

// StopSelf stops the actor when the handler has returned.
func (c *Context) StopSelf() {
	c.must()
	c.ref().stopAsked = true
}

// Watch has the actor get Terminated when r has stopped; at once when it has
// already. Watching twice is watching once. Watches survive restarts. A parent
// need not watch its children, unless it has Props.IgnoreChildren; when it does
// it also hears of those that its own restart stops.
func (c *Context) Watch(r *Ref) {
	c.must()
	switch {
	case c.ref().phase >= phaseStopping:
	case c.ref().delegatesTo(r):
		c.ref().extra.delegation.watched = true // the delegation watches already
	default:
		c.ref().watch(r)
	}
}

// Unwatch undoes Watch, and has a parent not hear of a child. A Terminated that
// is queued already is dropped.
func (c *Context) Unwatch(r *Ref) {
	c.must()
	if c.ref().delegatesTo(r) {
		d := c.ref().extra.delegation // goes on watching
		d.watched, d.before = false, heedNot
		return
	}
	c.ref().unwatch(r)
}

// Hold makes user messages wait until Resume. System messages go on.
func (c *Context) Hold() {
	c.must()
	c.ref().setHold(holdUser, 0)
}

// Resume undoes Hold and Props.Held. A held actor can call it from
// ReceiveSystem.
func (c *Context) Resume() {
	c.must()
	c.ref().setHold(0, holdUser)
}

// Retire stops the actor if no user message waits for it, neither in the
// mailbox nor stashed. It is atomic: after true no message was or will be
// taken, and senders find the actor absent; it stops when the handler has
// returned. After false nothing has happened.
func (c *Context) Retire() bool {
	c.must()
	r := c.ref()
	if x := r.extra; r.phase != phaseRunning || (x != nil && (len(x.stash) > 0 || (x.delegation != nil && len(x.delegation.waiting) > 0))) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !mutant.On(mutant.RetireNotEmpty) && (len(r.queue) > 0 || int(r.next) < len(r.batch) || r.laneLen() > 0) {
		return false
	}
	r.closed = true
	r.set(ending)
	r.stopAsked = true
	return true
}

// Stopping says that the whole system is stopping.
func (c *Context) Stopping() bool { return c.ref().sys.stopping.Load() }

// StopCause returns, in PostStop, what made the actor stop.
func (c *Context) StopCause() StopCause {
	c.must()
	return c.ref().cause
}

// IsException returns, in PostStop, the failure that ended the actor; nil when
// it was stopped.
func (c *Context) IsException() error {
	c.must()
	if c.ref().extra == nil {
		return nil
	}
	return c.ref().extra.reason
}

// ParentException returns, in PostStop, the failure of the parent that ended
// the actor; nil when there was none.
func (c *Context) ParentException() error {
	c.must()
	if c.ref().extra == nil {
		return nil
	}
	return c.ref().extra.parentReason
}
