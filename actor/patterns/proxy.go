package patterns

import (
	"errors"

	"github.com/twinsrv/twinsrv/actor"
)

// Proxy is a message on its way to another actor, by way of the one that it is
// sent to: a ThrottlingRelay, or an actor of yours that calls Pass. The other
// gets Message with the sender and the ask that the Proxy came with, as if there
// had been nobody between.
type Proxy struct {
	// To is who gets Message. Nil means where the actor between sends by itself;
	// where it has nothing set, Message comes back to whoever sent the Proxy.
	To      actor.Target
	Message any
	// Key is what a KeyedThrottlingRelay goes by; "" asks the message.
	Key string
}

// Pass sends the Proxy in progress on. An error says that it was not taken; then
// it is still the handler's to answer.
func (p Proxy) Pass(ctx *actor.Context) error {
	if p.To != nil {
		return protect(func() error { return ctx.ForwardAs(p.To, p.Message) })
	}
	if m := ctx.Message(); m.Reply == nil {
		return answer(ctx.Self(), m, p.Message)
	}
	ctx.Respond(p.Message)
	return nil
}

var errNobody = errors.New("it has no target and came from nobody")

// passOn sends a message, or what is in a Proxy, to its target; without any,
// back to whoever sent it. In a turn.
func passOn(by *actor.Ref, m actor.Message, otherwise actor.Target) error {
	to := otherwise
	if p, ok := m.Payload.(Proxy); ok {
		m.Payload = p.Message
		if p.To != nil {
			to = p.To
		}
	}
	if to != nil {
		return post(to, m)
	}
	return answer(by, m, m.Payload)
}

// answer answers a message that an actor has taken, in a turn.
func answer(by *actor.Ref, m actor.Message, v any) error {
	switch {
	case m.Reply != nil:
		m.Reply.Complete(v)
		return nil
	case m.Sender != nil:
		return m.Sender.TellFrom(v, by)
	}
	return errNobody
}
