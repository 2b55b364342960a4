package actor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

func TestDieInStopsUnlessRenewed(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		probe := actortest.NewProbe(t, sys, "probe")
		r := spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case time.Duration:
				ctx.DieIn(m)
			case string:
				return errTest
			}
			return nil
		}))
		probe.Watch(r)
		for range 5 {
			require.NoError(t, r.Tell(2*time.Second))
			exec.RunFor(time.Second)
		}
		require.NoError(t, r.Tell(time.Duration(0)))
		exec.RunFor(time.Minute)
		require.Zero(t, probe.Len(), "it let go of the handle")
		require.NoError(t, r.Tell(2*time.Second))
		require.NoError(t, r.Tell("fail"))
		exec.RunFor(time.Minute)
		require.Zero(t, probe.Len(), "a restart lets go of it")
		require.NoError(t, r.Tell(2*time.Second))
		exec.RunFor(1999 * time.Millisecond)
		require.Zero(t, probe.Len())
		exec.RunFor(time.Millisecond)
		require.ErrorIs(t, probe.ExpectTerminated(r), actor.ErrDieIn)
	}
}
