package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/pod"
)

// condition is a filter, and what it means in plain code.
type condition struct {
	text  string
	holds func(*twin) bool
}

// conditions are all filters that are asked for: few, since each is compiled.
var conditions = []condition{
	{`revision > 3`, func(t *twin) bool { return t.revision > 3 }},
	{`revision in [1, 2, 5]`, func(t *twin) bool { return t.revision == 1 || t.revision == 2 || t.revision == 5 }},
	{`life > 40`, func(t *twin) bool { n, _ := t.number("life"); return n > 40 }},
	{`name >= "e1" && name < "e3"`, func(t *twin) bool { return t.name >= "e1" && t.name < "e3" }},
	{`name.startsWith("e1")`, func(t *twin) bool { return strings.HasPrefix(t.name, "e1") }},
	{`name.startsWith("e") && revision >= 2`, func(t *twin) bool { return strings.HasPrefix(t.name, "e") && t.revision >= 2 }},
	{`size(state.log) >= 2`, func(t *twin) bool { return t.entries() >= 2 }},
	{`state.log[0].startsWith("a")`, func(t *twin) bool { s, is := t.text("state.log[0]"); return is && strings.HasPrefix(s, "a") }},
	{`!state.log[0].startsWith("a")`, func(t *twin) bool { s, is := t.text("state.log[0]"); return is && !strings.HasPrefix(s, "a") }},
	{`state.made && state.log[0] >= "b"`, func(t *twin) bool { s, is := t.text("state.log[0]"); return is && t.yes("state.made") && s >= "b" }},
	{`state.last[0] < "b3" || revision == 1`, func(t *twin) bool {
		s, is := t.text("state.last[0]")
		return is && s < "b3" || t.revision == 1
	}},
	{`state.last[0] > "b"`, func(t *twin) bool { s, is := t.text("state.last[0]"); return is && s > "b" }},
	{`state.balance == 100`, func(t *twin) bool { n, is := t.number("state.balance"); return is && n == 100 }},
	{`state.balance > 50 && state.balance <= 150`, func(t *twin) bool { n, is := t.number("state.balance"); return is && n > 50 && n <= 150 }},
	{`has(state.balance) && state.balance != 100`, func(t *twin) bool { n, is := t.number("state.balance"); return is && n != 100 }},
	{`state.mark >= 2 && state.mark < 4`, func(t *twin) bool { n, is := t.number("state.mark"); return is && n >= 2 && n < 4 }},
	{`has(state.mark)`, func(t *twin) bool { return rank(t.at("state.mark")) > 0 }},
	{`has(state.made) || has(state.balance) || state.mark == 1`, func(t *twin) bool {
		n, is := t.number("state.mark")
		return rank(t.at("state.made")) > 0 || rank(t.at("state.balance")) > 0 || is && n == 1
	}},
}

// compiled are the filters of the conditions.
var compiled = sync.OnceValue(func() (all []*filter.Filter) {
	for _, c := range conditions {
		f, err := filter.Compile(c.text)
		if err != nil {
			panic(err)
		}
		all = append(all, f)
	}
	return all
})

// ordering is one path to sort by.
type ordering struct {
	path string
	down bool
}

// question is a query, in words that can be answered without pod.Query.
type question struct {
	pods   []string // one, or several if many; nil: all
	many   bool
	cond   int // of conditions; -1: none
	prefix string
	sort   []ordering
	limit  int
	count  bool
	shows  bool // Select, too
	group  *grouping
}

// queried are the pods about whose entities there are questions.
func queried() []string {
	return []string{accounts, beats, books, frail, papers, purses, scratch, things, tills}
}

// newQuestion draws one.
func newQuestion(rng *rand.Rand) question {
	q := question{pods: []string{choose(rng, things, things, books, frail, beats, accounts, purses, tills, papers, scratch)}, cond: rng.IntN(len(conditions)+4) - 4, limit: choose(rng, 1, 2, 2, 3, 100)}
	q.cond = max(q.cond, -1)
	switch rng.IntN(8) {
	case 0:
		q.many, q.pods = true, []string{accounts, purses, tills}
	case 1:
		q.many, q.pods = true, slices.DeleteFunc(queried(), func(string) bool { return rng.IntN(3) > 0 })
	case 2:
		q.many, q.pods = true, nil
	}
	if rng.IntN(8) == 0 {
		q.prefix = choose(rng, "e", "e1", "x")
	}
	paths := []string{"revision", "life", "name", "pod", "state.log[0]", "state.last[0]", "state.balance", "state.mark", "state.made"}
	for range choose(rng, 0, 0, 1, 1, 2) {
		q.sort = append(q.sort, ordering{choose(rng, paths...), rng.IntN(2) == 0})
	}
	q.count, q.shows = rng.IntN(3) == 0, rng.IntN(4) == 0
	if rng.IntN(4) == 0 {
		g := &grouping{}
		for range rng.IntN(3) {
			g.by = append(g.by, choose(rng, paths...))
		}
		for range rng.IntN(4) {
			g.fields = append(g.fields, aggregate{choose(rng, pod.CountOf, pod.SumOf, pod.AvgOf, pod.MinOf, pod.MaxOf), choose(rng, paths...)})
		}
		q.group = g
	}
	return q
}

func (q *question) String() string {
	text := fmt.Sprintf("%v", q.pods)
	if q.cond >= 0 {
		text += " where " + conditions[q.cond].text
	}
	if q.prefix != "" {
		text += " from " + q.prefix
	}
	for _, o := range q.sort {
		text += fmt.Sprintf(" by %s %t", o.path, o.down)
	}
	if q.group != nil {
		text += fmt.Sprintf(" grouped %+v", *q.group)
	}
	return fmt.Sprintf("%s, %d at a time", text, q.limit)
}

func path(text string) filter.Path {
	p, err := filter.ParsePath(text)
	if err != nil {
		panic(err)
	}
	return p
}

// shown are the paths of a question that shows some alone.
func shown() []string { return []string{"revision", "state.log", "state.balance"} }

// query is the question as the pods are asked it.
func (q *question) query(cursor string) pod.Query {
	out := pod.Query{Prefix: q.prefix, Limit: q.limit, Cursor: cursor, Count: q.count}
	if q.cond >= 0 {
		out.Filter = compiled()[q.cond]
	}
	for _, o := range q.sort {
		out.Sort = append(out.Sort, pod.Order{Path: path(o.path), Descending: o.down})
	}
	for i := 0; q.shows && i < len(shown()); i++ {
		out.Select = append(out.Select, path(shown()[i]))
	}
	if q.group != nil {
		out.Group = &pod.Group{}
		for _, by := range q.group.by {
			out.Group.By = append(out.Group.By, path(by))
		}
		for _, f := range q.group.fields {
			out.Group.Fields = append(out.Group.Fields, pod.Aggregate{Of: f.of, Path: path(f.path)})
		}
	}
	return out
}

// fits says whether a question asks for an entity.
func (q *question) fits(t *twin) bool {
	return strings.HasPrefix(t.name, q.prefix) && (q.cond < 0 || conditions[q.cond].holds(t))
}

// compare is the order of the question's answer.
func (q *question) compare(a, b *twin) int {
	for _, o := range q.sort {
		if c := compareValues(a.at(o.path), b.at(o.path)); c != 0 {
			if o.down {
				return -c
			}
			return c
		}
	}
	if c := strings.Compare(a.pod, b.pod); c != 0 {
		return c
	}
	return strings.Compare(a.name, b.name)
}
