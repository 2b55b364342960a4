package jsonfile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const defaultLimit = 100 // of a page whose limit is not given

func limitOr(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return limit
}

// fetch hands fn the content of an entity, for reading it, from memory or from
// its file. It fails with persist.ErrNotFound when the entity is not there (any
// more), and with what keeps the content from being read. c is nobody else's
// when fresh is true.
func (s *Store) fetch(ctx context.Context, key persist.Key, fn func(c *content, fresh bool)) error {
	for tries := 0; ; tries++ {
		var e *entity
		var version, life, revision uint64
		done := false
		err := s.view(ctx, func(x *index) error {
			e = x.entities[key]
			if e == nil || !e.present {
				return persist.ErrNotFound
			}
			if e.err != nil {
				return e.err
			}
			if e.held != nil {
				fn(e.held, false)
				done = true
			}
			version, life, revision = e.version, e.life, e.revision
			return nil
		})
		if err != nil || done {
			return err
		}
		c, err := s.readFile(key)
		if err == nil && life != 0 && (c.record == nil || c.record.Life != life || c.record.Revision != revision) {
			err = damaged("%s: it was changed while the store has it open", s.file(key))
		}
		same := false
		if verr := s.view(ctx, func(x *index) error {
			same = x.entities[key] == e && e.version == version
			return nil
		}); verr != nil {
			return verr
		}
		if err == nil && same {
			fn(c, true)
			return nil
		}
		// A commit came meanwhile: look again, and in the end believe what is
		// there.
		if same || tries == 100 {
			if err == nil {
				err = fmt.Errorf("%w: it changes faster than it can be read", persist.ErrUnavailable)
			}
			return err
		}
	}
}

func keyed(key persist.Key, err error) error {
	if err == nil || errors.Is(err, persist.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%s: %w", key, err)
}

// Load implements persist.PersistenceService.
func (s *Store) Load(ctx context.Context, key persist.Key) (r snapshot.Record, err error) {
	var found error
	err = s.fetch(ctx, key, func(c *content, _ bool) {
		if c.record == nil {
			found = persist.ErrNotFound
			return
		}
		r = owned(c.record)
	})
	if err == nil {
		err = found
	}
	return r, keyed(key, err)
}

// List implements persist.PersistenceService.
func (s *Store) List(ctx context.Context, podName string, o persist.ListOptions) (persist.Page, error) {
	o = o.WithDefaults()
	var page persist.Page
	size := 0
	for after := o.After; ; {
		var e *entity
		err := s.view(ctx, func(x *index) error {
			p := x.pods[podName]
			for e = p.next(after, o.Prefix); e != nil && !e.exists; e = p.next(e.key.Name, o.Prefix) {
			}
			return nil
		})
		if err != nil {
			return persist.Page{}, err
		}
		if e == nil {
			return page, nil
		}
		if page.More = len(page.Items) == o.Limit || size >= o.MaxBytes; page.More {
			return page, nil
		}
		after = e.key.Name
		item := persist.Item{Name: after}
		item.Record, item.Err = s.Load(ctx, e.key)
		switch {
		case errors.Is(item.Err, persist.ErrNotFound):
			continue // deleted meanwhile
		case errors.Is(item.Err, persist.ErrUnavailable):
			return persist.Page{}, item.Err
		}
		size += len(item.Record.State)
		page.Items = append(page.Items, item)
	}
}

// readAhead keeps the rows of the entity that was read last, so that paging
// through many rows of one entity reads its file once.
type readAhead struct {
	e       *entity
	version uint64
	rows    []persist.Row
}

// rowsOf returns an entity's rows in order; they are not the caller's.
func (s *Store) rowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	var rows []persist.Row
	var e *entity
	var version uint64
	err := s.view(ctx, func(x *index) error {
		e = x.entities[key]
		if e != nil {
			version = e.version
		}
		if ra := s.read; ra != nil && e != nil && ra.e == e && ra.version == version && e.err == nil {
			rows = ra.rows
		}
		return nil
	})
	if err != nil || rows != nil {
		return rows, err
	}
	err = s.fetch(ctx, key, func(c *content, _ bool) {
		for _, id := range c.sorted() {
			r := persist.Row{Kind: id.kind, Key: key, ID: id.id, Value: c.rows[id].value}
			if c.rows[id].damaged {
				r.Value, r.Err = nil, fmt.Errorf("%s: row %s %q: %w", key, id.kind, id.id, snapshot.ErrCorrupt)
			}
			rows = append(rows, r)
		}
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if e != nil && e.version == version {
		s.read = &readAhead{e, version, rows}
	}
	s.mu.Unlock()
	return rows, nil
}

func ownedRow(r persist.Row) persist.Row {
	if r.Err == nil {
		r.Value = append([]byte{}, r.Value...)
	}
	return r
}

// RowsOf implements persist.PersistenceService.
func (s *Store) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	rows, err := s.rowsOf(ctx, key)
	if errors.Is(err, persist.ErrNotFound) || err == nil && len(rows) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, keyed(key, err)
	}
	out := make([]persist.Row, len(rows))
	for i := range rows {
		out[i] = ownedRow(rows[i])
	}
	return out, nil
}

