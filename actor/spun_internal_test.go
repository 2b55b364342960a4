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

// Only a task that comes while the worker spins because it pays has it yield
// seldom: not one out of its own queues, nor the global one.
func TestAWorkerNotesThatItGotATaskWhileItSpun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	w := alone()
	w.looks(3)
	r := &Ref{}
	w.d.Schedule(Task{r})
	require.Same(t, r, w.find())
	require.False(t, w.spun)

	var done atomic.Bool
	handed := make(chan struct{})
	go func() {
		defer close(handed)
		for !w.d.spinner.hand(r) && !done.Load() {
			runtime.Gosched()
		}
	}()
	var got *Ref
	for n := 0; got == nil && n < 1_000_000; n++ {
		w.d.spinner.paid.Store(true) // falls when the hand came too late
		got = w.find()
	}
	done.Store(true)
	<-handed
	require.Same(t, r, got)
	require.True(t, w.spun)
}

// It yields seldom only until it next thinks of yielding: by then it must have
// got another task while it spun.
func TestAWorkerForgetsThatItSpun(t *testing.T) {
	w := alone()
	w.spun = true
	w.looks(yieldAfter - 1)
	require.True(t, w.spun, "it has not thought of yielding yet")
	w.looks(1)
	require.False(t, w.spun)
	w.looks(2 * yieldAfter)
	require.False(t, w.spun)
}

// Where there is one processor another goroutine runs when the worker yields,
// and hardly otherwise: the runtime takes it away every 10 ms, and for garbage.
func TestAWorkerYieldsSeldomOnlyWhileItGetsTasksSpinning(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	yields := func(spins bool) (fewest int32) {
		fewest = 1 << 30
		for range 5 {
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
			for range yieldSpun / lookAfter {
				w.looks(1)
				w.spun = spins
				w.looks(lookAfter - 1)
			}
			done.Store(true)
			<-ended
			fewest = min(fewest, runs.Load())
		}
		return fewest
	}
	const each = yieldSpun / yieldAfter
	require.GreaterOrEqual(t, yields(false), int32(each*3/4), "every %d turns", yieldAfter)
	require.LessOrEqual(t, yields(true), int32(each/4), "every %d turns", yieldSpun)
}
