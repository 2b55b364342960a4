package actor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// TestWhatAStoppingSystemLeaves: what a child with a claiming parent leaves when
// the system stops are dead letters of what was sent, and a timer that is over
// leaves none.
func TestWhatAStoppingSystemLeaves(t *testing.T) {
	exec := actortest.NewSeeded(1)
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	var letters []any
	sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { letters = append(letters, z.Message.Payload) })
	parent := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	parent.OnAbsent = func(string, actor.Message) bool { return false }
	p, err := sys.Spawn("parent", parent)
	require.NoError(t, err)
	child, err := p.Spawn("child", actor.PropsFunc(func(c *actor.Context, msg any) error {
		if msg == "go" {
			c.PipeTo(c.Self(), func(context.Context) (any, error) { return "piped", nil })
			c.ScheduleOnce(time.Millisecond, c.Self(), "timed")
			return sys.Sleep(context.Background(), 10*time.Millisecond)
		}
		return nil
	}))
	require.NoError(t, err)
	child.Tell("go")
	exec.RunFor(5 * time.Millisecond)
	ctx, cancel := sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, sys.Stop(ctx))
	exec.Close()
	require.Equal(t, []any{"piped"}, letters)
}

// TestOwnTimerAfterRetiring: an actor's own timer is over once it has retired; its
// parent is not offered it.
func TestOwnTimerAfterRetiring(t *testing.T) {
	exec := actortest.NewSeeded(1)
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	var offered []any
	parent := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	parent.OnAbsent = func(_ string, m actor.Message) bool { offered = append(offered, m.Payload); return true }
	p, err := sys.Spawn("parent", parent)
	require.NoError(t, err)
	child, err := p.Spawn("child", actor.PropsFunc(func(c *actor.Context, _ any) error {
		c.ScheduleOnce(time.Millisecond, c.Self(), "timed")
		c.Retire()
		return sys.Sleep(context.Background(), 10*time.Millisecond)
	}))
	require.NoError(t, err)
	child.Tell("go")
	exec.RunFor(time.Second)
	require.Empty(t, offered)
	ctx, cancel := sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, sys.Stop(ctx))
	exec.Close()
}

// TestPoisonPillOfADelegator: an actor that takes its PoisonPills itself gets
// them also while it delegates.
func TestPoisonPillOfADelegator(t *testing.T) {
	exec := actortest.NewSeeded(1)
	defer exec.Close()
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	delegate, err := sys.Spawn("delegate", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
	require.NoError(t, err)
	pills := 0
	p := actor.PropsFunc(func(c *actor.Context, msg any) error {
		switch msg.(type) {
		case string:
			c.DelegateTo(delegate)
		case actor.PoisonPill:
			pills++
		}
		return nil
	})
	p.OwnPoison = true
	r, err := sys.Spawn("delegator", p)
	require.NoError(t, err)
	r.Tell("delegate")
	r.Tell(actor.PoisonPill{})
	exec.Run()
	require.Equal(t, 1, pills)
	require.False(t, delegate.Stopped())
	ctx, cancel := sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, sys.Stop(ctx))
}
