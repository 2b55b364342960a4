package actor_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// leaver stops while a child of its sleeps, and fails each system message.
type leaver struct{}

func (leaver) PreStart(ctx *actor.Context) error {
	child, err := ctx.Spawn("slow", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		return ctx.System().Sleep(context.Background(), time.Second)
	}))
	if err == nil {
		err = ctx.Tell(child, "sleep")
	}
	return err
}

func (leaver) Receive(ctx *actor.Context, _ any) error {
	ctx.StopSelf()
	return nil
}

func (leaver) ReceiveSystem(*actor.Context, any) error { return errTest }

// TestAFailureWhileStoppingIsLogged: whatever made the actor stop.
func TestAFailureWhileStoppingIsLogged(t *testing.T) {
	stops := map[string]func(r *actor.Ref){
		"stopped":        (*actor.Ref).Stop,
		"stopped itself": func(r *actor.Ref) { _ = r.Tell("leave") },
		"poison pill":    func(r *actor.Ref) { _ = r.Tell(actor.PoisonPill{}) },
	}
	for why, stop := range stops {
		t.Run(why, func(t *testing.T) {
			var out bytes.Buffer
			exec := actortest.NewSeeded(1)
			defer exec.Close()
			sys := actor.NewSystem("test", actor.Config{Executor: exec, Logger: slog.New(slog.NewTextHandler(&out, nil))})
			r := spawn(t, sys, "leaver", actor.PropsOf(func() actor.Actor { return leaver{} }))
			exec.RunFor(time.Millisecond)
			stop(r)
			exec.RunFor(time.Millisecond)
			require.True(t, r.Stopped())
			require.Empty(t, out.String())
			r.TellSystem("fail")
			exec.RunFor(time.Millisecond)
			require.Contains(t, out.String(), `msg="failure while stopping" actor=/user/leaver err="`+errTest.Error()+`"`)
			require.NoError(t, sys.Stop(context.Background()))
		})
	}
}
