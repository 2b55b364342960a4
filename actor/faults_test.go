package actor_test

// Faults that other actor runtimes have been seen to have, each with a test of
// that name. Some of what is tested here is tested more thoroughly where it
// belongs.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

func TestAnAskWhoseHandlerErrorsOrPanicsAnswersAtOnce(t *testing.T) {
	for seed := range uint64(100) {
		sys, _ := seededSystem(t, seed)
		r := spawn(t, sys, "r", actor.PropsFunc(func(_ *actor.Context, msg any) error {
			if msg == "panic" {
				panic(errTest)
			}
			return errTest
		}))
		for _, msg := range []string{"error", "panic"} {
			begin := sys.Now()
			_, err := r.Ask(context.Background(), msg)
			require.ErrorIs(t, err, errTest)
			if msg == "error" { // the second one waits for the restart's backoff, and no longer
				require.Equal(t, begin, sys.Now())
			} else {
				require.LessOrEqual(t, sys.Now().Sub(begin), 50*time.Millisecond)
			}
		}
	}
}

func TestAsksAreNeverLostOrCrossedUnder64Askers(t *testing.T) {
	sys := realSystem(t)
	const askers = 64
	echoes := make([]*actor.Ref, 8)
	for i := range echoes {
		echoes[i] = spawn(t, sys, "", echoProps())
	}
	var wrong, failed atomic.Int64
	var wg sync.WaitGroup
	for a := range askers {
		wg.Go(func() {
			for i := range manyAsks / askers {
				want := numbered{a, i}
				got, err := echoes[(a+i)%len(echoes)].Ask(context.Background(), want)
				if err != nil {
					failed.Add(1)
				} else if got != want {
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, failed.Load(), "lost")
	require.Zero(t, wrong.Load(), "crossed")
	require.Zero(t, sys.DeadLetters().Count())
}

func TestWatchNeverMissesATerminatedThatRacesWithStop(t *testing.T) {
	sys := realSystem(t)
	probe := actortest.NewProbe(t, sys, "probe")
	for range 1000 {
		r := spawn(t, sys, "", idle())
		go r.Stop()
		probe.Watch(r)
		_ = probe.ExpectTerminated(r)
	}
	require.Zero(t, probe.Len(), "and never tells twice")
}

func TestTerminatedNeverOvertakesTheLastTellOfAnyActor(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		probe := actortest.NewProbe(t, sys, "probe")
		var all []*actor.Ref
		for i := range 8 {
			r := spawn(t, sys, fmt.Sprint(i), actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				for n := range 20 {
					_ = ctx.Tell(probe.Ref(), numbered{i, n})
				}
				if msg == "stop" {
					ctx.StopSelf()
				}
				return nil
			}))
			probe.Watch(r)
			all = append(all, r)
		}
		for i, r := range all {
			if i%2 == 0 {
				require.NoError(t, r.Tell("stop"))
			} else {
				require.NoError(t, r.Tell("go"))
				require.NoError(t, r.Tell(actor.PoisonPill{}))
			}
		}
		told := map[string]int{}
		for range 8 * 21 {
			m := probe.NextMessage()
			name := m.Sender.Name()
			if _, ok := m.Payload.(actor.Terminated); ok {
				require.Equal(t, 20, told[name])
			} else {
				told[name]++
			}
		}
	})
}

func TestSameNameSpawnsFromTwoGoroutinesYieldOneActorAndOneErrAlreadyExists(t *testing.T) {
	sys := realSystem(t)
	for i := range 300 {
		name := fmt.Sprint("x", i)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := sys.Spawn(name, idle())
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if first != nil {
			first, second = second, first
		}
		require.NoError(t, first)
		require.ErrorIs(t, second, actor.ErrAlreadyExists)
	}
}

