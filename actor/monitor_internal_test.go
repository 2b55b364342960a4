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
	next := &Ref{}
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
		idle   bool
		moving []int // at each look, beside those that stand still
		want   []int
	}{
		"all block":      {true, []int{0, 2, 0, 4, 0, 8, 0}, []int{2, 0, 4, -2, 8, -6, 16}},
		"in two steps":   {true, []int{1, 1, 1, 2, 0, 6}, []int{1, 2, 4, 0, 8, -4}},
		"they compute":   {false, []int{0, 2, 0, 2, 0}, []int{2, 0, 2, 0, 2}},
		"one at a time":  {true, []int{1, 2, 2, 1, 2, 2, 1}, []int{1, 0, 0, 1, 0, 0, 1}},
		"then no longer": {true, []int{0, 2, 0, 2, 2, 0}, []int{2, 0, 4, 0, 0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := still(2)
			var got []int
			for _, moving := range c.moving {
				got = append(got, d.monitor.wanted(moving, 1000, func() bool { return c.idle }))
			}
			require.Equal(t, c.want, got)
		})
	}
	d, _ := still(2)
	m := &d.monitor
	for range 10 {
		m.wanted(0, 1000, func() bool { return true })
	}
	require.Equal(t, 100, m.wanted(0, 100, func() bool { return true }), "never more than stand still")
	m.look(true)
	require.Equal(t, 2, m.wanted(0, 100, func() bool { return true }), "it was at rest meanwhile")
}

func TestAProcessorIsIdle(t *testing.T) {
	require.Eventually(t, processorIdle, waitTest, tickTest)
	var computing atomic.Bool
	var all sync.WaitGroup
	computing.Store(true)
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for computing.Load() {
			}
		})
	}
	require.Eventually(t, func() bool { return !processorIdle() }, waitTest, tickTest)
	computing.Store(false)
	all.Wait()
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
