package actor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

func TestStopReportsWhoWasLate(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	leave := sys.NewWaiter()
	slow := spawn(t, sys, "slow", actor.PropsFunc(func(*actor.Context, any) error { return leave.Wait(context.Background()) }))
	require.NoError(t, slow.Tell("x"))
	exec.Run()
	sys.Go(func() { _ = sys.Sleep(context.Background(), 2*time.Second) })
	ctx, cancel := sys.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := sys.Stop(ctx)
	var late *actor.LateError
	require.ErrorAs(t, err, &late)
	require.Equal(t, []string{"/user/slow"}, late.Actors)
	require.Equal(t, 1, late.Jobs)
	require.Equal(t, "test", late.System)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "still running: /user/slow, and 1 background jobs: context deadline exceeded")
	leave.Wake()
	require.NoError(t, sys.Stop(context.Background()))
}

// Those are named who keep the stop waiting: not the children of one who has not come
// to stop them, and also one that is not under /user.
func TestStopReportsWhoKeepsItWaiting(t *testing.T) {
	for path, want := range map[string][]string{"/user": {"/user/slow"}, "/": {"/slow"}, "/system": {"/system/slow"}} {
		sys, exec := seededSystem(t, 1)
		leave := sys.NewWaiter()
		parent, err := sys.Lookup(path)
		require.NoError(t, err)
		slow, err := parent.Spawn("slow", actor.PropsFunc(func(*actor.Context, any) error { return leave.Wait(context.Background()) }))
		require.NoError(t, err)
		_, err = slow.Spawn("idle", idle())
		require.NoError(t, err)
		require.NoError(t, slow.Tell("x"))
		exec.Run()
		ctx, cancel := sys.WithTimeout(context.Background(), time.Second)
		var late *actor.LateError
		require.ErrorAs(t, sys.Stop(ctx), &late)
		cancel()
		require.Equal(t, want, late.Actors)
		leave.Wake()
		require.NoError(t, sys.Stop(context.Background()))
	}
}

func TestSignalStopReturnsAtOnceAndEverythingEnds(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	leave := make(chan struct{})
	r := spawn(t, sys, "r", actor.PropsFunc(func(*actor.Context, any) error { <-leave; return nil }))
	require.NoError(t, r.Tell("x"))
	sys.SignalStop()
	sys.SignalStop()
	require.True(t, sys.User().Stopped() || !r.Stopped())
	close(leave)
	awaitStop(t, sys.Root())
}
