package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// The messages of the test's actor.
type (
	echo  struct{ v any }
	fault struct{ err error }
	keep  struct{} // is answered when the actor gets letGo
	letGo struct{}
)

// keeper answers echo and fault at once, and keeps the replies of keep.
func keeper() actor.Actor {
	var kept []*actor.Promise
	return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
		switch m := msg.(type) {
		case echo:
			ctx.Respond(m.v)
		case fault:
			ctx.Fail(m.err)
		case keep:
			kept = append(kept, ctx.Defer())
		case letGo:
			for _, p := range kept {
				p.Complete("late")
			}
		}
		return nil
	})
}

func realSystem(t *testing.T) (*actor.System, *actor.Ref) {
	t.Helper()
	sys := actor.NewSystem("test", actor.Config{})
	t.Cleanup(func() { require.NoError(t, sys.Stop(context.Background())) })
	return sys, spawn(t, sys)
}

func spawn(t *testing.T, sys *actor.System) *actor.Ref {
	t.Helper()
	ref, err := sys.Spawn("keeper", actor.PropsOf(keeper))
	require.NoError(t, err)
	return ref
}

func TestFutureEndsWithTheAnswer(t *testing.T) {
	sys, ref := realSystem(t)
	s := patterns.NewCompletionService(sys, patterns.Config{})
	ctx := context.Background()

	f, err := s.StartWith(ctx, ref, echo{7}, time.Minute, "mine")
	require.NoError(t, err)
	v, err := f.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 7, v)
	require.Equal(t, "mine", f.Own(), "the caller's own value comes back untouched")
	<-f.Done()
	v, err = f.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 7, v, "an ended future can be read again")

	no := errors.New("no")
	f, err = s.Start(ctx, ref, fault{no}, time.Minute)
	require.NoError(t, err)
	_, err = f.Wait(ctx)
	require.ErrorIs(t, err, no)
	require.Zero(t, s.Open())
}

func TestFuturesAreBounded(t *testing.T) {
	sys, ref := realSystem(t)
	s := patterns.NewCompletionService(sys, patterns.Config{Limit: 2})
	ctx := context.Background()
	first, err := s.Start(ctx, ref, keep{}, time.Minute)
	require.NoError(t, err)
	_, err = s.Start(ctx, ref, keep{}, time.Minute)
	require.NoError(t, err)
	_, err = s.Start(ctx, ref, keep{}, time.Minute)
	require.ErrorIs(t, err, patterns.ErrOverloaded)
	first.Cancel()
	_, err = s.Start(ctx, ref, keep{}, time.Minute)
	require.NoError(t, err, "an ended future makes room")
	s.Close()
	require.Zero(t, s.Open())
	_, err = s.Start(ctx, ref, echo{1}, time.Minute)
	require.ErrorIs(t, err, actor.ErrStopped)
}

func TestFutureOfARefusedMessage(t *testing.T) {
	sys, _ := realSystem(t)
	block := make(chan struct{})
	full, err := sys.Spawn("full", actor.Props{
		New: func() actor.Actor {
			return actor.ActorFunc(func(*actor.Context, any) error { <-block; return nil })
		},
		Mailbox: actor.Mailbox{Capacity: 1, Policy: actor.Fail},
	})
	require.NoError(t, err)
	defer close(block)
	s := patterns.NewCompletionService(sys, patterns.Config{})
	defer s.Close()
	require.Eventually(t, func() bool {
		_, err = s.Start(context.Background(), full, keep{}, time.Minute)
		return errors.Is(err, actor.ErrMailboxFull)
	}, patience, time.Millisecond)
	require.LessOrEqual(t, s.Open(), 2, "what was refused takes no room")
}

func TestFutureEndsWithItsContext(t *testing.T) {
	sys, ref := realSystem(t)
	s := patterns.NewCompletionService(sys, patterns.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	f, err := s.Start(ctx, ref, keep{}, time.Minute)
	require.NoError(t, err)
	ended := f.Done()
	select {
	case <-ended:
		t.Fatal("the future has not ended")
	default:
	}
	cancel()
	_, err = f.Wait(context.Background())
	require.ErrorIs(t, err, patterns.ErrCancelled)
	<-ended
	_, err = s.Start(ctx, ref, echo{1}, time.Minute)
	require.ErrorIs(t, err, context.Canceled, "a context that has ended starts nothing")
	require.Zero(t, s.Open())
}

func TestManyWaitForOneFuture(t *testing.T) {
	sys, ref := realSystem(t)
	s := patterns.NewCompletionService(sys, patterns.Config{})
	f, err := s.Start(context.Background(), ref, keep{}, time.Minute)
	require.NoError(t, err)
	var wg sync.WaitGroup
	got := make([]any, 8)
	for i := range got {
		wg.Go(func() { got[i], _ = f.Wait(context.Background()) })
	}
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = f.Wait(impatient)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, s.Open(), "a waiter that gives up leaves the future open")
	ref.Tell(letGo{})
	wg.Wait()
	require.Equal(t, []any{"late", "late", "late", "late", "late", "late", "late", "late"}, got)
}

