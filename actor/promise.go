package actor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// errAnswered is why an answer that came second, or too late, is a dead letter.
var errAnswered = errors.New("already answered or given up")

// Promise is the reply cell of one ask. The first Complete or Fail answers it;
// what comes later goes to the dead letters. All methods may be called from
// any goroutine, but only one may wait.
//
// Whoever moves the state away from open, an answer or the clock, puts the
// outcome there and gives the asker one permit; a wait that ends otherwise moves
// the state itself or, too late for that, waits for that permit. So there is one
// permit for each ask, and what comes with it needs no lock. An asker who spins
// says so in the word, and gets no permit but a last move of the word.
type Promise struct {
	sys     *System
	parker  Parker // nil with onReply
	onReply func(v any, err error)

	word  atomic.Uint64 // number<<promiseBits | quick | state
	v     any           // the asker's once it has the permit
	err   error
	taken bool // the permit is; the asker's

	// A pooled cell is reached by its asker, and by the message as long as only
	// the runtime holds that. It is used again once it was answered, because who
	// answers lets go of it; it then has another number. A cell that got into
	// other hands is pinned, and never used again.
	pooled bool
	pinned bool
	quick  *chanParker // parker, when it is the dispatcher's and the cell is pooled
	clock  askClock    // with quick
	asker  *asker      // with quick, where askers may spin; else nil
}

// The state of a promise, in the lowest bits of its word.
const (
	promiseOpen uint64 = iota
	promiseAnswered
	promiseGivenUp

	promiseState uint64 = 3
	promiseQuick uint64 = 4  // the clock watches this ask
	promiseSpins uint64 = 8  // the asker reads the word, and needs no permit
	promiseThere uint64 = 16 // v and err are written, for an asker who spins
	promiseNext  uint64 = 32
)

// NewPromise returns a promise to be waited on.
func (s *System) NewPromise() *Promise {
	return &Promise{sys: s, parker: s.exec.NewParker()}
}

// OnReply returns a promise that calls f with its answer, once, in the call of
// whoever answers. f must not block; a panic in it is logged.
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

// resolve is Complete and Fail without the dead letter. The caller lets go of a
// pooled cell that is not pinned.
func (p *Promise) resolve(v any, err error) bool {
	before, ok := p.leave(promiseAnswered)
	if ok {
		p.deliver(before, v, err)
	}
	return ok
}

// deliver hands over the outcome. before is the word as it was open.
func (p *Promise) deliver(before uint64, v any, err error) {
	if p.onReply != nil {
		if failure := protect(func() error { p.onReply(v, err); return nil }); failure != nil {
			p.sys.log.Error("a function of OnReply panicked", "err", failure)
		}
		return
	}
	p.v, p.err = v, err
	if before&promiseSpins != 0 && p.word.Or(promiseThere)&promiseSpins != 0 {
		return // the asker may be gone with the cell by now
	}
	if a := p.asker; a != nil {
		note(&a.d.spinner.paid, false)
	}
	if p.quick != nil {
		note(&p.quick.d.roused, true)
		p.quick.permit <- struct{}{} // never blocks: there is one permit for each ask
	} else {
		p.parker.Unpark()
	}
}

// leaveOpen moves the state away from open. False says that somebody else did.
func (p *Promise) leaveOpen(state uint64) bool {
	_, ok := p.leave(state)
	return ok
}

// leave is leaveOpen, and returns the word as it was before.
func (p *Promise) leave(state uint64) (before uint64, ok bool) {
	for {
		w := p.word.Load()
		if w&promiseState != promiseOpen {
			return w, false
		}
		if p.word.CompareAndSwap(w, w|state) {
			return w, true
		}
	}
}

// Done says that the promise is answered or given up.
func (p *Promise) Done() bool { return p.word.Load()&promiseState != promiseOpen }

