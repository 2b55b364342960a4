package actor_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

// Whatever the budget of a turn, an actor handles one message at a time and
// each sender's in order.
func TestOneAtATimeAndInOrderUnderAnyBudget(t *testing.T) {
	for _, budget := range []int{1, 2, 7, 32, 1000} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			sys := actor.NewSystem("test", actor.Config{Throughput: budget, Workers: 4})
			defer stopSystem(t, sys)
			const senders, each, actors = 4, 500, 5
			var faults, handled atomic.Int64
			var all []*actor.Ref
			for range actors {
				var inside atomic.Bool
				last := [senders]int{}
				all = append(all, spawn(t, sys, "", actor.PropsFunc(func(_ *actor.Context, msg any) error {
					m := msg.(numbered)
					if inside.Swap(true) || last[m.from]+1 != m.n {
						faults.Add(1)
					}
					last[m.from] = m.n
					if m.n%50 == 0 {
						runtime.Gosched()
					}
					inside.Store(false)
					handled.Add(1)
					return nil
				})))
			}
			var wg sync.WaitGroup
			for from := range senders {
				wg.Go(func() {
					for n := 1; n <= each; n++ {
						for _, r := range all {
							_ = r.Tell(numbered{from, n})
						}
					}
				})
			}
			wg.Wait()
			until(t, sys, func() bool { return handled.Load() == senders*each*actors })
			require.Zero(t, faults.Load())
		})
	}
}

// byHand is an executor whose turns the test runs.
type byHand struct {
	actor.Executor
	tasks []actor.Task
}

func (e *byHand) Schedule(t actor.Task) { e.tasks = append(e.tasks, t) }
func (e *byHand) Wake(t actor.Task)     { e.Schedule(t) }
func (e *byHand) Budget(limit int) int  { return limit }
func (e *byHand) turn() {
	t := e.tasks[0]
	e.tasks = e.tasks[1:]
	if t.Run(e) {
		e.Schedule(t)
	}
}

func TestThroughputIsHowManyMessagesATurnHandles(t *testing.T) {
	for budget, want := range map[int]int{0: 32, 1: 1, 5: 5} {
		e := &byHand{}
		sys := actor.NewSystem("test", actor.Config{Throughput: budget, Executor: e})
		handled := 0
		r := spawn(t, sys, "r", actor.PropsFunc(func(*actor.Context, any) error { handled++; return nil }))
		for len(e.tasks) > 0 {
			e.turn() // all start and come to rest
		}
		for i := range 100 {
			require.NoError(t, r.Tell(i))
		}
		for sum := 0; sum < 100; {
			e.turn()
			sum = min(sum+want, 100)
			require.Equal(t, sum, handled)
		}
	}
}

// A stop takes effect after at most one more message, however many wait.
func TestAStopGoesAheadOfTenThousandMessages(t *testing.T) {
	sys := realSystem(t)
	var handled, stopAt atomic.Int64
	stopAt.Store(-1)
	entered, leave := make(chan struct{}), make(chan struct{})
	r := spawn(t, sys, "r", actor.PropsFunc(func(*actor.Context, any) error {
		if handled.Add(1) == 1 {
			close(entered)
			<-leave
		}
		return nil
	}))
	for i := range 10_001 {
		require.NoError(t, r.Tell(i))
	}
	<-entered
	r.Stop()
	stopAt.Store(handled.Load())
	close(leave)
	awaitStop(t, r)
	require.LessOrEqual(t, handled.Load(), stopAt.Load()+1)
	require.EqualValues(t, 10_001-handled.Load(), sys.DeadLetters().Count())
}

// Goroutines are the workers and a constant, however many actors there are.
func TestGoroutinesStayAtWorkersAndAConstant(t *testing.T) {
	before := runtime.NumGoroutine()
	sys := actor.NewSystem("test", actor.Config{Workers: 4})
	defer stopSystem(t, sys)
	var started atomic.Int64
	p := actor.PropsFunc(func(*actor.Context, any) error { started.Add(1); return nil })
	var most int
	for range manyActors {
		r, err := sys.Spawn("", p)
		require.NoError(t, err)
		_ = r.Tell("x")
		most = max(most, runtime.NumGoroutine())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for started.Load() < manyActors {
		require.NoError(t, sys.Sleep(ctx, time.Millisecond))
		most = max(most, runtime.NumGoroutine())
	}
	// On a busy machine the monitor takes workers that do not get to run for
	// ones that stand still, and adds as many.
	require.LessOrEqual(t, most, before+2*4+8)
}
