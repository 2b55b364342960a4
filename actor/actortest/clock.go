package actortest

import (
	"container/heap"
	"context"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// epoch is when virtual time begins.
func epoch() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// clock is virtual time and what is to happen in it. Timers of the same
// instant become ready together, in the order in which they were set; the seed
// chooses among them.
type clock struct {
	now            time.Time
	seq            uint64
	once, periodic timers
}

type timer struct {
	s      *Seeded
	due    time.Time
	seq    uint64
	period time.Duration // 0: once
	f      func()
	index  int // in its heap; -1 when not there
	done   bool
}

// After runs f at d from now.
func (s *Seeded) After(d time.Duration, f func()) actor.Timer {
	return s.arm(&timer{s: s, due: s.clock.now.Add(max(d, 0)), f: f})
}

// Every runs f each d.
func (s *Seeded) Every(d time.Duration, f func()) actor.Timer {
	return s.arm(&timer{s: s, due: s.clock.now.Add(d), period: d, f: f})
}

func (s *Seeded) arm(t *timer) *timer {
	s.clock.seq++
	t.seq = s.clock.seq
	heap.Push(s.clock.heapOf(t), t)
	return t
}

func (c *clock) heapOf(t *timer) *timers {
	if t.period > 0 {
		return &c.periodic
	}
	return &c.once
}

func (t *timer) fire() {
	if t.done {
		return
	}
	t.done = t.period == 0
	t.f()
	if !t.done {
		t.due = t.due.Add(t.period)
		t.s.arm(t)
	}
}

// Stop says whether the timer was pending.
func (t *timer) Stop() bool {
	if t.done {
		return false
	}
	t.done = true
	if t.index >= 0 {
		heap.Remove(t.s.clock.heapOf(t), t.index)
	}
	return true
}

// first is the heap whose first timer is due first; nil when there is none.
func (c *clock) first() *timers {
	switch {
	case len(c.once) == 0 && len(c.periodic) == 0:
		return nil
	case len(c.once) == 0:
		return &c.periodic
	case len(c.periodic) == 0 || before(c.once[0], c.periodic[0]):
		return &c.once
	}
	return &c.periodic
}

func (c *clock) next() (time.Time, bool) {
	h := c.first()
	if h == nil {
		return time.Time{}, false
	}
	return (*h)[0].due, true
}

// popDue takes a timer whose time has come; nil when there is none.
func (c *clock) popDue() *timer {
	h := c.first()
	if h == nil || (*h)[0].due.After(c.now) {
		return nil
	}
	return heap.Pop(h).(*timer)
}

// onceBefore says whether a timer that is not periodic is due until end.
func (c *clock) onceBefore(end time.Time) bool {
	return len(c.once) > 0 && !c.once[0].due.After(end)
}

func before(a, b *timer) bool {
	if a.due.Equal(b.due) {
		return a.seq < b.seq
	}
	return a.due.Before(b.due)
}

// timers is a heap.
type timers []*timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return before(h[i], h[j]) }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	old := *h
	n := len(old) - 1
	t := old[n]
	old[n] = nil
	t.index = -1
	*h = old[:n]
	return t
}

// poll is a context whose end the executor finds out by looking.
type poll struct {
	ctx  context.Context
	f    func()
	done bool
}

func (p *poll) call() {
	if !p.done {
		p.done = true
		p.f()
	}
}

func (p *poll) stop() bool {
	was := p.done
	p.done = true
	return !was
}

// OnDone calls f when ctx ends. The contexts of System.WithTimeout and
// Context.Context call it themselves; others are looked at before each step.
func (s *Seeded) OnDone(ctx context.Context, f func()) func() bool {
	p := &poll{ctx: ctx, f: f}
	if ctx.Err() == nil {
		if a, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
			return a.AfterFunc(f)
		}
	}
	s.polled = append(s.polled, p)
	return p.stop
}

// pollContexts makes ready what waited for a context that has ended. It says
// whether anything is ready.
func (s *Seeded) pollContexts() bool {
	kept := s.polled[:0]
	for _, p := range s.polled {
		switch {
		case p.done:
		case p.ctx.Err() != nil:
			s.enqueue(item{kind: runDone, poll: p})
		default:
			kept = append(kept, p)
		}
	}
	clear(s.polled[len(kept):])
	s.polled = kept
	return len(s.ready) > 0
}
