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
	}, 5*time.Second, time.Millisecond)
	require.LessOrEqual(t, s.Open(), 2, "what was refused takes no room")
}

func TestFutureEndsWithItsContext(t *testing.T) {
	sys, ref := realSystem(t)
	s := patterns.NewCompletionService(sys, patterns.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	f, err := s.Start(ctx, ref, keep{}, time.Minute)
	require.NoError(t, err)
	cancel()
	_, err = f.Wait(context.Background())
	require.ErrorIs(t, err, patterns.ErrCancelled)
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
