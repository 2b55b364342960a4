package actor

import (
	"sync"
	"sync/atomic"
)

const ringSize = 256

// ring is a worker's queue: only the worker puts in, thieves take out too.
// Others see without the lock whether there is anything, by a flag that each
// method renews before it lets go of the lock. So everything that touches the
// fields is here and ends with unlock.
type ring struct {
	mu      sync.Mutex
	buf     [ringSize]*Ref
	head, n int
	some    atomic.Bool   // n > 0, as of the last unlock
	stocked *atomic.Int32 // how many of the dispatcher's rings have some
}

func (q *ring) unlock() {
	if some := q.n > 0; some != q.some.Load() {
		q.some.Store(some)
		if some {
			q.stocked.Add(1)
		} else {
			q.stocked.Add(-1)
		}
	}
	q.mu.Unlock()
}

// empty needs no lock. For the ring's own worker false may be late, but true
// never is.
func (q *ring) empty() bool { return !q.some.Load() }

// put adds r at the end. A full ring gives away its older half.
func (q *ring) put(r *Ref) (over []*Ref) {
	q.mu.Lock()
	if q.n == ringSize {
		over = make([]*Ref, ringSize/2)
		for i := range over {
			over[i] = q.pop()
		}
	}
	q.push(r)
	q.unlock()
	return over
}

// fill adds up to n of the backlog, as far as there is room.
func (q *ring) fill(from *backlog, n int) {
	q.mu.Lock()
	for ; n > 0 && q.n < ringSize; n-- {
		q.push(from.pop())
	}
	q.unlock()
}

// take returns the first; nil when there is none.
func (q *ring) take() *Ref {
	q.mu.Lock()
	r := q.pop()
	q.unlock()
	return r
}

// exchange returns the first and puts r at the end; r itself when there is none.
func (q *ring) exchange(r *Ref) *Ref {
	q.mu.Lock()
	first := q.pop()
	if first == nil {
		first = r
	} else {
		q.push(r)
	}
	q.unlock()
	return first
}

// rob moves the older half of another ring to this one, which is empty, but
// for the first, which it returns.
func (q *ring) rob(v *ring) *Ref {
	var loot [ringSize / 2]*Ref
	v.mu.Lock()
	n := (v.n + 1) / 2
	for i := range n {
		loot[i] = v.pop()
	}
	v.unlock()
	if n > 1 {
		q.mu.Lock()
		for _, r := range loot[1:n] {
			q.push(r)
		}
		q.unlock()
	}
	return loot[0]
}

// push and pop are for the methods above. mu is held.
func (q *ring) push(r *Ref) {
	q.buf[(q.head+q.n)%ringSize] = r
	q.n++
}

func (q *ring) pop() *Ref {
	if q.n == 0 {
		return nil
	}
	r := q.buf[q.head]
	q.buf[q.head] = nil
	q.head = (q.head + 1) % ringSize
	q.n--
	return r
}
