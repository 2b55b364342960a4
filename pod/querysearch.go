package pod

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
)

// search is one query under way. It goes from pod to pod and keeps the entities
// that come first in the query's order, one more than are asked for.
type search struct {
	ctx   context.Context
	query Query
	many  bool     // over several pods
	pods  []string // their names; nil: all
	limit int

	after               []byte // the key behind which the page starts; of a sorted query
	afterPod, afterName string // the same of one that is not

	subject   filter.Subject
	columns   *columns // what tables it needs; nil if none help it
	table     *table   // that is looked at; nil while none is
	row       int      // of it
	projected *filter.Projection
	first     firsts
	bytes     int // of what first has
	scratch   []byte
	count     int
	groups    *grouping
	met       []Quarantined
	unread    int
	work      int // steps since the last look at the context
}

// candidate is a found entity with its place in the order.
type candidate struct {
	key  []byte
	view View
	json []byte
}

// newSearch begins a query over the pods of the names: one, or many, of which nil
// means all.
func newSearch(ctx context.Context, q Query, many bool, pods []string) (*search, error) {
	s := &search{ctx: ctx, query: q, many: many, pods: pods, limit: q.Limit, work: lookAtContext}
	if s.limit <= 0 {
		s.limit = defaultFound
	}
	s.limit = min(s.limit, mostFound)
	if len(q.Select) > 0 {
		s.projected = filter.NewProjection(q.Select)
	}
	s.columns = newColumns(&s.query)
	if q.Group != nil {
		s.groups = newGrouping(q.Group)
		return s, nil
	}
	return s, s.start()
}

// whole says whether every match must be seen, or only those up to the page's
// end.
func (s *search) whole() bool {
	return s.query.Count || s.query.Group != nil || len(s.query.Sort) > 0
}

// full says that a query that is not sorted has found what it shows.
func (s *search) full() bool { return !s.whole() && len(s.first) > s.limit }

// look notes that more entities are looked at, and looks at the context whenever
// enough was done since it did so last.
func (s *search) look(entities int) error {
	if s.work += entities * entitySteps; s.work < lookAtContext {
		return nil
	}
	s.work = 0
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// consider takes an entity if it matches. Whoever calls it calls it once for
// each.
func (s *search) consider(p *Pod, name string, r *snapshot.Record) error {
	if r.Revision == 0 || !strings.HasPrefix(name, s.query.Prefix) {
		return nil
	}
	if err := s.look(1); err != nil {
		return err
	}
	s.work += len(r.State) / bytesPerStep
	s.subject.Reset(p.name, name, r)
	ok, err := s.matches()
	if err != nil || !ok {
		return err
	}
	s.count++
	if s.groups != nil {
		return s.groups.add(s)
	}
	s.keep(p, name, r)
	return nil
}

func (s *search) matches() (bool, error) {
	if s.query.Filter == nil {
		return true, nil
	}
	ok, err := s.query.Filter.Match(s.ctx, &s.subject)
	s.work += s.subject.Spent()
	return ok, err
}

// value returns what the subject has at a path of the query.
func (s *search) value(p *filter.Path) filter.Value {
	if s.table != nil {
		if at, ok := s.columns.at[p]; ok {
			return s.table.rows.Columns[at][s.row]
		}
	}
	v, _ := p.Value(&s.subject)
	return v
}

// keep puts the subject's entity among the first ones if it is one of them.
func (s *search) keep(p *Pod, name string, r *snapshot.Record) {
	if !s.early(p, name) {
		return
	}
	c := candidate{
		key:  slices.Clone(s.scratch),
		view: View{Pod: p.name, Name: name, Life: r.Life, Revision: r.Revision, Changed: r.Changed, record: *r, spec: p.spec.Load()},
	}
	if s.projected != nil {
		c.json = s.projected.AppendJSON(nil, &s.subject)
	}
	heap.Push(&s.first, c)
	s.bytes += c.size()
	if s.bytes > mostFoundBytes && len(s.first) > 1+firstListedExtra {
		s.limit = min(s.limit, len(s.first)-1-firstListedExtra) // the page ends early
	}
	for len(s.first) > s.limit+firstListedExtra {
		last := heap.Pop(&s.first).(candidate)
		s.bytes -= last.size()
	}
}

func (c *candidate) size() int { return len(c.key) + len(c.view.record.State) + len(c.json) }

// early makes the subject's key in scratch, and says whether it is behind the
// cursor and among the first ones so far.
func (s *search) early(p *Pod, name string) bool {
	full := len(s.first) > s.limit
	if len(s.query.Sort) == 0 {
		if !s.behind(p.name, name) || full && !s.many && name >= s.first[0].view.Name {
			return false
		}
	}
	s.scratch = s.appendKey(s.scratch[:0], p.name, name)
	if s.after != nil && bytes.Compare(s.scratch, s.after) <= 0 {
		return false
	}
	return !full || bytes.Compare(s.scratch, s.first[0].key) < 0
}

// behind says whether a name lies behind the cursor of a query without an order.
func (s *search) behind(pod, name string) bool {
	if s.many && pod != s.afterPod {
		return pod > s.afterPod
	}
	return name > s.afterName || s.afterName == ""
}

// missed notes an entity that could not be read. The error is the one that ends
// the query, nil if it goes on.
func (s *search) missed(p *Pod, name string, err error) error {
	switch {
	case errors.Is(err, entity.ErrNotFound):
		return nil
	case !errors.Is(err, entity.ErrQuarantined):
		return err
	case !strings.HasPrefix(name, s.query.Prefix):
		return nil
	}
	s.unread++
	if len(s.met) < mostQuarantined {
		s.met = append(s.met, Quarantined{Pod: p.name, Name: name, Reason: err})
	}
	return s.look(1)
}

func (s *search) result() Result {
	r := Result{Quarantined: s.met, Unreadable: s.unread}
	if s.query.Count {
		r.Count = s.count
	}
	if s.groups != nil {
		r.Groups = s.groups.rows()
		return r
	}
	found := s.first
	slices.SortFunc(found, func(a, b candidate) int { return bytes.Compare(a.key, b.key) })
	if len(found) > s.limit {
		found = found[:s.limit]
		r.Next = s.cursor(&found[len(found)-1])
	}
	for i := range found {
		r.Items = append(r.Items, Found{View: found[i].view, Selected: found[i].json})
	}
	return r
}

// firsts is a heap of what comes first so far, the last of it on top.
type firsts []candidate

func (f firsts) Len() int           { return len(f) }
func (f firsts) Less(i, j int) bool { return bytes.Compare(f[i].key, f[j].key) > 0 }
func (f firsts) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }

// Push implements heap.Interface.
func (f *firsts) Push(c any) { *f = append(*f, c.(candidate)) }

// Pop implements heap.Interface.
func (f *firsts) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
