package entity

import (
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
)

// maxOutbox is how many messages of an entity may wait to be acknowledged
// before a turn that sends another one fails.
const maxOutbox = 10_000

// SendOnce sends a message to an entity so that it has its effect there exactly
// once, whatever crashes: the message becomes durable with this turn's changes,
// is delivered in the order of the sends to that receiver, again after a
// restart, and the receiver notes with its own change that it has it. A message
// that the receiver refuses (it rejects it, its handler fails, it may not be
// created by it, its pod was deleted) becomes a dead letter, and the next one
// goes on; one that it cannot take at the moment is sent again with growing
// pauses. Dead letters are not durable: when a process dies between the refusal
// and the dead letter, or the commit of the refusal has an unknown outcome, there
// is none.
//
// The turn fails when the pod or the message is unknown, or 10,000 messages wait
// already.
func (c *Context) SendOnce(pod, name string, msg any) {
	if !c.changes("send") {
		return
	}
	if err := CheckName(name); err != nil {
		c.fail(fmt.Errorf("send once to pod %s: %w", pod, err))
		return
	}
	what, body, err := c.a.host.Encode(pod, msg)
	if err != nil {
		c.fail(fmt.Errorf("send once to %s/%s: %w", pod, name, err))
		return
	}
	if most := c.a.host.MaxState(); len(body) > most {
		c.fail(fmt.Errorf("send once to %s/%s: %w: the message has %d bytes, at most %d are kept", pod, name, persist.ErrInvalid, len(body), most))
		return
	}
	if n := c.a.mail.sends().size() + len(c.parcels); n >= maxOutbox {
		c.fail(fmt.Errorf("send once to %s/%s: %w: %d messages of this entity wait to be delivered", pod, name, ErrBusy, n))
		return
	}
	p := &parcel{to: persist.Key{Pod: pod, Name: name}, what: what, body: body}
	c.parcels = append(c.parcels, p)
	a := c.a
	c.effects = append(c.effects, func(ctx *actor.Context, _ uint64) { a.dispatchParcel(ctx, p) })
}

// once marks a message of SendOnce. A receiver takes what lies behind the
// sender's last message that it took, and not before all those that the sender
// still has in front of it.
type once struct {
	from   persist.Key
	life   uint64 // the sender's
	number uint64
	behind uint64 // the number before it on the same way; 0 if all are acknowledged
}

// errEarly refuses a message of SendOnce whose predecessor has not come.
var errEarly = errors.New("a message before it has not arrived yet")

// Later is implemented by errors that refuse a message for the time being: the
// same message may be taken later.
type Later interface {
	Later() bool
}

// later reports whether a message that met an error may be taken another time.
// All other errors are the receiver's last word on it.
func later(err error) bool {
	for _, target := range []error{
		errEarly, ErrQuarantined, ErrBusy, persist.ErrUnavailable, persist.ErrUnknown, persist.ErrConflict,
		actor.ErrMailboxFull, actor.ErrStopped, actor.ErrTimeout,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	l := Later(nil)
	return errors.As(err, &l) && l.Later()
}
