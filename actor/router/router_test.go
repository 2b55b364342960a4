package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/actor/router"
)

var errTest = errors.New("on purpose")

// keyed is a message with a key.
type keyed struct{ key string }

func (k keyed) HashKey() string { return k.key }

// namer answers with its name, in front of a dot if there is one; "fail" fails,
// "stop" stops, "block" holds the mailbox.
func namer() actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch msg {
		case "fail":
			return errTest
		case "stop":
			ctx.StopSelf()
		case "block":
			ctx.Hold()
		}
		ctx.Respond(ctx.Self().Name())
		return nil
	})
}

type world struct {
	t    *testing.T
	sys  *actor.System
	exec *actortest.Seeded
}

func seeded(t *testing.T, seed uint64) *world {
	exec := actortest.NewSeeded(seed)
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	t.Cleanup(func() {
		require.NoError(t, sys.Stop(context.Background()))
		exec.Close()
	})
	return &world{t, sys, exec}
}

func (w *world) spawn(cfg router.Config) *actor.Ref {
	w.t.Helper()
	r, err := router.Spawn(w.sys, "", cfg)
	require.NoError(w.t, err)
	return r
}

func (w *world) ask(r *actor.Ref, msg any) string {
	w.t.Helper()
	w.exec.Run() // who has answered may not be at rest yet
	name, err := actor.Ask[string](context.Background(), r, msg)
	require.NoError(w.t, err)
	return name
}

func (w *world) asks(r *actor.Ref, n int, msg func(i int) any) (names []string) {
	for i := range n {
		names = append(names, w.ask(r, msg(i)))
	}
	return names
}

func plain(i int) any { return i }

func TestRoundRobinTakesTurns(t *testing.T) {
	w := seeded(t, 1)
	r := w.spawn(router.Config{Workers: 3, Worker: namer()})
	require.Equal(t, strings.Fields("0 1 2 0 1 2 0"), w.asks(r, 7, plain))
}

func TestWorkersAreSpawnedWhenTheyAreFirstNeeded(t *testing.T) {
	w := seeded(t, 1)
	r := w.spawn(router.Config{Worker: namer()})
	for i := range 10 {
		require.Len(t, r.Children(), min(i, 8))
		w.ask(r, i)
	}
}

func TestRandomUsesTheSystemsRandomness(t *testing.T) {
	run := func(seed uint64) []string {
		w := seeded(t, seed)
		return w.asks(w.spawn(router.Config{Workers: 4, Worker: namer(), Route: router.Random}), 40, plain)
	}
	a := run(1)
	require.Equal(t, a, run(1))
	require.NotEqual(t, a, run(2))
	for _, name := range strings.Fields("0 1 2 3") {
		require.Contains(t, a, name)
	}
}

func TestBroadcastReachesAllAndOneAnswers(t *testing.T) {
	for seed := range uint64(30) {
		w := seeded(t, seed)
		var got []string
		worker := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			got = append(got, fmt.Sprint(ctx.Self().Name(), msg))
			ctx.Respond(msg)
			return nil
		})
		r := w.spawn(router.Config{Workers: 3, Worker: worker, Route: router.Broadcast})
		v, err := r.Ask(context.Background(), "x")
		require.NoError(t, err)
		require.Equal(t, "x", v)
		w.exec.Run()
		require.ElementsMatch(t, strings.Fields("0x 1x 2x"), got)
		require.EqualValues(t, 2, w.sys.DeadLetters().Count(), "the answers that came second")

		got = nil
		r = w.spawn(router.Config{Workers: 2, Worker: worker})
		require.NoError(t, r.Tell(router.ToAll{Message: "y"}))
		w.exec.Run()
		require.ElementsMatch(t, strings.Fields("0y 1y"), got)
	}
}

// Whoever asks may have its answer from the first worker, and ask anew, while the
// router still passes the message on to the others: nothing that the router does
// then touches an ask. The race detector sees what does.
func TestBroadcastIsAnsweredWhileItIsPassedOn(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	defer func() { require.NoError(t, sys.Stop(context.Background())) }()
	echo := actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
	for _, route := range []router.Route{router.Broadcast, router.RoundRobin} {
		r, err := router.Spawn(sys, "", router.Config{Workers: 4, Worker: echo, Route: route})
		require.NoError(t, err)
		var askers sync.WaitGroup
		for asker := range 4 {
			askers.Go(func() {
				for i := range 500 {
					n := 1000*asker + i
					msg, want := any(n), any(n)
					if route != router.Broadcast {
						msg = router.ToAll{Message: n}
					}
					v, err := r.Ask(context.Background(), msg)
					if err != nil || v != want {
						t.Errorf("%s: asked %d, got %v, %v", route, n, v, err)
						return
					}
				}
			})
		}
		askers.Wait()
	}
}

