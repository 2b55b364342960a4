package actortest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

func start(t *testing.T, seed uint64) (*actor.System, *actortest.Seeded) {
	exec := actortest.NewSeeded(seed)
	t.Cleanup(exec.Close)
	return actor.NewSystem("test", actor.Config{Executor: exec}), exec
}

func spawn(t *testing.T, sys *actor.System, name string, f actor.ActorFunc) *actor.Ref {
	t.Helper()
	r, err := sys.Spawn(name, actor.PropsFunc(f))
	require.NoError(t, err)
	return r
}

// busy is a program with everything in it: senders, asks between actors,
// pipes, timers, failures, jobs that wait. It returns what it saw.
func busy(t *testing.T, seed uint64) (log []string, hash uint64, trace []string) {
	sys, exec := start(t, seed)
	note := func(format string, a ...any) {
		log = append(log, fmt.Sprintf("%v ", exec.Now().Unix())+fmt.Sprintf(format, a...))
	}
	sink := spawn(t, sys, "sink", func(ctx *actor.Context, msg any) error {
		note("%v from %v", msg, ctx.Sender())
		if msg == 13 {
			return fmt.Errorf("unlucky")
		}
		ctx.Respond(msg)
		return nil
	})
	for i := range 4 {
		r := spawn(t, sys, fmt.Sprint("a", i), func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case string:
				for n := range 5 {
					_ = ctx.Tell(sink, i*10+n)
				}
				ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) { return sink.Ask(c, i) })
				ctx.ScheduleOnce(time.Duration(sys.Uint64()%5)*time.Second, sink, "timer")
			default:
				note("%v got %v", ctx.Self(), m)
			}
			return nil
		})
		require.NoError(t, r.Tell("go"))
		sys.Go(func() {
			_ = sys.Sleep(context.Background(), time.Duration(i)*time.Second)
			note("job %d", i)
		})
	}
	exec.Run()
	require.NoError(t, sys.Stop(context.Background()))
	return log, exec.Hash(), exec.Trace()
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := range uint64(20) {
		log, hash, trace := busy(t, seed)
		again, hashAgain, traceAgain := busy(t, seed)
		require.Equal(t, log, again)
		require.Equal(t, hash, hashAgain)
		require.Equal(t, trace, traceAgain)
		require.NotEmpty(t, trace)
		hashes[hash] = true
	}
	require.Len(t, hashes, 20, "other seeds give other runs")
}

func TestSeedsReachBothOrders(t *testing.T) {
	firsts := map[any]int{}
	for seed := range uint64(40) {
		sys, exec := start(t, seed)
		var got []any
		sink := spawn(t, sys, "sink", func(_ *actor.Context, msg any) error { got = append(got, msg); return nil })
		for _, name := range []string{"a", "b"} {
			_ = spawn(t, sys, name, func(ctx *actor.Context, _ any) error { return ctx.Tell(sink, name) }).Tell("go")
		}
		exec.Run()
		firsts[got[0]]++
	}
	require.Greater(t, firsts["a"], 5)
	require.Greater(t, firsts["b"], 5)
}

func TestWaitsInsideHandlersParkACoroutine(t *testing.T) {
	for seed := range uint64(50) {
		sys, _ := start(t, seed)
		echo := spawn(t, sys, "echo", func(ctx *actor.Context, msg any) error {
			if err := sys.Sleep(context.Background(), time.Hour); err != nil {
				return err
			}
			ctx.Respond(msg)
			return nil
		})
		asker := spawn(t, sys, "asker", func(ctx *actor.Context, msg any) error {
			c, cancel := sys.WithTimeout(ctx.Context(), 2*time.Hour)
			defer cancel()
			v, err := echo.Ask(c, msg)
			if err != nil {
				return err
			}
			ctx.Respond(v)
			return nil
		})
		begin := sys.Now()
		c, cancel := sys.WithTimeout(context.Background(), 3*time.Hour)
		v, err := asker.Ask(c, "x")
		cancel()
		require.NoError(t, err)
		require.Equal(t, "x", v)
		require.Equal(t, time.Hour, sys.Now().Sub(begin))
	}
}

