package patterns_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// Whoever asks by way of a proxy may have its answer, and ask anew, while the
// handler that passed it on has not returned: nothing that it does then touches an
// ask. The race detector sees what does.
func TestProxyIsAnsweredWhileItIsPassedOn(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	defer func() { require.NoError(t, sys.Stop(context.Background())) }()
	to, err := sys.Spawn("to", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
	require.NoError(t, err)
	between, err := sys.Spawn("between", actor.PropsFunc(func(ctx *actor.Context, msg any) error { return msg.(patterns.Proxy).Pass(ctx) }))
	require.NoError(t, err)
	targets := []actor.Target{to, nil} // nil: it comes back
	var askers sync.WaitGroup
	for asker := range 4 {
		askers.Go(func() {
			for i := range 500 {
				n := 1000*asker + i
				v, err := between.Ask(context.Background(), patterns.Proxy{To: targets[i%2], Message: n})
				if err != nil || v != any(n) {
					t.Errorf("asked %d, got %v, %v", n, v, err)
					return
				}
			}
		})
	}
	askers.Wait()
}
