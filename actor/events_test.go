package actor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

func TestEventsTellStartsFailuresRestartsAndStops(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		exec.Run()
		var got []string
		cancel := sys.Events().Subscribe(func(e actor.Event) {
			require.Equal(t, sys.Now(), e.At)
			got = append(got, fmt.Sprint(e.Kind, " ", e.Ref.Name(), " ", e.Reason, " ", e.Directive))
		})
		var log []string
		r := spawn(t, sys, "r", fragileProps(&log))
		require.NoError(t, r.Tell("fail"))
		exec.Run()
		r.Stop()
		exec.Run()
		cancel()
		spawn(t, sys, "unheard", idle())
		exec.Run()
		require.Equal(t, []string{
			"started r <nil> restart",
			"failed r " + errTest.Error() + " restart",
			"restarted r <nil> restart",
			"stopped r <nil> restart",
		}, got)
	}
}

func TestActorsSubscribeToEventsByMessage(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		events, err := sys.Lookup("/system/events")
		require.NoError(t, err)
		probe := actortest.NewProbe(t, sys, "probe")
		for r := range sys.Root().Tree() { // the runtime's own have started by then
			until(t, sys, func() bool { return r.Load() == 0 })
		}
		for range 2 { // twice is once
			_, err = events.Ask(context.Background(), actor.Subscribe{Ref: probe.Ref()})
			require.NoError(t, err)
		}
		stopping := &actor.Strategy{Decide: func(error) actor.Directive { return actor.Stop }}
		parent := idle()
		parent.Supervisor = stopping
		p := spawn(t, sys, "p", parent)
		next := func() actor.Event { // about p and its child
			for {
				if e := probe.Next().(actor.Event); e.Ref == p || e.Ref.Parent() == p {
					return e
				}
			}
		}
		require.Equal(t, p, next().Ref)
		c, err := p.Spawn("c", actor.PropsFunc(func(*actor.Context, any) error { return errTest }))
		require.NoError(t, err)
		require.Equal(t, actor.ActorStarted, next().Kind)
		require.NoError(t, c.Tell("x"))
		failed := next()
		require.Equal(t, actor.ActorFailed, failed.Kind)
		require.Equal(t, actor.Stop, failed.Directive)
		stopped := next()
		require.Equal(t, actor.ActorStopped, stopped.Kind)
		require.ErrorIs(t, stopped.Reason, errTest)
		_, err = events.Ask(context.Background(), actor.Unsubscribe{Ref: probe.Ref()})
		require.NoError(t, err)
		spawn(t, sys, "q", idle())
		probe.ExpectNone(5 * time.Millisecond)
	})
}

func TestActorsSubscribeToDeadLettersByMessage(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		probe := actortest.NewProbe(t, sys, "probe")
		at, err := sys.Lookup("/system/deadletters")
		require.NoError(t, err)
		_, err = at.Ask(context.Background(), actor.Subscribe{Ref: probe.Ref()})
		require.NoError(t, err)
		dead := spawn(t, sys, "dead", idle())
		dead.Stop()
		awaitStop(t, dead)
		require.NoError(t, dead.Tell(1))
		z := probe.Next().(actor.ZombieMsg)
		require.Equal(t, "/user/dead", z.To)
		require.Equal(t, 1, z.Message.Payload)
		// By sender, and back.
		probe.Send(at, actor.Unsubscribe{})
		_, err = at.Ask(context.Background(), actor.Unsubscribe{Ref: probe.Ref()})
		require.NoError(t, err)
		require.NoError(t, dead.Tell(2))
		probe.ExpectNone(5 * time.Millisecond)
		// From nobody it is a message to nobody.
		count := sys.DeadLetters().Count()
		require.NoError(t, at.Tell(actor.Subscribe{}))
		until(t, sys, func() bool { return sys.DeadLetters().Count() == count+1 })
		require.NoError(t, sys.User().TellFrom(actor.Subscribe{}, probe.Ref()))
		until(t, sys, func() bool { return sys.DeadLetters().Count() == count+2 })
	})
}

