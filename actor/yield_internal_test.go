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
	r := &Ref{}
	for range n {
		w.Wake(Task{r})
		w.find()
	}
}

// Where there is one processor another goroutine runs when the worker yields,
// and hardly otherwise: the runtime takes it away every 10 ms, and for garbage. The
// worker is told of more processors than there are.
func TestAWorkerYieldsSeldomOnlyWhereAProcessorIsIdle(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	yields := func(procs, parked int) (fewest int32) {
		fewest = 1 << 30
		for range 5 {
			w := alone()
			w.d.procs = procs
			w.d.idlers.Store(int32(parked))
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
			w.looks(yieldIdle)
			done.Store(true)
			<-ended
			fewest = min(fewest, runs.Load())
		}
		return fewest
	}
	const each = yieldIdle / yieldAfter
	require.GreaterOrEqual(t, yields(1, 0), int32(each*3/4), "every %d turns", yieldAfter)
	require.LessOrEqual(t, yields(2, 0), int32(each/4), "every %d turns", yieldIdle)
	require.LessOrEqual(t, yields(1, 1), int32(each/4), "every %d turns", yieldIdle)
}

// Where there is one processor, the other goroutine runs while the worker yields
// ahead of the park; but one time in 61 the runtime lets the worker go on.
func TestAWorkerThatYieldsIsHandedItsTask(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var w *worker
	var got, stands *Ref
	var went scheduled
	r := &Ref{}
	for try := 0; try < 100 && got == nil; try++ {
		w = alone()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			stands = w.d.spinner.seat.Load()
			went = w.d.schedule(Task{r})
		}()
		got = w.find()
		<-ended
	}
	require.Same(t, r, got)
	require.Same(t, &w.d.spinner.away, stands)
	require.Equal(t, taskQueued, went, "it does not run now, so its asker must not spin")
	require.False(t, w.d.queued.Load(), "nobody else needs to see it")
	require.False(t, w.d.monitor.awake.Load())
	require.Nil(t, w.d.spinner.seat.Load(), "the seat is left")
}

// The seat is one worker's; another yields beside it.
func TestAWorkerYieldsWhereTheSeatIsTaken(t *testing.T) {
	for _, taken := range []func(*spinner) *Ref{
		func(s *spinner) *Ref { return &s.vacant },
		func(s *spinner) *Ref { return &s.away },
		func(*spinner) *Ref { return &Ref{} },
	} {
		s := &spinner{}
		by := taken(s)
		s.seat.Store(by)
		require.Nil(t, s.yield())
		require.Same(t, by, s.seat.Load())
	}
}
