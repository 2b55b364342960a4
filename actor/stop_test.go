package actor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// lifelike logs its hooks.
type lifelike struct {
	log  *[]string
	name string
	kids []string
}

func (l *lifelike) PreStart(ctx *actor.Context) error {
	*l.log = append(*l.log, "start "+l.name)
	for _, k := range l.kids {
		if _, err := ctx.Spawn(k, lifelikeProps(l.log, k)); err != nil {
			return err
		}
	}
	return nil
}

func (l *lifelike) Receive(*actor.Context, any) error { return nil }
func (l *lifelike) PostStop(*actor.Context)           { *l.log = append(*l.log, "stop "+l.name) }

func lifelikeProps(log *[]string, name string, kids ...string) actor.Props {
	return actor.PropsOf(func() actor.Actor { return &lifelike{log, name, kids} })
}

func TestStopIsChildrenFirstThenWatchersThenPostStopThenTheName(t *testing.T) {
	for seed := range uint64(100) {
		sys, exec := seededSystem(t, seed)
		probe := actortest.NewProbe(t, sys, "probe")
		var log []string
		var nameTaken, toldBefore bool
		r := spawn(t, sys, "a", actor.PropsOf(func() actor.Actor {
			return &lastSeen{
				lifelike: lifelike{&log, "a", []string{"b", "c"}},
				onStop: func(ctx *actor.Context) {
					_, err := sys.Spawn("a", lifelikeProps(&log, "a"))
					nameTaken = err != nil
					// Give the watcher time: it has been told already.
					_ = sys.Sleep(context.Background(), time.Second)
					toldBefore = probe.Len() == 1
				},
			}
		}))
		probe.Watch(r)
		exec.Run()
		r.Stop()
		exec.Run()
		require.NoError(t, probe.ExpectTerminated(r))
		require.True(t, nameTaken)
		require.True(t, toldBefore)
		require.Equal(t, "stop a", log[len(log)-1])
		require.ElementsMatch(t, []string{"start a", "start b", "start c", "stop b", "stop c", "stop a"}, log)
		spawn(t, sys, "a", lifelikeProps(&log, "a"))
	}
}

type lastSeen struct {
	lifelike
	onStop func(ctx *actor.Context)
}

func (l *lastSeen) PostStop(ctx *actor.Context) {
	l.onStop(ctx)
	l.lifelike.PostStop(ctx)
}

func TestWatchNeverMissesTerminated(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		sys := realSystem(t)
		probe := actortest.NewProbe(t, sys, "probe")
		for range 500 {
			r := spawn(t, sys, "", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
			go r.Stop()
			require.NoError(t, probe.Ref().Tell("x"))
			probe.Watch(r)
			probe.Expect("x")
			_ = probe.ExpectTerminated(r)
		}
		require.Zero(t, probe.Len())
	})
	t.Run("seeded", func(t *testing.T) {
		for seed := range uint64(300) {
			sys, exec := seededSystem(t, seed)
			probe := actortest.NewProbe(t, sys, "probe")
			r := spawn(t, sys, "r", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
			killer := spawn(t, sys, "killer", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				ctx.Stop(r)
				return nil
			}))
			require.NoError(t, killer.Tell("now"))
			probe.Watch(r)
			exec.Run()
			_ = probe.ExpectTerminated(r)
			probe.ExpectNone(time.Second)
		}
	})
}

func TestWatchingTheDeadYieldsTerminatedAtOnce(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		stopping := &actor.Strategy{Decide: func(error) actor.Directive { return actor.Stop }}
		r := underParent(t, sys, stopping, actor.PropsFunc(func(*actor.Context, any) error { return errTest }))
		require.NoError(t, r.Tell("fail"))
		awaitStop(t, r)
		probe := actortest.NewProbe(t, sys, "probe")
		probe.Watch(r)
		require.ErrorIs(t, probe.ExpectTerminated(r), errTest)
	})
}

