package actor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

var errTest = errors.New("broken on purpose")

func resuming() *actor.Strategy {
	return &actor.Strategy{Decide: func(error) actor.Directive { return actor.Resume }}
}

// underParent spawns an actor whose failures s decides about.
func underParent(t *testing.T, sys *actor.System, s *actor.Strategy, p actor.Props) *actor.Ref {
	t.Helper()
	parent := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	parent.Supervisor = s
	r, err := spawn(t, sys, "", parent).Spawn("child", p)
	require.NoError(t, err)
	return r
}

// The clock of a seeded system stands still while there is work, so an answer
// "at once" is one at the same time.
func TestAskOfAFailingHandlerIsAnsweredAtOnce(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := underParent(t, sys, resuming(), actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch msg {
			case "error":
				return errTest
			case "panic":
				panic(errTest)
			case "panic after defer":
				ctx.Defer()
				panic("x")
			case "fail":
				ctx.Fail(errTest)
			case "answer, then error":
				ctx.Respond(1)
				return errTest
			case "nothing":
			}
			return nil
		}))
		start := sys.Now()
		for _, msg := range []string{"error", "fail"} {
			_, err := r.Ask(context.Background(), msg)
			require.Same(t, errTest, err, "the error itself")
		}
		for range 100 {
			_, err := r.Ask(context.Background(), "panic")
			var p *actor.PanicError
			require.ErrorAs(t, err, &p)
			require.ErrorIs(t, err, errTest)
			require.Contains(t, string(p.Stack), "ask_test.go")
		}
		_, err := r.Ask(context.Background(), "panic after defer")
		require.ErrorContains(t, err, "panic: x")
		_, err = r.Ask(context.Background(), "nothing")
		require.ErrorIs(t, err, actor.ErrNoReply)
		require.ErrorContains(t, err, r.Path())
		require.Equal(t, 1, ask(t, r, "answer, then error"))
		require.Less(t, sys.Now().Sub(start), 5*time.Second)
		require.False(t, r.Stopped())
	})
}

func TestAHandlerThatEndsItsGoroutineIsAFailure(t *testing.T) {
	sys := realSystem(t)
	r := underParent(t, sys, resuming(), actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if msg == "exit" {
			runtime.Goexit()
		}
		ctx.Respond(msg)
		return nil
	}))
	for range 20 {
		_, err := r.Ask(context.Background(), "exit")
		require.ErrorContains(t, err, "Goexit")
		require.Equal(t, "still there", ask(t, r, "still there"))
	}
	last := spawn(t, sys, "", actor.PropsOf(func() actor.Actor { return &exitsInPostStop{} }))
	last.Stop()
	awaitStop(t, last)
}

type exitsInPostStop struct{}

func (*exitsInPostStop) Receive(*actor.Context, any) error { return nil }
func (*exitsInPostStop) PostStop(*actor.Context)           { runtime.Goexit() }

func TestAskEndsWithItsContext(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var late *actor.Promise
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "answer" {
				if late.Complete("too late") {
					return errTest
				}
				ctx.Respond(late.Done())
				return nil
			}
			late = ctx.Defer()
			return nil
		}))
		ctx, cancel := sys.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := r.Ask(ctx, "never")
		require.ErrorIs(t, err, actor.ErrTimeout)
		require.ErrorContains(t, err, r.Path())
		_, err = r.Ask(ctx, "not even sent")
		require.ErrorIs(t, err, actor.ErrTimeout)
		require.ErrorContains(t, err, "not sent")

		var letters []actor.ZombieMsg
		defer sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { letters = append(letters, z) })()
		require.Equal(t, true, ask(t, r, "answer"))
		require.Len(t, letters, 1)
		require.Equal(t, "too late", letters[0].Message.Payload)

		cancelled, stop := context.WithCancel(context.Background())
		sys.After(10*time.Millisecond, stop)
		_, err = r.Ask(cancelled, "never")
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, actor.ErrTimeout)
	})
}

func TestAskWithoutADeadlineUsesAskTimeout(t *testing.T) {
	exec := actortest.NewSeeded(1)
	defer exec.Close()
	sys := actor.NewSystem("test", actor.Config{Executor: exec, AskTimeout: 3 * time.Second})
	defer stopSystem(t, sys)
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, _ any) error { ctx.Defer(); return nil }))
	start := sys.Now()
	_, err := r.Ask(context.Background(), "never")
	require.ErrorIs(t, err, actor.ErrTimeout)
	require.Equal(t, 3*time.Second, sys.Now().Sub(start))
}

