package actor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

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
