package bolt

import (
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// Import implements persist.Importer. A batch is one transaction; batches of
// some thousand things, or some megabytes, are best.
func (s *Store) Import(ctx context.Context, b persist.Batch) error {
	if err := b.Check(s.cfg.MaxRecord); err != nil {
		return err
	}
	return s.whenFree(ctx, func() error {
		c := s.newCommit()
		if err := s.update(func(tx *bbolt.Tx) error { return c.take(tx, &b) }); err != nil {
			return unreadable("import", err)
		}
		s.adoptCommit(&c)
		return nil
	})
}

// take writes a batch.
func (c *commit) take(tx *bbolt.Tx, b *persist.Batch) error {
	c.open(tx)
	last := b.Position
	for i := range b.Records {
		if err := c.takeRecord(&b.Records[i]); err != nil {
			return err
		}
		last = max(last, b.Records[i].Record.Life)
	}
	for i := range b.Changes {
		if err := c.takeChange(&b.Changes[i]); err != nil {
			return err
		}
		last = max(last, b.Changes[i].Position, b.Changes[i].Life)
	}
	for i := range b.Rows {
		if err := c.takeRow(&b.Rows[i]); err != nil {
			return err
		}
	}
	if len(b.Records)+len(b.Changes)+len(b.Rows) == 0 && last < c.next {
		return errNothing
	}
	c.next = max(c.next, last+1)
	return c.putNumbers()
}

func (c *commit) takeRecord(r *persist.Stored) error {
	k := recordKey(r.Key)
	return c.records.Put(k, sealRecord(k, &r.Record))
}

func (c *commit) takeRow(r *persist.Row) error {
	return c.putRow(r.Key, &persist.RowOp{Kind: r.Kind, ID: r.ID, Value: r.Value})
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
	return c.logChange(change)
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
