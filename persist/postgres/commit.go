package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/twinsrv/twinsrv/persist"
)

// staleTries is how often a call is judged anew when records are not as was
// read a moment before. Only somebody who writes past the store makes that
// happen at all.
const staleTries = 3

// idleCheck is how long the writer's connection must have been idle to be looked
// at before it is used.
const idleCheck = 100 * time.Millisecond

// errStale says that some record was not as assumed; nothing was applied.
var errStale = errors.New("records are not as they were read: somebody writes to the tables past the store")

// refusedData says that the server refused some value; nothing was applied.
type refusedData struct{ err *pgconn.PgError }

func (r *refusedData) Error() string { return r.err.Error() }

// Commit implements persist.PersistenceService. A small call is one transaction,
// sent and answered in one round trip as long as every unit finds what it
// expects; if one does not, there are a second to read what is stored and a
// third. A large one is two at the same time, where its units can be divided.
//
// Each unit without changes spends one position too. In a forced deletion,
// whose caller may not know the entity's revision, a change whose revision is
// not above the last one in the journal gets the one that follows it.
func (s *Store) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var known map[persist.Key]stored
	if needsRead(units) {
		if known, err = s.stored(ctx, units); err != nil {
			return nil, err
		}
	}
	suffix, halves := "", len(units) >= s.cfg.halveFrom
	for try := 0; ; {
		outcomes, err := s.try(ctx, units, known, suffix, halves)
		var refused *refusedData
		switch {
		case err == nil:
			return outcomes, nil
		case errors.Is(err, errHeld):
			halves = false
		case errors.Is(err, errStale) && try < staleTries:
			try++
			if known, err = s.stored(ctx, units); err != nil {
				return nil, err
			}
		case errors.As(err, &refused) && suffix == "":
			suffix = tolerant
		case errors.As(err, &refused):
			// Halving the group leaves the guilty unit alone with its failure.
			return nil, fmt.Errorf("%s: %w: %w", s.target.where, persist.ErrInvalid, refused.err)
		default:
			return nil, s.unavailableOr(err)
		}
	}
}

// try commits the units as they are judged by what is known, in one transaction
// or in two.
func (s *Store) try(ctx context.Context, units []persist.Unit, known map[persist.Key]stored, suffix string, halves bool) ([]persist.Outcome, error) {
	if halves {
		h := s.halve(units, known, suffix)
		if len(h[0].work) > 0 && len(h[1].work) > 0 {
			return append(h[0].plan.outcomes, h[1].plan.outcomes...), s.transactHalves(ctx, h)
		}
	}
	p := newPlan(units, known, s.next, s.cfg.MaxRecord)
	work := p.executions(suffix)
	if len(work) == 0 {
		return p.outcomes, nil
	}
	return p.outcomes, s.transact(ctx, p.next-1, work)
}

// unavailableOr keeps an unknown outcome, and makes any other error say that
// nothing was done.
func (s *Store) unavailableOr(err error) error {
	if errors.Is(err, persist.ErrUnknown) {
		return err
	}
	return s.unavailable(err)
}

// executions returns what the plan writes, and what proves it.
func (p *plan) executions(suffix string) []execution {
	var proven, inserted, updated, deleted, cleared []*entity
	var put, dropped []persist.Row
	all := p.touched()
	for _, e := range all {
		switch {
		case e.was.exists() && !e.now.exists():
			deleted = append(deleted, e)
		case e.record == nil:
			proven = append(proven, e)
		case e.was.exists():
			updated = append(updated, e)
		default:
			inserted = append(inserted, e)
		}
		if e.cleared && e.was.exists() {
			cleared = append(cleared, e)
		}
		for id, op := range e.rows {
			r := persist.Row{Kind: id.kind, Key: e.key, ID: id.id, Value: op.Value}
			if op.Delete {
				dropped = append(dropped, r)
			} else {
				put = append(put, r)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	sortRows(put)
	sortRows(dropped)
	// Changes are made ready faster than records: while the server inserts them,
	// those are.
	out := changeGroups(nil, changeStatement, p.changes)
	out = entityGroups(out, proveStatement, proven)
	out = recordGroups(out, insertStatement+suffix, recordsOf(inserted))
	out = updateGroups(out, updateStatement+suffix, updated)
	out = entityGroups(out, deleteStatement, deleted)
	out = clearGroups(out, cleared)
	out = deletedRowGroups(out, dropped)
	return rowGroups(out, put)
}

func sortRows(rows []persist.Row) {
	slices.SortFunc(rows, func(a, b persist.Row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key.Pod, b.Key.Pod),
			cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.ID, b.ID))
	})
}

