package actor

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"
)

const (
	monitorPeriod = 10 * time.Millisecond
	maxStanding   = 4096 // workers added at most for those that stand still

	// A turn that has lasted this many looks (1 s) blocks or computes for long.
	// A shorter one may only have been kept from running by a busy machine.
	blockedLooks = 100
	warnPeriod   = time.Minute

	standPeriod = 100 * time.Millisecond // in which nobody moves until one worker is added all the same
	standMost   = 8                      // times as many workers as there were, up to which that goes on
)

// monitor keeps handlers that block from stopping everybody else. It is awake
// only while work is queued; then it looks every 10 ms which workers are in the
// same turn as before, adds as many as stand still (see wanted), and lets that many
// end when they move again. Where goroutines wait for processors, a worker may only
// be one of them; so it stands still there when it has been in its turn for longer
// than such a wait and some computing take (see patience). As that can be long, a few
// workers are added ahead of it while no worker moves at all.
type monitor struct {
	d       *dispatcher
	alarm   chan struct{}
	quit    chan struct{}
	awake   atomic.Bool
	stuck   atomic.Int32 // workers whose pace is stuck
	surplus atomic.Int32 // workers that should end
	step    int          // workers to add next, if those that were added last stand still
	calm    int          // looks in a row that found nobody missing
	count   func() int   // busyGoroutines
	now     func() time.Time
	moved   time.Time // when a worker had moved last
	busy    [4]int    // what it said at the last looks
	warned  time.Time // when a warning was logged last
}

func (m *monitor) init(d *dispatcher) {
	m.d, m.count, m.now = d, busyGoroutines, d.Now
	m.alarm = make(chan struct{}, 1)
	m.quit = make(chan struct{})
}

// raise wakes the monitor: something is queued and nobody was idle.
func (m *monitor) raise() {
	if !m.awake.Load() && m.awake.CompareAndSwap(false, true) {
		select {
		case m.alarm <- struct{}{}:
		default:
		}
	}
}

func (m *monitor) run() {
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-m.alarm:
		}
		m.look(true)
		for m.awake.Load() {
			tick.Reset(monitorPeriod)
			select {
			case <-m.quit:
				return
			case <-tick.C:
			}
			if !m.anyQueued() {
				m.surplus.Store(0)
				m.awake.Store(false)
				if !m.anyQueued() || !m.awake.CompareAndSwap(false, true) {
					break
				}
			}
			m.look(false)
		}
	}
}

// look finds who stands still, and adds workers in their place. The first look
// only takes note.
func (m *monitor) look(first bool) {
	blocked, standing, patience, now := 0, 0, m.patience(m.count()), m.now()
	for _, w := range *m.d.workers.Load() {
		if w.still = m.standing(w, first); w.still >= blockedLooks {
			blocked++
		}
		if w.still == 0 {
			m.moved = now
		}
		if w.still >= patience {
			standing++
		}
		if w.still > 0 && w.next.Load() != nil {
			if r := w.next.Swap(nil); r != nil {
				m.d.spill([]*Ref{r}) // others steal only what is in a ring
			}
		}
	}
	if first {
		m.step = 0
		return
	}
	d := m.d
	d.mu.Lock()
	n := len(*d.workers.Load())
	add := m.wanted(n-standing, standing, patience)
	if add <= 0 && now.Sub(m.moved) >= standPeriod && n < standMost*d.base {
		add, m.moved = 1, now
	}
	add = min(add, d.base+maxStanding-n)
	capped := add < d.base-(n-standing)
	if add > 0 && !d.closed {
		d.grow(add)
	}
	d.mu.Unlock()
	m.surplus.Store(int32(max(0, n-int(m.stuck.Load())-d.base)))
	if add > 0 {
		d.log.Debug("workers added for those that stand still", "added", add, "workers", n+add)
	}
	m.warn(blocked, n+max(add, 0), capped)
	d.kick()
}

