package actor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
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

func TestTimersOnTheVirtualClock(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		begin := sys.Now()
		var at []time.Duration
		var timers []actor.Timer
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch msg {
			case "go":
				timers = append(timers,
					ctx.ScheduleEvery(time.Minute, ctx.Self(), "tick"),
					ctx.ScheduleOnce(90*time.Second, ctx.Self(), "once"),
					ctx.ScheduleOnce(100*time.Second, ctx.Self(), "never"))
			case "tick", "once":
				require.Same(t, ctx.Self(), ctx.Sender())
				at = append(at, ctx.Now().Sub(begin))
			case "never":
				t.Error("a stopped timer fired")
			}
			return nil
		}))
		require.NoError(t, r.Tell("go"))
		exec.RunFor(95 * time.Second)
		require.Len(t, timers, 3)
		require.True(t, timers[2].Stop())
		require.False(t, timers[2].Stop())
		require.False(t, timers[1].Stop(), "it was delivered")
		exec.RunFor(100 * time.Second)
		require.Equal(t, []time.Duration{60 * time.Second, 90 * time.Second, 120 * time.Second, 180 * time.Second}, at)
		r.Stop()
		exec.RunFor(time.Hour)
		require.Len(t, at, 4)
		require.Zero(t, sys.DeadLetters().Count())
	}
}

func TestATimerStoppedAfterItFiredIsNotDelivered(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		var got []any
		var tm actor.Timer
		r := spawn(t, sys, "a", actor.Props{New: func() actor.Actor {
			return &holder{f: func(ctx *actor.Context, msg any) error {
				if msg == "go" {
					tm = ctx.ScheduleOnce(time.Second, ctx.Self(), "tick")
					ctx.ScheduleEvery(time.Second, ctx.Self(), "every")
					ctx.Hold()
					return nil
				}
				got = append(got, msg)
				return nil
			}}
		}})
		require.NoError(t, r.Tell("go"))
		exec.RunFor(10500 * time.Millisecond)
		require.Equal(t, 2, r.MailboxLen(), "ticks that nobody took do not pile up")
		require.True(t, tm.Stop())
		r.TellSystem("resume")
		exec.RunFor(0)
		require.Equal(t, []any{"every"}, got)
	}
}

func TestPipeTo(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		other := spawn(t, sys, "other", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "fail" {
				return errTest
			}
			ctx.Respond(msg)
			return nil
		}))
		probe := actortest.NewProbe(t, sys, "probe")
		self := probe.Ref()
		probe.Do(func(ctx *actor.Context) {
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) { return other.Ask(c, "asked") })
		})
		m := probe.NextMessage()
		require.Equal(t, "asked", m.Payload)
		require.Same(t, self, m.Sender)
		probe.Do(func(ctx *actor.Context) {
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) { return other.Ask(c, "fail") })
		})
		failed := probe.Next().(actor.PipeFailed)
		require.ErrorIs(t, failed, errTest)
		probe.Do(func(ctx *actor.Context) {
			ctx.PipeTo(ctx.Self(), func(context.Context) (any, error) { panic(errTest) })
		})
		failed = probe.Next().(actor.PipeFailed)
		var p *actor.PanicError
		require.ErrorAs(t, failed, &p)
	})
}

func TestPipedWorkIsCancelledWhenTheActorStops(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		ended := make(chan error, 1)
		started := sys.NewWaiter()
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) {
				derived, cancel := context.WithCancel(c)
				defer cancel()
				started.Wake()
				err := sys.Sleep(derived, time.Hour)
				ended <- err
				return nil, err
			})
			return nil
		}))
		require.NoError(t, r.Tell("x"))
		require.NoError(t, started.Wait(context.Background()))
		r.Stop()
		awaitStop(t, r)
		until(t, sys, func() bool { return len(ended) == 1 })
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

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
	require.Same(t, r, kept.Self())
	require.Same(t, sys, kept.System())
}

func TestTimersEndWithTheirOwnersLifeAndAtARestart(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		ticks := 0
		other := spawn(t, sys, "other", actor.PropsFunc(func(*actor.Context, any) error { ticks++; return nil }))
		r := underParent(t, sys, nil, actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "fail" {
				return errTest
			}
			ctx.ScheduleEvery(time.Second, other, "tick")
			return nil
		}))
		require.NoError(t, r.Tell("go"))
		exec.RunFor(3500 * time.Millisecond)
		require.Equal(t, 3, ticks)
		require.NoError(t, r.Tell("fail"))
		exec.RunFor(10 * time.Second)
		require.Equal(t, 3, ticks)
		require.NoError(t, r.Tell("go"))
		exec.RunFor(3500 * time.Millisecond)
		require.Equal(t, 6, ticks)
		r.Stop()
		exec.RunFor(10 * time.Second)
		require.Equal(t, 6, ticks)
	}
}