func TestBroadcastToTheFullFails(t *testing.T) {
	w := seeded(t, 1)
	worker := namer()
	worker.Held, worker.Mailbox = true, actor.Mailbox{Capacity: 1, Policy: actor.Fail}
	r := w.spawn(router.Config{Workers: 2, Worker: worker, Route: router.Broadcast})
	require.NoError(t, r.Tell("fills"))
	_, err := r.Ask(context.Background(), "x")
	require.ErrorIs(t, err, actor.ErrMailboxFull)
	require.EqualValues(t, 2, w.sys.DeadLetters().Count())
}

func TestConsistentHashSendsAKeyAlwaysToOneWorker(t *testing.T) {
	w := seeded(t, 1)
	r := w.spawn(router.Config{Workers: 10, Worker: namer(), Route: router.ConsistentHash})
	const keys = 1000
	key := func(i int) any { return keyed{fmt.Sprint("room-", i)} }
	first := w.asks(r, keys, key)
	require.Equal(t, first, w.asks(r, keys, key))
	count := map[string]int{}
	for _, name := range first {
		count[name]++
	}
	for name, n := range count {
		require.InDelta(t, keys/10, n, 50, "worker %s", name)
	}
	// One worker more: about one key in eleven moves, and only to the new one.
	require.NoError(t, r.Tell(router.Resize{Workers: 11}))
	moved := 0
	for i, name := range w.asks(r, keys, key) {
		if name != first[i] {
			require.Equal(t, "10", name)
			moved++
		}
	}
	require.InDelta(t, keys/11, moved, 50)
	// Without a key, round-robin.
	r = w.spawn(router.Config{Workers: 3, Worker: namer(), Route: router.ConsistentHash})
	require.Equal(t, strings.Fields("0 1 2 0"), w.asks(r, 4, plain))
	// The key may be taken by a function.
	r = w.spawn(router.Config{Workers: 8, Worker: namer(), Route: router.ConsistentHash, HashKey: func(msg any) (string, bool) {
		return fmt.Sprint(msg.(int) % 2), true
	}})
	even := w.ask(r, 0)
	for i := range 10 {
		require.Equal(t, even, w.ask(r, 2*i))
	}
}

func TestLeastLoadedTakesTheLeastLoaded(t *testing.T) {
	for seed := range uint64(20) {
		w := seeded(t, seed)
		r := w.spawn(router.Config{Workers: 3, Worker: namer(), Route: router.LeastLoaded})
		require.Equal(t, strings.Fields("0 1 2 0"), w.asks(r, 4, plain), "equal: in turn")
		require.Equal(t, "1", w.ask(r, "block"))
		require.Equal(t, "2", w.ask(r, "block"))
		one, _ := r.Child("1")
		two, _ := r.Child("2")
		require.NoError(t, one.Tell("a"))
		require.NoError(t, two.Tell("a"))
		require.NoError(t, two.Tell("b"))
		require.Equal(t, strings.Fields("0 0 0"), w.asks(r, 3, plain))
		require.Equal(t, "0", w.ask(r, "block"))
		zero, _ := r.Child("0")
		for range 5 {
			require.NoError(t, zero.Tell("x"))
		}
		require.NoError(t, r.Tell("next"))
		w.exec.Run()
		require.Equal(t, 2, one.MailboxLen())
	}
}

func TestDeadWorkersAreReplaced(t *testing.T) {
	for seed := range uint64(100) {
		w := seeded(t, seed)
		made := 0
		worker := actor.PropsOf(func() actor.Actor { made++; return namer().New() })
		r := w.spawn(router.Config{Workers: 2, Worker: worker, Supervisor: &actor.Strategy{
			Decide: func(error) actor.Directive { return actor.Stop },
		}})
		for range 4 {
			w.ask(r, "stop")
		}
		_, err := r.Ask(context.Background(), "fail")
		require.ErrorIs(t, err, errTest)
		require.Equal(t, strings.Fields("1 0 1 0"), w.asks(r, 4, plain))
		require.Equal(t, 7, made)
		require.Zero(t, w.sys.DeadLetters().Count())
	}
}

func TestRoutersPassOverTheFull(t *testing.T) {
	for _, route := range []router.Route{router.RoundRobin, router.Random, router.LeastLoaded} {
		w := seeded(t, 1)
		worker := namer()
		worker.Held, worker.Mailbox = true, actor.Mailbox{Capacity: 2, Policy: actor.Fail}
		r := w.spawn(router.Config{Workers: 3, Worker: worker, Route: route})
		for i := range 6 {
			require.NoError(t, r.Tell(i))
		}
		w.exec.Run()
		require.Zero(t, w.sys.DeadLetters().Count(), route)
		_, err := r.Ask(context.Background(), "one too many")
		var full *actor.FullError
		require.ErrorAs(t, err, &full)
		require.Same(t, r, full.Ref.Parent())
		require.EqualValues(t, 1, w.sys.DeadLetters().Count())
		require.NoError(t, r.Tell("and another"))
		w.exec.Run()
		require.EqualValues(t, 2, w.sys.DeadLetters().Count())
	}
}