// Each future ends exactly once, whatever comes first, in every order that a
// seed chooses.
func TestFuturesEndUnderSeeds(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(300) {
		ends[endings(t, seed)]++
	}
	for _, kind := range []string{"late", "timeout", "cancelled"} {
		require.Positive(t, ends[kind], "no seed ended a contested future with %s: %v", kind, ends)
	}
	again := endings(t, 7)
	require.Equal(t, endings(t, 7), again, "a seed repeats itself")
}

// endings lets an answer, a timeout and a cancellation race in one instant, and
// returns which of them won.
func endings(t *testing.T, seed uint64) string {
	t.Helper()
	exec := actortest.NewSeeded(seed)
	defer exec.Close()
	sys := actor.NewSystem("seeded", actor.Config{Executor: exec})
	ref := spawn(t, sys)
	s := patterns.NewCompletionService(sys, patterns.Config{Timeout: time.Second})
	ctx := context.Background()

	quick, err := s.Start(ctx, ref, echo{"quick"}, 0)
	require.NoError(t, err)
	lost, err := s.Start(ctx, ref, keep{}, 0)
	require.NoError(t, err)
	bounded, release := sys.WithTimeout(ctx, 200*time.Millisecond)
	defer release()
	linked, err := s.Start(bounded, ref, keep{}, 0)
	require.NoError(t, err)
	contested, err := s.Start(ctx, ref, keep{}, 500*time.Millisecond)
	require.NoError(t, err)
	sys.After(500*time.Millisecond, func() { contested.Cancel() })
	sys.After(500*time.Millisecond, func() { ref.Tell(letGo{}) })
	exec.Run()

	require.Zero(t, s.Open(), "seed %d", seed)
	v, err := quick.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "quick", v)
	_, err = linked.Wait(ctx)
	require.ErrorIs(t, err, patterns.ErrCancelled, "seed %d: its context ended first", seed)
	v, err = lost.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "late", v)
	v, err = contested.Wait(ctx)
	switch {
	case errors.Is(err, actor.ErrTimeout):
		return "timeout"
	case errors.Is(err, patterns.ErrCancelled):
		return "cancelled"
	default:
		return fmt.Sprint(v)
	}
}

func TestLateAnswersAreDeadLetters(t *testing.T) {
	exec := actortest.NewSeeded(1)
	defer exec.Close()
	sys := actor.NewSystem("seeded", actor.Config{Executor: exec})
	ref := spawn(t, sys)
	s := patterns.NewCompletionService(sys, patterns.Config{})
	f, err := s.Start(context.Background(), ref, keep{}, time.Second)
	require.NoError(t, err)
	_, err = f.Wait(context.Background())
	require.ErrorIs(t, err, actor.ErrTimeout)
	before := sys.DeadLetters().Count()
	ref.Tell(letGo{})
	exec.Run()
	require.Equal(t, before+1, sys.DeadLetters().Count())
	f.Cancel()
	require.Equal(t, before+1, sys.DeadLetters().Count(), "cancelling an ended future does nothing")
}

// order is an actor that answers asks in their order when told "next".
func order() actor.Actor {
	var waiting []*actor.Promise
	return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
		if msg == "next" {
			if len(waiting) > 0 {
				waiting[0].Complete("done")
				waiting = waiting[1:]
			}
			return nil
		}
		waiting = append(waiting, ctx.Defer())
		return nil
	})
}

