package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twinsrv/twinsrv/actor"
)

// Future is an answer that will come. It is safe for concurrent use; any number
// of goroutines may wait for it.
type Future struct {
	service *CompletionService
	promise *actor.Promise
	own     any

	mu      sync.Mutex
	done    chan struct{} // made for who asks for it
	ended   bool
	value   any
	err     error
	timer   actor.Timer
	unlink  func() bool
	waiters []*actor.Waiter
}

// Own returns the value that the future was started with.
func (f *Future) Own() any { return f.own }

// Done returns a channel that is closed when the future has ended. Code that
// runs on a system's executor uses Wait.
func (f *Future) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.ended {
			close(f.done)
		}
	}
	return f.done
}

// Cancel ends the future with ErrCancelled, if it has not ended. Its message is
// not called back: it may still be handled, and its answer becomes a dead
// letter.
func (f *Future) Cancel() { f.fail(ErrCancelled) }

// Wait returns how the future ended: the answer, or an error. When ctx ends
// first the future stays open, and the error wraps actor.ErrTimeout at a
// deadline, else ctx's error.
func (f *Future) Wait(ctx context.Context) (any, error) {
	f.mu.Lock()
	if f.ended {
		defer f.mu.Unlock()
		return f.value, f.err
	}
	w := f.service.sys.NewWaiter()
	f.waiters = append(f.waiters, w)
	f.mu.Unlock()
	err := w.Wait(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return f.value, f.err
	}
	f.waiters = slices.DeleteFunc(f.waiters, func(x *actor.Waiter) bool { return x == w })
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("wait for a future: %w: %w", actor.ErrTimeout, err)
	}
	return nil, fmt.Errorf("wait for a future: outcome unknown: %w", err)
}

// end is the promise's callback, and so runs once. Its room is free before
// anybody sees the end, so that who waited for it can start another.
func (f *Future) end(v any, err error) {
	f.service.release(f)
	f.mu.Lock()
	f.ended, f.value, f.err = true, v, err
	timer, unlink, waiters := f.timer, f.unlink, f.waiters
	f.waiters = nil
	if f.done != nil {
		close(f.done)
	}
	f.mu.Unlock()
	for _, w := range waiters {
		w.Wake()
	}
	drop(timer, unlink)
}

// fail ends an open future. The look before it keeps errors that come late out
// of the dead letters.
func (f *Future) fail(err error) {
	if !f.promise.Done() {
		f.promise.Fail(err)
	}
}

// keep notes what must be undone when the future ends, or undoes it at once.
func (f *Future) keep(timer actor.Timer, unlink func() bool) {
	f.mu.Lock()
	ended := f.ended
	f.timer, f.unlink = timer, unlink
	f.mu.Unlock()
	if ended {
		drop(timer, unlink)
	}
}

func drop(timer actor.Timer, unlink func() bool) {
	if timer != nil {
		timer.Stop()
	}
	if unlink != nil {
		unlink()
	}
}
