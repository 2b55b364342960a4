package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// Import implements persist.Importer. A batch is one transaction; batches of
// some thousand things, or some megabytes, are best.
func (s *Store) Import(ctx context.Context, b persist.Batch) error {
	if err := checkBatch(&b, s.cfg.MaxRecord); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.release()
	c := commit{s: s, next: s.next}
	if err := s.update(func(tx *bbolt.Tx) error { return c.take(tx, &b) }); err != nil {
		return unreadable("import", err)
	}
	s.adoptCommit(&c)
	return nil
}

// take writes a batch.
func (c *commit) take(tx *bbolt.Tx, b *persist.Batch) error {
	c.open(tx)
	last := b.Position
	for i := range b.Records {
		r := &b.Records[i]
		k := recordKey(r.Key)
		if err := c.records.Put(k, sealRecord(k, &r.Record)); err != nil {
			return err
		}
		last = max(last, r.Record.Life)
	}
	for i := range b.Changes {
		if err := c.takeChange(&b.Changes[i]); err != nil {
			return err
		}
		last = max(last, b.Changes[i].Position, b.Changes[i].Life)
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if err := c.putRow(r.Key, &persist.RowOp{Kind: r.Kind, ID: r.ID, Value: r.Value}); err != nil {
			return err
		}
	}
	if len(b.Records)+len(b.Changes)+len(b.Rows) == 0 && last < c.next {
		return errNothing
	}
	c.next = max(c.next, last+1)
	return c.putNumbers()
}

// takeChange files a change wherever it belongs among those of its entity.
func (c *commit) takeChange(change *persist.Change) error {
	p := positionKey(change.Position)
	if old := c.log.Get(p); old != nil {
		if err := c.unfile(readChange(p, old)); err != nil {
			return err
		}
	}
	if err := c.emptyTail(change.Key); err != nil {
		return err
	}
	if err := c.file(change.Key, change.Life, entryOf{change.Revision, change.Position}); err != nil {
		return err
	}
	if change.Event {
		c.format = formatEvents
	}
	return c.log.Put(p, sealChange(p, change))
}

// unfile removes the entry of a change that is about to be replaced.
func (c *commit) unfile(old persist.Change) error {
	if old.Key.Name == "" {
		return nil // it cannot be read
	}
	if err := c.emptyTail(old.Key); err != nil {
		return err
	}
	k := changeKey(changesPrefix(old.Key), old.Life, old.Revision)
	head, _, err := unseal(changesBucket, k, c.changes.Get(k))
	if err != nil || binary.BigEndian.Uint64(head) != old.Position {
		return nil // it is not this change that is filed there
	}
	return c.changes.Delete(k)
}

// emptyTail files the entries of an entity's tail, so that others may come
// before them.
func (c *commit) emptyTail(key persist.Key) error {
	k := recordKey(key)
	t, err := c.tailOf(k, key)
	if err != nil || len(t.entries) == 0 {
		return err
	}
	if err := c.move(key, t); err != nil {
		return err
	}
	return c.tails.Delete(k)
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