func TestCallersWaitBeyondTheLimit(t *testing.T) {
	w := oneWorld(t)
	ref := w.spawn("order", actor.PropsOf(order))
	s := patterns.NewCompletionService(w.sys, patterns.Config{Limit: 2, Waiting: 2, Timeout: time.Minute})
	ctx := context.Background()
	ends := make([]error, 6)
	values := make([]any, 6)
	start := func(i int, ctx context.Context, timeout time.Duration) {
		w.sys.Go(func() {
			f, err := s.StartWith(ctx, ref, i, timeout, i)
			if err == nil {
				values[i], err = f.Wait(context.Background())
			}
			ends[i] = err
		})
		w.exec.RunFor(0)
	}
	for i := range 3 {
		start(i, ctx, 0)
	}
	start(3, ctx, 45*time.Second)
	require.Equal(t, patterns.State{Waiting: 2, Capacity: 2, Active: 2, Passed: 2}, s.Status())
	start(4, ctx, 0)
	require.ErrorIs(t, ends[4], patterns.ErrOverloaded, "no more wait than may")
	w.exec.RunFor(30 * time.Second)
	ref.Tell("next")
	w.exec.RunFor(0)
	require.Equal(t, "done", values[0])
	require.Equal(t, patterns.State{Waiting: 1, Capacity: 2, Active: 2, Passed: 3, Refused: 1}, s.Status())
	// The wait is part of the timeout.
	w.exec.RunFor(30 * time.Second)
	require.ErrorIs(t, ends[1], actor.ErrTimeout)
	require.ErrorIs(t, ends[2], actor.ErrTimeout)
	require.ErrorIs(t, ends[3], patterns.ErrOverloaded, "no time was left when there was room")
	require.Equal(t, patterns.State{Capacity: 2, Passed: 3, Refused: 2}, s.Status())

	s.Pause()
	quick, cancel := w.sys.WithTimeout(ctx, time.Second)
	defer cancel()
	start(4, quick, 0)
	start(5, ctx, 0)
	require.Equal(t, 2, s.Status().Waiting, "paused")
	w.exec.RunFor(2 * time.Second)
	require.ErrorIs(t, ends[4], context.DeadlineExceeded)
	require.Equal(t, 1, s.Status().Waiting)
	s.Continue()
	require.Equal(t, patterns.State{Capacity: 2, Active: 1, Passed: 4, Refused: 3}, s.Status())
	w.exec.RunFor(0)
	for range 4 {
		ref.Tell("next")
	}
	w.exec.RunFor(0)
	require.Equal(t, "done", values[5])

	s.Pause()
	start(0, ctx, 0)
	s.Close()
	w.exec.RunFor(0)
	require.ErrorIs(t, ends[0], actor.ErrStopped)
	require.Zero(t, s.Status().Waiting)
}

// Callers beyond the limit, answers, timeouts and cancellations in every order:
// there are never too many futures, each ends, and none that waits is passed
// over.
func TestCallersWaitUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		ref := w.spawn("order", actor.PropsOf(order))
		cfg := patterns.Config{Limit: 1 + w.IntN(3), Waiting: w.IntN(6), Timeout: time.Second}
		s := patterns.NewCompletionService(w.sys, cfg)
		ended := 0
		const callers = 20
		for i := range callers {
			w.later(2*time.Second, func() {
				w.sys.Go(func() {
					ctx, cancel := w.sys.WithTimeout(context.Background(), time.Duration(1+w.IntN(2000))*time.Millisecond)
					defer cancel()
					f, err := s.Start(ctx, ref, i, 0)
					if err == nil {
						_, err = f.Wait(context.Background())
					}
					for _, known := range []error{nil, actor.ErrTimeout, actor.ErrStopped, patterns.ErrOverloaded, patterns.ErrCancelled, context.DeadlineExceeded} {
						if errors.Is(err, known) {
							ended++
							return
						}
					}
					t.Errorf("ended with %v", err)
				})
			})
		}
		for range 30 {
			w.later(3*time.Second, func() { ref.Tell("next") })
			w.later(3*time.Second, func() {
				state := s.Status()
				require.LessOrEqual(w.t, state.Active, cfg.Limit)
				require.LessOrEqual(w.t, state.Waiting, cfg.Waiting)
				if state.Waiting > 0 && !state.Paused {
					require.Equal(w.t, cfg.Limit, state.Active, "nobody waits while there is room")
				}
			})
		}
		w.later(2*time.Second, s.Pause)
		w.later(4*time.Second, s.Continue)
		if w.IntN(3) == 0 {
			w.later(3*time.Second, s.Close)
		}
		w.exec.Run()
		require.Equal(w.t, callers, ended)
		require.Zero(w.t, s.Open())
		require.Zero(w.t, s.Status().Active+s.Status().Waiting)
	})
}

// A payload passes through as it is: also one that has another origin comes back
// as the future's answer.
func TestFutureOfAReturnable(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "b")...)
	origin := w.recorder("origin")
	s := patterns.NewCompletionService(w.sys, patterns.Config{})
	f, err := s.Start(t.Context(), pipe, parcel{Returnable: patterns.Returnable{Origin: origin.ref}}, 0)
	require.NoError(t, err)
	v, err := f.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ab", v.(parcel).trail)
	require.Empty(t, origin.got)
}
