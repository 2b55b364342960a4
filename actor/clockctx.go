package actor

import (
	"context"
	"slices"
	"sync"
	"time"
)

// clockCtx is a cancellable context on an executor's clock. It offers
// AfterFunc, which calls synchronously, so that contexts derived from it (the
// context package looks for the method) need no goroutine and end in an order
// that the executor decides.
type clockCtx struct {
	parent   context.Context
	deadline time.Time // zero: only the parent's
	done     chan struct{}

	mu     sync.Mutex
	err    error
	after  []*afterFunc
	timer  Timer
	unlink func() bool
}

type afterFunc struct{ f func() }

func newClockCtx(parent context.Context, exec Executor) *clockCtx {
	c := &clockCtx{parent: parent, done: make(chan struct{})}
	if parent.Done() != nil {
		unlink := exec.OnDone(parent, func() { c.cancel(parent.Err()) })
		c.mu.Lock()
		c.unlink = unlink
		ended := c.err != nil
		c.mu.Unlock()
		if ended {
			unlink()
		}
	}
	return c
}

// Deadline is the earlier one of its own and the parent's.
func (c *clockCtx) Deadline() (time.Time, bool) {
	d, ok := c.parent.Deadline()
	if c.deadline.IsZero() || (ok && d.Before(c.deadline)) {
		return d, ok
	}
	return c.deadline, true
}

// Done is closed when the context ends.
func (c *clockCtx) Done() <-chan struct{} { return c.done }

// Err says why the context ended; nil while it has not.
func (c *clockCtx) Err() error {
	if err := c.parent.Err(); err != nil {
		c.cancel(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value is the parent's.
func (c *clockCtx) Value(key any) any { return c.parent.Value(key) }

// AfterFunc calls f when the context ends, in the call that ends it; on a
// goroutine of its own when the context has ended already.
func (c *clockCtx) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		go f() // the caller may hold a lock that f wants; only a race comes here
		return func() bool { return false }
	}
	a := &afterFunc{f}
	c.after = append(c.after, a)
	c.mu.Unlock()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.after)
		c.after = slices.DeleteFunc(c.after, func(x *afterFunc) bool { return x == a }) // and clears what is behind
		return len(c.after) < n
	}
}

func (c *clockCtx) cancel(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	after, timer, unlink := c.after, c.timer, c.unlink
	c.after = nil
	close(c.done)
	c.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	if unlink != nil {
		unlink()
	}
	for _, a := range after {
		a.f()
	}
}

// WithCancel is context.WithCancel, with contexts that end in an order which the
// system's executor decides.
func (s *System) WithCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	c := newClockCtx(ctx, s.exec)
	return c, func() { c.cancel(context.Canceled) }
}

// WithTimeout is context.WithTimeout on the system's clock: the context ends
// with context.DeadlineExceeded after d.
func (s *System) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := newClockCtx(ctx, s.exec)
	c.deadline = s.exec.Now().Add(d)
	if d <= 0 {
		c.cancel(context.DeadlineExceeded)
		return c, func() {}
	}
	t := s.exec.After(d, func() { c.cancel(context.DeadlineExceeded) })
	c.mu.Lock()
	c.timer = t
	ended := c.err != nil
	c.mu.Unlock()
	if ended {
		t.Stop()
	}
	return c, func() { c.cancel(context.Canceled) }
}
