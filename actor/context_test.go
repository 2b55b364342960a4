package actor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

func TestAContextUsedOutsideItsCallPanics(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	var kept *actor.Context
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		kept = ctx
		return nil
	}))
	require.NoError(t, r.Tell("x"))
	exec.Run()
	require.Panics(t, func() { kept.Respond(1) })
	require.Panics(t, func() { _ = kept.Tell(r, 1) })
	require.Panics(t, func() { kept.Hold() })
	require.PanicsWithValue(t, "actor: a Context of /user/a was used outside the call that it belongs to", func() { _, _ = kept.Spawn("b", idle()) })
	require.Empty(t, kept.Children())
	require.False(t, kept.StopChild("b"))
	require.Same(t, sys.Root(), kept.Grandparent())
	require.Same(t, r, kept.Self())
	require.Same(t, sys, kept.System())
}

func TestNilIsNobody(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	calls := map[any]func(ctx *actor.Context) error{
		"forward": func(ctx *actor.Context) error { return ctx.Forward(ctx.Sender()) },
		"nil":     func(ctx *actor.Context) error { return ctx.ForwardAs(nil, 1) },
		"try":     func(ctx *actor.Context) error { return ctx.TryForward(nil) },
		"stop":    func(ctx *actor.Context) error { ctx.Stop(nil); ctx.Respond(nil); return nil },
		"become":  func(ctx *actor.Context) error { ctx.Become(nil); return nil },
		"stacked": func(ctx *actor.Context) error { ctx.BecomeStacked(nil); return nil },
	}
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error { return calls[msg](ctx) }))
	asked := func(msg any) error {
		_, err := r.Ask(context.Background(), msg)
		return err
	}
	require.ErrorContains(t, asked("forward"), "sent to nobody")
	require.ErrorContains(t, asked("nil"), "sent to nobody")
	require.EqualValues(t, 2, sys.DeadLetters().Count())
	require.ErrorIs(t, asked("try"), actor.ErrNotFound)
	require.NoError(t, asked("stop"))
	require.ErrorContains(t, asked("become"), "Become of /user/a needs a function")
	require.ErrorContains(t, asked("stacked"), "BecomeStacked of /user/a needs a function")
	exec.Run()
}
