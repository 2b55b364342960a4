package actor

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Context is what a handler gets beside the message. It belongs to the call
// that it was handed to, and is used again for the next message: keep none of
// it. Self, System, Parent, Logger and Now may be called at any time from any
// goroutine. The other methods panic outside a call, and must not be called
// from another goroutine than the handler's. To do something later, keep
// Self and send a message; to answer later, use Defer; to work in another
// goroutine, use PipeTo.
type Context struct {
	r      *Ref
	worker Worker // nil outside turns
	msg    Message
	did    uint8
	active bool // a call is running
	own    bool // the message is the runtime's, for this actor alone
	user   bool // the call handles a user message
}

// What the handler did with the message in progress.
const (
	didAnswer uint8 = 1 << iota
	didDefer
	didForward
	didStash
)

func (c *Context) begin(m Message) {
	c.msg, c.did, c.own, c.user, c.active = m, 0, false, false, true
}

func (c *Context) end() {
	c.msg, c.active = Message{}, false
}

func (c *Context) must() {
	if !c.active {
		panic("actor: a Context of " + c.r.Path() + " was used outside the call that it belongs to")
	}
}

// Self returns the actor itself.
func (c *Context) Self() *Ref { return c.r }

// Parent returns the actor's parent.
func (c *Context) Parent() *Ref { return c.r.parent }

// Grandparent returns the parent's parent; nil for the actors / and those
// directly under it.
func (c *Context) Grandparent() *Ref {
	if c.r.parent == nil {
		return nil
	}
	return c.r.parent.parent
}

// Children returns the actor's children; see Ref.Children.
func (c *Context) Children() []*Ref { return c.r.Children() }

// System returns the actor's system.
func (c *Context) System() *System { return c.r.sys }

// Logger returns the system's logger, which adds the actor's path as "actor" to
// what is logged. The path is made only for what is.
func (c *Context) Logger() *slog.Logger {
	return slog.New(pathHandler{c.r.sys.log.Handler(), c.r})
}

// Now returns the system's time.
func (c *Context) Now() time.Time { return c.r.sys.exec.Now() }

// Sender returns the actor that sent the message; nil when none did.
func (c *Context) Sender() *Ref {
	c.must()
	return c.msg.Sender
}

// Message returns the message in progress, whole. Whoever keeps its Reply
// should take it with Defer instead.
func (c *Context) Message() Message {
	c.must()
	c.msg.Reply.pin()
	return c.msg
}

