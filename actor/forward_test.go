package actor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// promptly is a target that answers in the call that brings the message, and
// keeps what it answered with.
type promptly struct {
	sys  *actor.System
	got  []actor.Message
	full bool
}

func (p *promptly) System() *actor.System { return p.sys }

func (p *promptly) Post(m actor.Message) error {
	if p.full {
		return actor.ErrMailboxFull
	}
	p.got = append(p.got, m)
	if m.Reply != nil {
		m.Reply.Complete(m.Payload)
	}
	return nil
}

// TestForwardAsPassesOnAnotherPayload: sender and ask are the message's own; what
// is not taken is still the handler's, as it came.
func TestForwardAsPassesOnAnotherPayload(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		last := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
		held := idle()
		held.Held, held.Mailbox = true, actor.Mailbox{Capacity: 1, Policy: actor.Fail}
		stuffed := spawn(t, sys, "", held)
		require.NoError(t, stuffed.Tell("x"))
		targets := map[string]actor.Target{"actor": last, "target": &promptly{sys: sys}, "full actor": stuffed, "full target": &promptly{sys: sys, full: true}}
		between := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if err := ctx.ForwardAs(targets[msg.(string)], "as "+msg.(string)); err != nil {
				ctx.Respond([]any{err, ctx.Message().Payload})
				return nil
			}
			if ctx.Sender() == nil {
				ctx.Respond("a second answer, to nobody")
			}
			return nil
		}))
		for _, to := range []string{"actor", "target"} {
			before := sys.DeadLetters().Count()
			require.Equal(t, "as "+to, ask(t, between, to))
			until(t, sys, func() bool { return sys.DeadLetters().Count() == before+1 })
		}
		for _, to := range []string{"full actor", "full target"} {
			v := ask(t, between, to).([]any)
			require.ErrorIs(t, v[0].(error), actor.ErrMailboxFull)
			require.Equal(t, to, v[1])
		}
		probe := actortest.NewProbe(t, sys, "")
		probe.Send(between, "actor")
		m := probe.NextMessage()
		require.Same(t, last, m.Sender, "it has answered whoever sent the message")
		require.Equal(t, "as actor", m.Payload)
	})
}

// A target that is no actor may keep the promise of an ask that it has answered:
// no other ask has it then.
func TestForwardAsToWhoKeepsThePromise(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		to := &promptly{sys: sys}
		between := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error { return ctx.ForwardAs(to, msg) }))
		slow := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			for _, m := range to.got {
				m.Reply.Complete("stale")
			}
			ctx.Respond(msg)
			return nil
		}))
		for i := range 20 {
			v, err := between.Ask(context.Background(), i)
			require.NoError(t, err)
			require.Equal(t, i, v)
			require.Equal(t, "fresh", ask(t, slow, "fresh"))
		}
	})
}
