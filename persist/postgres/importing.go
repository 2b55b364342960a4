package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/twinsrv/twinsrv/persist"
)

// Import implements persist.Importer. A batch is one transaction. Of what it has
// twice, the last counts.
func (s *Store) Import(ctx context.Context, batch persist.Batch) error {
	highest, err := s.checkBatch(&batch)
	if err != nil {
		return fmt.Errorf("%s: import: %w", s.target.where, err)
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = s.transact(ctx, max(highest, s.next-1), importExecutions(&batch, ""))
	var refused *refusedData
	if errors.As(err, &refused) {
		err = s.transact(ctx, max(highest, s.next-1), importExecutions(&batch, tolerant))
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return fmt.Errorf("%s: import: %w: %w", s.target.where, persist.ErrInvalid, refused.err)
	}
	return s.unavailableOr(err)
}

// checkBatch refuses what must not be stored, and returns the highest position
// that the batch has anywhere.
func (s *Store) checkBatch(b *persist.Batch) (highest uint64, err error) {
	highest = b.Position
	for i := range b.Records {
		r := &b.Records[i]
		highest = max(highest, r.Record.Life)
		switch {
		case r.Record.Life == 0 || r.Record.Revision == 0 || r.Record.Revision > math.MaxInt64:
			err = fmt.Errorf("%w: it has life %d and revision %d", persist.ErrInvalid, r.Record.Life, r.Record.Revision)
		default:
			err = s.checkValue(r.Key, len(r.Record.State))
		}
		if err != nil {
			return 0, fmt.Errorf("record %s: %w", r.Key, err)
		}
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		highest = max(highest, c.Position, c.Life)
		switch {
		case c.Position == 0 || c.Revision > math.MaxInt64:
			err = fmt.Errorf("%w: it has position %d and revision %d", persist.ErrInvalid, c.Position, c.Revision)
		case c.Err != nil:
			err = fmt.Errorf("%w: it could not be read: %w", persist.ErrInvalid, c.Err)
		default:
			err = s.checkValue(c.Key, len(c.Data))
		}
		if err != nil {
			return 0, fmt.Errorf("change %d of %s: %w", c.Position, c.Key, err)
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		op := persist.Unit{Key: r.Key, Expect: 1, Rows: []persist.RowOp{{Kind: r.Kind, ID: r.ID, Value: r.Value}}}
		if err = checkUnit(&op, s.cfg.MaxRecord); err == nil && r.Err != nil {
			err = fmt.Errorf("%w: it could not be read: %w", persist.ErrInvalid, r.Err)
		}
		if err != nil {
			return 0, fmt.Errorf("row of kind %q of %s: %w", r.Kind, r.Key, err)
		}
	}
	if highest >= math.MaxInt64 {
		return 0, fmt.Errorf("%w: position %d leaves none for what comes after", persist.ErrInvalid, highest)
	}
	return highest, nil
}

func (s *Store) checkValue(k persist.Key, size int) error {
	if err := k.Check(); err != nil {
		return err
	}
	if size > s.cfg.MaxRecord {
		return fmt.Errorf("%w: it has %d bytes, at most %d are kept", persist.ErrInvalid, size, s.cfg.MaxRecord)
	}
	return checkText(k)
}

func importExecutions(b *persist.Batch, suffix string) []execution {
	records := lastOf(b.Records, func(r *persist.Stored) persist.Key { return r.Key })
	changes := lastOf(b.Changes, func(c *persist.Change) uint64 { return c.Position })
	type rowKey struct {
		key persist.Key
		id  rowID
	}
	rows := lastOf(b.Rows, func(r *persist.Row) rowKey { return rowKey{r.Key, rowID{r.Kind, r.ID}} })
	sortRows(rows)
	out := recordGroups(nil, importRecordsStatement+suffix, records)
	out = changeGroups(out, importChangesStatement, changes)
	return rowGroups(out, rows)
}

// lastOf returns the values, without those that one of the same key follows.
func lastOf[T any, K comparable](all []T, key func(*T) K) []T {
	at := make(map[K]int, len(all))
	out := make([]T, 0, len(all))
	for i := range all {
		k := key(&all[i])
		if j, ok := at[k]; ok {
			out[j] = all[i]
			continue
		}
		at[k] = len(out)
		out = append(out, all[i])
	}
	return out
}