func TestUnwatchDropsATerminatedThatIsQueued(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := spawn(t, sys, "r", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
		probe := actortest.NewProbe(t, sys, "probe")
		probe.Watch(r)
		probe.Do(func(ctx *actor.Context) {
			r.Stop()
			_ = sys.AwaitStop(context.Background(), r) // Terminated is queued now
			ctx.Unwatch(r)
		})
		probe.ExpectNone(20 * time.Millisecond)
	})
}

func TestTerminatedNeverOvertakesTheLastTell(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for range 10 {
			probe := actortest.NewProbe(t, sys, "")
			r := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				for i := range 50 {
					if err := ctx.Tell(probe.Ref(), i); err != nil {
						return err
					}
				}
				ctx.StopSelf()
				return nil
			}))
			probe.Watch(r)
			require.NoError(t, r.Tell("go"))
			for i := range 50 {
				probe.Expect(i)
			}
			_ = probe.ExpectTerminated(r)
		}
	})
}

func TestPoisonPillStopsBehindWhatWasSentBefore(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var got []any
		r := spawn(t, sys, "a", actor.PropsFunc(func(_ *actor.Context, msg any) error {
			got = append(got, msg)
			return nil
		}))
		for i := range 5 {
			require.NoError(t, r.Tell(i))
		}
		require.NoError(t, r.Tell(actor.PoisonPill{}))
		require.NoError(t, r.Tell("after"))
		awaitStop(t, r)
		require.Equal(t, []any{0, 1, 2, 3, 4}, got)
		require.EqualValues(t, 1, sys.DeadLetters().Count())

		p := recorderProps(nil)
		p.OwnPoison = true
		own := spawn(t, sys, "own", p)
		require.NoError(t, own.Tell(actor.PoisonPill{}))
		require.Equal(t, []any{actor.PoisonPill{}}, ask(t, own, "?"))
	})
}

// Stop takes effect after the message in progress and at most one more.
func TestStopGoesAheadOfUserMessages(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var handled atomic.Int32
		entered, leave := sys.NewWaiter(), sys.NewWaiter()
		r := spawn(t, sys, "a", actor.PropsFunc(func(*actor.Context, any) error {
			if handled.Add(1) == 1 {
				entered.Wake()
				return leave.Wait(context.Background())
			}
			return nil
		}))
		var lost []any
		defer sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
			if z.To == "/user/a" {
				lost = append(lost, z.Message.Payload)
			}
		})()
		for i := range 10 {
			require.NoError(t, r.Tell(i))
		}
		answered := make(chan error, 1)
		require.NoError(t, r.Post(actor.Message{Payload: 10, Reply: sys.OnReply(func(_ any, err error) { answered <- err })}))
		require.NoError(t, entered.Wait(context.Background()))
		r.Stop()
		leave.Wake()
		awaitStop(t, r)
		require.LessOrEqual(t, handled.Load(), int32(2))
		require.ErrorIs(t, <-answered, actor.ErrStopped)
		require.NoError(t, r.Tell(11))
		require.Len(t, lost, 12-int(handled.Load()))
		for i, m := range lost {
			require.Equal(t, int(handled.Load())+i, m)
		}
	})
}

