package commitlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"

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

// look runs fn with the generations that there are, the newest first, as of one
// moment. What fn learns stays right while the store behind is read afterwards:
// a generation is let go only when the store behind has all of it.
func (s *Store) look(ctx context.Context, fn func(gens []*generation)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w: nothing was begun: %w", s.dir, persist.ErrUnavailable, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.down != nil {
		return s.down
	}
	gens := [2]*generation{s.active, s.frozen}
	if s.frozen == nil {
		fn(gens[:1])
	} else {
		fn(gens[:])
	}
	return nil
}

// Load implements persist.PersistenceService.
func (s *Store) Load(ctx context.Context, key persist.Key) (r snapshot.Record, err error) {
	var d *dirty
	if err := s.look(ctx, func(gens []*generation) { r, d = recordOf(gens, key) }); err != nil {
		return snapshot.Record{}, err
	}
	switch {
	case d == nil:
		return s.behind.Load(ctx, key)
	case r.Life == 0:
		return snapshot.Record{}, fmt.Errorf("%s: %w", key, persist.ErrNotFound)
	}
	return r, nil
}

// recordOf returns a copy of what generations know of a record; without a life
// it is gone. d is nil when they know nothing.
func recordOf(gens []*generation, key persist.Key) (r snapshot.Record, d *dirty) {
	for _, g := range gens {
		if d := g.entities[key]; d != nil && d.known() {
			if d.record != nil {
				r = *d.record
				r.State = bytes.Clone(r.State)
			}
			return r, d
		}
	}
	return r, nil
}

// Changes implements persist.PersistenceService.
func (s *Store) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	var pending []persist.Change
	if err := s.look(ctx, func(gens []*generation) {
		for _, g := range slices.Backward(gens) {
			if d := g.entities[key]; d != nil {
				pending = appendChanges(pending, d.changes, func(c *persist.Change) bool {
					return (life == 0 || c.Life == life) && c.Revision >= from
				}, limitOr(limit))
			}
		}
	}); err != nil {
		return nil, err
	}
	got, err := s.behind.Changes(ctx, key, life, from, limit)
	return follow(got, pending, limitOr(limit)), err
}

// NextLife implements persist.LifeFinder.
func (s *Store) NextLife(ctx context.Context, key persist.Key, after uint64) (life uint64, err error) {
	if err := s.look(ctx, func(gens []*generation) {
		for _, g := range gens {
			d := g.entities[key]
			if d == nil {
				continue
			}
			for _, c := range d.changes {
				if c.Life > after && (life == 0 || c.Life < life) {
					life = c.Life
				}
			}
		}
	}); err != nil {
		return 0, err
	}
	folded, err := persist.NextLife(ctx, s.behind, key, after)
	if folded > 0 && (life == 0 || folded < life) {
		life = folded
	}
	return life, err
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	var pending []persist.Change
	folded := false
	if err := s.look(ctx, func(gens []*generation) {
		folded = after < s.base
		for _, g := range slices.Backward(gens) {
			i := sort.Search(len(g.log), func(i int) bool { return g.log[i].Position > after })
			pending = appendChanges(pending, g.log[i:], nil, limitOr(limit))
		}
	}); err != nil {
		return nil, err
	}
	if !folded {
		return pending, nil
	}
	got, err := s.behind.Log(ctx, after, limit)
	return follow(got, pending, limitOr(limit)), err
}

// appendChanges copies changes to others until there are limit.
func appendChanges(to []persist.Change, from []*persist.Change, want func(*persist.Change) bool, limit int) []persist.Change {
	for _, c := range from {
		if len(to) >= limit {
			break
		}
		if want != nil && !want(c) {
			continue
		}
		copied := *c
		copied.Data = bytes.Clone(c.Data)
		to = append(to, copied)
	}
	return to
}

// follow puts what is pending behind what the store behind has: that is all
// there is unless it is limit long, and may have some of what is pending.
func follow(got, pending []persist.Change, limit int) []persist.Change {
	last := uint64(0)
	if n := len(got); n > 0 {
		last = got[n-1].Position
	}
	for i := range pending {
		if len(got) >= limit {
			break
		}
		if pending[i].Position > last {
			got = append(got, pending[i])
		}
	}
	return got
}

// Pods implements persist.PersistenceService.
func (s *Store) Pods(ctx context.Context) ([]string, error) {
	pods, thinned := map[string]bool{}, map[string]bool{}
	if err := s.look(ctx, func(gens []*generation) {
		for _, g := range gens {
			for pod := range g.pods {
				pods[pod] = true
			}
			for pod := range g.thinned {
				thinned[pod] = true
			}
		}
	}); err != nil {
		return nil, err
	}
	behind, err := s.behind.Pods(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range behind {
		pods[pod] = true
	}
	var names []string
	for pod := range pods {
		if thinned[pod] {
			page, err := s.List(ctx, pod, persist.ListOptions{Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(page.Items) == 0 {
				continue
			}
		}
		names = append(names, pod)
	}
	slices.Sort(names)
	return names, nil
}

// Position implements persist.PersistenceService.
func (s *Store) Position(ctx context.Context) (p uint64, err error) {
	err = s.look(ctx, func([]*generation) { p = s.next - 1 })
	return p, err
}
