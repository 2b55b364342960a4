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
	r, ok := d.records.get(key)
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
	d.records.from(persist.Key{Pod: pod, Name: max(o.After, o.Prefix)}, func(k persist.Key, r stored) bool {
		if k.Pod != pod || !strings.HasPrefix(k.Name, o.Prefix) {
			return false
		}
		if o.After != "" && k.Name == o.After {
			return true
		}
		if page.More = len(page.Items) == o.Limit || size >= o.MaxBytes; page.More {
			return false
		}
		item := persist.Item{Name: k.Name}
		rec, err := snapshot.Parse(r.envelope)
		if err != nil {
			item.Err = fmt.Errorf("%s: %w", k, err)
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
	start := changeKey{Key: key, life: life}
	if life != 0 {
		start.revision = from
	}
	var out []persist.Change
	d.changes.from(start, func(k changeKey, c *persist.Change) bool {
		if k.Key != key || life != 0 && k.life != life {
			return false
		}
		if k.revision >= from {
			out = append(out, copyOf(c))
		}
		return len(out) < limitOr(limit)
	})
	return out, nil
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	var out []persist.Change
	d.log.from(after, func(position uint64, c *persist.Change) bool {
		if position > after {
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
	start := rowKey{kind: kind}
	if after != nil {
		start.Key, start.id = after.Key, after.ID
		if kind == "" {
			start.kind = after.Kind
		}
	}
	var out []persist.Row
	d.rows.from(start, func(k rowKey, value []byte) bool {
		if kind != "" && k.kind != kind {
			return false
		}
		if after == nil || k != start {
			out = append(out, rowOf(k, value))
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
	d.eachRow(key, func(k rowKey, value []byte) { out = append(out, rowOf(k, value)) })
	return out, nil
}

func rowOf(k rowKey, value []byte) persist.Row {
	return persist.Row{Kind: k.kind, Key: k.Key, ID: k.id, Value: cloneValue(value)}
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
		d.records.from(persist.Key{Pod: from}, func(k persist.Key, _ stored) bool {
			pod = k.Pod
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
