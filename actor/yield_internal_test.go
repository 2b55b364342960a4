package actor

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// alone is a worker of a dispatcher that does nothing and lets it end where it
// would park.
func alone() *worker {
	d, _ := still(1)
	w := (*d.workers.Load())[0]
	return w
}

// looks has w find the same task n times, as if a handler woke it again and
// again.
func (w *worker) looks(n int) {
	r := &Ref{sys: &System{own: w.d}}
	for range n {
		w.Wake(Task{r})
		w.find()
	}
}

// Where there is one processor another goroutine runs when the worker yields,
// and hardly otherwise: the runtime takes it away every 10 ms, and for garbage.
func TestAWorkerYieldsOftenOnlyWhereAGoroutineMayWait(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	yieldsOf := func(rounds int, each func(*worker)) (fewest int32) {
		fewest = 1 << 30
		for range rounds {
			w := alone()
			var runs atomic.Int32
			var done atomic.Bool
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for !done.Load() {
					runs.Add(1)
					runtime.Gosched()
				}
			}()
			for range yieldIdle / lookAfter {
				each(w)
				w.looks(lookAfter)
			}
			done.Store(true)
			<-ended
			fewest = min(fewest, runs.Load())
		}
		return fewest
	}
	yields := func(parked int, rouse func(*dispatcher)) int32 {
		return yieldsOf(5, func(w *worker) {
			w.d.idlers.Store(int32(parked))
			rouse(w.d)
		})
	}
	nobody := func(*dispatcher) {}
	const often, seldom = yieldIdle / yieldAfter * 3 / 4, yieldIdle / yieldAfter / 4
	require.GreaterOrEqual(t, yields(0, nobody), int32(often), "all processors are used")
	require.LessOrEqual(t, yields(1, nobody), int32(seldom), "one is idle")
	require.GreaterOrEqual(t, yields(1, func(d *dispatcher) { d.Go(func() {}) }), int32(often), "but a goroutine was started")
	require.GreaterOrEqual(t, yields(1, func(d *dispatcher) {
		d.NewParker().Unpark()
	}), int32(often), "but a goroutine was woken")
	require.LessOrEqual(t, yieldsOf(5, func(w *worker) { w.yielded = true }), int32(seldom), "it has yielded of itself")
}

// Whoever waits for an answer in a cell of the pool is woken another way.
func TestAnAnswerRousesAnAskerWhoParks(t *testing.T) {
	d, _ := still(1)
	k := d.NewParker().(*chanParker)
	p := &Promise{sys: &System{own: d}, parker: k, quick: k}
	require.True(t, p.resolve(1, nil))
	require.True(t, d.roused.Load())
}

// Whoever spins for an answer has a processor, and does not wait for the worker's.
func TestAnAskerThatSpinsRousesNobody(t *testing.T) {
	d, _ := still(1)
	p := &Promise{sys: &System{own: d}, parker: d.NewParker()}
	p.word.Store(promiseSpins)
	require.True(t, p.resolve(1, nil))
	require.False(t, d.roused.Load())
}

// Nobody knows whose processor a goroutine waits for, so each worker yields once.
func TestEachWorkerYieldsForAGoroutineThatWasWoken(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	d, _ := still(2)
	d.idlers.Store(1)
	workers := *d.workers.Load()
	for range 3 {
		for _, w := range workers {
			require.False(t, d.shouldYield(w))
		}
		d.NewParker().Unpark()
		for _, w := range workers {
			require.True(t, d.shouldYield(w))
			require.False(t, d.shouldYield(w))
		}
	}
}
