package actor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

var errOther = errors.New("another kind of failure")

func TestByErrorDecidesByTheFirstRule(t *testing.T) {
	choose := actor.ByError(actor.Escalate,
		actor.When(errTest, actor.Resume),
		actor.WhenType[*actor.PanicError](actor.Stop),
		actor.Rule{
			Match:    func(err error) bool { return err.Error() == "late" },
			Decision: actor.Decision{Directive: actor.Restart, Delay: time.Hour},
		})
	for err, want := range map[error]actor.Decision{
		errTest:                                  {Directive: actor.Resume},
		fmt.Errorf("wrapped: %w", errTest):       {Directive: actor.Resume},
		error(&actor.PanicError{Value: "x"}):     {Directive: actor.Stop},
		error(&actor.PanicError{Value: errTest}): {Directive: actor.Resume},
		errors.New("late"):                       {Directive: actor.Restart, Delay: time.Hour},
		errOther:                                 {Directive: actor.Escalate},
	} {
		require.Equal(t, want, choose(actor.Failure{Err: err}), "%v", err)
	}
}

func TestADelayComesBeforeWhatWasDecided(t *testing.T) {
	for _, d := range []actor.Directive{actor.Restart, actor.Resume, actor.Stop} {
		for seed := range uint64(20) {
			sys, exec := seededSystem(t, seed)
			var log []string
			var seen []actor.Failure
			s := &actor.Strategy{Choose: func(f actor.Failure) actor.Decision {
				seen = append(seen, f)
				return actor.Decision{Directive: d, Delay: time.Minute}
			}}
			r := underParent(t, sys, s, fragileProps(&log))
			for _, m := range []string{"a", "fail", "b"} {
				require.NoError(t, r.Tell(m))
			}
			exec.RunFor(59 * time.Second)
			require.Equal(t, 1, r.MailboxLen(), "it waits")
			require.False(t, r.Stopped())
			exec.RunFor(2 * time.Second)
			require.Zero(t, r.MailboxLen())
			switch d {
			case actor.Restart:
				require.Equal(t, 1, ask(t, r, "?"))
			case actor.Resume:
				require.Equal(t, 2, ask(t, r, "?"))
			default:
				require.True(t, r.Stopped())
				continue
			}
			require.NoError(t, r.Tell("panic"))
			exec.Run()
			require.Len(t, seen, 2)
			require.Same(t, r, seen[0].Child)
			require.Equal(t, "fail", seen[0].Message)
			require.Zero(t, seen[0].Restarts)
			if d == actor.Restart {
				require.Zero(t, seen[1].Restarts, "a minute has passed")
			}
			require.ErrorContains(t, seen[1].Err, "panic")
		}
	}
}

func TestAStopDuringADelayWins(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	var log []string
	s := &actor.Strategy{Choose: func(actor.Failure) actor.Decision {
		return actor.Decision{Directive: actor.Resume, Delay: time.Hour}
	}}
	r := underParent(t, sys, s, fragileProps(&log))
	require.NoError(t, r.Tell("fail"))
	exec.RunFor(time.Second)
	r.Stop()
	exec.RunFor(2 * time.Hour)
	require.Equal(t, []string{"start", "stop false"}, log)
}

// siblings spawns the actors first and second, which write into log and other,
// below one of props p, and that below one of props top.
func siblings(t *testing.T, sys *actor.System, top, p actor.Props, log, other *[]string) (parent, first, second *actor.Ref) {
	t.Helper()
	parent, err := spawn(t, sys, "top", top).Spawn("parent", p)
	require.NoError(t, err)
	first, err = parent.Spawn("first", fragileProps(log))
	require.NoError(t, err)
	second, err = parent.Spawn("second", fragileProps(other))
	require.NoError(t, err)
	return parent, first, second
}

