package pod_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestTablesOfManySayWhatAScanSays: over as many entities as fill blocks of a
// table, or do not quite, with values of all kinds in each column, and with
// changes, deletions and latecomers between, queries find what a look at each
// entity finds; in the same order, on the same pages, in the same groups.
func TestTablesOfManySayWhatAScanSays(t *testing.T) {
	sizes := []int{0, 1, filter.MostSifted - 1, filter.MostSifted, filter.MostSifted + 1, 2 * filter.MostSifted, 1500}
	if raceDivisor > 1 {
		sizes = []int{1, filter.MostSifted + 1}
	}
	tables := 0
	for i, n := range sizes {
		forSeeds(t, 2, func(t *testing.T, seed uint64) {
			w, p := twins(t, 10*uint64(i)+seed, persisttest.NewMemory(), pod.Config{IdleAfter: -1, MaxActive: -1})
			defer w.close()
			m := crowd{w, p}
			for i := range n {
				m.change(fmt.Sprint("n", i))
			}
			for range 3 {
				w.exec.Run()
				m.compare()
				tables += p.Tables()
				for range m.rand(60) {
					m.disturb(n)
				}
			}
		})
	}
	require.Positive(t, tables)
}

// crowd is a pod with many entities of all kinds.
type crowd struct {
	*world
	p *pod.Pod
}

func (m *crowd) rand(n int) int { return int(m.sys.Uint64() % uint64(n)) }

func (m *crowd) one(of ...any) any { return of[m.rand(len(of))] }

// change gives an entity other values, some of which are missing.
func (m *crowd) change(name string) {
	state := entity.Merge{}
	for _, key := range []string{"a", "b", "c"} {
		state[key] = m.one(
			nil, true, false, 0, 1, 2, -1, 1.5, 2.0, 20.5, int64(1)<<53+1, float64(1<<53), uint64(1<<63)+5, -0.5, 1e300,
			"", "a", "ab", "b", strings.Repeat("long", 100)+"a", strings.Repeat("long", 100)+"b", []any{1, "x"}, map[string]any{"d": m.rand(3)},
		)
	}
	m.sendTo(m.p.Ref(name), state)
}

// disturb does something that may happen between queries.
func (m *crowd) disturb(n int) {
	name := fmt.Sprint("n", m.rand(n+1))
	switch m.rand(12) {
	case 0:
		m.sendTo(m.p.Ref(name), unconditional())
	case 1:
		m.sendTo(m.p.Ref(name), unconditional())
		m.change(name)
	case 2:
		m.sendTo(m.p.Ref(fmt.Sprint("nobody", m.rand(1000))), entity.Remove{Pointer: "/a"})
	case 3:
		m.change(fmt.Sprint("n", n+m.rand(1000))) // a latecomer
	case 4:
		if m.rand(50) == 0 {
			m.sendTo(m.p.Ref(name), entity.Passivate())
			m.exec.Run()
			m.change(name)
		}
	default:
		m.change(name)
	}
}

// expression is a filter; most of them can be asked of many rows at once.
func (m *crowd) expression(depth int) string {
	if depth > 0 {
		switch m.rand(5) {
		case 0:
			return "(" + m.expression(depth-1) + " && " + m.expression(depth-1) + ")"
		case 1:
			return "(" + m.expression(depth-1) + " || " + m.expression(depth-1) + ")"
		case 2:
			return "!(" + m.expression(depth-1) + ")"
		}
	}
	path := m.one("state.a", "state.b", "state.c", "state.b.d", "state.c[0]", "revision", "name").(string)
	constant := m.one("1", "1.5", "2.0", "-0.5", "20", "9007199254740993", "9007199254740992.0", "9223372036854775813u", `"a"`, `"ab"`, `""`, "true", "null", "1.0/0.0").(string)
	if path == "revision" {
		constant = m.one("1", "2", "3").(string)
	}
	if path == "name" {
		constant = m.one(`"n1"`, `"n3"`, `"n99"`, `""`).(string)
	}
	switch m.rand(8) {
	case 0, 1, 2:
		return path + m.one(" < ", " <= ", " > ", " >= ").(string) + constant
	case 3:
		return path + m.one(" == ", " != ").(string) + constant
	case 4:
		return fmt.Sprintf("%s in [%s, %s]", path, constant, constant)
	case 5:
		return m.one(`state.a.startsWith("long")`, `state.b.endsWith("b")`, `state.c.contains("o")`, `name.startsWith("n1")`, `name.startsWith("n")`, `pod.startsWith("tw")`, `pod == "other"`, `name.matches("9$")`).(string)
	case 6:
		return m.one("state.a", "state.b", "true", "false", "state.a < state.b", "state.a >= state.c", "1 < state.c").(string)
	}
	return m.one(`state.a == state.b`, `has(state.c.d)`, `"d" in state.c`, `state.a in [1, "a", true]`, `size(state.b) > 1`).(string)
}