// transact runs the work in one transaction that first proves that this server
// still has the store, and leaves its position at the given one. All is sent at
// once. The caller has the turn.
//
// Its error is errStale or refusedData, or wraps persist.ErrUnknown, and else
// says why nothing was applied.
func (s *Store) transact(ctx context.Context, position uint64, work []execution) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	if err := s.checkWriter(ctx); err != nil {
		return err
	}
	all := slices.Concat([]execution{bare(beginStatement)}, []execution{s.fence(position)}, work, []execution{bare(commitStatement)})
	how, err := s.send(ctx, s.writer, all...)
	if how != committed {
		return s.classify(ctx, err, how)
	}
	if err != nil {
		s.fail(err) // committed all the same, for the server has said so
	}
	s.next = max(s.next, position+1)
	return nil
}

// fence is the statement that proves that the store is still this server's, and
// leaves its position at the given one.
func (s *Store) fence(position uint64) execution {
	epoch, before := int8Binary(s.epoch), int8Binary(int64(s.next-1))
	return execution{fenceStatement, func() [][]byte { return [][]byte{epoch, before, int8Binary(int64(position))} }}
}

// checkWriter notices, before anything is sent, that the server or the network
// has ended a connection while it was idle. That takes a round trip, and so
// connections that were just used are not looked at.
func (s *Store) checkWriter(ctx context.Context) error {
	idle := time.Since(s.used)
	s.used = time.Now()
	if idle < idleCheck {
		return nil
	}
	for _, c := range []*pgx.Conn{s.writer, s.second} {
		if err := c.Ping(ctx); err != nil {
			s.fail(err)
			return fmt.Errorf("nothing was sent: the connection was lost: %w", err)
		}
	}
	return nil
}

// classify says what a failed transaction has left.
func (s *Store) classify(ctx context.Context, err error, how progress) error {
	pg := serverError(err)
	switch {
	case pg == nil && how == unsent:
		if s.writer.IsClosed() {
			s.fail(err)
		}
		return fmt.Errorf("the commit was not sent: %w", err)
	case pg == nil, how == committing && fatal(pg):
		// The server may have got all of it, or have committed and then ended.
		s.fail(err)
		return fmt.Errorf("%s: %w: %w", s.target.where, persist.ErrUnknown, err)
	case fatal(pg):
		s.fail(err)
		return err
	}
	// An error before the COMMIT, or instead of it, leaves a transaction that
	// ends with nothing.
	s.rollBack(ctx, s.writer)
	return s.refusal(pg, err)
}

// rollBack ends a transaction with nothing.
func (s *Store) rollBack(ctx context.Context, c *pgx.Conn) {
	if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
		s.fail(err)
	}
}

// refusal says what a transaction that was rolled back has failed by.
func (s *Store) refusal(pg *pgconn.PgError, err error) error {
	switch {
	case pg.Code == stateFenced:
		s.fail(err) // healing finds out who has the store
		return err
	case pg.Code == stateStale, pg.Code == stateUniqueViolation && pg.ConstraintName == "records_pkey":
		return errStale
	case refusesData(pg):
		return &refusedData{pg}
	}
	return err
}

// stored reads what is stored of the units' entities. The caller has the turn.
func (s *Store) stored(ctx context.Context, units []persist.Unit) (map[persist.Key]stored, error) {
	keys := keysOf(units)
	known := make(map[persist.Key]stored, len(keys))
	var err error
	groups(len(keys), noSize, func(from, to int) {
		if err == nil {
			err = s.readStored(ctx, keys[from:to], known)
		}
	})
	for i := range units {
		u := &units[i]
		k, there := known[u.Key]
		if err != nil || !u.Force || !there {
			continue
		}
		var last int64
		err = s.writer.QueryRow(ctx, lastStatement, u.Key.Pod, u.Key.Name, int64(k.life)).Scan(&last)
		k.last = uint64(last)
		known[u.Key] = k
	}
	if err != nil {
		if ended(err) || s.writer.IsClosed() {
			s.fail(err)
		}
		return nil, s.unavailable(err)
	}
	return known, nil
}

func (s *Store) readStored(ctx context.Context, keys []persist.Key, into map[persist.Key]stored) error {
	pods, names := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		pods[i], names[i] = k.Pod, k.Name
	}
	rows, err := s.writer.Query(ctx, readStatement, pods, names)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k persist.Key
		var life, revision int64
		if err := rows.Scan(&k.Pod, &k.Name, &life, &revision); err != nil {
			return err
		}
		into[k] = stored{life: uint64(life), revision: uint64(revision)}
	}
	return rows.Err()
}
