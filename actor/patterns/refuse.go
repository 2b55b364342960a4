package patterns

import (
	"runtime/debug"

	"github.com/twinsrv/twinsrv/actor"
)

// refuse ends a message that is not served: it becomes a dead letter, and its
// ask fails with the reason.
func refuse(at *actor.Ref, m actor.Message, reason error) {
	if m.Reply != nil && !m.Reply.Done() {
		m.Reply.Fail(reason)
	}
	at.System().DeadLetters().Publish(actor.ZombieMsg{To: at.Path(), Message: m, Reason: reason})
}

// take has the handler in progress keep its message, to be answered by others.
func take(ctx *actor.Context) actor.Message {
	m := ctx.Message()
	ctx.Defer()
	return m
}

// post sends a message to a target that users may have written.
func post(to actor.Target, m actor.Message) error {
	return protect(func() error { return to.Post(m) })
}

// protect calls a user's function. Its panic becomes an error, so that it harms
// the message in hand and not the actor with all that waits there.
func protect(f func() error) (err error) {
	returned := false
	defer func() {
		if v := recover(); !returned && v != nil {
			err = &actor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	err = f()
	returned = true
	return err
}
