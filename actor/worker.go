package actor

import (
	"runtime"
	"sync/atomic"
)

const (
	nextRuns   = 16              // runs of the next slot in a row before the ring's turn
	lookAfter  = 61              // turns after which the global queue comes first
	yieldAfter = 8 * lookAfter   // turns after which other goroutines do
	yieldIdle  = 16 * yieldAfter // the same where none is known to wait
)

// worker is one goroutine that runs turns.
type worker struct {
	d      *dispatcher
	unpark chan struct{} // one permit

	call     call // of its turn
	running  *Ref // whose turn it is, or was last
	ring     ring
	next     atomic.Pointer[Ref] // what a handler woke last: runs before the ring
	lingered bool                // has yielded since its last turn
	yielded  bool                // the same, since it last thought of yielding for others
	nextUsed int                 // how often in a row
	rousings uint32              // as it last saw them

	handed *Ref // the first task after it was parked; set before its permit is given

	pace   atomic.Uint32 // whether it moves, for the monitor
	still  int           // looks in a row that found the same turn; the monitor's
	looked uint64
	victim int // whom it tried to steal from first
}

// The pace of a worker. The monitor goes from moving to seen and from there to
// stuck, the worker from wherever it is to moving or parked. So a worker that
// the monitor leaves alone only reads, and a mark falls with the first move.
const (
	paceMoving uint32 = iota // has ended a turn, or was woken, since the monitor looked
	paceSeen                 // has not yet
	paceStuck                // nor had it when the monitor looked again
	paceParked               // waits for work, or has ended
)

func newWorker(d *dispatcher) *worker {
	w := &worker{d: d, unpark: make(chan struct{}, 1)}
	w.call.worker = w
	w.ring.stocked = &d.stocked
	return w
}

func (w *worker) setPace(to uint32) {
	if w.pace.Load() != to && w.pace.Swap(to) == paceStuck {
		w.d.monitor.stuck.Add(-1)
	}
}

func (w *worker) loop() {
	ended := false
	defer func() {
		if ended {
			w.d.running.Done()
			return
		}
		defer func() { // a handler called runtime.Goexit: go on with a new goroutine
			w.setPace(paceMoving)
			go w.loop()
		}()
		w.running.exited()
	}()
	for {
		r := w.find()
		if r == nil {
			break
		}
		w.lingered = false
		w.running = r
		if !w.ring.empty() { // what lies there must not wait for the end of a turn that blocks
			w.d.monitor.raise()
		}
		again := r.turn(&w.call)
		w.setPace(paceMoving)
		if again {
			w.queue(r)
		}
	}
	ended = true
}

// Wake makes t what this worker runs next. What was to be next goes to the
// ring, where others can steal it.
func (w *worker) Wake(t Task) {
	if t.r.sys.own != w.d { // two systems share nothing
		t.r.sys.exec.Schedule(t)
		return
	}
	before := w.next.Swap(t.r)
	if before != nil {
		w.queue(before)
		w.d.kick()
	} else {
		w.d.monitor.raise()
	}
}

// Budget is the whole limit.
func (w *worker) Budget(limit int) int { return limit }

// queue puts r at the end of the ring; of a full ring half goes to the global
// queue.
func (w *worker) queue(r *Ref) {
	if over := w.ring.put(r); over != nil {
		w.d.spill(over)
	}
}

// find returns the next task, parking until there is one; nil ends the worker.
func (w *worker) find() *Ref {
	for {
		if w.d.monitor.retire(w) {
			return nil
		}
		w.looked++
		if w.looked%lookAfter == 0 {
			if w.looked%yieldAfter == 0 {
				w.yield()
			}
			if r := w.d.fetch(w, false); r != nil {
				return r
			}
		}
		if r := w.local(); r != nil {
			return r
		}
		if r := w.d.fetch(w, true); r != nil {
			return r
		}
		if r := w.steal(); r != nil {
			return r
		}
		s := &w.d.spinner
		if r := s.wait(&s.paid, &w.d.queued); r != nil {
			return r
		}
		if !w.lingered { // whoever is about to send gets the processor once before the park
			w.lingered, w.yielded = true, true
			runtime.Gosched()
			continue
		}
		if r := s.wait(&s.lone, &w.d.queued); r != nil {
			return r
		}
		w.lingered = false
		r, ok := w.park()
		if r != nil {
			return r
		}
		if !ok {
			return nil
		}
	}
}

// yield lets other goroutines run if any may wait for this one's processor. Workers
// that never park would let those that their handlers woke, such as askers, wait for
// the runtime's 10 ms preemption. Where none was woken and a processor is idle, to
// yield would only wake that, which costs as much as a hundred turns.
func (w *worker) yield() {
	if !w.yielded && (w.looked%yieldIdle == 0 || w.d.shouldYield(w)) {
		runtime.Gosched()
	}
	w.yielded = false
}

func (w *worker) local() *Ref {
	queued := !w.ring.empty()
	var next *Ref
	if w.next.Load() != nil {
		next = w.next.Swap(nil) // nil when it was stolen
	}
	if next != nil && (w.nextUsed < nextRuns || !queued) {
		w.nextUsed++
		return next
	}
	w.nextUsed = 0
	switch {
	case !queued:
		return nil
	case next != nil:
		return w.ring.exchange(next)
	}
	return w.ring.take()
}

// steal takes half of another's ring.
func (w *worker) steal() *Ref {
	if w.d.stocked.Load() == 0 { // there may be thousands of workers, whose handlers block
		return nil
	}
	list := *w.d.workers.Load()
	if w.victim++; w.victim >= len(list) { // begin with another each time
		w.victim = 0
	}
	for at, left := w.victim, len(list); left > 0; left-- {
		if v := list[at]; v != w && !v.ring.empty() {
			if r := w.ring.rob(&v.ring); r != nil {
				return r
			}
		}
		if at++; at == len(list) {
			at = 0
		}
	}
	return nil
}

// park waits to be woken, and returns the task that came with that, if any.
// False ends the worker.
func (w *worker) park() (*Ref, bool) {
	d := w.d
	d.mu.Lock()
	if d.global.len() > 0 {
		d.mu.Unlock()
		return nil, true
	}
	if d.closed || d.monitor.spare() {
		d.leave(w)
		d.mu.Unlock()
		return nil, false
	}
	d.idle = append(d.idle, w)
	d.idlers.Store(int32(len(d.idle)))
	d.mu.Unlock()
	// Whoever queued something before it could see this worker idle did not
	// wake it: look once more.
	if r := w.steal(); r != nil {
		d.mu.Lock()
		for i, x := range d.idle {
			if x == w {
				d.idle = append(d.idle[:i], d.idle[i+1:]...)
				d.idlers.Store(int32(len(d.idle)))
				d.mu.Unlock()
				return r, true
			}
		}
		d.mu.Unlock()
		// Woken meanwhile, perhaps with a task: the permit is on its way.
		w.queue(r)
	}
	w.setPace(paceParked)
	<-w.unpark
	w.setPace(paceMoving)
	r := w.handed // set before the permit was given
	w.handed = nil
	return r, true
}

func (w *worker) signal() {
	select {
	case w.unpark <- struct{}{}:
	default:
	}
}
