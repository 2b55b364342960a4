package commitlog

import (
	"context"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// Between two tries to fold.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// nudge has the background look.
func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// background folds until ctx ends.
func (s *Store) background(ctx context.Context) {
	defer close(s.left)
	backoff := minBackoff
	for {
		wait := s.foldDue(ctx)
		if ctx.Err() != nil {
			return
		}
		if _, _, _, failing := s.state(); failing != nil {
			wait, backoff = backoff, min(2*backoff, maxBackoff)
			s.cfg.Logger.Warn("folding the commit log fails and is tried again", "log", s.dir, "after", wait, "error", failing)
			sleep(ctx, wait)
			continue
		}
		backoff = minBackoff
		s.pause(ctx, wait)
	}
}

// foldDue folds what is frozen, and what is older than FoldAfter. It returns how
// long to wait if nothing happens; 0 is for ever.
func (s *Store) foldDue(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		frozen, active, since, failing := s.state()
		if frozen && failing != nil {
			// A fold may find room where a reopening misses some: it is tried anyhow.
			_ = s.reopenBehind(ctx)
		}
		switch {
		case frozen:
			if persist.WhenFree(ctx, func() error { return s.foldStep(ctx) }) != nil {
				return 0
			}
		case !active:
			return 0
		default:
			if wait := s.cfg.FoldAfter - time.Since(since); wait > 0 {
				return wait
			}
			if !s.freezeOld(ctx) {
				return s.cfg.FoldAfter
			}
		}
	}
	return 0
}

// freezeOld freezes what is active if nothing is frozen.
func (s *Store) freezeOld(ctx context.Context) bool {
	if take(ctx, s.turn) != nil {
		return false
	}
	defer release(s.turn)
	if s.serving() != nil {
		return false
	}
	frozen, active, _, _ := s.state()
	if frozen || !active {
		return true
	}
	s.freeze()
	return true
}

// pause waits for a nudge, or for so long, or until ctx ends; 0 is for ever.
func (s *Store) pause(ctx context.Context, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-due:
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
