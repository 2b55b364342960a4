package memory

import (
	"context"
	"fmt"
	"math"

	"github.com/twinsrv/twinsrv/persist"
)

// Import implements persist.Importer. A batch is taken whole or not at all.
func (s *Store) Import(ctx context.Context, b persist.Batch) error {
	if err := checkBatch(&b, s.cfg.MaxRecord); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	d := s.data
	last := b.Position
	for i := range b.Records {
		r := &b.Records[i]
		d.putRecord(r.Key, &r.Record)
		last = max(last, r.Record.Life)
	}
	for _, c := range b.Changes {
		c.Data = cloneBytes(c.Data)
		d.putChange(&c)
		last = max(last, c.Position, c.Life)
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		d.rows.ReplaceOrInsert(row{r.Kind, r.Key, r.ID, cloneValue(r.Value)})
	}
	d.next = max(d.next, last+1)
	return nil
}

// checkBatch says why a batch must not be stored.
func checkBatch(b *persist.Batch, most int) error {
	if b.Position == math.MaxUint64 {
		return fmt.Errorf("%w: no position is above %d", persist.ErrInvalid, b.Position)
	}
	for i := range b.Records {
		r := &b.Records[i]
		u := persist.Unit{Key: r.Key, Record: &r.Record}
		if err := u.Check(most); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		if r.Record.Life == 0 || r.Record.Life == math.MaxUint64 {
			return fmt.Errorf("%s: %w: a record of life %d", r.Key, persist.ErrInvalid, r.Record.Life)
		}
	}
	for i := range b.Changes {
		if err := checkChange(&b.Changes[i], most); err != nil {
			return fmt.Errorf("%s: position %d: %w", b.Changes[i].Key, b.Changes[i].Position, err)
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		u := persist.Unit{Key: r.Key, Expect: 1, Rows: []persist.RowOp{{Kind: r.Kind, ID: r.ID, Value: r.Value}}}
		if err := u.Check(most); err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		if r.Err != nil {
			return fmt.Errorf("%s: %w: a row that cannot be read: %w", r.Key, persist.ErrInvalid, r.Err)
		}
	}
	return nil
}

func checkChange(c *persist.Change, most int) error {
	switch {
	case c.Err != nil:
		return fmt.Errorf("%w: a change that cannot be read: %w", persist.ErrInvalid, c.Err)
	case c.Position == 0 || c.Position == math.MaxUint64 || c.Life == 0 || c.Life == math.MaxUint64:
		return fmt.Errorf("%w: a change of life %d at position %d", persist.ErrInvalid, c.Life, c.Position)
	case len(c.Data) > most:
		return fmt.Errorf("%w: the change has %d bytes, at most %d are kept", persist.ErrInvalid, len(c.Data), most)
	}
	return c.Key.Check()
}
