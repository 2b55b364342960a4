package pod

import (
	"strings"

	"github.com/twinsrv/twinsrv/filter"
)

// mostColumns is the most paths of a query that tables are kept for.
const mostColumns = 8

// columns are the paths that a query looks at. Those of its filter come first,
// in the filter's order.
type columns struct {
	paths []filter.Path
	at    map[*filter.Path]int // of the query's own paths, by where they stand in it
}

// newColumns returns a query's columns; nil if it looks at more than the values
// at some paths, or need not look at every entity.
func newColumns(q *Query) *columns {
	c := &columns{at: map[*filter.Path]int{}}
	if q.Filter != nil {
		var ok bool
		if c.paths, ok = q.Filter.Paths(); !ok {
			return nil
		}
	} else if !q.Count && q.Group == nil && len(q.Sort) == 0 {
		return nil
	}
	for i := range q.Sort {
		c.add(&q.Sort[i].Path)
	}
	if q.Group != nil {
		for i := range q.Group.By {
			c.add(&q.Group.By[i])
		}
		for i := range q.Group.Fields {
			c.add(&q.Group.Fields[i].Path)
		}
	}
	if len(c.paths) > mostColumns {
		return nil
	}
	return c
}

func (c *columns) add(p *filter.Path) {
	text := p.String()
	if text == "name" || text == "pod" {
		return // every subject has them
	}
	for i := range c.paths {
		if c.paths[i].String() == text {
			c.at[p] = i
			return
		}
	}
	c.at[p] = len(c.paths)
	c.paths = append(c.paths, *p)
}

// inTable looks through a table of the pod, where it can have one.
func (s *search) inTable(p *Pod) (done bool, err error) {
	if s.columns == nil {
		return false, nil
	}
	r := p.currentRoster()
	if r == nil {
		return false, nil
	}
	late := r.latecomers()
	t := r.table(p, s.columns.paths)
	if t == nil {
		return false, nil
	}
	defer t.mu.Unlock()
	if err := s.rows(p, r, t); err != nil {
		return false, err
	}
	for _, n := range t.unknown {
		late = append(late, r.slots[n])
	}
	return true, s.others(p, late)
}

// others looks at the entities of slots that are no rows, or of which the store
// alone knows. Such a slot may have been followed by another one of its name.
func (s *search) others(p *Pod, slots []*slot) error {
	unknown := make(map[string]bool)
	if err := s.fromStore(p, withoutView(slots, unknown)); err != nil {
		return err
	}
	var late []*slot // whose view has gone while the store was asked
	for _, slot := range slots {
		switch v := slot.view.Load(); {
		case unknown[slot.name]:
		case v == nil:
			late = append(late, slot)
		default:
			if err := s.consider(p, slot.name, v); err != nil {
				return err
			}
		}
	}
	return s.fromStore(p, late)
}

// withoutView returns the slots of which the store alone knows, and notes their
// names.
func withoutView(slots []*slot, names map[string]bool) (unknown []*slot) {
	for _, slot := range slots {
		if slot.view.Load() == nil {
			unknown = append(unknown, slot)
			names[slot.name] = true
		}
	}
	return unknown
}

func (s *search) rows(p *Pod, r *roster, t *table) error {
	defer func() { s.table = nil }()
	var some []int
	for from := 0; from < len(r.names); from += filter.MostSifted {
		to := min(from+filter.MostSifted, len(r.names))
		if err := s.look(to - from); err != nil {
			return err
		}
		var known bool
		some, known = s.sift(t, from, to, some[:0])
		for _, n := range some {
			if !t.there[n] || s.query.Prefix != "" && !strings.HasPrefix(r.names[n], s.query.Prefix) {
				continue
			}
			if err := s.takeRow(p, r, t, n, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// sift returns which rows may match. Whether they do is known then, or is to be
// asked of each.
func (s *search) sift(t *table, from, to int, some []int) (rows []int, known bool) {
	if s.query.Filter != nil {
		found, cost, ok := s.query.Filter.Sift(&s.subject, &t.rows, from, to, some)
		if s.work += cost; ok {
			return found, true
		}
	}
	for n := from; n < to; n++ {
		some = append(some, n)
	}
	return some, s.query.Filter == nil
}

// takeRow takes a row's entity if it matches.
func (s *search) takeRow(p *Pod, r *roster, t *table, n int, known bool) error {
	s.table, s.row = t, n
	if !known || s.groups != nil || len(s.query.Sort) > 0 {
		s.subject.ResetRow(&t.rows, n)
	}
	if !known {
		if err := s.look(0); err != nil { // behind what the row before has cost
			return err
		}
		if ok, err := s.matches(); err != nil || !ok {
			return err
		}
	}
	s.count++
	switch {
	case s.groups != nil:
		for _, column := range t.rows.Columns {
			s.work += column[n].Size() / bytesPerStep
		}
		if err := s.look(0); err != nil {
			return err
		}
		return s.groups.add(s)
	case s.early(p, r.names[n]):
		return s.keepRow(p, r.slots[n])
	}
	return nil
}

// keepRow keeps a row's entity as its view shows it. That may be newer than the
// table and match no longer.
func (s *search) keepRow(p *Pod, slot *slot) error {
	s.table = nil
	if err := s.look(1); err != nil {
		return err
	}
	r := slot.view.Load()
	if r == nil {
		v, err := p.Get(s.ctx, slot.name)
		if err != nil {
			return s.missed(p, slot.name, err)
		}
		r = &v.record
	}
	if r.Revision == 0 {
		return nil
	}
	s.work += len(r.State) / bytesPerStep
	s.subject.Reset(p.name, slot.name, r)
	ok, err := s.matches()
	if ok && err == nil {
		s.keep(p, slot.name, r)
	}
	return err
}