// Who has failed and is to stop, or whose failure is in the hands of those above,
// is not brought back by a sibling's restart; who is to be resumed is restarted.
func TestASiblingsRestartLeavesWhatWasDecidedBefore(t *testing.T) {
	for _, first := range []actor.Decision{
		{Directive: actor.Stop, Delay: time.Minute},
		{Directive: actor.Escalate, Delay: time.Minute},
		{Directive: actor.Escalate},
		{Directive: actor.Resume, Delay: time.Minute},
	} {
		for seed := range uint64(20) {
			sys, exec := seededSystem(t, seed)
			top := idle()
			top.Supervisor = &actor.Strategy{Choose: func(actor.Failure) actor.Decision {
				return actor.Decision{Directive: actor.Stop, Delay: time.Minute}
			}}
			p := idle()
			p.Supervisor = &actor.Strategy{AllForOne: true, Choose: func(f actor.Failure) actor.Decision {
				if f.Child.Name() == "first" {
					return first
				}
				return actor.Decision{Delay: time.Second}
			}}
			var log, other []string
			parent, child, sibling := siblings(t, sys, top, p, &log, &other)
			require.NoError(t, child.Tell("fail"))
			exec.RunFor(10 * time.Second)
			require.NoError(t, sibling.Tell("fail"))
			exec.RunFor(10 * time.Second)
			require.Contains(t, other, "restart "+errTest.Error()+" on fail")
			exec.RunFor(time.Hour)
			if first.Directive == actor.Resume {
				require.Equal(t, []string{"start", "restart " + errTest.Error() + " on fail", "start"}, log)
				continue
			}
			require.Len(t, log, 2, "it was not restarted")
			require.True(t, child.Stopped())
			require.Equal(t, first.Directive == actor.Escalate, parent.Stopped())
		}
	}
}

// A failure that was escalated before a sibling's restart is the parent's, and
// with it the child's.
func TestAnEscalatedFailureOutlastsASiblingsRestart(t *testing.T) {
	for seed := range uint64(20) {
		sys, exec := seededSystem(t, seed)
		leave := sys.NewWaiter()
		p := actor.PropsFunc(func(*actor.Context, any) error { return leave.Wait(context.Background()) })
		p.Supervisor = &actor.Strategy{AllForOne: true, MinBackoff: -1, Choose: func(f actor.Failure) actor.Decision {
			if f.Child.Name() == "first" {
				return actor.Decision{Directive: actor.Escalate}
			}
			return actor.Decision{Directive: actor.Restart}
		}}
		top := idle()
		top.Supervisor = always(actor.Resume)
		var log, other []string
		parent, child, sibling := siblings(t, sys, top, p, &log, &other)
		require.NoError(t, parent.Tell("wait"))
		exec.RunFor(time.Second)
		require.NoError(t, child.Tell("a"))
		require.NoError(t, child.Tell("fail"))
		exec.RunFor(time.Second)
		require.NoError(t, sibling.Tell("fail"))
		exec.RunFor(time.Second)
		leave.Wake()
		exec.RunFor(time.Second)
		require.Equal(t, 1, ask(t, child, "?"), "its parent was resumed, and so was it")
		require.Equal(t, []string{"start", "resumed " + errTest.Error()}, log)
	}
}

func TestAStrategyThatPanicsStopsTheChild(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	var log []string
	r := underParent(t, sys, &actor.Strategy{Choose: func(actor.Failure) actor.Decision { panic("x") }}, fragileProps(&log))
	require.NoError(t, r.Tell("fail"))
	exec.Run()
	require.True(t, r.Stopped())
}

// guardian decides about its children's escalated failures itself.
type guardian struct {
	decide func(ctx *actor.Context, f actor.Failed) (actor.Directive, error)
	n      int
}

func (g *guardian) Receive(ctx *actor.Context, msg any) error {
	if msg == "?" {
		ctx.Respond(g.n)
	}
	return nil
}

func (g *guardian) ReceiveFailed(ctx *actor.Context, f actor.Failed) (actor.Directive, error) {
	g.n++
	return g.decide(ctx, f)
}

