package actor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

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
