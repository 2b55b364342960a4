package actor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// wrapped is a Terminated that is passed on: bare, it would be dropped by whoever
// does not watch.
type wrapped struct{ actor.Terminated }

func TestAParentThatWatchesChildrenHearsOfANormalStop(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		probe := actortest.NewProbe(t, sys, "probe")
		p := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case actor.Terminated:
				return ctx.Tell(probe.Ref(), wrapped{m})
			case *actor.Ref:
				ctx.Watch(m) // watched already
			case string:
				ctx.Stop(ctx.Children()[0])
			}
			return nil
		})
		p.WatchChildren = true
		parent := spawn(t, sys, "parent", p)
		for range 3 {
			c, err := parent.Spawn("c", idle())
			require.NoError(t, err)
			require.NoError(t, parent.Tell(c))
			require.NoError(t, parent.Tell("stop it"))
			require.Equal(t, wrapped{actor.Terminated{Ref: c}}, probe.Next())
			awaitStop(t, c)
		}
		probe.ExpectNone(5 * time.Millisecond)
		unwatched := spawn(t, sys, "q", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
		_, err := unwatched.Spawn("c", idle())
		require.NoError(t, err)
		parent.Stop() // with nobody left to hear of it
		awaitStop(t, parent)
	})
}

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
				ctx.Respond(visits.Update(ctx.Store(), func(n int) int { return n + 1 }))
				visits.Update(sys.Global(), func(n int) int { return n + 1 })
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

// handled are the messages an actor handled itself.
type errand struct{ n int }

func (errand) NonDelegated() {}

// delegator delegates to its child "d", which echoes with a mark.
func delegator(t *testing.T, sys *actor.System, own func(any)) *actor.Ref {
	return spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch m := msg.(type) {
		case actor.Props:
			d, err := ctx.Spawn("", m)
			if err != nil {
				return err
			}
			ctx.DelegateTo(d)
			ctx.Respond(d)
		case errand, actor.DelegationEnded:
			own(m)
		default:
			own(m)
			if ctx.Message().Reply != nil {
				ctx.Respond(fmt.Sprint("self ", msg))
			}
		}
		return nil
	}))
}

func delegateProps() actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if m, ok := msg.(string); ok && m == "end" {
			ctx.EndDelegation(ctx.Parent(), "payload")
			return nil
		}
		ctx.Respond(fmt.Sprint("delegate ", msg))
		return nil
	})
}

func TestDelegationPassesMessagesOnUntilItEnds(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var own []any
		r := delegator(t, sys, func(m any) { own = append(own, m) })
		require.Equal(t, "self 1", ask(t, r, 1))
		d := ask(t, r, delegateProps()).(*actor.Ref)
		require.Equal(t, "delegate 2", ask(t, r, 2))
		probe := actortest.NewProbe(t, sys, "probe")
		probe.Send(r, 3)
		m := probe.NextMessage()
		require.Equal(t, "delegate 3", m.Payload)
		require.Same(t, d, m.Sender, "the delegate had the sender")
		require.NoError(t, r.Tell(errand{4}))
		require.Equal(t, "delegate 5", ask(t, r, 5))
		require.NoError(t, r.Tell("end"))
		until(t, sys, func() bool { v, err := r.Ask(context.Background(), 6); return err == nil && v == "self 6" })
		own = slices.DeleteFunc(own, func(x any) bool { return x == 6 })
		require.Equal(t, []any{1, errand{4}, actor.DelegationEnded{Delegate: d, Payload: "payload"}}, own)
		require.False(t, d.Stopped())

		// It ends also with the delegate.
		own = nil
		d = ask(t, r, delegateProps()).(*actor.Ref)
		require.Equal(t, "delegate 7", ask(t, r, 7))
		d.Stop()
		awaitStop(t, d)
		require.Equal(t, "self 8", ask(t, r, 8))
		require.Equal(t, []any{actor.DelegationEnded{Delegate: d, Stopped: true}, 8}, own)
		require.Zero(t, sys.DeadLetters().Count())
	})
}

// What comes while the delegate stops waits, and is handled in order behind
// DelegationEnded: each message is handled once, by one of the two.
func TestDelegationLosesAndReordersNothingWhenTheDelegateRetires(t *testing.T) {
	for seed := range uint64(300) {
		sys, exec := seededSystem(t, seed)
		var log []any
		r := delegator(t, sys, func(m any) {
			if e, ok := m.(actor.DelegationEnded); ok {
				require.True(t, e.Stopped)
				m = "ended"
			}
			log = append(log, m)
		})
		ask(t, r, actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			log = append(log, -msg.(int))
			if msg.(int) > 3 {
				ctx.Retire()
			}
			return nil
		}))
		sys.Go(func() {
			for i := 1; i <= 20; i++ {
				_ = r.Tell(i)
				if i%3 == 0 {
					_ = sys.Sleep(context.Background(), time.Millisecond)
				}
			}
		})
		exec.Run()
		require.Zero(t, sys.DeadLetters().Count())
		require.Contains(t, log, "ended")
		ended := false
		n := 0
		for _, x := range log {
			if x == "ended" {
				ended = true
				continue
			}
			n++
			if ended {
				require.Equal(t, n, x)
			} else {
				require.Equal(t, -n, x)
			}
		}
		require.Equal(t, 20, n)
	}
}

func TestDelegationIsUndoneByRestartAndByUndelegate(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		d := spawn(t, sys, "d", delegateProps())
		full := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Fail})
		require.NoError(t, full.Tell(0))
		r := spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case *actor.Ref:
				ctx.Watch(d)
				ctx.DelegateTo(full)
				ctx.DelegateTo(m)
				ctx.EndDelegation(ctx.Self(), "by no delegate")
				_ = ctx.Tell(ctx.Self(), errand{2})
				require.Panics(t, func() { ctx.DelegateTo(ctx.Self()) })
			case errand:
				switch m.n {
				case 0:
					ctx.Undelegate()
				case 1:
					return errTest
				}
			case actor.Terminated:
				_ = ctx.System().Select("/user/probe").Tell(wrapped{m})
			default:
				ctx.Respond("self")
			}
			return nil
		}))
		for n := range 2 {
			require.NoError(t, r.Tell(d))
			require.Equal(t, "delegate x", ask(t, r, "x"))
			require.NoError(t, r.Tell(errand{n}))
			require.Equal(t, "self", ask(t, r, "x"))
		}
		require.NoError(t, r.Tell(full))
		_, err := r.Ask(context.Background(), "x")
		require.ErrorIs(t, err, actor.ErrMailboxFull)
		probe := actortest.NewProbe(t, sys, "probe")
		d.Stop()
		require.NoError(t, probe.Next().(wrapped).Reason, "its own watch holds")
	})
}
