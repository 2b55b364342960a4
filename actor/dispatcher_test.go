package actor_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

// Twice as many handlers as workers block, and then some: the others go on.
func TestBlockedHandlersDoNotStopOthers(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{Workers: 2})
	defer stopSystem(t, sys)
	leave := make(chan struct{})
	blocker := actor.PropsFunc(func(*actor.Context, any) error {
		<-leave
		return nil
	})
	echo := actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
	other := spawn(t, sys, "other", echo)
	for range 12 {
		require.NoError(t, spawn(t, sys, "", blocker).Tell("x"))
	}
	for i := range 10 {
		require.Equal(t, i, ask(t, other, i))
	}
	for i := range 100 {
		require.Equal(t, i, ask(t, spawn(t, sys, "", echo), i))
	}
	close(leave)
}

// Each of thousands of handlers that block begins, though all before it do.
func TestThousandsOfBlockedHandlersDoNotKeepOthersWaiting(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{Workers: 2})
	defer stopSystem(t, sys)
	const handlers = 1500
	begun, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	var n atomic.Int32
	blocker := actor.PropsFunc(func(*actor.Context, any) error {
		if n.Add(1) == handlers {
			close(begun)
		}
		<-leave
		return nil
	})
	for range handlers {
		require.NoError(t, spawn(t, sys, "", blocker).Tell("x"))
	}
	awaitClosed(t, begun)
}

// What a handler woke last before it blocked waits in the worker's next slot;
// others must get it out of there.
func TestWhatABlockedHandlerWokeIsRun(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{Workers: 2})
	defer stopSystem(t, sys)
	told := make(chan struct{})
	other := spawn(t, sys, "other", actor.PropsFunc(func(*actor.Context, any) error {
		close(told)
		return nil
	}))
	r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		_ = ctx.Tell(other, "x")
		<-told
		return nil
	}))
	require.NoError(t, r.Tell("go"))
	awaitClosed(t, told)
}

func awaitClosed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(waitLong):
		require.Fail(t, "it did not happen")
	}
}

func TestAddedWorkersEndAgain(t *testing.T) {
	before := runtime.NumGoroutine()
	sys := actor.NewSystem("test", actor.Config{Workers: 2})
	defer stopSystem(t, sys)
	leave := make(chan struct{})
	var entered atomic.Int32
	blocker := actor.PropsFunc(func(*actor.Context, any) error {
		entered.Add(1)
		<-leave
		return nil
	})
	var blocked []*actor.Ref
	for range 20 {
		r := spawn(t, sys, "", blocker)
		require.NoError(t, r.Tell("x"))
		blocked = append(blocked, r)
	}
	echo := spawn(t, sys, "echo", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
	until(t, sys, func() bool { return entered.Load() == 20 })
	ask(t, echo, 1)
	require.Greater(t, runtime.NumGoroutine(), before+20)
	close(leave)
	for _, r := range blocked {
		r.Stop()
		awaitStop(t, r)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+6 }, waitLong, time.Millisecond)
	require.Equal(t, 2, ask(t, echo, 2))
}

func TestGoroutinesDoNotGrowWithActors(t *testing.T) {
	before := runtime.NumGoroutine()
	sys := realSystem(t)
	var n atomic.Int64
	p := actor.PropsFunc(func(*actor.Context, any) error { n.Add(1); return nil })
	for range 5000 {
		require.NoError(t, spawn(t, sys, "", p).Tell("x"))
	}
	until(t, sys, func() bool { return n.Load() == 5000 })
	require.LessOrEqual(t, runtime.NumGoroutine(), before+20)
}

// One actor that always has messages does not starve the others, also when it
// keeps its worker's next slot.
func TestABusyPairDoesNotStarveOthers(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{Workers: 2})
	defer stopSystem(t, sys)
	var quit atomic.Bool
	for range 4 {
		echo := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if quit.Load() {
				return nil
			}
			return ctx.Tell(ctx.Sender(), msg)
		})
		a, b := spawn(t, sys, "", echo), spawn(t, sys, "", echo)
		require.NoError(t, a.TellFrom("ball", b))
	}
	other := spawn(t, sys, "other", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
	for i := range 200 {
		require.Equal(t, i, ask(t, other, i))
	}
	quit.Store(true)
}

func TestManyActorsManyMessagesNothingLost(t *testing.T) {
	sys := realSystem(t)
	const actors, each = 200, 200
	var n atomic.Int64
	refs := make([]*actor.Ref, actors)
	for i := range refs {
		refs[i] = spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			n.Add(1)
			if k := msg.(int); k > 0 {
				return ctx.Tell(refs[(i*7+k)%actors], k-1)
			}
			return nil
		}))
	}
	for i := range actors {
		require.NoError(t, refs[i].Tell(each-1))
	}
	until(t, sys, func() bool { return n.Load() == actors*each })
}

func TestSystemTimersAndTimeouts(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		fired := sys.NewWaiter()
		tm := sys.After(time.Hour, fired.Wake)
		require.True(t, tm.Stop())
		sys.After(time.Millisecond, fired.Wake)
		require.NoError(t, fired.Wait(context.Background()))

		ctx, cancel := sys.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		inner, stop := context.WithCancel(ctx)
		defer stop()
		require.ErrorIs(t, fired.Wait(inner), context.DeadlineExceeded)
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)

		ctx, cancel = sys.WithTimeout(context.Background(), time.Hour)
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.WithinDuration(t, sys.Now().Add(time.Hour), deadline, time.Minute)
		longer, cancelLonger := sys.WithTimeout(ctx, 2*time.Hour)
		defer cancelLonger()
		still, _ := longer.Deadline()
		require.Equal(t, deadline, still)
		cancel()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, fired.Wait(longer), context.Canceled)

		std, cancelStd := context.WithCancel(context.Background())
		derived, cancelDerived := sys.WithTimeout(std, time.Hour)
		defer cancelDerived()
		sys.After(time.Millisecond, cancelStd)
		require.ErrorIs(t, fired.Wait(derived), context.Canceled)
		over, cancelOver := sys.WithTimeout(context.Background(), 0)
		defer cancelOver()
		require.ErrorIs(t, over.Err(), context.DeadlineExceeded)

		w := sys.NewWaiter()
		w.Wake()
		w.Wake()
		require.NoError(t, w.Wait(context.Background()))
		ctx, cancel = sys.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		require.Error(t, w.Wait(ctx), "woken twice is woken once")
		require.ErrorIs(t, sys.Sleep(ctx, time.Second), context.DeadlineExceeded)
	})
}