func (m *crowd) path() filter.Path {
	return path(m.t, m.one("state.a", "state.b", "state.c", "state.b.d", "state.c[0]", "name", "revision", "pod", "changed", "life").(string))
}

// query is any query.
func (m *crowd) query() pod.Query {
	q := pod.Query{Limit: []int{1, 7, 100, 1000}[m.rand(4)], Count: m.rand(3) == 0}
	if m.rand(8) > 0 {
		q.Filter = compiled(m.t, m.expression(m.rand(4)))
	}
	if m.rand(4) == 0 {
		q.Prefix = m.one("n1", "n", "n12", "none").(string)
	}
	for range max(m.rand(4)-1, 0) {
		q.Sort = append(q.Sort, pod.Order{Path: m.path(), Descending: m.rand(2) == 0})
	}
	return q
}

// compare asks some queries, whose answers it finds by hand, too.
func (m *crowd) compare() {
	for range 5 {
		q := m.query()
		want := m.scan(q)
		told := fmt.Sprintf("seed %d: %s, prefix %q, sorted by %v", m.seed, q.Filter, q.Prefix, q.Sort)
		m.comparePages(q, want, told)
		m.compareGroups(q, want, told)
	}
}

// scan returns the views of those that match, in the query's order.
func (m *crowd) scan(q pod.Query) (out []pod.View) {
	for o := (persist.ListOptions{Limit: 1000}); ; {
		page, err := m.p.List(bg, o)
		m.must(err)
		for _, i := range page.Items {
			m.must(i.Err)
			matches := strings.HasPrefix(i.Name, q.Prefix)
			if q.Filter != nil && matches {
				matches, err = q.Filter.Match(bg, subjectOf(m.t, &i.View))
				m.must(err)
			}
			if matches {
				out = append(out, i.View)
			}
		}
		if o.After = page.Next; page.Next == "" {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b pod.View) int {
		for _, o := range q.Sort {
			v, _ := o.Path.Value(subjectOf(m.t, &a))
			w, _ := o.Path.Value(subjectOf(m.t, &b))
			if c := v.Compare(w); c != 0 && o.Descending {
				return -c
			} else if c != 0 {
				return c
			}
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

func (m *crowd) comparePages(q pod.Query, want []pod.View, told string) {
	m.t.Helper()
	got := []string{}
	for pages := 0; pages < 20; pages++ {
		r, err := m.p.Query(context.Background(), q)
		m.must(err)
		if q.Count {
			require.Equal(m.t, len(want), r.Count, told)
		}
		got = append(got, names(r)...)
		if q.Cursor = r.Next; q.Cursor == "" {
			break
		}
	}
	require.Equal(m.t, namesOf(want)[:len(got)], got, told)
	if q.Cursor == "" {
		require.Len(m.t, got, len(want), told)
	}
}

func namesOf(views []pod.View) []string {
	out := []string{}
	for i := range views {
		out = append(out, views[i].Name)
	}
	return out
}

// compareGroups puts what was found into groups.
func (m *crowd) compareGroups(q pod.Query, want []pod.View, told string) {
	m.t.Helper()
	by, of := m.path(), m.path()
	q.Sort, q.Count, q.Cursor = nil, false, ""
	q.Group = &pod.Group{By: []filter.Path{by}, Fields: []pod.Aggregate{{Of: pod.CountOf, Path: of}, {Of: pod.MaxOf, Path: of}}}
	r, err := m.p.Query(bg, q)
	m.must(err)
	count, present, most := map[string]int{}, map[string]int{}, map[string]filter.Value{}
	for i := range want {
		s := subjectOf(m.t, &want[i])
		b, _ := by.Value(s)
		key := string(b.AppendKey(nil))
		count[key]++
		if v, _ := of.Value(s); v.Kind() > filter.Null {
			if present[key]++; present[key] == 1 || v.Compare(most[key]) > 0 {
				most[key] = v.Clone()
			}
		}
	}
	require.Len(m.t, r.Groups, len(count), told)
	var before []byte
	for _, g := range r.Groups {
		key := g.By[0].AppendKey(nil)
		require.Equal(m.t, count[string(key)], g.Count, told)
		require.Zero(m.t, filter.IntValue(int64(present[string(key)])).Compare(g.Values[0]), told)
		require.Zero(m.t, most[string(key)].Compare(g.Values[1]), told)
		require.True(m.t, before == nil || bytes.Compare(before, key) < 0, told)
		before = key
	}
}