// GivenUp says that nobody waits for an answer any more: the asker's time was
// over, or it was cancelled, before there was one. It says false as long as an
// answer would still be taken, and for ever after one was. So whoever was to
// answer and finds the promise done can tell whether it was answered by
// somebody else or abandoned. A promise of OnReply is never given up.
func (p *Promise) GivenUp() bool { return p.word.Load()&promiseState == promiseGivenUp }

// Wait returns the answer. When ctx ends first the promise is given up; the
// error wraps ErrTimeout at a deadline, and context.Canceled after a
// cancellation. Wait is not for promises of OnReply.
func (p *Promise) Wait(ctx context.Context) (any, error) {
	v, err := p.await(ctx, 0)
	if w, ok := asWait(err); ok {
		return nil, w.failed("waiting for an answer")
	}
	return v, err
}

// leaveClock has an ask end at a limit of its own.
func (p *Promise) leaveClock() {
	w := p.word.Load()
	for w&promiseState == promiseOpen && !p.word.CompareAndSwap(w, w&^promiseQuick) {
		w = p.word.Load()
	}
}

// await waits for the answer. The error is a waitError when there was none.
func (p *Promise) await(ctx context.Context, limit time.Duration) (any, error) {
	if p.asker == nil || !p.spin() {
		if err := p.park(ctx, limit); err != nil {
			return nil, waitError{err}
		}
	}
	if p.GivenUp() {
		return nil, waitError{context.DeadlineExceeded}
	}
	if p.asker != nil {
		p.asker.took()
	}
	p.taken = true
	return p.v, p.err
}

// park waits for the permit. An error says that the wait was ended before, and
// the promise given up.
func (p *Promise) park(ctx context.Context, limit time.Duration) error {
	if p.word.Load()&promiseQuick != 0 {
		p.clock.start()
		<-p.quick.permit
		return nil
	}
	if p.taken || p.GivenUp() {
		return nil
	}
	err := p.parker.Park(ctx, limit)
	if err == nil || p.leaveOpen(promiseGivenUp) {
		return err
	}
	if !p.GivenUp() {
		_ = p.parker.Park(context.Background(), 0) // the answer is on its way
	}
	return nil
}

// waitError is a wait that ended without an answer. It stays in this package.
type waitError struct{ cause error }

func (w waitError) Error() string { return w.cause.Error() }

func asWait(err error) (waitError, bool) {
	w, ok := err.(waitError) //nolint:errorlint // never wrapped; what a handler gave may say yes to any As
	return w, ok
}

// failed says what waited in vain.
func (w waitError) failed(what string) error {
	if errors.Is(w.cause, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, ErrTimeout)
	}
	return fmt.Errorf("%s: outcome unknown: %w", what, w.cause)
}

// notSent says that an ask was not sent because its context had ended.
func notSent(to string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ask %s: not sent, the deadline had passed: %w", to, errors.Join(ErrTimeout, err))
	}
	return fmt.Errorf("ask %s: not sent: %w", to, err)
}

// borrow takes a cell from the pool, for the asker and for the message. quick
// says that the clock is to end the ask, so that the asker needs no timer.
func (s *System) borrow(quick bool) *Promise {
	p, _ := s.promises.Get().(*Promise)
	if p == nil {
		p = s.NewPromise()
		p.pooled = true
		if p.quick, _ = p.parker.(*chanParker); p.quick != nil {
			p.clock.init(p, s.askTimeout)
			p.asker = newAsker(s.own)
		}
	}
	w := p.word.Load()&^(promiseNext-1) + promiseNext
	if quick && p.quick != nil {
		w |= promiseQuick
	}
	p.word.Store(w)
	return p
}

// pin keeps the cell from being recycled, because user code holds it. Only who
// has it, and before it is answered.
func (p *Promise) pin() {
	if p != nil && p.pooled && !p.pinned { // once pinned, its asker may read it
		p.pinned = true
	}
}

// recycle makes an answered cell ready for another ask, unless somebody else may
// reach it.
func (s *System) recycle(p *Promise) {
	if p.pinned {
		return
	}
	p.v, p.err, p.taken = nil, nil, false
	s.promises.Put(p)
}
