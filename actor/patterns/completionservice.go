package patterns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

var (
	// ErrOverloaded says that as many futures are open as the service allows;
	// nothing was sent.
	ErrOverloaded = errors.New("too many futures are open")
	// ErrCancelled says that a future was cancelled before its answer came.
	// What was asked for may have happened all the same.
	ErrCancelled = errors.New("cancelled; outcome unknown")
)

// Config tunes a CompletionService. The zero value works.
type Config struct {
	// Limit is how many futures may be open at a time. 0 means 10,000.
	Limit int
	// Waiting is how many callers of Start may wait, beyond the Limit, until a
	// future ends. 0 means none: they get ErrOverloaded at once.
	Waiting int
	// Timeout ends futures that were started with timeout 0. 0 means 10 s.
	Timeout time.Duration
}

// CompletionService sends asks on behalf of callers that are no actors and
// hands their answers out as futures. A future costs no goroutine, and each
// ends: with a value, with the error that the message was answered with, with
// actor.ErrTimeout, with ErrCancelled, or with actor.ErrStopped when the service
// is closed. It is safe for concurrent use.
type CompletionService struct {
	sys *actor.System
	cfg Config

	mu      sync.Mutex
	open    map[*Future]struct{}
	waiting []*entrant // callers beyond the limit, in the order in which they came
	state   State
	closed  bool
}

// entrant is a caller of Start that waits for room.
type entrant struct {
	future *Future
	waiter *actor.Waiter
	in     bool // the future is open now
}

// NewCompletionService returns a service in a system, whose clock it uses.
// Close it before the system is stopped.
func NewCompletionService(sys *actor.System, cfg Config) *CompletionService {
	if cfg.Limit <= 0 {
		cfg.Limit = 10_000
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	return &CompletionService{
		sys: sys, cfg: cfg, open: make(map[*Future]struct{}),
		state: State{Capacity: max(cfg.Waiting, 0)},
	}
}

// Start sends msg to target as an ask and returns the future of its answer,
// which ends after timeout at the latest (0: Config.Timeout) and is cancelled
// when ctx ends. It fails, and nothing was sent, with ErrOverloaded,
// actor.ErrStopped, ctx's error, or the target's refusal.
//
// With Config.Waiting it waits while the Limit of futures is open, in order with
// other callers, so not in an actor's handler. That is part of the timeout, and
// ends with ErrOverloaded when there is none left of it.
func (s *CompletionService) Start(ctx context.Context, target actor.Target, msg any, timeout time.Duration) (*Future, error) {
	return s.StartWith(ctx, target, msg, timeout, nil)
}

// StartWith is Start with a value of the caller's own, which Future.Own
// returns.
func (s *CompletionService) StartWith(ctx context.Context, target actor.Target, msg any, timeout time.Duration, own any) (*Future, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start a future: not sent: %w", err)
	}
	if timeout <= 0 {
		timeout = s.cfg.Timeout
	}
	f := &Future{service: s, own: own}
	f.promise = s.sys.OnReply(f.end)
	left, err := s.admit(ctx, f, timeout)
	if err != nil {
		return nil, err
	}
	timer := s.sys.After(left, func() {
		f.fail(fmt.Errorf("no answer within %v: %w", timeout, actor.ErrTimeout))
	})
	unlink := onEnd(ctx, f.Cancel)
	f.keep(timer, unlink)
	if err := target.Post(actor.Message{Payload: msg, Reply: f.promise}); err != nil {
		f.fail(err)
		return nil, err
	}
	return f, nil
}

// Open returns how many futures are open.
func (s *CompletionService) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Status returns how many futures are open, how many callers wait to open one,
// and how many have been opened or refused.
func (s *CompletionService) Status() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Pause opens no more futures until Continue: callers of Start wait, as far as
// Config.Waiting lets them. Open futures go on.
func (s *CompletionService) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Paused = true
}

// Continue undoes Pause.
func (s *CompletionService) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Paused = false
	s.letIn()
}

// Close ends every open future with actor.ErrStopped and starts no more.
func (s *CompletionService) Close() {
	s.mu.Lock()
	s.closed = true
	open := make([]*Future, 0, len(s.open))
	for f := range s.open {
		open = append(open, f)
	}
	for _, e := range s.waiting {
		e.waiter.Wake()
	}
	s.waiting, s.state.Waiting = nil, 0
	s.mu.Unlock()
	for _, f := range open {
		f.fail(fmt.Errorf("the completion service was closed, the outcome is unknown: %w", actor.ErrStopped))
	}
}

// admit opens a future, and returns what is left of its timeout.
func (s *CompletionService) admit(ctx context.Context, f *Future, timeout time.Duration) (left time.Duration, err error) {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return 0, errClosed()
	case s.room(): // so nobody waits
		s.enter(f)
		s.mu.Unlock()
		return timeout, nil
	case len(s.waiting) >= s.cfg.Waiting:
		s.state.Refused++
		err := fmt.Errorf("%w: %d of them; try again when some have ended", ErrOverloaded, len(s.open))
		s.mu.Unlock()
		return 0, err
	}
	e := &entrant{future: f, waiter: s.sys.NewWaiter()}
	s.waiting = append(s.waiting, e)
	s.state.Waiting++
	s.mu.Unlock()

	begun := s.sys.Now()
	bounded, release := s.sys.WithTimeout(ctx, timeout)
	defer release()
	_ = e.waiter.Wait(bounded) // what it has come to stands in e
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.in {
		return max(timeout-s.sys.Now().Sub(begun), 1), nil
	}
	if at := slices.Index(s.waiting, e); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		s.state.Waiting--
		s.state.Refused++
	}
	switch {
	case s.closed:
		return 0, errClosed()
	case ctx.Err() != nil:
		return 0, fmt.Errorf("start a future: not sent: %w", ctx.Err())
	}
	return 0, fmt.Errorf("%w, and were for %v; try again when some have ended", ErrOverloaded, timeout)
}

func errClosed() error {
	return fmt.Errorf("start a future: the completion service is closed: %w", actor.ErrStopped)
}

// room says that another future may be opened. mu is held, as in what follows.
func (s *CompletionService) room() bool { return !s.state.Paused && len(s.open) < s.cfg.Limit }

func (s *CompletionService) enter(f *Future) {
	s.open[f] = struct{}{}
	s.state.Active = len(s.open)
	s.state.Passed++
}

// letIn opens the futures of those who wait while there is room.
func (s *CompletionService) letIn() {
	for s.room() && len(s.waiting) > 0 {
		e := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.state.Waiting--
		s.enter(e.future)
		e.in = true
		e.waiter.Wake()
	}
}

func (s *CompletionService) release(f *Future) {
	s.mu.Lock()
	delete(s.open, f)
	s.state.Active = len(s.open)
	s.letIn()
	s.mu.Unlock()
}

// onEnd calls f when ctx ends. A context of the system calls it itself, so that
// the executor decides the order; any other costs a goroutine when it ends.
func onEnd(ctx context.Context, f func()) (stop func() bool) {
	if ctx.Done() == nil {
		return nil
	}
	if c, ok := ctx.(interface {
		AfterFunc(f func()) (stop func() bool)
	}); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
