package memory

import (
	"context"

	"github.com/twinsrv/twinsrv/persist"
)

// Heads implements persist.Folder.
func (s *Store) Heads(ctx context.Context, keys []persist.Key) ([]persist.Head, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	heads := make([]persist.Head, len(keys))
	for i, k := range keys {
		heads[i] = headOf(d.records.Get(stored{Key: k}))
	}
	return heads, nil
}

func headOf(r stored, exists bool) persist.Head {
	return persist.Head{Exists: exists, Life: r.life, Revision: r.revision}
}

// Fold implements persist.Folder. A batch is taken whole or not at all.
func (s *Store) Fold(ctx context.Context, f persist.Fold) error {
	if err := f.Check(s.cfg.MaxRecord); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.data.fold(&f)
	return nil
}

func (d *data) fold(f *persist.Fold) {
	for _, k := range f.Deleted {
		d.records.Delete(stored{Key: k})
		d.deleteRows(k)
	}
	for i := range f.RowsGone {
		r := &f.RowsGone[i]
		d.rows.Delete(row{kind: r.Kind, Key: r.Key, id: r.ID})
	}
	last := f.Position
	for i := range f.Records {
		r := &f.Records[i]
		d.putRecord(r.Key, &r.Record)
		last = max(last, r.Record.Life)
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		d.rows.ReplaceOrInsert(row{r.Kind, r.Key, r.ID, cloneValue(r.Value)})
	}
	for _, c := range f.Changes {
		c.Data = cloneBytes(c.Data)
		d.logChange(&c)
		last = max(last, c.Position, c.Life)
	}
	for i := range f.Filed {
		c := &f.Filed[i]
		d.fileChange(c.Position)
		last = max(last, c.Position, c.Life)
	}
	d.next = max(d.next, last+1)
	if f.Mark != (persist.Mark{}) {
		d.mark = f.Mark
	}
}

// Mark implements persist.Folder.
func (s *Store) Mark(ctx context.Context) (persist.Mark, error) {
	d, err := s.look(ctx)
	if err != nil {
		return persist.Mark{}, err
	}
	defer s.mu.RUnlock()
	return d.mark, nil
}
