package commitlog

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/twinsrv/twinsrv/persist"
)

func compareRows(a, b *persist.Row) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), compareKeys(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
}

// Rows implements persist.PersistenceService.
func (s *Store) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if after != nil && kind != "" && after.Kind != kind {
		given := *after
		given.Kind = kind
		after = &given
	}
	w := walk{s: s, kind: kind, after: after, limit: limitOr(limit), merge: merge[persist.Row]{compare: compareRows}}
	var rows []persist.Row
	for len(rows) < w.limit {
		for len(w.ready) == 0 {
			if w.ended {
				return rows, nil
			}
			if err := w.fill(ctx); err != nil {
				return nil, err
			}
		}
		rows = append(rows, *w.pop())
	}
	return rows, nil
}

// walk goes through the rows of a kind, or of all.
type walk struct {
	s     *Store
	kind  string
	after *persist.Row
	limit int
	merge[persist.Row]
}

// fill reads the next part of all that is merged.
func (w *walk) fill(ctx context.Context) error {
	var parts []part[persist.Row]
	var seen []*generation
	if err := w.s.look(ctx, func(gens []*generation) {
		seen = slices.Clone(gens)
		for i, g := range gens {
			parts = append(parts, w.dirty(g, gens[:i]))
		}
	}); err != nil {
		return err
	}
	rows, err := w.s.behind.Rows(ctx, w.kind, w.after, w.limit)
	if err != nil {
		return err
	}
	behind := part[persist.Row]{more: len(rows) == w.limit}
	w.s.mu.RLock()
	for i := range rows {
		behind.items = append(behind.items, merging[persist.Row]{item: rows[i], gone: cleared(seen, rows[i].Key)})
	}
	w.s.mu.RUnlock()
	if last := w.mergeParts(append(parts, behind)); last != nil {
		w.after = last
	}
	return nil
}

// cleared says whether generations have deleted all rows that older ones have
// of an entity. mu is held.
func cleared(gens []*generation, key persist.Key) bool {
	return slices.ContainsFunc(gens, func(g *generation) bool {
		d := g.entities[key]
		return d != nil && d.cleared
	})
}

// dirty is what a generation has of the next part; newer may have cleared it.
func (w *walk) dirty(g *generation, newer []*generation) (p part[persist.Row]) {
	from := &dirtyRow{kind: w.kind}
	if a := w.after; a != nil {
		if behind := (&dirtyRow{kind: a.Kind, key: a.Key, id: a.ID}); behind.compare(from) > 0 {
			from = behind
		}
	}
	g.eachRow(from, func(r *dirtyRow) bool {
		row := persist.Row{Kind: r.kind, Key: r.key, ID: r.id}
		switch {
		case w.kind != "" && r.kind != w.kind:
			return false
		case w.after != nil && compareRows(&row, w.after) <= 0:
			return true
		case len(p.items) == w.limit:
			p.more = true
			return false
		}
		row.Value = bytes.Clone(r.value)
		p.items = append(p.items, merging[persist.Row]{item: row, gone: r.gone || cleared(newer, r.key)})
		return true
	})
	return p
}

// RowsOf implements persist.PersistenceService.
func (s *Store) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	m := merge[persist.Row]{compare: compareRows}
	var parts []part[persist.Row]
	hidden := false
	if err := s.look(ctx, func(gens []*generation) {
		for i, g := range gens {
			parts = append(parts, rowsOf(g, key, cleared(gens[:i], key)))
		}
		hidden = cleared(gens, key)
	}); err != nil {
		return nil, err
	}
	rows, err := s.behind.RowsOf(ctx, key)
	if err != nil {
		return nil, err
	}
	var behind part[persist.Row]
	for i := range rows {
		behind.items = append(behind.items, merging[persist.Row]{item: rows[i], gone: hidden})
	}
	m.mergeParts(append(parts, behind))
	return m.ready, nil
}

// rowsOf is what a generation has of an entity's rows; hidden says that they
// were deleted since.
func rowsOf(g *generation, key persist.Key, hidden bool) (p part[persist.Row]) {
	kinds := make([]string, 0, len(g.kinds))
	for kind := range g.kinds {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		g.eachRow(&dirtyRow{kind: kind, key: key}, func(r *dirtyRow) bool {
			if r.kind != kind || r.key != key {
				return false
			}
			p.items = append(p.items, merging[persist.Row]{
				item: persist.Row{Kind: r.kind, Key: r.key, ID: r.id, Value: bytes.Clone(r.value)}, gone: r.gone || hidden})
			return true
		})
	}
	return p
}