// What a stopped actor leaves goes to the parent's OnAbsent, in order, ahead
// of what is sent to it later.
func TestOnAbsentTakesLeftoversInOrder(t *testing.T) {
	run := func(t *testing.T, sys *actor.System) {
		const each = 100
		var claimed []any
		p := actor.PropsFunc(func(*actor.Context, any) error { return nil })
		claims := make(chan any, 10*each)
		p.OnAbsent = func(name string, m actor.Message) bool {
			if name != "x" {
				return false
			}
			claims <- m.Payload
			return true
		}
		pod := spawn(t, sys, "pod", p)
		var handled []any
		x, err := pod.Spawn("x", actor.PropsFunc(func(_ *actor.Context, msg any) error {
			handled = append(handled, msg)
			return nil
		}))
		require.NoError(t, err)
		done := sys.NewWaiter()
		sys.Go(func() {
			for n := range each {
				_ = x.Tell(n)
				if n == each/2 {
					x.Stop()
				}
			}
			done.Wake()
		})
		require.NoError(t, done.Wait(context.Background()))
		awaitStop(t, x)
		close(claims)
		for c := range claims {
			claimed = append(claimed, c)
		}
		all := append(append([]any{}, handled...), claimed...)
		require.Len(t, all, each)
		for i, m := range all {
			require.Equal(t, i, m)
		}
		require.Zero(t, sys.DeadLetters().Count())
		y, err := pod.Spawn("y", p)
		require.NoError(t, err)
		y.Stop()
		awaitStop(t, y)
		require.NoError(t, y.Tell("to y"))
		require.EqualValues(t, 1, sys.DeadLetters().Count(), "OnAbsent did not claim it")
	}
	t.Run("real", func(t *testing.T) {
		for range 20 {
			run(t, realSystem(t))
		}
	})
	t.Run("seeded", func(t *testing.T) {
		for seed := range uint64(100) {
			sys, _ := seededSystem(t, seed)
			run(t, sys)
		}
	})
}

func TestAnOwnTimerOrResultNeverReachesALaterLife(t *testing.T) {
	for seed := range uint64(100) {
		sys, exec := seededSystem(t, seed)
		var claimed []any
		p := actor.PropsFunc(func(*actor.Context, any) error { return nil })
		p.OnAbsent = func(_ string, m actor.Message) bool { claimed = append(claimed, m.Payload); return true }
		pod := spawn(t, sys, "pod", p)
		x, err := pod.Spawn("x", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "go" {
				ctx.ScheduleOnce(time.Millisecond, ctx.Self(), "timer")
				ctx.ScheduleEvery(time.Millisecond, ctx.Self(), "tick")
				ctx.PipeTo(ctx.Self(), func(context.Context) (any, error) {
					return "result", sys.Sleep(context.Background(), time.Millisecond)
				})
				ctx.Hold()
			}
			return nil
		}))
		require.NoError(t, err)
		require.NoError(t, x.Tell("go"))
		exec.RunFor(time.Duration(seed%3) * time.Millisecond)
		x.Stop()
		require.NoError(t, x.Tell("told"))
		exec.RunFor(time.Second)
		require.Equal(t, []any{"told"}, claimed)
	}
}

// A blocked handler delays nobody else, nor System.Stop beyond its deadline;
// the error names it.
func TestSystemStopIsBoundedByItsDeadline(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	parent := spawn(t, sys, "parent", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
	blocked, err := parent.Spawn("blocked", actor.PropsFunc(func(*actor.Context, any) error {
		close(entered)
		<-leave
		return nil
	}))
	require.NoError(t, err)
	var log []string
	other := spawn(t, sys, "other", lifelikeProps(&log, "other"))
	require.NoError(t, blocked.Tell("x"))
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = sys.Stop(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "/user/parent/blocked")
	require.NotContains(t, err.Error(), "other")
	awaitStop(t, other)
	_, err = sys.Spawn("late", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
	require.ErrorIs(t, err, actor.ErrStopped)
	close(leave)
	stopSystem(t, sys)
	stopSystem(t, sys)
}

func TestSystemStopWaitsForJobs(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		leave := sys.NewWaiter()
		var ended atomic.Bool
		sys.Go(func() {
			_ = leave.Wait(context.Background())
			ended.Store(true)
		})
		ctx, cancel := sys.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		require.ErrorContains(t, sys.Stop(ctx), "1 background job")
		leave.Wake()
		stopSystem(t, sys)
		require.True(t, ended.Load())
	})
}

