package actor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

func TestStoresKeepValuesByKeyAndType(t *testing.T) {
	const visits = actor.Key[int]("visits")
	const named = actor.Key[string]("visits")
	forms(t, func(t *testing.T, sys *actor.System) {
		var log []string
		r := spawn(t, sys, "r", actor.PropsOf(func() actor.Actor {
			log = append(log, "made")
			return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
				if msg == "fail" {
					return errTest
				}
				visits.Update(sys.Global(), func(n int) int { return n + 1 })
				ctx.Respond(visits.Update(ctx.Store(), func(n int) int { return n + 1 }))
				return nil
			})
		}))
		require.Equal(t, 1, ask(t, r, "x"))
		require.NoError(t, r.Tell("fail"))
		require.Equal(t, 2, ask(t, r, "x"), "it outlives restarts")
		require.Len(t, log, 2)
		other := spawn(t, sys, "other", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			ctx.Respond(ctx.Store().Len())
			return nil
		}))
		require.Zero(t, ask(t, other, "x"))

		global := sys.Global()
		n, ok := visits.Get(global)
		require.True(t, ok)
		require.Equal(t, 2, n)
		_, ok = named.Get(global)
		require.False(t, ok, "another type is another key")
		named.Set(global, "v")
		v, _ := named.Get(global)
		require.Equal(t, "v", v)
		global.Set("plain", nil)
		_, ok = global.Get("plain")
		require.True(t, ok)
		require.Equal(t, 3, global.Len())
		global.Delete("plain")
		visits.Delete(global)
		named.Delete(global)
		require.Zero(t, global.Len())
		errs := actor.Key[error]("e")
		errs.Set(global, nil)
		e, ok := errs.Get(global)
		require.True(t, ok)
		require.NoError(t, e)
	})
}