func TestRunLeavesPeriodicTimersAndTheFarFuture(t *testing.T) {
	sys, exec := start(t, 1)
	ticks, far := 0, false
	r := spawn(t, sys, "a", func(ctx *actor.Context, msg any) error {
		switch msg {
		case "go":
			ctx.ScheduleEvery(time.Minute, ctx.Self(), "tick")
			ctx.ScheduleOnce(10*time.Minute+30*time.Second, ctx.Self(), "once")
		case "tick":
			ticks++
		}
		return nil
	})
	require.NoError(t, r.Tell("go"))
	sys.After(48*time.Hour, func() { far = true })
	exec.Run()
	require.Equal(t, 10, ticks)
	require.False(t, far)
	exec.RunFor(30 * time.Second)
	require.Equal(t, 11, ticks)
	require.True(t, exec.RunUntil(func() bool { return ticks == 20 }))
	require.False(t, exec.RunUntil(func() bool { return far }))
	exec.RunFor(25 * time.Hour)
	require.True(t, far)
}

func TestStepTellsWhenNothingIsLeft(t *testing.T) {
	_, exec := start(t, 1)
	for exec.Step() {
	}
	before := exec.Now()
	exec.RunFor(time.Minute)
	require.Equal(t, time.Minute, exec.Now().Sub(before))
	require.Equal(t, 2030, before.Year())
}

func TestAWaitThatCannotEndIsAnError(t *testing.T) {
	sys, _ := start(t, 1)
	require.ErrorIs(t, sys.NewWaiter().Wait(context.Background()), actortest.ErrStuck)
	sys.Go(func() { _ = sys.NewWaiter().Wait(context.Background()) })
	require.ErrorIs(t, sys.Stop(context.Background()), actortest.ErrStuck)
}

func TestAForeignContextEndsAWait(t *testing.T) {
	sys, _ := start(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var got error
	sys.Go(func() { got = sys.NewWaiter().Wait(ctx) })
	sys.After(time.Second, cancel)
	require.ErrorIs(t, sys.NewWaiter().Wait(ctx), context.Canceled)
	require.NoError(t, sys.Stop(context.Background()))
	require.ErrorIs(t, got, context.Canceled)
}

// Close unwinds what waits; goleak sees that nothing is left.
func TestCloseEndsWaits(t *testing.T) {
	exec := actortest.NewSeeded(1)
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	var errs []error
	deferred := 0
	for range 5 {
		sys.Go(func() {
			defer func() { deferred++ }()
			w := sys.NewWaiter()
			errs = append(errs, w.Wait(context.Background()), w.Wait(context.Background()))
		})
	}
	r := spawn(t, sys, "a", func(*actor.Context, any) error { return sys.Sleep(context.Background(), time.Hour) })
	require.NoError(t, r.Tell("x"))
	exec.RunFor(time.Second)
	require.Empty(t, errs)
	exec.Close()
	exec.Close()
	require.Equal(t, 5, deferred)
	require.Len(t, errs, 10)
	for _, err := range errs {
		require.ErrorIs(t, err, actortest.ErrClosed)
	}
	require.ErrorIs(t, sys.NewWaiter().Wait(context.Background()), actortest.ErrClosed)
}

func TestAPanicInAJobComesOutWhereTheTestRuns(t *testing.T) {
	sys, exec := start(t, 1)
	sys.Go(func() { panic("job") })
	require.PanicsWithValue(t, "job", exec.Run)
	require.NoError(t, sys.Stop(context.Background()), "and the rest goes on")
}

func TestOneExecutorRunsSystemsOneAfterTheOther(t *testing.T) {
	exec := actortest.NewSeeded(1)
	defer exec.Close()
	for range 3 {
		sys := actor.NewSystem("test", actor.Config{Executor: exec})
		r := spawn(t, sys, "a", func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
		v, err := actor.Ask[int](context.Background(), r, 1)
		require.NoError(t, err)
		require.Equal(t, 1, v)
		require.NoError(t, sys.Stop(context.Background()))
	}
}

func TestRunFromInsideIsRefused(t *testing.T) {
	sys, exec := start(t, 1)
	sys.Go(func() { require.Panics(t, exec.Run) })
	exec.Run()
}

// Systems by the hundred start, run and end on their seeds, and leave nothing.
func TestManySeedsNothingLost(t *testing.T) {
	for seed := range uint64(300) {
		exec := actortest.NewSeeded(seed)
		sys := actor.NewSystem("test", actor.Config{Executor: exec})
		n := 0
		sink := spawn(t, sys, "sink", func(*actor.Context, any) error { n++; return nil })
		for range 8 {
			sys.Go(func() {
				for i := range 12 {
					_ = sink.Tell(i)
				}
			})
		}
		exec.Run()
		require.Equal(t, 96, n)
		require.NoError(t, sys.Stop(context.Background()))
		exec.Close()
	}
}