func TestANameFreedAndTakenAgainNeverReceivesTheOldOnesLeftovers(t *testing.T) {
	for seed := range uint64(200) {
		sys, exec := seededSystem(t, seed)
		var got []any
		old := spawn(t, sys, "x", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			ctx.ScheduleOnce(time.Second, ctx.Self(), "old timer")
			ctx.PipeTo(ctx.Self(), func(context.Context) (any, error) {
				return "old result", sys.Sleep(context.Background(), time.Second)
			})
			ctx.Hold()
			return nil
		}))
		require.NoError(t, old.Tell("go"))
		sys.Go(func() {
			for i := range 10 {
				_ = old.Tell(i)
				_ = sys.Sleep(context.Background(), time.Duration(seed%3)*time.Millisecond)
			}
		})
		exec.RunFor(time.Duration(seed%5) * time.Millisecond)
		old.Stop()
		awaitStop(t, old)
		fresh := spawn(t, sys, "x", actor.PropsFunc(func(_ *actor.Context, msg any) error {
			got = append(got, msg)
			return nil
		}))
		require.NoError(t, old.Tell("to the old one"))
		require.NoError(t, fresh.Tell("to the new one"))
		exec.Run()
		require.Equal(t, []any{"to the new one"}, got)
	}
}

func TestAllForOneNeverLosesASiblingsChildren(t *testing.T) {
	for seed := range uint64(300) {
		sys, exec := seededSystem(t, seed)
		top := idle()
		top.Supervisor = &actor.Strategy{AllForOne: true}
		parent := spawn(t, sys, "parent", top)
		handled := map[string]int{}
		var kids []*actor.Ref
		for i := range 3 {
			k, err := parent.Spawn(fmt.Sprint("k", i), actor.PropsOf(func() actor.Actor {
				return &family{handled: handled}
			}))
			require.NoError(t, err)
			kids = append(kids, k)
		}
		for round := range 2 {
			for n := range 5 {
				for i, k := range kids {
					if i == round && n == 2 {
						require.NoError(t, k.Tell("fail"))
					}
					require.NoError(t, k.Tell(n))
				}
			}
			exec.Run()
		}
		for _, k := range kids {
			require.Equal(t, 10, handled[k.Name()], "the mailbox survives")
			require.Len(t, k.Children(), 2)
			for _, c := range k.Children() {
				require.False(t, c.Stopped())
				require.Equal(t, "there", ask(t, c, "there"))
			}
		}
		require.Zero(t, sys.DeadLetters().Count())
	}
}

// family spawns two children whenever it starts.
type family struct{ handled map[string]int }

func (f *family) PreStart(ctx *actor.Context) error {
	for _, name := range []string{"a", "b"} {
		if _, err := ctx.Spawn(name, echoProps()); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) Receive(ctx *actor.Context, msg any) error {
	if msg == "fail" {
		return errTest
	}
	f.handled[ctx.Self().Name()]++
	return nil
}

func TestConstructionThatFailsHarmsOnlyItself(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		parent := spawn(t, sys, "parent", echoProps())
		sibling, err := parent.Spawn("sibling", echoProps())
		require.NoError(t, err)
		var broken []*actor.Ref
		for name, p := range map[string]actor.Props{
			"panics":  {New: func() actor.Actor { panic("no") }},
			"nil":     {New: func() actor.Actor { return nil }},
			"mailbox": {New: idle().New, Mailbox: actor.Mailbox{New: func() actor.Queue { panic("no") }}},
			"start":   actor.PropsOf(func() actor.Actor { return &fragile{log: new([]string), start: func() error { return errTest }} }),
		} {
			r, err := parent.Spawn(name, p)
			require.NoError(t, err)
			_ = r.Tell("x")
			broken = append(broken, r)
		}
		require.Equal(t, 1, ask(t, sibling, 1))
		exec.Run()
		for _, r := range broken {
			require.True(t, r.Stopped(), "%v has used up its restarts", r)
		}
		require.Equal(t, 2, ask(t, sibling, 2))
		require.Equal(t, 3, ask(t, parent, 3))
		require.Len(t, parent.Children(), 1)
	}
}