func TestResizeLosesNothing(t *testing.T) {
	for seed := range uint64(100) {
		w := seeded(t, seed)
		handled := map[any]int{}
		worker := actor.PropsFunc(func(_ *actor.Context, msg any) error {
			handled[msg]++
			// So slow that those that are too many are still at work when there
			// are to be more again.
			return w.sys.Sleep(context.Background(), time.Millisecond)
		})
		r := w.spawn(router.Config{Workers: 4, Worker: worker})
		n := 0
		for _, size := range []int{1, 4, 2, 5, 1, 3} {
			for range 10 {
				require.NoError(t, r.Tell(n))
				n++
			}
			require.NoError(t, r.Tell(router.Resize{Workers: size}))
		}
		w.exec.Run()
		require.Len(t, handled, n)
		require.Zero(t, w.sys.DeadLetters().Count())
		require.Empty(t, func() (late []string) {
			for _, c := range r.Children() {
				if c.Stopped() {
					late = append(late, c.Name())
				}
			}
			return late
		}())
		v, err := r.Ask(context.Background(), router.Resize{Workers: 2})
		require.NoError(t, err)
		require.Nil(t, v)
		_, err = r.Ask(context.Background(), router.Resize{})
		require.ErrorIs(t, err, actor.ErrInvalid)
	}
}

func TestARouterKeepsTheSender(t *testing.T) {
	w := seeded(t, 1)
	r := w.spawn(router.Config{Worker: namer()})
	probe := actortest.NewProbe(t, w.sys, "probe")
	probe.Send(r, "x")
	m := probe.NextMessage()
	require.Equal(t, "0", m.Payload)
	require.Same(t, r, m.Sender.Parent())
}

func TestConfigsThatCannotBe(t *testing.T) {
	w := seeded(t, 1)
	for _, cfg := range []router.Config{
		{},
		{Worker: namer(), Workers: -1},
		{Worker: namer(), Workers: router.MaxWorkers + 1},
		{Worker: namer(), Route: router.LeastLoaded + 1},
		{Worker: actor.Props{New: namer().New, Mailbox: actor.Mailbox{Policy: actor.Fail}}},
		{Worker: namer(), Mailbox: actor.Mailbox{Policy: actor.Fail}},
	} {
		_, err := router.Spawn(w.sys, "x", cfg)
		require.ErrorIs(t, err, actor.ErrInvalid)
	}
}

// On the real executor every message is handled once, with workers that stop
// all the time.
func TestNothingIsLostWithWorkersThatRetire(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	handled := make(chan any, 4000)
	r, err := router.Spawn(sys, "r", router.Config{Workers: 3, Worker: actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		handled <- msg
		ctx.Retire()
		return nil
	})})
	require.NoError(t, err)
	for i := range cap(handled) {
		require.NoError(t, r.Tell(i))
	}
	seen := map[any]bool{}
	for range cap(handled) {
		seen[<-handled] = true
	}
	require.Len(t, seen, cap(handled))
	require.NoError(t, sys.Stop(context.Background()))
	require.Zero(t, sys.DeadLetters().Count())
}

// A message whose key cannot be had harms itself: it is a dead letter, and its ask
// fails. What waits for the workers stays.
func TestAKeyThatPanicsHarmsItsMessage(t *testing.T) {
	for _, hashKey := range []func(any) (string, bool){nil, func(msg any) (string, bool) { return msg.(keyed).key, true }} {
		w := seeded(t, 1)
		cfg := router.Config{Worker: namer(), Route: router.ConsistentHash, HashKey: hashKey}
		r := w.spawn(cfg)
		var bad any = (*keyed)(nil)
		var letters []actor.ZombieMsg
		defer w.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { letters = append(letters, z) })()
		first := w.ask(r, keyed{"a"})
		child, ok := r.Child(first)
		require.True(t, ok)
		for range 10 {
			require.NoError(t, r.Tell(bad))
		}
		_, err := r.Ask(context.Background(), bad)
		var panicked *actor.PanicError
		require.ErrorAs(t, err, &panicked)
		require.ErrorContains(t, err, r.Path()+": the key of a *router_test.keyed: ")
		require.Len(t, letters, 11)
		require.Equal(t, r.Path(), letters[0].To)
		require.False(t, child.Stopped())
		require.Equal(t, first, w.ask(r, keyed{"a"}))
	}
}