func TestForwardKeepsSenderAndAsk(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		last := spawn(t, sys, "last", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			ctx.Respond(msg)
			return nil
		}))
		full := actor.PropsFunc(func(*actor.Context, any) error { return nil })
		full.Held, full.Mailbox = true, actor.Mailbox{Capacity: 1, Policy: actor.Fail}
		stuffed := spawn(t, sys, "full", full)
		require.NoError(t, stuffed.Tell("x"))
		dead := spawn(t, sys, "dead", full)
		dead.Stop()
		awaitStop(t, dead)
		first := spawn(t, sys, "first", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch msg {
			case "full":
				err := ctx.Forward(stuffed)
				ctx.Respond(err)
			case "dead":
				return ctx.Forward(dead)
			default:
				return ctx.Forward(last)
			}
			return nil
		}))
		require.Equal(t, "hello", ask(t, first, "hello"))
		require.ErrorIs(t, ask(t, first, "full").(error), actor.ErrMailboxFull)
		_, err := first.Ask(context.Background(), "dead")
		require.ErrorIs(t, err, actor.ErrStopped)
		probe := actortest.NewProbe(t, sys, "")
		probe.Send(first, "told")
		require.Equal(t, last, probe.NextMessage().Sender)
	})
}

func TestTypedAskNamesBothTypes(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
	n, err := actor.Ask[int](context.Background(), r, 7)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	_, err = actor.Ask[string](context.Background(), r, 7)
	require.ErrorContains(t, err, "int")
	require.ErrorContains(t, err, "string")
	x, err := actor.Ask[error](context.Background(), r, nil)
	require.NoError(t, err)
	require.NoError(t, x)
	// A target that is no Ref.
	n, err = actor.Ask[int](context.Background(), target{r}, 8)
	require.NoError(t, err)
	require.Equal(t, 8, n)
}

type target struct{ *actor.Ref }

// A reply cell that a late responder still reaches must not serve another ask.
func TestLateAnswersNeverReachAnotherAsk(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var kept []*actor.Promise
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			for _, p := range kept {
				p.Complete("stale")
			}
			switch msg {
			case "defer":
				kept = append(kept, ctx.Defer())
				return nil
			case "expose":
				kept = append(kept, ctx.Message().Reply)
			}
			ctx.Respond(msg)
			return nil
		}))
		ctx, cancel := sys.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err := r.Ask(ctx, "defer")
		require.ErrorIs(t, err, actor.ErrTimeout)
		for range 20 {
			require.Equal(t, "expose", ask(t, r, "expose"))
			require.Equal(t, "plain", ask(t, r, "plain"))
		}
	})
}

// The same for one that OnAbsent kept beside handing the message on.
func TestAReplyThatOnAbsentKeepsIsNotReused(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var kept []*actor.Promise
		echo := actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
		other := spawn(t, sys, "other", echo)
		p := idle()
		p.OnAbsent = func(_ string, m actor.Message) bool {
			kept = append(kept, m.Reply)
			return other.Post(m) == nil
		}
		x, err := spawn(t, sys, "pod", p).Spawn("x", echo)
		require.NoError(t, err)
		x.Stop()
		awaitStop(t, x)
		slow := spawn(t, sys, "slow", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			for _, p := range kept {
				p.Complete("stale")
			}
			ctx.Respond(msg)
			return nil
		}))
		for range 20 {
			require.Equal(t, "claimed", ask(t, x, "claimed"))
			require.Equal(t, "fresh", ask(t, slow, "fresh"))
		}
	})
}

func TestOnReplyIsCalledOnce(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	var got []any
	p := sys.OnReply(func(v any, err error) { got = append(got, v, err) })
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
	require.NoError(t, r.Post(actor.Message{Payload: 1, Reply: p}))
	exec.Run()
	require.Equal(t, []any{1, nil}, got)
	require.False(t, p.Fail(errTest))
	require.Len(t, got, 2)
	require.EqualValues(t, 1, sys.DeadLetters().Count())
}

func TestRespondWithoutAnAskGoesToTheSenderOrTheDead(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
	probe := actortest.NewProbe(t, sys, "")
	probe.Send(r, "x")
	probe.Expect("x")
	require.NoError(t, r.Tell("nobody"))
	exec.Run()
	require.EqualValues(t, 1, sys.DeadLetters().Count())
}