func TestAStopDuringRecoveryOrDuringA10sHandlerReturns(t *testing.T) {
	slow := func(ctx *actor.Context) error { return ctx.System().Sleep(context.Background(), 10*time.Second) }
	for name, p := range map[string]actor.Props{
		"handler":  actor.PropsFunc(func(ctx *actor.Context, _ any) error { return slow(ctx) }),
		"PreStart": actor.PropsOf(func() actor.Actor { return &slowStart{slow} }),
		"held": {Held: true, New: func() actor.Actor {
			return actor.ActorFunc(func(*actor.Context, any) error { return nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				sys, exec := seededSystem(t, seed)
				r := spawn(t, sys, "r", p)
				require.NoError(t, r.Tell("x"))
				exec.RunFor(time.Second)
				begin := sys.Now()
				r.Stop()
				ctx, cancel := sys.WithTimeout(context.Background(), time.Second)
				err := sys.Stop(ctx)
				cancel()
				if name == "held" {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "/user/r")
				require.Equal(t, time.Second, sys.Now().Sub(begin))
				require.NoError(t, sys.Stop(context.Background()))
				require.Equal(t, 9*time.Second, sys.Now().Sub(begin), "it ended with what it was at")
			}
		})
	}
}

type slowStart struct{ f func(*actor.Context) error }

func (s *slowStart) PreStart(ctx *actor.Context) error { return s.f(ctx) }
func (s *slowStart) Receive(*actor.Context, any) error { return nil }

func TestTwoActorsFillingEachOthersBlockMailboxesDoNotDeadlock(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var refused atomic.Int64
		flood := func(send func(ctx *actor.Context, to *actor.Ref) error) actor.Props {
			p := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				if to, ok := msg.(*actor.Ref); ok {
					for range 100 {
						if err := send(ctx, to); errors.Is(err, actor.ErrMailboxFull) {
							refused.Add(1)
						}
					}
				}
				if ctx.Message().Reply != nil {
					ctx.Respond(nil)
				}
				return nil
			})
			p.Mailbox = actor.Mailbox{Capacity: 4, Policy: actor.Block}
			return p
		}
		a := spawn(t, sys, "a", flood(func(ctx *actor.Context, to *actor.Ref) error { return ctx.Tell(to, "x") }))
		b := spawn(t, sys, "b", flood(func(_ *actor.Context, to *actor.Ref) error { return to.Tell("x") }))
		for range 3 {
			require.NoError(t, a.Tell(b))
			require.NoError(t, b.Tell(a))
		}
		ask(t, a, "end")
		ask(t, b, "end")
		require.Positive(t, refused.Load())
	})
}

func TestAStoppedSubscriberOfDeadLettersCausesNoLoop(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		seen := 0
		var mu sync.Mutex
		var subscribers []*actor.Ref
		for range 2 { // two, which could tell each other for ever
			s := spawn(t, sys, "", idle())
			sys.DeadLetters().SubscribeRef(s)
			sys.Events().SubscribeRef(s)
			subscribers = append(subscribers, s)
		}
		sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
			mu.Lock()
			seen++
			mu.Unlock()
			for _, s := range subscribers {
				_ = s.Tell(z)
			}
		})
		for _, s := range subscribers {
			s.Stop()
			awaitStop(t, s)
		}
		before := sys.DeadLetters().Count()
		mu.Lock()
		seenBefore := seen // what the two had in their mailboxes
		mu.Unlock()
		require.NoError(t, subscribers[0].Tell("x"))
		require.Equal(t, before+3, sys.DeadLetters().Count(), "x, and what the function told two dead ones")
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, seenBefore+1, seen)
	})
}

func TestStoppingAMissingActorTouchesNobody(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		parent := spawn(t, sys, "parent", echoProps())
		for _, name := range []string{"a", "ab", "b"} {
			_, err := parent.Spawn(name, echoProps())
			require.NoError(t, err)
		}
		for _, name := range []string{"", "c", "a/b", "..", "*", ".", "parent", "A"} {
			require.False(t, parent.StopChild(name), "%q", name)
		}
		gone, _ := parent.Child("b")
		require.True(t, parent.StopChild("b"))
		awaitStop(t, gone)
		fresh, err := parent.Spawn("b", echoProps())
		require.NoError(t, err)
		gone.Stop() // the old one, not whoever has its name now
		require.Equal(t, 1, ask(t, fresh, 1))
		require.Len(t, parent.Children(), 3)
		for _, c := range parent.Children() {
			require.False(t, c.Stopped())
		}
	})
}

