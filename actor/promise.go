package actor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// errAnswered is why an answer that came second, or too late, is a dead letter.
var errAnswered = errors.New("already answered or given up")

// Promise is the reply cell of one ask. The first Complete or Fail answers it;
// what comes later goes to the dead letters. All methods may be called from
// any goroutine, but only one may wait.
type Promise struct {
	sys     *System
	parker  Parker // nil with onReply
	onReply func(v any, err error)

	mu    sync.Mutex
	state promiseState
	v     any
	err   error

	// holders counts who still reaches a pooled cell: the asker, and the
	// message while only the runtime holds it. A cell that got into other hands
	// is pinned: it is never counted down to zero, and so never recycled.
	holders atomic.Int32
	pooled  bool
	quick   *chanParker // parker, when it is the dispatcher's and the cell is pooled
	clock   askClock    // with quick
}

type promiseState uint8

const (
	promiseOpen promiseState = iota
	promiseAnswered
	promiseGivenUp
)

// NewPromise returns a promise to be waited on.
func (s *System) NewPromise() *Promise {
	return &Promise{sys: s, parker: s.exec.NewParker()}
}

// OnReply returns a promise that calls f with its answer, once, in the call of
// whoever answers. f must not block.
func (s *System) OnReply(f func(v any, err error)) *Promise {
	return &Promise{sys: s, onReply: f}
}

// Complete answers with v. False says that the promise was answered or given
// up before; v is then a dead letter.
func (p *Promise) Complete(v any) bool {
	if p.resolve(v, nil) {
		return true
	}
	p.sys.deadLetter(askPath, Message{Payload: v}, errAnswered)
	return false
}

// Fail answers with an error, which the asker gets as it is. False says that
// the promise was answered or given up before; err is then a dead letter.
func (p *Promise) Fail(err error) bool {
	if err == nil {
		err = ErrNoReply
	}
	if p.resolve(nil, err) {
		return true
	}
	p.sys.deadLetter(askPath, Message{Payload: err}, errAnswered)
	return false
}

// resolve is Complete and Fail without the dead letter.
func (p *Promise) resolve(v any, err error) bool {
	p.mu.Lock()
	if p.state != promiseOpen {
		p.mu.Unlock()
		return false
	}
	p.state, p.v, p.err = promiseAnswered, v, err
	if p.parker != nil {
		p.parker.Unpark() // under the lock: a recycled cell gets no late permit
	}
	p.mu.Unlock()
	if p.onReply != nil {
		p.onReply(v, err)
	}
	return true
}

// Done says that the promise is answered or given up.
func (p *Promise) Done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state != promiseOpen
}

// GivenUp says that nobody waits for an answer any more: the asker's time was
// over, or it was cancelled, before there was one. It says false as long as an
// answer would still be taken, and for ever after one was. So whoever was to
// answer and finds the promise done can tell whether it was answered by
// somebody else or abandoned. A promise of OnReply is never given up.
func (p *Promise) GivenUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == promiseGivenUp
}

// Wait returns the answer. When ctx ends first the promise is given up; the
// error wraps ErrTimeout at a deadline, and context.Canceled after a
// cancellation. Wait is not for promises of OnReply.
func (p *Promise) Wait(ctx context.Context) (any, error) {
	v, err := p.await(ctx, 0)
	if err != nil && errors.Is(err, errWait) {
		return nil, waitFailed("waiting for an answer", err)
	}
	return v, err
}

// errWait marks the errors of await that are no answers.
var errWait = errors.New("wait ended")

func (p *Promise) await(ctx context.Context, limit time.Duration) (any, error) {
	if p.quick != nil && limit == p.sys.askTimeout && ctx.Done() == nil { // the clock's one limit
		return p.awaitQuick(limit)
	}
	p.mu.Lock()
	switch p.state {
	case promiseAnswered:
		defer p.mu.Unlock()
		return p.v, p.err
	case promiseGivenUp:
		p.mu.Unlock()
		return nil, waitError{context.DeadlineExceeded}
	}
	p.mu.Unlock()
	parked := p.parker.Park(ctx, limit)
	p.mu.Lock()
	for parked == nil && p.state == promiseOpen { // a permit of a late tick, from an earlier ask
		p.mu.Unlock()
		parked = p.parker.Park(ctx, limit)
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	if p.state == promiseAnswered {
		return p.v, p.err
	}
	p.state = promiseGivenUp
	return nil, waitError{parked}
}

// awaitQuick is await for a context that never ends. A permit may come from an
// earlier tick of the clock, so it looks each time.
func (p *Promise) awaitQuick(limit time.Duration) (any, error) {
	turn := p.clock.begin(limit)
	for {
		<-p.quick.permit
		p.mu.Lock()
		if p.state == promiseAnswered {
			v, err := p.v, p.err
			p.mu.Unlock()
			p.clock.end()
			return v, err
		}
		if p.clock.expired(turn) {
			p.state = promiseGivenUp
			p.mu.Unlock()
			p.clock.end()
			return nil, waitError{context.DeadlineExceeded}
		}
		p.mu.Unlock()
	}
}

// waitError is a wait that ended without an answer.
type waitError struct{ cause error }

func (w waitError) Error() string        { return w.cause.Error() }
func (w waitError) Unwrap() error        { return w.cause }
func (w waitError) Is(target error) bool { return target == errWait }

// waitFailed says what waited in vain.
func waitFailed(what string, err error) error {
	cause := errors.Unwrap(err)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, ErrTimeout)
	}
	return fmt.Errorf("%s: outcome unknown: %w", what, cause)
}

// notSent says that an ask was not sent because its context had ended.
func notSent(to string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ask %s: not sent, the deadline had passed: %w", to, errors.Join(ErrTimeout, err))
	}
	return fmt.Errorf("ask %s: not sent: %w", to, err)
}

// borrow takes a cell from the pool, held by the asker and by the message.
func (s *System) borrow() *Promise {
	p, _ := s.promises.Get().(*Promise)
	if p == nil {
		p = s.NewPromise()
		p.pooled = true
		if p.quick, _ = p.parker.(*chanParker); p.quick != nil {
			p.clock.wake = p.quick.Unpark
		}
	}
	p.holders.Store(2)
	return p
}

// release lets go of one hold.
func (p *Promise) release() {
	if p.pooled && p.holders.Add(-1) == 0 {
		p.sys.recycle(p)
	}
}

const pinned = 1 << 24

// pin keeps the cell from being recycled, because user code holds it.
func (p *Promise) pin() {
	if p != nil && p.pooled && p.holders.Load() < pinned/2 {
		p.holders.Add(pinned)
	}
}

// recycle makes a cell that nobody else reaches ready for another ask.
func (s *System) recycle(p *Promise) {
	p.parker.Reset()
	p.state, p.v, p.err = promiseOpen, nil, nil
	s.promises.Put(p)
}
