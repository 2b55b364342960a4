package actor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// again is a stashed message of the runtime's own: its checks were made when
// it was delivered first.
type again struct{ value any }

// Become replaces the handler that messages go to, from the next one on. A
// restart goes back to Receive.
func (c *Context) Become(f ActorFunc) {
	c.needs("Become", f)
	x := c.ref().extras()
	if n := len(x.behaviours); n > 0 {
		x.behaviours[n-1] = f
	} else {
		x.behaviours = append(x.behaviours, f)
	}
}

// BecomeStacked is Become, but Unbecome comes back to the handler before.
func (c *Context) BecomeStacked(f ActorFunc) {
	c.needs("BecomeStacked", f)
	x := c.ref().extras()
	x.behaviours = append(x.behaviours, f)
}

func (c *Context) needs(method string, f ActorFunc) {
	c.must()
	if f == nil {
		panic("actor: " + method + " of " + c.ref().Path() + " needs a function, not nil")
	}
}

// Unbecome undoes the last BecomeStacked. Without any, it goes back to Receive.
func (c *Context) Unbecome() {
	c.must()
	if x := c.ref().extra; x != nil && len(x.behaviours) > 0 {
		x.behaviours[len(x.behaviours)-1] = nil
		x.behaviours = x.behaviours[:len(x.behaviours)-1]
	}
}

var (
	errNothingToStash = errors.New("there is no message in progress to stash")
	errStashedAlready = errors.New("the message is stashed already")
)

// Stash puts the message in progress aside, with its sender and its ask, until
// UnstashAll. A stash is bounded as the mailbox is: when it is full the error
// wraps ErrMailboxFull and the message is still this handler's.
func (c *Context) Stash() error {
	c.must()
	x := c.ref().extras()
	switch limit := c.ref().MailboxCap(); {
	case !c.call.user:
		return fmt.Errorf("actor %s: %w", c.ref().Path(), errNothingToStash)
	case c.call.did&didStash != 0:
		return fmt.Errorf("actor %s: %w", c.ref().Path(), errStashedAlready)
	case limit > 0 && len(x.stash) >= limit:
		return fmt.Errorf("actor %s: the stash holds %d messages: %w", c.ref().Path(), len(x.stash), ErrMailboxFull)
	}
	m := c.call.msg
	if c.call.own {
		m.Payload = &again{m.Payload}
	}
	m.Reply.pin() // the handler may still answer it
	x.stash = append(x.stash, m)
	c.call.did |= didStash
	return nil
}

// heldBack takes all messages that were taken from the mailbox and not handled,
// in order.
func (r *Ref) heldBack() []Message {
	x := r.extra
	if x == nil {
		return nil
	}
	all := x.stash
	x.stash = nil
	return append(all, r.leaveDelegate()...)
}

// UnstashAll puts the stashed messages in front of the mailbox, in the order
// in which they were stashed.
func (c *Context) UnstashAll() {
	c.must()
	if x := c.ref().extra; x != nil && len(x.stash) > 0 {
		stash := x.stash
		x.stash = nil
		if mutant.On(mutant.StashReversed) {
			slices.Reverse(stash)
		}
		c.ref().putBack(stash)
	}
}
