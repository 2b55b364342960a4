package commitlog

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// List implements persist.PersistenceService.
func (s *Store) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	o = o.WithDefaults()
	l := listing{s: s, pod: pod, o: o, merge: merge[persist.Item]{
		compare: func(a, b *persist.Item) int { return cmp.Compare(a.Name, b.Name) }}}
	var page persist.Page
	size := 0
	for {
		it, err := l.next(ctx)
		switch {
		case err != nil:
			return persist.Page{}, err
		case it == nil:
			return page, nil
		case len(page.Items) == o.Limit || len(page.Items) > 0 && size >= o.MaxBytes:
			page.More = true
			return page, nil
		}
		page.Items = append(page.Items, *it)
		size += len(it.Record.State)
	}
}

// listing goes through a pod's records.
type listing struct {
	s   *Store
	pod string
	o   persist.ListOptions // After goes on
	merge[persist.Item]
}

func (l *listing) next(ctx context.Context) (*persist.Item, error) {
	for len(l.ready) == 0 {
		if l.ended {
			return nil, nil
		}
		if err := l.fill(ctx); err != nil {
			return nil, err
		}
	}
	return l.pop(), nil
}

// fill reads the next part of all that is merged.
func (l *listing) fill(ctx context.Context) error {
	var parts []part[persist.Item]
	if err := l.s.look(ctx, func(gens []*generation) {
		for _, g := range gens {
			parts = append(parts, l.dirty(g))
		}
	}); err != nil {
		return err
	}
	page, err := l.s.behind.List(ctx, l.pod, l.o)
	if err != nil {
		return err
	}
	behind := part[persist.Item]{more: page.More}
	for i := range page.Items {
		behind.items = append(behind.items, merging[persist.Item]{item: page.Items[i]})
	}
	if last := l.mergeParts(append(parts, behind)); last != nil {
		l.o.After = last.Name
	}
	return nil
}

// dirty is what a generation has of the next page.
func (l *listing) dirty(g *generation) (p part[persist.Item]) {
	from := max(l.o.After, l.o.Prefix)
	g.sorted.AscendGreaterOrEqual(&dirty{key: persist.Key{Pod: l.pod, Name: from}}, func(d *dirty) bool {
		switch {
		case d.key.Pod != l.pod || !strings.HasPrefix(d.key.Name, l.o.Prefix):
			return false
		case d.key.Name <= l.o.After || !d.known():
			return true
		case len(p.items) == l.o.Limit:
			p.more = true
			return false
		}
		it := merging[persist.Item]{item: persist.Item{Name: d.key.Name}, gone: d.record == nil}
		if d.record != nil {
			it.item.Record = *d.record
			it.item.Record.State = bytes.Clone(d.record.State)
		}
		p.items = append(p.items, it)
		return true
	})
	return p
}

// merge joins sorted parts into one sequence. Of what several parts have, the
// first part's counts.
type merge[T any] struct {
	compare func(a, b *T) int
	ready   []T
	ended   bool
}

// part is the next stretch of one of them; more says that it goes on behind its
// last item.
type part[T any] struct {
	items []merging[T]
	more  bool
}

// merging is an item, or says that there is none of its name.
type merging[T any] struct {
	item T
	gone bool
}

func (m *merge[T]) pop() *T {
	it := m.ready[0]
	m.ready = m.ready[1:]
	return &it
}

// mergeParts makes ready what comes before the end of every part that goes on.
// It returns the last name that was looked at, from which all parts go on; nil
// when nothing goes on.
func (m *merge[T]) mergeParts(parts []part[T]) *T {
	var until *T
	for i := range parts {
		if p := &parts[i]; p.more && len(p.items) > 0 {
			if last := &p.items[len(p.items)-1].item; until == nil || m.compare(last, until) < 0 {
				until = last
			}
		}
	}
	for {
		first := m.first(parts)
		if first == nil || until != nil && m.compare(&first.item, until) > 0 {
			break
		}
		if !first.gone {
			m.ready = append(m.ready, first.item)
		}
		for i := range parts {
			if p := &parts[i]; len(p.items) > 0 && m.compare(&p.items[0].item, &first.item) == 0 {
				p.items = p.items[1:]
			}
		}
	}
	m.ended = until == nil
	return until
}

// first is the least of what the parts begin with.
func (m *merge[T]) first(parts []part[T]) (first *merging[T]) {
	for i := range parts {
		if p := &parts[i]; len(p.items) > 0 && (first == nil || m.compare(&p.items[0].item, &first.item) < 0) {
			first = &p.items[0]
		}
	}
	return first
}
