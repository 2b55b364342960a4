package actor

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	ringSize  = 256
	nextRuns  = 16 // runs of the next slot in a row before the ring's turn
	lookAfter = 61 // turns after which other goroutines and the global queue come first
)

// worker is one goroutine that runs turns.
type worker struct {
	d      *dispatcher
	unpark chan struct{} // one permit

	mu       sync.Mutex // guards the ring and next; thieves take it too
	ring     [ringSize]*Ref
	head, n  int
	next     *Ref // what a handler woke last: runs before the ring
	nextUsed int  // how often in a row

	turns  atomic.Uint64 // odd while a turn runs
	stuck  atomic.Bool   // the monitor found it standing still
	seen   uint64        // turns when the monitor looked last; the monitor's
	still  int           // looks in a row that found the same turn; the monitor's
	looked uint64
}

func (w *worker) loop() {
	ended := false
	defer func() {
		if !ended { // a handler called runtime.Goexit: go on with a new goroutine
			w.turnOver()
			go w.loop()
			return
		}
		w.d.running.Done()
	}()
	for {
		r := w.find()
		if r == nil {
			break
		}
		w.turns.Add(1)
		again := r.turn(w)
		w.turnOver()
		if again {
			w.queue(r)
		}
	}
	ended = true
}

func (w *worker) turnOver() {
	w.turns.Add(1)
	if w.stuck.Load() && w.stuck.CompareAndSwap(true, false) {
		w.d.monitor.stuck.Add(-1)
	}
}

// Wake makes t what this worker runs next. What was to be next goes to the
// ring, where others can steal it.
func (w *worker) Wake(t Task) {
	w.mu.Lock()
	before := w.next
	w.next = t.r
	w.mu.Unlock()
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
	var over []*Ref
	w.mu.Lock()
	if w.n == ringSize {
		over = make([]*Ref, 0, ringSize/2)
		for range ringSize / 2 {
			over = append(over, w.pop())
		}
	}
	w.push(r)
	w.mu.Unlock()
	if over != nil {
		w.d.spill(over)
	}
}

func (w *worker) push(r *Ref) {
	w.ring[(w.head+w.n)%ringSize] = r
	w.n++
}

func (w *worker) pop() *Ref {
	if w.n == 0 {
		return nil
	}
	r := w.ring[w.head]
	w.ring[w.head] = nil
	w.head = (w.head + 1) % ringSize
	w.n--
	return r
}

// find returns the next task, parking until there is one; nil ends the worker.
func (w *worker) find() *Ref {
	for {
		if w.d.monitor.retire(w) {
			return nil
		}
		w.looked++
		if w.looked%lookAfter == 0 {
			// Workers that never park would let goroutines woken by their
			// handlers, such as askers, wait for the runtime's 10 ms preemption.
			runtime.Gosched()
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
		if !w.park() {
			return nil
		}
	}
}

func (w *worker) local() *Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.next; r != nil {
		w.next = nil
		if w.nextUsed < nextRuns || w.n == 0 {
			w.nextUsed++
			return r
		}
		first := w.pop()
		w.push(r)
		w.nextUsed = 0
		return first
	}
	w.nextUsed = 0
	return w.pop()
}

// steal takes half of another's ring, or what a worker that stands still was
// to run next.
func (w *worker) steal() *Ref {
	list := *w.d.workers.Load()
	for i := range list {
		v := list[(int(w.looked)+i)%len(list)]
		if v == w {
			continue
		}
		if r := w.stealFrom(v); r != nil {
			return r
		}
	}
	return nil
}

func (w *worker) stealFrom(v *worker) *Ref {
	var loot [ringSize / 2]*Ref
	v.mu.Lock()
	n := (v.n + 1) / 2
	for i := range n {
		loot[i] = v.pop()
	}
	if n == 0 && v.next != nil && v.stuck.Load() {
		loot[0], v.next = v.next, nil
		n = 1
	}
	v.mu.Unlock()
	if n == 0 {
		return nil
	}
	if n > 1 {
		w.mu.Lock()
		for _, r := range loot[1:n] {
			w.push(r) // the ring is empty: only its own worker fills it
		}
		w.mu.Unlock()
	}
	return loot[0]
}

// park waits to be woken. False ends the worker.
func (w *worker) park() bool {
	d := w.d
	d.mu.Lock()
	if d.global.n > 0 {
		d.mu.Unlock()
		return true
	}
	if d.closed || d.monitor.spare() {
		d.leave(w)
		d.mu.Unlock()
		return false
	}
	d.idle = append(d.idle, w)
	d.idlers.Store(int32(len(d.idle)))
	d.mu.Unlock()
	// Whoever queued something before it could see this worker idle did not
	// wake it: look once more.
	if r := w.steal(); r != nil {
		w.queue(r)
		d.mu.Lock()
		for i, x := range d.idle {
			if x == w {
				d.idle = append(d.idle[:i], d.idle[i+1:]...)
				d.idlers.Store(int32(len(d.idle)))
				break
			}
		}
		d.mu.Unlock()
		return true
	}
	<-w.unpark
	return true
}

func (w *worker) signal() {
	select {
	case w.unpark <- struct{}{}:
	default:
	}
}
