package actor

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// still is a dispatcher that does nothing, with n workers in the same turn for
// ever.
func still(n int) (*dispatcher, *bytes.Buffer) {
	var out bytes.Buffer
	d := &dispatcher{base: n, log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	var list []*worker
	for range n {
		list = append(list, newWorker(d))
	}
	d.workers.Store(&list)
	d.monitor.init(d)
	d.closed = true // so that it does not grow
	return d, &out
}

func TestTheMonitorWarnsOnlyOfWhatBlocksForLongAndOnceAMinute(t *testing.T) {
	d, out := still(2)
	m := &d.monitor
	warnings := func() int { return strings.Count(out.String(), "level=WARN") }
	m.look(true)
	for range blockedLooks - 1 {
		m.look(false)
	}
	require.Zero(t, warnings(), "a busy machine looks like this")
	require.Contains(t, out.String(), "level=DEBUG")
	for range 10 * blockedLooks {
		m.look(false)
	}
	require.Equal(t, 1, warnings())
	require.Contains(t, out.String(), "handlers=2")
	m.warned = m.warned.Add(-warnPeriod)
	m.look(false)
	m.look(false)
	require.Equal(t, 2, warnings())

	// Turns that end are no blocked handlers, however busy.
	m.warned = time.Time{}
	for range 10 * blockedLooks {
		for _, w := range *d.workers.Load() {
			w.setPace(paceMoving)
		}
		m.look(false)
	}
	for range blockedLooks - 1 {
		m.look(false)
	}
	require.Equal(t, 2, warnings(), "and what stood still before does not count")
}

// The monitor marks who has not moved between two looks, but nobody at its first
// one after a rest, and none who is parked; the mark falls with the first move.
func TestTheMonitorMarksWhoStandsStill(t *testing.T) {
	d, _ := still(1)
	m := &d.monitor
	w := (*d.workers.Load())[0]
	look := func(first bool, pace uint32, stuck, still int) {
		t.Helper()
		m.look(first)
		require.Equal(t, pace, w.pace.Load())
		require.EqualValues(t, stuck, m.stuck.Load())
		require.Equal(t, still, w.still)
	}
	look(true, paceSeen, 0, 0)
	look(true, paceSeen, 0, 0)
	look(false, paceStuck, 1, 1)
	look(false, paceStuck, 1, 2)
	look(true, paceStuck, 1, 0)
	w.setPace(paceMoving)
	require.Zero(t, m.stuck.Load())
	look(false, paceSeen, 0, 0)
	w.setPace(paceMoving)
	look(false, paceSeen, 0, 0)
	look(false, paceStuck, 1, 1)
	w.setPace(paceParked)
	for range 3 {
		look(false, paceParked, 0, 0)
	}
	w.setPace(paceMoving)
	require.Zero(t, m.stuck.Load())
}

// What a handler woke last before it blocked goes where others find it, and not
// before its worker stands still.
func TestTheMonitorMovesWhatABlockedWorkerWasToRunNext(t *testing.T) {
	d, _ := still(2)
	a, b := (*d.workers.Load())[0], (*d.workers.Load())[1]
	next := &Ref{sys: &System{own: d}}
	a.Wake(Task{next})
	d.monitor.look(true)
	require.Nil(t, d.fetch(b, true))
	require.Nil(t, b.steal())
	d.monitor.look(false)
	require.Same(t, next, d.fetch(b, true))
	require.Nil(t, a.local())
	require.False(t, d.monitor.anyQueued())
}

// Of handlers that block one after another twice as many are let go on with each
// look; of those that compute, and of few, as many as the processors.
func TestTheMonitorAddsMoreWhereWhatItAddedBlocksToo(t *testing.T) {
	for name, c := range map[string]struct {
		busy   int
		moving []int // at each look, beside those that stand still
		want   []int
	}{
		"all block":      {0, []int{0, 2, 0, 4, 0, 8, 0}, []int{2, 0, 4, -2, 8, -6, 16}},
		"in two steps":   {0, []int{1, 1, 1, 2, 0, 6}, []int{1, 2, 4, 0, 8, -4}},
		"they compute":   {1000, []int{0, 2, 0, 2, 0}, []int{2, 0, 2, 0, 2}},
		"but for three":  {997, []int{0, 2, 0, 2, 0}, []int{2, 0, 3, 0, 3}},
		"one at a time":  {0, []int{1, 2, 2, 1, 2, 2, 1}, []int{1, 0, 0, 1, 0, 0, 1}},
		"then no longer": {0, []int{0, 2, 0, 2, 2, 0}, []int{2, 0, 4, 0, 0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			m := monitorOf(2, c.busy)
			var got []int
			for _, moving := range c.moving {
				got = append(got, m.wanted(moving, 1000, 1))
			}
			require.Equal(t, c.want, got)
		})
	}
	m := monitorOf(2, 0)
	for range 10 {
		m.wanted(0, 1000, 1)
	}
	require.Equal(t, 100, m.wanted(0, 100, 1), "never more than stand still")
	m.look(true)
	require.Equal(t, 2, m.wanted(0, 100, 1), "it was at rest meanwhile")
	m.wanted(0, 100, 8)
	for range 8 {
		m.wanted(2, 100, 8)
	}
	require.Equal(t, 8, m.wanted(0, 100, 8), "so long nobody has stood still for long enough")
	for range 9 {
		m.wanted(2, 100, 8)
	}
	require.Equal(t, 2, m.wanted(0, 100, 8))
}

func monitorOf(workers, busy int) *monitor {
	d, _ := still(workers)
	for i := range d.monitor.busy {
		d.monitor.busy[i] = busy
	}
	return &d.monitor
}

// While a processor is idle, who is in the same turn at the second look blocks; else
// only who is there for longer than goroutines wait for a processor. One look that
// finds an idle one is enough for some of them.
func TestTheMonitorIsPatientWhereGoroutinesWait(t *testing.T) {
	p := runtime.GOMAXPROCS(0)
	for busy, want := range map[int]int{0: 1, p - 1: 1, p: 8, p + 1: 16, 2 * p: 16, 20 * p: 160} {
		require.Equal(t, want, monitorOf(p, busy).patience(busy), busy)
	}
	m := monitorOf(p, 20*p)
	for range len(m.busy) {
		require.Equal(t, 1, m.patience(0))
		m.patience(20 * p)
		m.patience(20 * p)
	}
	m.patience(20 * p)
	m.patience(20 * p)
	require.Equal(t, 160, m.patience(20*p))
}

// looksOf has so many handlers queue for workers, and returns the number of workers
// after each look. Each handler is in its turn for as many looks as turn says, with so
// many busy goroutines beside; 0 is for ever.
func looksOf(handlers, looks int, busy func(workers int) int, turn func(workers int) int) (workers []int) {
	base := runtime.GOMAXPROCS(0)
	m := monitorOf(base, 0)
	var inTurn []int // for how many looks
	n := base
	for range looks {
		for len(inTurn) < n && handlers > 0 {
			inTurn = append(inTurn, 0)
			handlers--
		}
		patience, standing := m.patience(busy(n)), 0
		for i := range inTurn {
			if inTurn[i]++; turn(n) > 0 && inTurn[i] > turn(n) {
				inTurn[i] = 0 // the next one's
				handlers--
			}
			if inTurn[i] > patience {
				standing++
			}
		}
		n += max(m.wanted(n-standing, standing, patience), 0)
		workers = append(workers, n)
	}
	return workers
}

// Four hundred handlers that block for good have workers within some looks, also where
// other goroutines keep the processors busy. Handlers that compute get no more than a
// few, however many there are: more would only make them all slower.
func TestTheMonitorTellsWhoBlocksFromWhoComputes(t *testing.T) {
	p := runtime.GOMAXPROCS(0)
	forEver := func(int) int { return 0 }
	blocked := looksOf(400, 200, func(int) int { return 0 }, forEver)
	require.Greater(t, blocked[30], 400)
	beside := looksOf(400, 300, func(int) int { return p }, forEver)
	require.Greater(t, beside[250], 400)
	computing := looksOf(1_000_000, 3000, func(n int) int { return n }, func(n int) int { return 4 * n / p }) // 32 ms each
	require.LessOrEqual(t, computing[len(computing)-1], 2*p)
}

// Where goroutines wait for processors, workers are added for those alone that are in
// the same turn for longer than that takes.
func TestTheMonitorAddsNobodyBeforeItsPatienceEnds(t *testing.T) {
	for busy, looks := range map[int]int{0: 1, runtime.GOMAXPROCS(0): 8} {
		d, out := still(2)
		m := &d.monitor
		m.count = func() int { return busy }
		m.look(true)
		m.look(true) // until all that it remembers is of this
		m.look(true)
		m.look(true)
		for range looks - 1 {
			m.look(false)
		}
		require.NotContains(t, out.String(), "added=")
		m.look(false)
		require.Contains(t, out.String(), "added=2 ")
	}
}

// While no worker moves, whatever the reason, one is added from time to time, so that
// who asks another actor need not wait for the end of the monitor's patience.
func TestTheMonitorAddsOneWhereNobodyMoves(t *testing.T) {
	d, out := still(2)
	m := &d.monitor
	now := time.Unix(0, 0)
	m.now, m.count = func() time.Time { return now }, func() int { return 1000 }
	for range len(m.busy) {
		m.look(true)
	}
	look := func(after time.Duration) (added int) {
		out.Reset()
		now = now.Add(after)
		m.look(false)
		return strings.Count(out.String(), "added=1 ")
	}
	require.Zero(t, look(standPeriod-1))
	require.Equal(t, 1, look(1))
	require.Zero(t, look(standPeriod-1))
	require.Equal(t, 1, look(1))
	(*d.workers.Load())[1].setPace(paceMoving)
	require.Zero(t, look(standPeriod), "it has moved")
	require.Equal(t, 1, look(standPeriod))
	(*d.workers.Load())[1].setPace(paceParked)
	require.Zero(t, look(standPeriod), "it can take what is queued")

	d, out = still(2)
	d.base = 0 // there are as many as there may be
	m = &d.monitor
	m.now, m.count = func() time.Time { return now }, func() int { return 1000 }
	m.look(true)
	require.Zero(t, look(time.Hour))
}

func TestBusyGoroutinesAreCounted(t *testing.T) {
	var computing atomic.Bool
	var all sync.WaitGroup
	computing.Store(true)
	many := 4 * runtime.GOMAXPROCS(0)
	for range many {
		all.Go(func() {
			for computing.Load() {
			}
		})
	}
	require.Eventually(t, func() bool { return busyGoroutines() >= many }, waitTest, tickTest)
	computing.Store(false)
	all.Wait()
	require.Eventually(t, func() bool { return busyGoroutines() < runtime.GOMAXPROCS(0) }, waitTest, tickTest)
}

// A worker is parked as long as it waits, and only then.
func TestAWorkerSaysThatItIsParked(t *testing.T) {
	sys := NewSystem("test", Config{Workers: 1})
	defer stop(t, sys)
	w := (*sys.own.workers.Load())[0]
	parked := func() bool { return w.pace.Load() == paceParked }
	require.Eventually(t, parked, waitTest, tickTest)
	in, out := make(chan struct{}), make(chan struct{})
	r, err := sys.Spawn("", PropsFunc(func(*Context, any) error {
		close(in)
		<-out
		return nil
	}))
	require.NoError(t, err)
	require.NoError(t, r.Tell(1))
	<-in
	require.False(t, parked())
	close(out)
	require.Eventually(t, parked, waitTest, tickTest)
}

// A busy machine can keep a worker from its search so long that the monitor
// takes that for a turn. When it then ends, its mark must not stay behind: each
// would have one worker more, up to thousands that look at each other's queues.
func TestAWorkerThatEndsLeavesNoMark(t *testing.T) {
	ends := map[string]func(w *worker) bool{
		"parking": func(w *worker) bool { _, goesOn := w.park(); return !goesOn },
		"between two turns": func(w *worker) bool {
			w.d.monitor.surplus.Store(1)
			return w.d.monitor.retire(w)
		},
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			d, _ := still(4)
			d.base, d.closed = 1, true
			m := &d.monitor
			m.look(true)
			list := *d.workers.Load()
			list[1].setPace(paceMoving)
			list[2].setPace(paceMoving)
			m.look(false) // the first and the last stand still
			require.EqualValues(t, 2, m.stuck.Load())
			d.closed = false
			require.True(t, end(list[3]))
			require.Len(t, *d.workers.Load(), 3)
			require.EqualValues(t, 1, m.stuck.Load())
			require.Equal(t, paceParked, list[3].pace.Load())
		})
	}
}

