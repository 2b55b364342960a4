package memory

import (
	"context"

	"github.com/twinsrv/twinsrv/persist"
)

// Import implements persist.Importer. A batch is taken whole or not at all.
func (s *Store) Import(ctx context.Context, b persist.Batch) error {
	if err := b.Check(s.cfg.MaxRecord); err != nil {
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