// Floods, blocked siblings and held mailboxes do not keep a tree from stopping.
func TestStoppingUnderAFlood(t *testing.T) {
	sys := realSystem(t)
	p := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	p.OnAbsent = func(string, actor.Message) bool { return false }
	parent := spawn(t, sys, "parent", p)
	x, err := parent.Spawn("x", p)
	require.NoError(t, err)
	quit := make(chan struct{})
	for range 4 {
		sys.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
					_ = x.Tell("flood")
				}
			}
		})
	}
	until(t, sys, func() bool { return x.MailboxLen() > 0 })
	parent.Stop()
	awaitStop(t, parent)
	close(quit)
}

func TestStopReasonsAreVisibleToPostStop(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		var own, parents, childsOwn, childsParents error
		child := actor.PropsOf(func() actor.Actor {
			return &reasons{own: &childsOwn, parents: &childsParents}
		})
		stopping := &actor.Strategy{Decide: func(error) actor.Directive { return actor.Stop }}
		r := underParent(t, sys, stopping, actor.PropsOf(func() actor.Actor {
			return &reasons{own: &own, parents: &parents, child: &child}
		}))
		exec.Run()
		require.NoError(t, r.Tell("fail"))
		exec.Run()
		require.ErrorIs(t, own, errTest)
		require.NoError(t, parents)
		require.NoError(t, childsOwn)
		require.ErrorIs(t, childsParents, errTest)
	}
}

type reasons struct {
	own, parents *error
	child        *actor.Props
}

func (r *reasons) PreStart(ctx *actor.Context) error {
	if r.child != nil {
		_, err := ctx.Spawn("child", *r.child)
		return err
	}
	return nil
}
func (r *reasons) Receive(*actor.Context, any) error { return fmt.Errorf("as told: %w", errTest) }
func (r *reasons) PostStop(ctx *actor.Context) {
	*r.own, *r.parents = ctx.IsException(), ctx.ParentException()
}

// outside counts the turns that are queued from outside a turn.
type outside struct {
	*actortest.Seeded
	queued int
}

func (o *outside) Schedule(t actor.Task) {
	o.queued++
	o.Seeded.Schedule(t)
}

func outsideSystem(t *testing.T) (*actor.System, *outside) {
	exec := &outside{Seeded: actortest.NewSeeded(1)}
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	t.Cleanup(func() {
		stopSystem(t, sys)
		exec.Close()
	})
	return sys, exec
}

// A worker that stops a tree queues those turns itself. From outside each would
// go through the queue that all workers share.
func TestATreeIsStoppedFromWithinTurns(t *testing.T) {
	sys, exec := outsideSystem(t)
	probe := actortest.NewProbe(t, sys, "probe")
	const kids = 20
	idle := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	parent := spawn(t, sys, "parent", idle)
	for range kids {
		child, err := parent.Spawn("", idle)
		require.NoError(t, err)
		probe.Watch(child)
	}
	exec.Run()
	exec.queued = 0
	parent.Children()[0].Stop()
	exec.Run()
	require.Equal(t, 1, probe.Len())
	require.Equal(t, 1, exec.queued, "the child; who hears of it does not count")
	parent.Stop()
	exec.Run()
	require.True(t, parent.Stopped())
	require.Equal(t, kids, probe.Len())
	require.Equal(t, 2, exec.queued, "the parent alone")
}

// Who hears of the end of an actor whose PostStop may take its time does not wait
// behind that on its worker.
func TestWhoHearsOfAnEndDoesNotWaitForPostStop(t *testing.T) {
	sys, exec := outsideSystem(t)
	probe := actortest.NewProbe(t, sys, "probe")
	var ignored error
	r := spawn(t, sys, "r", actor.PropsOf(func() actor.Actor { return &reasons{own: &ignored, parents: &ignored} }))
	probe.Watch(r)
	exec.Run()
	exec.queued = 0
	r.Stop()
	exec.Run()
	require.Equal(t, 1, probe.Len())
	require.Equal(t, 2, exec.queued, "the actor and the probe")
}
