package actor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

func TestUnstashedMessagesGoToTheFrontInOrder(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		open := false
		r := spawn(t, sys, "a", recorderProps(func(ctx *actor.Context, msg any) bool {
			if msg == "open" {
				open = true
				ctx.UnstashAll()
				return true
			}
			if !open && msg != "?" {
				require.NoError(t, ctx.Stash())
				require.Error(t, ctx.Stash(), "twice")
				return true
			}
			return false
		}))
		for _, m := range []any{1, 2, 3, "open", 4, 5} {
			require.NoError(t, r.Tell(m))
		}
		require.Equal(t, []any{1, 2, 3, 4, 5}, ask(t, r, "?"))
	})
}

func TestAStashedAskStaysOpen(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		open := false
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "open" {
				open = true
				ctx.UnstashAll()
				return nil
			}
			if !open {
				return ctx.Stash()
			}
			ctx.Respond(msg)
			return nil
		}))
		answered := make(chan any, 1)
		require.NoError(t, r.Post(actor.Message{Payload: "early", Reply: sys.OnReply(func(v any, _ error) { answered <- v })}))
		require.NoError(t, r.Tell("open"))
		require.Equal(t, "late", ask(t, r, "late"))
		require.Equal(t, "early", <-answered)
	})
}

func TestTheStashGoesBackAtARestartAndToTheDeadAtAStop(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		life := 0
		var got []any
		p := actor.PropsOf(func() actor.Actor {
			life++
			return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
				switch {
				case msg == "fail":
					return errTest
				case life == 1:
					return ctx.Stash()
				}
				got = append(got, msg)
				return nil
			})
		})
		r := underParent(t, sys, nil, p)
		for _, m := range []any{1, 2, "fail", 3} {
			require.NoError(t, r.Tell(m))
		}
		exec.Run()
		require.Equal(t, []any{1, 2, 3}, got)

		life = 0
		r = underParent(t, sys, nil, p)
		_ = r.Tell("x")
		exec.Run()
		r.Stop()
		exec.Run()
		require.EqualValues(t, 1, sys.DeadLetters().Count())
	}
}

func TestAStashIsBoundedAsTheMailboxIs(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	p := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if err := ctx.Stash(); err != nil {
			ctx.Fail(err)
		}
		return nil
	})
	p.Mailbox = actor.Mailbox{Capacity: 2, Policy: actor.Fail}
	r := spawn(t, sys, "a", p)
	require.NoError(t, r.Tell(1))
	require.NoError(t, r.Tell(2))
	until(t, sys, func() bool { return r.MailboxLen() == 0 })
	_, err := r.Ask(context.Background(), 3)
	require.ErrorIs(t, err, actor.ErrMailboxFull)
}

func TestBecomeIsAStack(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	says := func(what string) actor.ActorFunc {
		return func(ctx *actor.Context, msg any) error {
			if f, ok := msg.(func(*actor.Context)); ok {
				f(ctx)
			}
			ctx.Respond(what)
			return nil
		}
	}
	r := spawn(t, sys, "a", actor.PropsFunc(says("base")))
	do := func(f func(ctx *actor.Context)) any { return ask(t, r, f) }
	nothing := func(*actor.Context) {}
	require.Equal(t, "base", do(func(ctx *actor.Context) { ctx.Unbecome() }))
	require.Equal(t, "base", do(func(ctx *actor.Context) { ctx.Become(says("one")) }))
	require.Equal(t, "one", do(func(ctx *actor.Context) { ctx.BecomeStacked(says("two")) }))
	require.Equal(t, "two", do(func(ctx *actor.Context) { ctx.Become(says("three")) }))
	require.Equal(t, "three", do(func(ctx *actor.Context) { ctx.Unbecome() }))
	require.Equal(t, "one", do(func(ctx *actor.Context) { ctx.Unbecome() }))
	require.Equal(t, "base", do(nothing))
}
