package actor

// Queue is a user mailbox of one's own, for instance one that orders by
// priority. Props.Mailbox.New makes one for each actor. Its methods are called
// by one goroutine at a time, under a lock of the actor's: they must be quick,
// must not block, must not call the actor, and must not end their goroutine
// (runtime.Goexit). One that panics stops the actor.
//
// Terminated, PoisonPill, timers and results of PipeTo, which must not be lost,
// do not pass through it: they come behind as many messages as it held when
// they came. Stashed messages come back ahead of it.
type Queue interface {
	// Push takes a message. evicted, when not nil, is what had to make room
	// for it: it becomes a dead letter. An error says that m was not taken;
	// the sender gets it. ErrMailboxFull becomes a *FullError.
	Push(m Message) (evicted *Message, err error)
	// Pop takes out the next message; false says that there is none.
	Pop() (m Message, ok bool)
	// Len is how many messages wait.
	Len() int
	// Cap is how many can wait; 0 when there is no limit.
	Cap() int
}

// fifo is a growing ring.
type fifo[T any] struct {
	buf  []T
	head int
	n    int
}

func (q *fifo[T]) push(v T) {
	if q.n == len(q.buf) {
		q.resize(max(8, 2*q.n))
	}
	q.buf[(q.head+q.n)%len(q.buf)] = v
	q.n++
}

// pop returns the zero value when the ring is empty.
func (q *fifo[T]) pop() (v T) {
	if q.n == 0 {
		return v
	}
	var none T
	v = q.buf[q.head]
	q.buf[q.head] = none
	q.head = (q.head + 1) % len(q.buf)
	q.n--
	if q.n == 0 && len(q.buf) > 4096 {
		q.buf, q.head = nil, 0
	}
	return v
}

func (q *fifo[T]) resize(size int) {
	buf := make([]T, size)
	for i := range q.n {
		buf[i] = q.buf[(q.head+i)%len(q.buf)]
	}
	q.buf, q.head = buf, 0
}

// bounded is the Queue of the policies Block and DropOldest.
type bounded struct {
	fifo       fifo[Message]
	limit      int
	dropOldest bool
}

func (b *bounded) Push(m Message) (evicted *Message, err error) {
	if b.fifo.n >= b.limit {
		if !b.dropOldest {
			return nil, ErrMailboxFull
		}
		old := b.fifo.pop()
		evicted = &old
	}
	b.fifo.push(m)
	return evicted, nil
}

func (b *bounded) Pop() (Message, bool) {
	some := b.fifo.n > 0
	return b.fifo.pop(), some
}

func (b *bounded) Len() int { return b.fifo.n }
func (b *bounded) Cap() int { return b.limit }

// guarded keeps a user's Queue from harming senders: after a panic it is never
// called again, and holds nothing.
type guarded struct {
	q      Queue
	broken error
}

func (g *guarded) do(f func()) {
	if g.broken == nil {
		g.broken = protect(func() error { f(); return nil })
	}
}

func (g *guarded) Push(m Message) (evicted *Message, err error) {
	m.Reply.pin() // the queue may hand it out twice, or answer it
	g.do(func() { evicted, err = g.q.Push(m) })
	if g.broken != nil {
		return nil, g.broken
	}
	return evicted, err
}

func (g *guarded) Pop() (m Message, ok bool) {
	g.do(func() { m, ok = g.q.Pop() })
	return m, ok && g.broken == nil
}

func (g *guarded) Len() (n int) {
	g.do(func() { n = g.q.Len() })
	return n
}

func (g *guarded) Cap() (n int) {
	g.do(func() { n = g.q.Cap() })
	return n
}
