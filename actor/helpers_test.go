package actor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

const waitLong = 10 * time.Second

// forms runs a test on a real system and on a seeded one.
func forms(t *testing.T, f func(t *testing.T, sys *actor.System)) {
	t.Run("real", func(t *testing.T) { f(t, realSystem(t)) })
	t.Run("seeded", func(t *testing.T) {
		for seed := range uint64(50) {
			sys, _ := seededSystem(t, seed)
			f(t, sys)
		}
	})
}

func realSystem(t *testing.T) *actor.System {
	sys := actor.NewSystem("test", actor.Config{})
	t.Cleanup(func() { stopSystem(t, sys) })
	return sys
}

func seededSystem(t *testing.T, seed uint64) (*actor.System, *actortest.Seeded) {
	exec := actortest.NewSeeded(seed)
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	t.Cleanup(func() {
		stopSystem(t, sys)
		exec.Close()
	})
	return sys, exec
}

func spawn(t *testing.T, sys *actor.System, name string, p actor.Props) *actor.Ref {
	t.Helper()
	r, err := sys.Spawn(name, p)
	require.NoError(t, err)
	return r
}

func awaitStop(t *testing.T, r *actor.Ref) {
	t.Helper()
	ctx, cancel := r.System().WithTimeout(context.Background(), waitLong)
	defer cancel()
	require.NoError(t, r.System().AwaitStop(ctx, r))
}

func ask(t *testing.T, r *actor.Ref, msg any) any {
	t.Helper()
	v, err := r.Ask(context.Background(), msg)
	require.NoError(t, err)
	return v
}

// until waits for a condition on the system's clock; a seeded system works
// meanwhile.
func until(t *testing.T, sys *actor.System, cond func() bool) {
	t.Helper()
	for end := sys.Now().Add(waitLong); !cond(); {
		require.True(t, sys.Now().Before(end), "the condition did not come true")
		require.NoError(t, sys.Sleep(context.Background(), 50*time.Microsecond))
	}
}
