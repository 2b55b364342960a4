package actor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// fragile counts and breaks as told, and logs its hooks.
type fragile struct {
	log   *[]string
	n     int
	start func() error
}

func (f *fragile) note(format string, a ...any) { *f.log = append(*f.log, fmt.Sprintf(format, a...)) }

func (f *fragile) PreStart(*actor.Context) error {
	f.note("start")
	if f.start != nil {
		return f.start()
	}
	return nil
}
func (f *fragile) PostStop(ctx *actor.Context) { f.note("stop %v", ctx.IsException() != nil) }
func (f *fragile) PreRestart(_ *actor.Context, reason error, msg any) {
	f.note("restart %v on %v", reason, msg)
}
func (f *fragile) Resumed(_ *actor.Context, reason error) { f.note("resumed %v", reason) }
func (f *fragile) Receive(ctx *actor.Context, msg any) error {
	switch msg {
	case "fail":
		return errTest
	case "panic":
		panic(errTest)
	case "?":
		ctx.Respond(f.n)
	default:
		f.n++
	}
	return nil
}

func fragileProps(log *[]string) actor.Props {
	return actor.PropsOf(func() actor.Actor { return &fragile{log: log} })
}

func always(d actor.Directive) *actor.Strategy {
	return &actor.Strategy{Decide: func(error) actor.Directive { return d }}
}

func TestResumeKeepsStateAndQueue(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var log []string
		r := underParent(t, sys, always(actor.Resume), fragileProps(&log))
		for _, m := range []string{"a", "fail", "b", "panic", "c"} {
			require.NoError(t, r.Tell(m))
		}
		require.Equal(t, 3, ask(t, r, "?"))
		require.Equal(t, []string{"start", "resumed " + errTest.Error(), "resumed panic: " + errTest.Error()}, log)
	})
}

func TestRestartDropsStateAndKeepsTheQueue(t *testing.T) {
	for seed := range uint64(50) {
		sys, _ := seededSystem(t, seed)
		var log []string
		r := underParent(t, sys, nil, fragileProps(&log))
		begin := sys.Now()
		for _, m := range []string{"a", "b", "fail", "c"} {
			require.NoError(t, r.Tell(m))
		}
		require.Equal(t, 1, ask(t, r, "?"))
		require.Equal(t, 50*time.Millisecond, sys.Now().Sub(begin), "the first backoff")
		require.Equal(t, []string{"start", "restart " + errTest.Error() + " on fail", "start"}, log)
	}
}

func TestStopDirective(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var log []string
		r := underParent(t, sys, always(actor.Stop), fragileProps(&log))
		probe := actortest.NewProbe(t, sys, "")
		probe.Watch(r)
		require.NoError(t, r.Tell("fail"))
		require.ErrorIs(t, probe.ExpectTerminated(r), errTest)
		awaitStop(t, r)
		require.Equal(t, []string{"start", "stop true"}, log)
	})
}

// Escalate makes the parent fail; what becomes of it becomes of the child.
func TestEscalate(t *testing.T) {
	for seed := range uint64(50) {
		for _, d := range []actor.Directive{actor.Resume, actor.Restart, actor.Stop} {
			sys, exec := seededSystem(t, seed)
			var seen []error
			top := idle()
			top.Supervisor = &actor.Strategy{Decide: func(err error) actor.Directive {
				seen = append(seen, err)
				return d
			}}
			var parentLog, log []string
			parent := fragileProps(&parentLog)
			parent.Supervisor = always(actor.Escalate)
			p, err := spawn(t, sys, "", top).Spawn("parent", parent)
			require.NoError(t, err)
			child, err := p.Spawn("child", fragileProps(&log))
			require.NoError(t, err)
			require.NoError(t, child.Tell("x"))
			require.NoError(t, child.Tell("fail"))
			require.NoError(t, child.Tell("y"))
			exec.Run()
			require.Len(t, seen, 1)
			require.ErrorIs(t, seen[0], errTest)
			var failed actor.Failed
			require.ErrorAs(t, seen[0], &failed)
			require.Same(t, child, failed.Child)
			require.Equal(t, "fail", failed.Message)
			switch d {
			case actor.Resume:
				require.Equal(t, 2, ask(t, child, "?"))
				require.Equal(t, []string{"start", "resumed " + errTest.Error()}, log)
				require.Len(t, parentLog, 2)
			case actor.Restart:
				require.True(t, child.Stopped())
				require.False(t, p.Stopped())
				require.Equal(t, "start", parentLog[2])
			case actor.Stop:
				require.True(t, child.Stopped())
				require.True(t, p.Stopped())
			}
		}
	}
}

