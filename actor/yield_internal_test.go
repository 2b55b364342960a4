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