// wanted is how many workers to add, so that as many move as there were. As long as
// those that were added come to stand still as well it is twice as many each time: who
// waits behind thousands that block does so for some looks, not for thousands. Those of
// them that compute are among the busy goroutines; more workers would only make these
// slower, so none is added beyond those that the others need.
func (m *monitor) wanted(moving, standing, patience int) int {
	add := m.d.base - moving
	if add <= 0 {
		if m.calm++; m.calm > patience { // so long a worker moves before it stands still
			m.step = 0
		}
		return add
	}
	add = max(add, min(m.step, standing-slices.Min(m.busy[:])))
	m.step, m.calm = 2*add, 0
	return add
}

// patience is for how many looks a worker is in the same turn before it stands still:
// one while a processor is idle, else what many goroutines of 10 ms each take that wait
// for one, times eight for a turn of 32 messages that compute. What the runtime counts
// flickers, so that the least of some looks tells more.
func (m *monitor) patience(busy int) int {
	copy(m.busy[1:], m.busy[:])
	m.busy[0] = busy
	least, processors := slices.Min(m.busy[:]), runtime.GOMAXPROCS(0)
	if least < processors {
		return 1
	}
	return 8 * ((least + processors - 1) / processors)
}

// busyGoroutines is how many goroutines run, or could, beside the monitor's own.
func busyGoroutines() int {
	busy := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(busy)
	return max(int(busy[0].Value.Uint64()+busy[1].Value.Uint64())-1, 0)
}

// standing looks at one worker, and returns for how many looks in a row it has
// stood still.
func (m *monitor) standing(w *worker, first bool) int {
	switch pace := w.pace.Load(); {
	case pace == paceMoving:
		w.pace.CompareAndSwap(paceMoving, paceSeen)
		return 0
	case pace == paceParked || first:
		return 0
	case pace == paceSeen:
		m.stuck.Add(1) // ahead of the mark, which may fall at once
		if !w.pace.CompareAndSwap(paceSeen, paceStuck) {
			m.stuck.Add(-1)
			return 0
		}
	}
	return w.still + 1
}

// warn speaks of handlers that have blocked for long, and of the cap, once a
// minute.
func (m *monitor) warn(blocked, workers int, capped bool) {
	if blocked == 0 && !capped {
		return
	}
	now := m.now()
	if !m.warned.IsZero() && now.Sub(m.warned) < warnPeriod {
		return
	}
	m.warned = now
	if capped {
		m.d.log.Error("too many handlers block: no more workers are added", "workers", workers)
	} else {
		m.d.log.Warn("handlers have blocked for a second; use PipeTo for slow work", "handlers", blocked, "workers", workers)
	}
}

func (m *monitor) anyQueued() bool {
	if m.d.queued.Load() || m.d.stocked.Load() > 0 {
		return true
	}
	for _, w := range *m.d.workers.Load() {
		if w.next.Load() != nil {
			return true
		}
	}
	return false
}

// spare says that a worker with nothing to do may end. dispatcher.mu is held.
func (m *monitor) spare() bool {
	return len(*m.d.workers.Load())-int(m.stuck.Load()) > m.d.base
}

// retire ends w, between two turns, when there are more workers than needed.
func (m *monitor) retire(w *worker) bool {
	if m.surplus.Load() <= 0 {
		return false
	}
	d := m.d
	d.mu.Lock()
	if m.surplus.Load() <= 0 || !m.spare() {
		d.mu.Unlock()
		return false
	}
	m.surplus.Add(-1)
	d.leave(w)
	for r := w.ring.take(); r != nil; r = w.ring.take() {
		d.global.push(r)
	}
	if r := w.next.Swap(nil); r != nil {
		d.global.push(r)
	}
	note(&d.queued, d.global.len() > 0)
	d.mu.Unlock()
	m.raise() // while it moved them the monitor saw them nowhere
	d.kick()
	return true
}