func TestEscalateAtTheTopStopsOnlyTheOneThatFailed(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	top := idle()
	top.Supervisor = always(actor.Escalate)
	a, b := spawn(t, sys, "a", top), spawn(t, sys, "b", idle())
	child, err := a.Spawn("child", actor.PropsFunc(func(*actor.Context, any) error { return errTest }))
	require.NoError(t, err)
	require.NoError(t, child.Tell("x"))
	exec.Run()
	require.False(t, b.Stopped())
	require.False(t, sys.User().Stopped())
	require.False(t, a.Stopped(), "the default strategy restarts it")
	require.True(t, child.Stopped())
}

// Five restarts a minute with waits from 50 ms doubling to 1 s; the sixth
// failure within the minute stops.
func TestRestartBudgetAndBackoff(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	var starts []time.Duration
	begin := sys.Now()
	r := underParent(t, sys, nil, actor.PropsOf(func() actor.Actor {
		starts = append(starts, sys.Now().Sub(begin))
		return actor.ActorFunc(func(*actor.Context, any) error { return errTest })
	}))
	for range 6 {
		require.NoError(t, r.Tell("x"))
	}
	exec.Run()
	ms := time.Millisecond
	require.Equal(t, []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms}, starts)
	require.True(t, r.Stopped())

	starts = nil
	begin = sys.Now()
	patient := underParent(t, sys, &actor.Strategy{MaxRestarts: 2, Within: time.Second}, actor.PropsOf(func() actor.Actor {
		return actor.ActorFunc(func(*actor.Context, any) error { return errTest })
	}))
	for range 10 {
		require.NoError(t, patient.Tell("x"))
		exec.RunFor(600 * ms)
	}
	require.False(t, patient.Stopped(), "two a second are allowed")
}

func TestFailingPreStart(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		var log []string
		fails := 2
		p := actor.PropsOf(func() actor.Actor {
			return &fragile{log: &log, start: func() error {
				if fails--; fails >= 0 {
					return errTest
				}
				return nil
			}}
		})
		r := underParent(t, sys, always(actor.Resume), p)
		require.NoError(t, r.Tell("kept"))
		require.Equal(t, 1, ask(t, r, "?"))
		require.Equal(t, []string{"start", "start", "start"}, log)

		fails = 1000
		log = nil
		r = underParent(t, sys, nil, p)
		_, err := r.Ask(context.Background(), "x")
		require.ErrorIs(t, err, actor.ErrStopped)
		exec.Run()
		require.Len(t, log, 6, "the start and five restarts; no PostStop for what never started")

		stopped := underParent(t, sys, always(actor.Stop), actor.PropsOf(func() actor.Actor { panic("no instance") }))
		_, err = stopped.Ask(context.Background(), "x")
		require.ErrorIs(t, err, actor.ErrStopped)
	}
}

