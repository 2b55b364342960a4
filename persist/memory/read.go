package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// defaultLimit is the limit of a page for which none is given.
const defaultLimit = 100

func limitOr(n int) int {
	if n <= 0 {
		return defaultLimit
	}
	return n
}

// Load implements persist.PersistenceService.
func (s *Store) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	d, err := s.look(ctx)
	if err != nil {
		return snapshot.Record{}, err
	}
	defer s.mu.RUnlock()
	r, ok := d.records.Get(stored{Key: key})
	if !ok {
		return snapshot.Record{}, fmt.Errorf("%s: %w", key, persist.ErrNotFound)
	}
	rec, err := snapshot.Parse(r.envelope)
	if err != nil {
		return snapshot.Record{}, fmt.Errorf("%s: %w", key, err)
	}
	return rec, nil
}

// List implements persist.PersistenceService.
func (s *Store) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	d, err := s.look(ctx)
	if err != nil {
		return persist.Page{}, err
	}
	defer s.mu.RUnlock()
	o = o.WithDefaults()
	var page persist.Page
	size := 0
	d.records.AscendGreaterOrEqual(stored{Key: persist.Key{Pod: pod, Name: max(o.After, o.Prefix)}}, func(r stored) bool {
		if r.Pod != pod || !strings.HasPrefix(r.Name, o.Prefix) {
			return false
		}
		if o.After != "" && r.Name == o.After {
			return true
		}
		if page.More = len(page.Items) == o.Limit || size >= o.MaxBytes; page.More {
			return false
		}
		item := persist.Item{Name: r.Name}
		rec, err := snapshot.Parse(r.envelope)
		if err != nil {
			item.Err = fmt.Errorf("%s: %w", r.Key, err)
		}
		item.Record = rec
		size += len(rec.State)
		page.Items = append(page.Items, item)
		return true
	})
	return page, nil
}

// Changes implements persist.PersistenceService.
func (s *Store) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	start := &persist.Change{Key: key, Life: life}
	if life != 0 {
		start.Revision = from
	}
	var out []persist.Change
	d.changes.AscendGreaterOrEqual(start, func(c *persist.Change) bool {
		if c.Key != key || life != 0 && c.Life != life {
			return false
		}
		if c.Revision >= from {
			out = append(out, copyOf(c))
		}
		return len(out) < limitOr(limit)
	})
	return out, nil
}

// NextLife implements persist.LifeFinder.
func (s *Store) NextLife(ctx context.Context, key persist.Key, after uint64) (life uint64, err error) {
	d, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.RUnlock()
	if after == ^uint64(0) {
		return 0, nil
	}
	d.changes.AscendGreaterOrEqual(&persist.Change{Key: key, Life: after + 1}, func(c *persist.Change) bool {
		if c.Key == key {
			life = c.Life
		}
		return false
	})
	return life, nil
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var out []persist.Change
	d.log.AscendGreaterOrEqual(&persist.Change{Position: after}, func(c *persist.Change) bool {
		if c.Position > after {
			out = append(out, copyOf(c))
		}
		return len(out) < limitOr(limit)
	})
	return out, nil
}

func copyOf(c *persist.Change) persist.Change {
	out := *c
	out.Data = cloneBytes(c.Data)
	return out
}

// Rows implements persist.PersistenceService.
func (s *Store) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	start := row{kind: kind}
	if after != nil {
		start.Key, start.id = after.Key, after.ID
		if kind == "" {
			start.kind = after.Kind
		}
	}
	var out []persist.Row
	d.rows.AscendGreaterOrEqual(start, func(r row) bool {
		if kind != "" && r.kind != kind {
			return false
		}
		if after == nil || compareRows(&r, &start) != 0 {
			out = append(out, rowOf(r))
		}
		return len(out) < limitOr(limit)
	})
	return out, nil
}

// RowsOf implements persist.PersistenceService.
func (s *Store) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var out []persist.Row
	d.eachRow(key, func(r row) { out = append(out, rowOf(r)) })
	return out, nil
}

func rowOf(r row) persist.Row {
	return persist.Row{Kind: r.kind, Key: r.Key, ID: r.id, Value: cloneValue(r.value)}
}

// Pods implements persist.PersistenceService. It seeks from pod to pod.
func (s *Store) Pods(ctx context.Context) ([]string, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var pods []string
	for from := ""; ; {
		pod := ""
		d.records.AscendGreaterOrEqual(stored{Key: persist.Key{Pod: from}}, func(r stored) bool {
			pod = r.Pod
			return false
		})
		if pod == "" {
			return pods, nil
		}
		pods = append(pods, pod)
		from = pod + "\x00"
	}
}

// Position implements persist.PersistenceService.
func (s *Store) Position(ctx context.Context) (uint64, error) {
	d, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.RUnlock()
	return d.next - 1, nil
}