// What a worker that ends had queued is found: somebody is woken for it, and the
// monitor is, which saw it nowhere while it was moved.
func TestAWorkerThatRetiresTellsOfWhatItHad(t *testing.T) {
	for _, idle := range []bool{true, false} {
		d, _ := still(2)
		d.base, d.closed = 1, false
		m := &d.monitor
		w, other := (*d.workers.Load())[0], (*d.workers.Load())[1]
		if idle {
			d.idle = append(d.idle, other)
			d.idlers.Store(1)
		}
		m.surplus.Store(1)
		w.queue(&Ref{})
		require.True(t, m.retire(w))
		require.True(t, d.queued.Load())
		require.Equal(t, idle, len(other.unpark) == 1)
		require.True(t, m.awake.Load())
	}
}

// A turn that begins with tasks behind it may block, so the monitor is awake by
// then, whatever it saw before.
func TestATurnWithTasksBehindItHasTheMonitorAwake(t *testing.T) {
	sys := NewSystem("test", Config{Workers: 1})
	defer stop(t, sys)
	awake := make(chan bool, 2)
	looks := PropsFunc(func(*Context, any) error {
		awake <- sys.own.monitor.awake.Load()
		return nil
	})
	a, err := sys.Spawn("a", looks)
	require.NoError(t, err)
	b, err := sys.Spawn("b", looks)
	require.NoError(t, err)
	r, err := sys.Spawn("r", PropsFunc(func(ctx *Context, _ any) error {
		for _, x := range []*Ref{a, b} {
			if err := ctx.Tell(x, 1); err != nil {
				return err
			}
		}
		sys.own.monitor.awake.Store(false)
		return nil
	}))
	require.NoError(t, err)
	for _, x := range []*Ref{a, b, r} {
		require.Eventually(t, func() bool { return x.Load() == 0 }, waitTest, tickTest)
	}
	require.NoError(t, r.Tell(1))
	require.True(t, <-awake, "one waits behind it")
	<-awake
}

// Who is woken for the global queue takes one task of it and may block in that.
func TestATaskBehindOthersWakesAWorkerAndTheMonitor(t *testing.T) {
	d, _ := still(1)
	w := (*d.workers.Load())[0]
	d.idle = append(d.idle, w)
	d.idlers.Store(1)
	d.global.push(&Ref{})
	require.Equal(t, taskWoke, d.schedule(Task{&Ref{}}))
	require.Len(t, w.unpark, 1)
	require.Nil(t, w.handed)
	require.True(t, d.monitor.awake.Load())
}

// There are never more workers than the cap beyond those that there were first, and the
// log says when that is too few.
func TestTheMonitorHasACap(t *testing.T) {
	d, out := still(2 + maxStanding - 1)
	d.base = 2
	m := &d.monitor
	m.look(true)
	m.look(false)
	require.Contains(t, out.String(), "added=1 ")
	require.Contains(t, out.String(), "level=ERROR")
	require.Contains(t, out.String(), "workers=4098")
}