func TestASubscriberThatPanicsOrIsFullHarmsNobody(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var mu sync.Mutex
		var got []any
		sys.Events().Subscribe(func(actor.Event) { panic("bad") })
		full := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.DropNewest})
		block := heldRecorderNamed(t, sys, "block", actor.Mailbox{Capacity: 1, Policy: actor.Block})
		sys.DeadLetters().SubscribeRef(full)
		sys.DeadLetters().SubscribeRef(block)
		sys.Events().SubscribeRef(block)
		sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, z.Message.Payload)
		})
		dead := spawn(t, sys, "dead", idle())
		dead.Stop()
		awaitStop(t, dead)
		for i := range 5 {
			require.NoError(t, dead.Tell(i))
		}
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []any{0, 1, 2, 3, 4}, got)
		require.Equal(t, 1, block.MailboxLen())
	})
}

// Who waits for an actor's end, or its parent's, finds the subscribers told; they
// find its name free.
func TestSubscribersHearOfAnEndBeforeWhoWaitsForIt(t *testing.T) {
	sys := realSystem(t)
	parent := spawn(t, sys, "parent", idle())
	child, err := parent.Spawn("child", idle())
	require.NoError(t, err)
	hears, goOn := make(chan error), make(chan struct{})
	sys.Events().Subscribe(func(e actor.Event) {
		if e.Kind == actor.ActorStopped && e.Ref == child {
			_, err := parent.Spawn("child", idle())
			hears <- err
			<-goOn
		}
	})
	child.Stop()
	require.NoError(t, <-hears)

	parent.Stop()
	over, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, sys.AwaitStop(over, child))
	require.Error(t, sys.AwaitStop(over, parent))
	close(goOn)
	awaitStop(t, child)
	awaitStop(t, parent)
}

// A subscriber of dead letters whose own messages are dead letters, too, hears of the
// others' alone, as a function and as an actor; all are counted.
func TestASubscriberHearsNothingOfItsOwnDeadLetters(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		dead := spawn(t, sys, "dead", idle())
		dead.Stop()
		awaitStop(t, dead)
		var heard atomic.Int32
		sys.DeadLetters().Subscribe(func(actor.ZombieMsg) {
			heard.Add(1)
			_ = dead.Tell("a letter")
			_ = sys.Select("nobody").Post(actor.Message{Payload: "another"})
		})
		logger := spawn(t, sys, "logger", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			_ = ctx.Tell(dead, "one more")
			ctx.Respond("thank you") // to nobody
			return nil
		}))
		sys.DeadLetters().SubscribeRef(logger)
		require.NoError(t, dead.Tell(1))
		// The letter, two of the function's; two of the actor's about the first, and
		// of the function's two about each of these.
		until(t, sys, func() bool { return sys.DeadLetters().Count() == 9 && logger.Load() == 0 })
		require.EqualValues(t, 3, heard.Load())
		require.NoError(t, dead.Tell(2))
		until(t, sys, func() bool { return sys.DeadLetters().Count() == 18 && logger.Load() == 0 })
		require.EqualValues(t, 6, heard.Load())
	})
}

func TestToSubscribeTwiceIsToSubscribeOnce(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	once, twice := actortest.NewProbe(t, sys, "once"), actortest.NewProbe(t, sys, "twice")
	exec.Run()
	cancel := sys.DeadLetters().SubscribeRef(twice.Ref())
	for _, p := range []*actortest.Probe{once, twice, twice} {
		sys.DeadLetters().SubscribeRef(p.Ref())
		sys.Events().SubscribeRef(p.Ref())
	}
	dead := spawn(t, sys, "dead", idle())
	exec.Run()
	dead.Stop()
	exec.Run()
	require.NoError(t, dead.Tell(1))
	exec.Run()
	require.Equal(t, once.Len(), twice.Len())
	cancel()
	require.NoError(t, dead.Tell(2))
	exec.Run()
	require.Equal(t, once.Len()-1, twice.Len())
}
