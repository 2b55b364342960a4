package actor

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// dispatcher is the real executor: a fixed number of workers run the turns of
// all actors. A worker prefers what its own handlers woke, then its ring, then
// the global queue, then half of another's ring; then it parks.
type dispatcher struct {
	base int
	log  *slog.Logger

	mu      sync.Mutex // guards global, idle, closed and changes of workers
	global  backlog
	idle    []*worker
	closed  bool
	running sync.WaitGroup // workers and the monitor

	workers  atomic.Pointer[[]*worker] // replaced, never changed
	queued   atomic.Bool               // global is not empty
	idlers   atomic.Int32              // length of idle
	stocked  atomic.Int32              // workers whose ring is not empty
	roused   atomic.Bool               // a goroutine was made ready that may wait for a worker's processor
	rousings atomic.Uint32             // how often that was taken back

	monitor monitor
	spinner spinner
}

func newDispatcher(n int, log *slog.Logger) *dispatcher {
	d := &dispatcher{base: n, log: log}
	d.workers.Store(&[]*worker{})
	d.monitor.init(d)
	d.mu.Lock()
	d.grow(n)
	d.mu.Unlock()
	d.running.Go(d.monitor.run)
	return d
}

// grow adds workers. mu is held.
func (d *dispatcher) grow(n int) {
	list := append([]*worker(nil), *d.workers.Load()...)
	for range n {
		w := newWorker(d)
		list = append(list, w)
		d.running.Add(1)
		go w.loop()
	}
	d.workers.Store(&list)
}

// leave takes a worker that ends off the list. mu is held.
func (d *dispatcher) leave(w *worker) {
	w.setPace(paceParked) // the monitor may have taken its search for a turn
	old := *d.workers.Load()
	list := make([]*worker, 0, len(old))
	for _, x := range old {
		if x != w {
			list = append(list, x)
		}
	}
	d.workers.Store(&list)
}

// Schedule queues a task from outside a turn.
func (d *dispatcher) Schedule(t Task) { d.schedule(t) }

// scheduled says where a task went.
type scheduled uint8

const (
	taskNot scheduled = iota
	taskQueued
	taskHanded // to a worker that turns on the spot
	taskWoke   // a worker that was parked
)

func (d *dispatcher) schedule(t Task) scheduled {
	if d.spinner.hand(t.r) {
		return taskHanded
	}
	d.mu.Lock()
	w := d.popIdle()
	handed := w != nil && d.global.len() == 0
	if handed {
		w.handed = t.r
	} else {
		d.global.push(t.r)
		note(&d.queued, true)
	}
	d.mu.Unlock()
	if !handed {
		d.monitor.raise()
	}
	if w == nil {
		return taskQueued
	}
	w.signal()
	return taskWoke
}

// popIdle takes a parked worker off the list. mu is held.
func (d *dispatcher) popIdle() *worker {
	n := len(d.idle)
	if n == 0 {
		return nil
	}
	w := d.idle[n-1]
	d.idle[n-1] = nil
	d.idle = d.idle[:n-1]
	d.idlers.Store(int32(n - 1))
	return w
}

// shouldYield says that a goroutine may wait for the processor of a worker: one was
// made ready since that last asked, perhaps by another, or no processor is idle that
// would take it.
func (d *dispatcher) shouldYield(w *worker) bool {
	if d.roused.Load() && d.roused.CompareAndSwap(true, false) {
		d.rousings.Add(1)
	}
	if n := d.rousings.Load(); n != w.rousings {
		w.rousings = n
		return true
	}
	return len(*d.workers.Load())-int(d.idlers.Load()) >= runtime.GOMAXPROCS(0)
}

// kick wakes a parked worker, because a ring has something to steal.
func (d *dispatcher) kick() {
	if d.idlers.Load() == 0 {
		d.monitor.raise()
		return
	}
	d.mu.Lock()
	w := d.popIdle()
	d.mu.Unlock()
	if w != nil {
		w.signal()
	}
}

// fetch takes from the global queue: one task to run and a share of the rest
// for w's ring.
func (d *dispatcher) fetch(w *worker, share bool) *Ref {
	if !d.queued.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.global.pop()
	if r == nil {
		return nil
	}
	n := d.global.len()
	if share && n > 0 {
		w.ring.fill(&d.global, min(n/len(*d.workers.Load()), ringSize/2))
		n = d.global.len()
	}
	note(&d.queued, n > 0)
	return r
}

// spill moves tasks to the global queue.
func (d *dispatcher) spill(rs []*Ref) {
	d.mu.Lock()
	for _, r := range rs {
		d.global.push(r)
	}
	note(&d.queued, d.global.len() > 0)
	d.mu.Unlock()
}

// note sets a flag that many read and that seldom changes.
func note(flag *atomic.Bool, v bool) {
	if flag.Load() != v {
		flag.Store(v)
	}
}

// close lets the workers end once they find nothing to do.
func (d *dispatcher) close() {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.closed = true
	idle := d.idle
	d.idle = nil
	d.idlers.Store(0)
	d.mu.Unlock()
	for _, w := range idle {
		w.signal()
	}
	close(d.monitor.quit)
}

// wait returns when all goroutines have ended, at the latest with ctx.
func (d *dispatcher) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		d.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of them: %w", len(*d.workers.Load()), ctx.Err())
	}
}

// Go runs f on a goroutine of its own.
func (d *dispatcher) Go(f func()) {
	note(&d.roused, true)
	go f()
}

// After uses the runtime's timers.
func (d *dispatcher) After(delay time.Duration, f func()) Timer { return time.AfterFunc(delay, f) }

// Every re-arms a runtime timer after each call.
func (d *dispatcher) Every(period time.Duration, f func()) Timer {
	t := &ticker{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(period, func() {
		f()
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.stopped {
			t.timer.Reset(period)
		}
	})
	return t
}

type ticker struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (t *ticker) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.stopped
	t.stopped = true
	t.timer.Stop()
	return !was
}

// Now is the wall clock.
func (d *dispatcher) Now() time.Time { return time.Now() }

// Uint64 is the runtime's randomness.
func (d *dispatcher) Uint64() uint64 { return rand.Uint64() }

// OnDone is context.AfterFunc.
func (d *dispatcher) OnDone(ctx context.Context, f func()) func() bool {
	return context.AfterFunc(ctx, f)
}

// NewParker returns a channel to wait at.
func (d *dispatcher) NewParker() Parker { return &chanParker{d: d, permit: make(chan struct{}, 1)} }

type chanParker struct {
	d      *dispatcher
	permit chan struct{}
	timer  *time.Timer // made at the first limit
}

func (p *chanParker) Park(ctx context.Context, limit time.Duration) error {
	select {
	case <-p.permit:
		return nil
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if limit <= 0 && ctx.Done() == nil {
		<-p.permit
		return nil
	}
	var over <-chan time.Time
	if limit > 0 {
		if p.timer == nil {
			p.timer = time.NewTimer(limit)
		} else {
			p.timer.Reset(limit)
		}
		defer p.timer.Stop()
		over = p.timer.C
	}
	select {
	case <-p.permit:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return context.DeadlineExceeded
	}
}

func (p *chanParker) Unpark() {
	note(&p.d.roused, true)
	select {
	case p.permit <- struct{}{}:
	default:
	}
}

func (p *chanParker) Reset() {
	select {
	case <-p.permit:
	default:
	}
}
