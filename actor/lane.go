package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// lane is a user mailbox behind a Queue, all of it under Ref.mu.
type lane struct {
	q       Queue
	own     []ownMessage // the runtime's, in order
	passed  uint64       // messages that have left q
	waiting []*blocked   // senders that wait for room, in order; q is full meanwhile
	guard   *guarded     // q, when it is a user's
}

// ownMessage goes when as many messages have left the queue as stood before it.
type ownMessage struct {
	m   Message
	due uint64
}

// blocked is a sender that waits for room.
type blocked struct {
	m     Message
	p     Parker
	taken bool
}

// newLane returns nil where the mailbox is the actor's own two slices. It may call
// the user's code, so hold no lock.
func newLane(m Mailbox) *lane {
	if m.capacity() >= 0 {
		return nil
	}
	if m.New == nil {
		return &lane{q: &bounded{limit: m.Capacity, dropOldest: m.Policy == DropOldest}}
	}
	g := &guarded{}
	g.do(func() { g.q = m.New() })
	if g.q == nil && g.broken == nil {
		g.broken = fmt.Errorf("%w: Mailbox.New returned nil", ErrInvalid)
	}
	return &lane{q: g, guard: g}
}

func (l *lane) push(m Message) (evicted *Message, err error) {
	if beyondCapacity(m.Payload) {
		l.own = append(l.own, ownMessage{m, l.passed + uint64(l.q.Len())})
		return nil, nil
	}
	evicted, err = l.q.Push(m)
	if evicted != nil {
		l.passed++
	}
	return evicted, err
}

// pop takes the next message, and lets waiting senders have the room.
func (l *lane) pop() (m Message, ok bool) {
	if len(l.own) > 0 && (l.passed >= l.own[0].due || l.q.Len() == 0) {
		m = l.own[0].m
		l.own[0] = ownMessage{}
		if l.own = l.own[1:]; len(l.own) == 0 {
			l.own = nil
		}
		return m, true
	}
	if m, ok = l.q.Pop(); ok {
		l.passed++
		l.admit()
	}
	return m, ok
}

func (l *lane) admit() {
	for len(l.waiting) > 0 {
		b := l.waiting[0]
		if _, err := l.q.Push(b.m); err != nil {
			return
		}
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		b.takenNow()
	}
}

func (b *blocked) takenNow() {
	b.m, b.taken = Message{}, true
	b.p.Unpark()
}

// broken is the panic of a user's queue; nil when there was none.
func (l *lane) broken() error {
	if l.guard == nil {
		return nil
	}
	return l.guard.broken
}

// laneOf returns the lane; nil when there is none, or none any more. mu is held.
func (r *Ref) laneOf() *lane {
	if r.capacity >= 0 || r.rare == nil {
		return nil
	}
	return r.rare.lane
}

// laneLen is how many messages are in the lane or wait for it. mu is held.
func (r *Ref) laneLen() int {
	l := r.laneOf()
	if l == nil {
		return 0
	}
	return l.q.Len() + len(l.own) + len(l.waiting)
}

// enqueueLane is enqueue for an actor with a lane, or one whose lane is closed
// because it stops. mu is held, and given up.
func (r *Ref) enqueueLane(m Message, w Worker) error {
	l := r.laneOf()
	if l == nil {
		r.queue = append(r.queue, m)
	} else {
		evicted, err := l.push(m)
		if err != nil {
			return r.laneRefused(l, err)
		}
		if evicted != nil {
			defer r.sys.deadLetter(r.Path(), *evicted, r.isFull(l.q.Cap()))
		}
	}
	wake := r.raise(0, holding)
	r.mu.Unlock()
	if wake {
		r.wake(w)
	}
	return nil
}

// laneRefused says why the lane did not take a message. mu is held, and given
// up.
func (r *Ref) laneRefused(l *lane, err error) error {
	broken := l.broken()
	switch {
	case errors.Is(err, ErrMailboxFull): // which says nothing of whose it is
		err = r.isFull(l.q.Cap())
	case errors.Is(err, ErrStopped): // which is for the runtime to say
		err = fmt.Errorf("mailbox of %s: %v", r.Path(), err)
	default:
		err = fmt.Errorf("mailbox of %s: %w", r.Path(), err)
	}
	r.mu.Unlock()
	if broken != nil {
		r.signal(signal{kind: sigStop, err: fmt.Errorf("its mailbox failed: %w", broken)})
	}
	return err
}

// takeLane is take for a lane. mu is held.
func (r *Ref) takeLane() (Message, taken) {
	l := r.laneOf()
	if l == nil {
		return Message{}, tookRest
	}
	if m, ok := l.pop(); ok {
		return m, tookMessage
	}
	if err := l.broken(); err != nil && !r.is(urgent) {
		r.rare.signals = append(r.rare.signals, signal{kind: sigStop, err: fmt.Errorf("its mailbox failed: %w", err)})
		r.set(urgent)
		return Message{}, tookNothing
	}
	return Message{}, tookRest
}

// leaveLane makes what is in the lane, and what waits for it, the plain
// mailbox of an actor that stops.
func (r *Ref) leaveLane() {
	if r.capacity >= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.laneOf()
	if l == nil {
		return
	}
	r.rare.lane = nil
	waiting := l.waiting
	l.waiting = nil
	for m, ok := l.pop(); ok; m, ok = l.pop() {
		r.queue = append(r.queue, m)
	}
	for _, b := range waiting {
		r.queue = append(r.queue, b.m)
		b.takenNow()
	}
}

// isFull returns the error that says so; there is one for each actor. mu is
// held.
func (r *Ref) isFull(capacity int) *FullError {
	k := r.rarely()
	if k.full == nil {
		k.full = &FullError{Ref: r, Capacity: capacity}
	}
	return k.full
}

// waits says that a sender that was refused is to wait for room.
func (r *Ref) waits(err error) bool {
	return r.props.policy == Block && !errors.Is(err, ErrStopped) && !inTurn()
}

// awaitRoom queues m when there is room. When ctx or limit ends first, the
// error wraps ErrMailboxFull and says so.
func (r *Ref) awaitRoom(ctx context.Context, limit time.Duration, m Message) error {
	b := &blocked{m: m, p: r.sys.exec.NewParker()}
	r.mu.Lock()
	l := r.laneOf()
	if r.closed || l == nil || l.q.Len() < l.q.Cap() {
		r.mu.Unlock()
		if err := r.enqueue(m, nil); err == nil || errors.Is(err, ErrStopped) {
			return err
		}
		return r.awaitRoom(ctx, limit, m) // somebody else took it
	}
	l.waiting = append(l.waiting, b)
	r.mu.Unlock()
	err := b.p.Park(ctx, limit)
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.taken {
		return nil
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(x *blocked) bool { return x == b })
	return fmt.Errorf("waiting for room: %w: %w", r.isFull(l.q.Cap()), err)
}

// inTurn says whether the calling goroutine is in an actor's turn. Only who is
// about to wait asks, so it may take its time to look.
func inTurn() bool { return onStack((*Ref).turn) }