func TestAllForOne(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		parent := idle()
		parent.Supervisor = &actor.Strategy{AllForOne: true, Decide: func(err error) actor.Directive {
			var p *actor.PanicError
			if errors.As(err, &p) {
				return actor.Stop
			}
			return actor.Restart
		}}
		p := spawn(t, sys, "", parent)
		var logA, logB []string
		a, err := p.Spawn("a", fragileProps(&logA))
		require.NoError(t, err)
		b, err := p.Spawn("b", fragileProps(&logB))
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, b.Tell("x"))
		}
		exec.Run()
		require.NoError(t, a.Tell("fail"))
		exec.Run()
		require.Equal(t, 0, ask(t, b, "?"))
		require.Equal(t, []string{"start", "restart " + errTest.Error() + " on fail", "start"}, logA)
		require.Equal(t, []string{"start", "restart " + errTest.Error() + " on <nil>", "start"}, logB)
		require.NoError(t, a.Tell("panic"))
		exec.Run()
		require.True(t, a.Stopped() && b.Stopped())
	}
}

func TestRestartStopsTheChildrenFirst(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		var log []string
		r := underParent(t, sys, nil, actor.PropsOf(func() actor.Actor {
			return &breakable{lifelike{&log, "a", []string{"b"}}}
		}))
		exec.Run()
		require.NoError(t, r.Tell("x"))
		exec.Run()
		require.Equal(t, []string{"start a", "start b", "stop b", "start a", "start b"}, log)
	}
}

type breakable struct{ lifelike }

func (b *breakable) Receive(*actor.Context, any) error { return errTest }

func TestAFailureIsDecidedAlsoWhileTheParentBlocks(t *testing.T) {
	sys := realSystem(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	parent := actor.PropsFunc(func(*actor.Context, any) error {
		close(entered)
		<-leave
		return nil
	})
	p := spawn(t, sys, "parent", parent)
	require.NoError(t, p.Tell("block"))
	<-entered
	var log []string
	c, err := p.Spawn("c", fragileProps(&log))
	require.NoError(t, err)
	require.NoError(t, c.Tell("fail"))
	require.Equal(t, 0, ask(t, c, "?"))
	close(leave)
}

func TestAPanickingDecideStops(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	r := underParent(t, sys, &actor.Strategy{Decide: func(error) actor.Directive { panic("x") }},
		actor.PropsFunc(func(*actor.Context, any) error { return errTest }))
	require.NoError(t, r.Tell("x"))
	exec.Run()
	require.True(t, r.Stopped())
}

// Messages of TellSystem wait for the restarted instance; a Stop does not.
func TestWhileRestarting(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		r := underParent(t, sys, nil, recorderProps(func(_ *actor.Context, msg any) bool {
			if msg == "fail" {
				panic(errTest)
			}
			return false
		}))
		require.NoError(t, r.Tell("fail"))
		exec.RunFor(time.Millisecond)
		r.TellSystem("x")
		require.NoError(t, r.Tell(1))
		require.Equal(t, []any{"system x", 1}, ask(t, r, "?"))
		require.NoError(t, r.Tell("fail"))
		exec.RunFor(time.Millisecond)
		begin := sys.Now()
		r.Stop()
		awaitStop(t, r)
		require.Equal(t, begin, sys.Now())
	}
}

// rude panics in its hooks.
type rude struct{}

func (r *rude) Receive(ctx *actor.Context, msg any) error {
	if msg == "fail" {
		return errTest
	}
	ctx.Respond(msg)
	return nil
}
func (r *rude) ReceiveSystem(*actor.Context, any) error { panic(errTest) }
func (r *rude) PreRestart(*actor.Context, error, any)   { panic("PreRestart") }
func (r *rude) Resumed(*actor.Context, error)           { panic("Resumed") }
func (r *rude) PostStop(*actor.Context)                 { panic("PostStop") }

func TestPanicsInHooksHarmNothing(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, d := range []actor.Directive{actor.Resume, actor.Restart} {
			quick := always(d)
			quick.MinBackoff = -1
			r := underParent(t, sys, quick, actor.PropsOf(func() actor.Actor { return &rude{} }))
			require.NoError(t, r.Tell("fail"))
			require.Equal(t, 1, ask(t, r, 1))
			r.TellSystem("panic")
			require.Equal(t, 2, ask(t, r, 2))
			r.Stop()
			awaitStop(t, r)
		}
	})
}