// Rows implements persist.PersistenceService. An entity whose file cannot be
// read has one row with an error and no ID among those of each kind; among the
// rows of every kind it has one, at the beginning.
func (s *Store) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	w := walk{s: s, limit: limitOr(limit)}
	if kind != "" {
		err := w.kind(ctx, kind, after, true)
		return w.rows, err
	}
	var kinds []string
	if err := s.view(ctx, func(x *index) error {
		kinds = append(slices.Sorted(maps.Keys(x.kinds)), "")
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		if after != nil && kind < after.Kind {
			continue
		}
		from := after
		if from != nil && kind > from.Kind {
			from = nil
		}
		if err := w.kind(ctx, kind, from, kind == ""); err != nil || len(w.rows) == w.limit {
			return w.rows, err
		}
	}
	return w.rows, nil
}

// walk collects rows.
type walk struct {
	s     *Store
	limit int
	rows  []persist.Row
}

// kind collects the rows of one kind; damaged says whether entities that cannot
// be read get a row.
func (w *walk) kind(ctx context.Context, kind string, after *persist.Row, damaged bool) error {
	var from persist.Key
	id := ""
	if after != nil {
		from, id = after.Key, after.ID
	}
	for len(w.rows) < w.limit {
		key, ok, err := w.next(ctx, kind, from, after != nil, damaged)
		if err != nil || !ok {
			return err
		}
		if key != from || after == nil {
			id = ""
		}
		again := after != nil && key == from
		if err := w.take(ctx, kind, key, id, again, damaged); err != nil {
			return err
		}
		if len(w.rows) == w.limit {
			return nil
		}
		// Go on behind this entity.
		from, after = persist.Key{Pod: key.Pod, Name: key.Name + "\x00"}, &persist.Row{}
	}
	return nil
}

// next returns the first entity at or behind a key that has rows of the kind or
// cannot be read.
func (w *walk) next(ctx context.Context, kind string, from persist.Key, started, damaged bool) (key persist.Key, ok bool, err error) {
	err = w.s.view(ctx, func(x *index) error {
		for _, name := range x.sortedPods() {
			if started && name < from.Pod {
				continue
			}
			list := x.pods[name].list
			i := 0
			if started && name == from.Pod {
				i, _ = slices.BinarySearchFunc(list, from.Name, byName)
			}
			for ; i < len(list); i++ {
				e := list[i]
				if damaged && e.err != nil {
					key, ok = e.key, true
					return nil
				}
				if _, has := slices.BinarySearch(e.kinds, kind); has {
					key, ok = e.key, true
					return nil
				}
			}
		}
		return nil
	})
	return key, ok, err
}

// take collects one entity's rows behind an ID.
func (w *walk) take(ctx context.Context, kind string, key persist.Key, id string, again, damaged bool) error {
	rows, err := w.s.rowsOf(ctx, key)
	switch {
	case errors.Is(err, persist.ErrUnavailable):
		return err
	case errors.Is(err, persist.ErrNotFound):
		return nil // deleted meanwhile
	case err != nil:
		if damaged && !again {
			w.rows = append(w.rows, persist.Row{Kind: kind, Key: key, Err: keyed(key, err)})
		}
		return nil
	}
	i, _ := slices.BinarySearchFunc(rows, rowID{kind, id}, func(r persist.Row, id rowID) int {
		return compareIDs(rowID{r.Kind, r.ID}, id)
	})
	for ; i < len(rows) && rows[i].Kind == kind && len(w.rows) < w.limit; i++ {
		if rows[i].ID != id {
			w.rows = append(w.rows, ownedRow(rows[i]))
		}
	}
	return nil
}

// Pods implements persist.PersistenceService.
func (s *Store) Pods(ctx context.Context) (names []string, err error) {
	err = s.view(ctx, func(x *index) error {
		for _, name := range x.sortedPods() {
			if x.pods[name].records > 0 {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}

// Position implements persist.PersistenceService.
func (s *Store) Position(ctx context.Context) (n uint64, err error) {
	err = s.view(ctx, func(x *index) error { n = x.last; return nil })
	return n, err
}