// Context returns a context that is cancelled when the actor stops. It may be
// kept.
func (c *Context) Context() context.Context {
	c.must()
	x := c.r.extras()
	if x.scope == nil {
		x.scope = newClockCtx(context.Background(), c.r.sys.exec)
		if c.r.phase >= phaseStopping {
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
	m := Message{Payload: msg, Sender: c.r}
	if to == nil {
		c.r.sys.deadLetter("", m, errNobody)
		return nil
	}
	return to.postBy(m, c.worker)
}

var errNobody = errors.New("sent to nobody")

// Respond answers the message: the ask when it is one, else by a message to the
// sender; when there is neither, v is a dead letter. An answer that a full
// mailbox refuses is a dead letter too.
func (c *Context) Respond(v any) {
	c.must()
	if p := c.msg.Reply; p != nil {
		c.did |= didAnswer
		p.Complete(v)
		return
	}
	if err := c.Tell(c.msg.Sender, v); err != nil {
		c.r.sys.deadLetter(c.msg.Sender.Path(), Message{Payload: v, Sender: c.r}, err)
	}
}

// acknowledge answers an ask, and nobody else.
func (c *Context) acknowledge() {
	if c.msg.Reply != nil {
		c.Respond(nil)
	}
}

// Fail answers the ask with an error, which the asker gets as it is. When the
// message is no ask, the error is only logged, at debug level.
func (c *Context) Fail(err error) {
	c.must()
	if p := c.msg.Reply; p != nil {
		c.did |= didAnswer
		p.Fail(err)
		return
	}
	c.r.sys.log.Debug("failed a message that was no ask", "actor", c.r.Name(), "err", err)
}

// Forward passes the message on with its sender and its ask. An error says
// that it was not taken; then it is still this handler's.
func (c *Context) Forward(to Target) error {
	c.must()
	if r, ok := to.(*Ref); ok {
		if err := r.postBy(c.msg, c.worker); err != nil {
			return err
		}
	} else {
		c.msg.Reply.pin()
		if err := to.Post(c.msg); err != nil {
			return err
		}
	}
	c.did |= didForward
	return nil
}

// TryForward is Forward to an actor that may have stopped: then it returns
// ErrStopped instead of making a dead letter, and the message is still this
// handler's.
func (c *Context) TryForward(to *Ref) error {
	c.must()
	if err := to.enqueue(c.msg, c.worker); err != nil {
		return err
	}
	c.did |= didForward
	return nil
}

// Defer takes the ask over: the handler will not answer, and whoever has the
// promise must. It returns nil when the message is no ask. When the handler
// fails the ask fails with it all the same.
func (c *Context) Defer() *Promise {
	c.must()
	if c.msg.Reply == nil {
		return nil
	}
	c.did |= didDefer
	c.msg.Reply.pin()
	return c.msg.Reply
}

// Spawn makes a child; see Ref.Spawn.
func (c *Context) Spawn(name string, p Props) (*Ref, error) { return c.r.spawnBy(name, p, c.worker) }

// Stop asks a child, or any actor, to stop; see Ref.Stop.
func (c *Context) Stop(child *Ref) { child.Stop() }

// StopChild asks the child of that name to stop; see Ref.StopChild.
func (c *Context) StopChild(name string) bool { return c.r.StopChild(name) }

// StopSelf stops the actor when the handler has returned.
func (c *Context) StopSelf() {
	c.must()
	c.r.stopAsked = true
}

// Watch has the actor get Terminated when r has stopped; at once when it has
// already. Watching twice is watching once. Watches survive restarts. A parent
// need not watch its children, unless it has Props.IgnoreChildren; when it does
// it also hears of those that its own restart stops.
func (c *Context) Watch(r *Ref) {
	c.must()
	switch {
	case c.r.phase >= phaseStopping:
	case c.r.delegatesTo(r):
		c.r.extra.delegation.watched = true // the delegation watches already
	default:
		c.r.watch(r)
	}
}

// Unwatch undoes Watch, and has a parent not hear of a child. A Terminated that
// is queued already is dropped.
func (c *Context) Unwatch(r *Ref) {
	c.must()
	if c.r.delegatesTo(r) {
		d := c.r.extra.delegation // goes on watching
		d.watched, d.before = false, heedNot
		return
	}
	c.r.unwatch(r)
}

// Hold makes user messages wait until Resume. System messages go on.
func (c *Context) Hold() {
	c.must()
	c.r.setHold(holdUser, 0)
}

// Resume undoes Hold and Props.Held. A held actor can call it from
// ReceiveSystem.
func (c *Context) Resume() {
	c.must()
	c.r.setHold(0, holdUser)
}

// Retire stops the actor if no user message waits for it, neither in the
// mailbox nor stashed. It is atomic: after true no message was or will be
// taken, and senders find the actor absent; it stops when the handler has
// returned. After false nothing has happened.
func (c *Context) Retire() bool {
	c.must()
	r := c.r
	if x := r.extra; r.phase != phaseRunning || (x != nil && (len(x.stash) > 0 || (x.delegation != nil && len(x.delegation.waiting) > 0))) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) > 0 || r.next < len(r.batch) || r.laneLen() > 0 {
		return false
	}
	r.closed = true
	r.ending.Store(true)
	r.stopAsked = true
	return true
}

// Stopping says that the whole system is stopping.
func (c *Context) Stopping() bool { return c.r.sys.stopping.Load() }

// StopCause returns, in PostStop, what made the actor stop.
func (c *Context) StopCause() StopCause {
	c.must()
	return c.r.cause
}

// IsException returns, in PostStop, the failure that ended the actor; nil when
// it was stopped.
func (c *Context) IsException() error {
	c.must()
	if c.r.extra == nil {
		return nil
	}
	return c.r.extra.reason
}

// ParentException returns, in PostStop, the failure of the parent that ended
// the actor; nil when there was none.
func (c *Context) ParentException() error {
	c.must()
	if c.r.extra == nil {
		return nil
	}
	return c.r.extra.parentReason
}
