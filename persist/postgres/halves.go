package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
)

// defaultHalveFrom is where a second sync of the server's log begins to pay for
// itself.
const defaultHalveFrom = 48

// errHeld says that a half met a lock. It may be one of the other half, by a
// constraint that somebody has added to the tables; nothing was applied.
var errHeld = errors.New("a half of the commit waits for a lock")

// half is what one transaction commits of a call.
type half struct {
	plan *plan
	work []execution
}

// halve plans a call in two halves. Either is nothing when the call cannot be
// divided.
func (s *Store) halve(units []persist.Unit, known map[persist.Key]stored, suffix string) (halves [2]half) {
	at := cut(units)
	next := s.next
	for h, part := range [][]persist.Unit{units[:at], units[at:]} {
		p := newPlan(part, known, next, s.cfg.MaxRecord)
		halves[h] = half{p, p.executions(suffix)}
		next = p.next
	}
	return halves
}

// cut returns where a call is divided best: as near to its middle as it can be
// without dividing the units of one key, and in its middle half. It is 0 where
// there is no such place.
func cut(units []persist.Unit) int {
	last := make(map[persist.Key]int, len(units))
	for i := range units {
		last[units[i].Key] = i
	}
	n, best := len(units), 0
	for i, open := 0, 0; i < n && 4*i <= 3*n; i++ {
		// open is how far the keys of the units before i reach.
		if i > 0 && open < i && 4*i >= n && abs(2*i-n) < abs(2*best-n) {
			best = i
		}
		open = max(open, last[units[i].Key])
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// transactHalves runs the halves in a transaction each, at the same time, and
// then commits one after the other: nobody sees a position before those below
// it. The server has a process for each connection, and so they take two of its
// processors.
//
// The first begins with the fence, as any transaction does; the second ends with
// it, since only one at a time can have the store's row. A second half that
// somebody else's taking of the store comes before so fails as a whole.
//
// An error is as that of transact, or errHeld. It is unknown also when the first
// half alone was committed.
func (s *Store) transactHalves(ctx context.Context, halves [2]half) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	if err := s.checkWriter(ctx); err != nil {
		return err
	}
	middle, last := halves[0].plan.next-1, halves[1].plan.next-1
	second := make(chan error, 1)
	begin, hurry, commit := bare(beginStatement), bare(hurryStatement), bare(commitStatement)
	go func() {
		_, err := s.send(ctx, s.second, append([]execution{begin, hurry}, halves[1].work...)...)
		second <- err
	}()
	_, err := s.send(ctx, s.writer, append([]execution{begin, hurry, s.fence(middle)}, halves[0].work...)...)
	if err = cmp.Or(<-second, err); err != nil {
		return s.giveUp(ctx, err)
	}
	how, err := s.send(ctx, s.writer, commit)
	if how != committed {
		s.rollBack(ctx, s.second)
		return s.classify(ctx, err, how)
	}
	if err != nil {
		s.fail(err) // committed all the same, for the server has said so
	}
	s.next = max(s.next, middle+1)
	if how, err = s.send(ctx, s.second, s.fence(last), commit); how != committed {
		s.fail(err)
		return fmt.Errorf("%s: %w: half of it was committed: %w", s.target.where, persist.ErrUnknown, err)
	}
	if err != nil {
		s.fail(err)
	}
	s.next = max(s.next, last+1)
	return nil
}

// giveUp rolls both halves back, of which one has failed before any COMMIT.
func (s *Store) giveUp(ctx context.Context, err error) error {
	s.rollBack(ctx, s.writer)
	s.rollBack(ctx, s.second)
	pg := serverError(err)
	switch {
	case pg == nil:
		return fmt.Errorf("nothing was committed: %w", err)
	case pg.Code == stateLockNotAvailable:
		return errHeld
	}
	return s.refusal(pg, err)
}
