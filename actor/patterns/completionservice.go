package patterns

import (
	"context"
	"errors"
	"fmt"
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

	mu     sync.Mutex
	open   map[*Future]struct{}
	closed bool
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
	return &CompletionService{sys: sys, cfg: cfg, open: make(map[*Future]struct{})}
}

// Start sends msg to target as an ask and returns the future of its answer,
// which ends after timeout at the latest (0: Config.Timeout) and is cancelled
// when ctx ends. It fails, and nothing was sent, with ErrOverloaded,
// actor.ErrStopped, ctx's error, or the target's refusal.
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
	f := &Future{service: s, own: own, done: make(chan struct{})}
	f.promise = s.sys.OnReply(f.end)
	if err := s.admit(f); err != nil {
		return nil, err
	}
	timer := s.sys.After(timeout, func() {
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

// Close ends every open future with actor.ErrStopped and starts no more.
func (s *CompletionService) Close() {
	s.mu.Lock()
	s.closed = true
	open := make([]*Future, 0, len(s.open))
	for f := range s.open {
		open = append(open, f)
	}
	s.mu.Unlock()
	for _, f := range open {
		f.fail(fmt.Errorf("the completion service was closed, the outcome is unknown: %w", actor.ErrStopped))
	}
}

func (s *CompletionService) admit(f *Future) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("start a future: the completion service is closed: %w", actor.ErrStopped)
	case len(s.open) >= s.cfg.Limit:
		return fmt.Errorf("%w: %d of them; try again when some have ended", ErrOverloaded, len(s.open))
	}
	s.open[f] = struct{}{}
	return nil
}

func (s *CompletionService) release(f *Future) {
	s.mu.Lock()
	delete(s.open, f)
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