func TestEscalateDeliversFailedToTheParent(t *testing.T) {
	for seed := range uint64(30) {
		var got actor.Failed
		run := func(d actor.Directive, err error) (sys *actor.System, parent, child *actor.Ref, log *[]string, step func()) {
			sys, exec := seededSystem(t, seed)
			p := actor.PropsOf(func() actor.Actor {
				return &guardian{decide: func(_ *actor.Context, f actor.Failed) (actor.Directive, error) {
					got = f
					return d, err
				}}
			})
			p.Supervisor = always(actor.Escalate)
			parent = spawn(t, sys, "parent", p)
			log = new([]string)
			child, spawnErr := parent.Spawn("child", fragileProps(log))
			require.NoError(t, spawnErr)
			require.NoError(t, child.Tell("a"))
			require.NoError(t, child.Tell("fail"))
			exec.Run()
			return sys, parent, child, log, exec.Run
		}
		_, parent, child, _, _ := run(actor.Resume, nil)
		require.Same(t, child, got.Child)
		require.Equal(t, "fail", got.Message)
		require.ErrorIs(t, got, errTest)
		require.Equal(t, 1, ask(t, child, "?"))
		require.Equal(t, 1, ask(t, parent, "?"))

		_, parent, child, log, step := run(actor.Restart, nil)
		require.Equal(t, 0, ask(t, child, "?"))
		require.Equal(t, 1, ask(t, parent, "?"))
		for range 5 { // the budget is the child's
			require.NoError(t, child.Tell("fail"))
			step()
		}
		require.True(t, child.Stopped())
		require.Equal(t, "stop true", (*log)[len(*log)-1])

		_, parent, child, _, _ = run(actor.Stop, nil)
		require.True(t, child.Stopped())
		require.Equal(t, 1, ask(t, parent, "?"))

		for _, err := range []error{nil, errOther} {
			_, parent, child, _, _ = run(actor.Escalate, err)
			require.Zero(t, ask(t, parent, "?"), "the failure was its own: it was restarted")
			require.True(t, child.Stopped())
		}
	}
}

// What a parent decided is over: when it fails itself later and is resumed, that
// touches no child that it had decided about before.
func TestADecidedEscalationIsForgotten(t *testing.T) {
	for seed := range uint64(20) {
		sys, exec := seededSystem(t, seed)
		top := idle()
		top.Supervisor = always(actor.Resume)
		failures := 0
		p := actor.PropsOf(func() actor.Actor {
			return &failingGuardian{guardian{decide: func(*actor.Context, actor.Failed) (actor.Directive, error) {
				return actor.Resume, nil
			}}}
		})
		p.Supervisor = &actor.Strategy{Choose: func(actor.Failure) actor.Decision {
			if failures++; failures == 1 {
				return actor.Decision{Directive: actor.Escalate}
			}
			return actor.Decision{Directive: actor.Resume, Delay: time.Hour}
		}}
		parent, err := spawn(t, sys, "top", top).Spawn("parent", p)
		require.NoError(t, err)
		var log []string
		child, err := parent.Spawn("child", fragileProps(&log))
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, child.Tell("fail"))
			exec.RunFor(time.Second)
		}
		require.NoError(t, child.Tell("waits"))
		require.NoError(t, parent.Tell("fail"))
		exec.RunFor(time.Minute)
		require.Equal(t, 1, child.MailboxLen())
		exec.RunFor(time.Hour)
		require.Equal(t, 1, ask(t, child, "?"))
	}
}

type failingGuardian struct{ guardian }

func (g *failingGuardian) Receive(ctx *actor.Context, msg any) error {
	if msg == "fail" {
		return errTest
	}
	return g.guardian.Receive(ctx, msg)
}

func TestRestartsAreCountedInBoundedMemory(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	var log []string
	var counts []int
	s := &actor.Strategy{MaxRestarts: 1000, MinBackoff: -1, Within: time.Hour, Choose: func(f actor.Failure) actor.Decision {
		counts = append(counts, f.Restarts)
		return actor.Decision{}
	}}
	r := underParent(t, sys, s, fragileProps(&log))
	for range 1000 {
		require.NoError(t, r.Tell("fail"))
	}
	exec.RunFor(time.Second)
	require.False(t, r.Stopped())
	for i, n := range counts {
		require.Equal(t, i, n)
	}
	require.NoError(t, r.Tell("fail"))
	exec.RunFor(time.Second)
	require.True(t, r.Stopped(), "one too many")
}
