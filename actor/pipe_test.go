package actor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

func TestPipeTo(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		other := spawn(t, sys, "other", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "fail" {
				return errTest
			}
			ctx.Respond(msg)
			return nil
		}))
		probe := actortest.NewProbe(t, sys, "probe")
		self := probe.Ref()
		probe.Do(func(ctx *actor.Context) {
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) { return other.Ask(c, "asked") })
		})
		m := probe.NextMessage()
		require.Equal(t, "asked", m.Payload)
		require.Same(t, self, m.Sender)
		probe.Do(func(ctx *actor.Context) {
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) { return other.Ask(c, "fail") })
		})
		failed := probe.Next().(actor.PipeFailed)
		require.ErrorIs(t, failed, errTest)
		probe.Do(func(ctx *actor.Context) {
			ctx.PipeTo(ctx.Self(), func(context.Context) (any, error) { panic(errTest) })
		})
		failed = probe.Next().(actor.PipeFailed)
		var p *actor.PanicError
		require.ErrorAs(t, failed, &p)
	})
}

func TestPipedWorkIsCancelledWhenTheActorStops(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		ended := make(chan error, 1)
		started := sys.NewWaiter()
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) {
				derived, cancel := context.WithCancel(c)
				defer cancel()
				started.Wake()
				err := sys.Sleep(derived, time.Hour)
				ended <- err
				return nil, err
			})
			return nil
		}))
		require.NoError(t, r.Tell("x"))
		require.NoError(t, started.Wait(context.Background()))
		r.Stop()
		awaitStop(t, r)
		until(t, sys, func() bool { return len(ended) == 1 })
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