func TestAHandlerBlockedForEverDelaysNeitherOthersNorTheStopBeyondItsDeadline(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{Workers: 2})
	leave := make(chan struct{})
	for range 5 {
		r := spawn(t, sys, "", actor.PropsFunc(func(*actor.Context, any) error { <-leave; return nil }))
		require.NoError(t, r.Tell("x"))
	}
	other := spawn(t, sys, "other", echoProps())
	for i := range 1000 {
		require.Equal(t, i, ask(t, other, i))
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var late *actor.LateError
	require.ErrorAs(t, sys.Stop(ctx), &late)
	require.Len(t, late.Actors, 5)
	require.Less(t, time.Since(begin), 5*time.Second)
	awaitStop(t, other)
	close(leave)
	stopSystem(t, sys)
}

// An actor that is told or hears something by another system's actor runs on its own
// system's workers: it may block there, and keeps nobody else from stopping.
func TestTwoSystemsShareNoWorkers(t *testing.T) {
	for _, how := range []string{"told", "hears"} {
		a, b := actor.NewSystem("a", actor.Config{}), realSystem(t)
		begun, leave := make(chan struct{}), make(chan struct{})
		target := spawn(t, a, "target", idle())
		blocks := spawn(t, b, "blocks", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			if msg == "watch" {
				ctx.Watch(target)
				ctx.Respond(nil)
				return nil
			}
			close(begun)
			<-leave
			return nil
		}))
		ask(t, blocks, "watch")
		until(t, b, func() bool { return blocks.Load() == 0 })
		if how == "told" {
			tells := spawn(t, a, "tells", actor.PropsFunc(func(ctx *actor.Context, _ any) error { return ctx.Tell(blocks, 1) }))
			require.NoError(t, tells.Tell(1))
		} else {
			target.Stop()
		}
		<-begun
		stopSystem(t, a)
		close(leave)
	}
	// The same of a simulated one: what is told outside is no part of its order.
	sim, _ := seededSystem(t, 1)
	outer := realSystem(t)
	heard := make(chan bool, 1)
	listens := spawn(t, outer, "listens", actor.PropsFunc(func(*actor.Context, any) error {
		heard <- true
		return nil
	}))
	until(t, outer, func() bool { return listens.Load() == 0 })
	tells := spawn(t, sim, "tells", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		if err := ctx.Tell(listens, 1); err != nil {
			return err
		}
		select {
		case <-heard:
		case <-time.After(waitLong):
			t.Error("it waits for the end of this turn")
		}
		ctx.Respond(nil)
		return nil
	}))
	ask(t, tells, 1)
}

func TestTwoSystemsInOneProcessShareNothing(t *testing.T) {
	a, b := realSystem(t), realSystem(t)
	probe := actortest.NewProbe(t, b, "x")
	b.DeadLetters().SubscribeRef(probe.Ref())
	var strangers atomic.Int64
	b.Events().Subscribe(func(e actor.Event) {
		if e.Ref.System() != b {
			strangers.Add(1)
		}
	})
	r := spawn(t, a, "x", echoProps())
	a.Global().Set("k", 1)
	_, ok := b.Global().Get("k")
	require.False(t, ok)
	_, err := a.Lookup("/user/x")
	require.NoError(t, err)
	require.Empty(t, slices.Collect(probe.Ref().Tree())[1:])
	r.Stop()
	awaitStop(t, r)
	require.NoError(t, r.Tell("dead"))
	require.EqualValues(t, 1, a.DeadLetters().Count())
	require.Zero(t, b.DeadLetters().Count())
	probe.ExpectNone(5 * time.Millisecond)
	stopSystem(t, a)
	require.Zero(t, strangers.Load())
	require.False(t, probe.Ref().Stopped())
	require.Equal(t, 1, ask(t, spawn(t, b, "y", echoProps()), 1))
}
