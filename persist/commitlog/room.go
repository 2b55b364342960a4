package commitlog

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
)

// prepare makes room for a group of so many bytes. When it fails nothing was
// written that counts, the store goes on serving, and Reopen tries the same. The
// caller has the turn.
func (s *Store) prepare(ctx context.Context, bytes int64) error {
	err := s.takeRoom(ctx, bytes)
	s.lacking = 0
	if err != nil && !isBusy(err) {
		s.lacking = bytes
	}
	return err
}

// tryRoom makes sure that a commit which found no room would find some now, as
// far as maxGrowth goes: otherwise one large commit would keep all small ones
// out. The caller has the turn.
func (s *Store) tryRoom(ctx context.Context) error {
	if s.lacking == 0 {
		return nil
	}
	err := s.takeRoom(ctx, min(s.lacking, maxGrowth))
	if err == nil {
		s.lacking = 0
	}
	return err
}

func (s *Store) takeRoom(ctx context.Context, bytes int64) error {
	if err := s.makeRoom(ctx, bytes); err != nil {
		return err
	}
	if err := s.resume(ctx); err != nil {
		return err
	}
	if err := s.attach(ctx); err != nil {
		return err
	}
	if err := s.current.allocate(s.current.end + bytes); err != nil {
		return s.noRoom(err)
	}
	if err := s.current.firm(); err != nil {
		s.fail(err) // it has a header, and perhaps groups, and its sync has failed
		return s.noRoom(err)
	}
	return nil
}

// resume begins a segment when none is written. If that fails, what is frozen is
// folded, which frees the segments that have it.
func (s *Store) resume(ctx context.Context) error {
	for s.current == nil {
		err := s.beginSegment()
		if err == nil {
			s.mu.Lock()
			s.active.segments = append(s.active.segments, s.current)
			s.mu.Unlock()
			return nil
		}
		if frozen, _, _, _ := s.state(); !frozen {
			return s.noRoom(err)
		}
		if ferr := s.foldStep(ctx); isBusy(ferr) {
			return ferr
		} else if ferr != nil {
			return s.noRoom(fmt.Errorf("%w, and what is there cannot be folded: %v", err, ferr))
		}
	}
	return nil
}

// noRoom is the error of a commit for which a segment could not be made.
func (s *Store) noRoom(err error) error {
	return fmt.Errorf("%s: %w: nothing was done: %w", s.dir, undone(err), err)
}

// undone is the kind of a commit's error when err has kept it from being done.
// Of the kinds that err has, only that the disk is full is the commit's, too.
func undone(err error) error {
	if persist.IsNoRoom(err) {
		return fmt.Errorf("%w: %w", persist.ErrUnavailable, persist.ErrNoRoom)
	}
	return persist.ErrUnavailable
}
