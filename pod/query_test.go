package pod_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func compiled(t require.TestingT, text string) *filter.Filter {
	f, err := filter.Compile(text)
	require.NoError(t, err, text)
	return f
}

func path(t require.TestingT, text string) filter.Path {
	p, err := filter.ParsePath(text)
	require.NoError(t, err, text)
	return p
}

// names returns the names that a query found, in its order.
func names(r pod.Result) []string {
	var out []string
	for _, i := range r.Items {
		out = append(out, i.View.Name)
	}
	return out
}

// pages returns the names of all pages, and the number of pages.
func pages(t require.TestingT, p *pod.Pod, q pod.Query) ([]string, int) {
	var out []string
	for n := 1; ; n++ {
		r, err := p.Query(context.Background(), q)
		require.NoError(t, err)
		out = append(out, names(r)...)
		if q.Cursor = r.Next; q.Cursor == "" {
			return out, n
		}
		require.Len(t, r.Items, q.Limit)
	}
}

// twins is a world with a pod of documents.
func twins(t testing.TB, seed uint64, store persist.PersistenceService, cfg pod.Config, index ...string) (*world, *pod.Pod) {
	w := emptyWorld(t, seed, store, cfg)
	p, _, _, err := w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Index: index})
	w.must(err)
	return w, p
}

func (w *world) merge(p *pod.Pod, name string, state entity.Merge) {
	w.t.Helper()
	_, err := w.wait(w.sendTo(p.Ref(name), state))
	w.must(err)
}

func TestQueryFindsBySortedPages(t *testing.T) {
	for _, idle := range []time.Duration{-1, time.Minute} {
		w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: idle})
		for i := range 25 {
			w.merge(p, fmt.Sprintf("n%02d", i), entity.Merge{"v": i % 5, "w": fmt.Sprint(i)})
		}
		w.merge(p, "none", entity.Merge{"w": 1})
		w.exec.RunFor(time.Hour)
		active := w.pods.Active()
		ctx := context.Background()

		all, n := pages(t, p, pod.Query{Limit: 10})
		require.Equal(t, 3, n)
		require.Equal(t, append(ids("", 0), func() (out []string) {
			for i := range 25 {
				out = append(out, fmt.Sprintf("n%02d", i))
			}
			return append(out, "none")
		}()...), all)

		q := pod.Query{Filter: compiled(t, `state.v >= 3`), Sort: []pod.Order{{Path: path(t, "state.v"), Descending: true}, {Path: path(t, "name"), Descending: true}}, Limit: 4, Count: true}
		r, err := p.Query(ctx, q)
		w.must(err)
		require.Equal(t, 10, r.Count)
		require.Equal(t, []string{"n24", "n19", "n14", "n09"}, names(r))
		sorted, _ := pages(t, p, q)
		require.Equal(t, []string{"n24", "n19", "n14", "n09", "n04", "n23", "n18", "n13", "n08", "n03"}, sorted)

		q = pod.Query{Sort: []pod.Order{{Path: path(t, "state.v")}}, Limit: 2}
		r, err = p.Query(ctx, q)
		w.must(err)
		require.Equal(t, []string{"none", "n00"}, names(r), "what is missing comes first")
		q.Sort[0].Descending = true
		_, err = p.Query(ctx, pod.Query{Sort: q.Sort, Cursor: r.Next})
		require.ErrorIs(t, err, pod.ErrCursor, "a cursor of another order")
		_, err = p.Query(ctx, pod.Query{Sort: q.Sort, Cursor: "%"})
		require.ErrorIs(t, err, pod.ErrCursor)

		r, err = p.Query(ctx, pod.Query{Prefix: "n1", Filter: compiled(t, `name.startsWith("n") && state.v == 0`), Select: []filter.Path{path(t, "state.v"), path(t, "name")}})
		w.must(err)
		require.Equal(t, []string{"n10", "n15"}, names(r))
		require.Equal(t, `{"name":"n10","state":{"v":0}}`, string(r.Items[0].Selected))
		require.Equal(t, uint64(1), r.Items[0].View.Revision)
		state, err := r.Items[0].View.JSON()
		w.must(err)
		require.Equal(t, `{"v":0,"w":"10"}`, string(state))
		require.Equal(t, active, w.pods.Active(), "queries wake nobody")
		w.close()
	}
}

func TestQueryOverPods(t *testing.T) {
	w, a := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	ctx := context.Background()
	b, _, _, err := w.pods.Declare(ctx, "attic", documentPod(""))
	w.must(err)
	for i := range 6 {
		w.merge(a, fmt.Sprint("x", i), entity.Merge{"v": i})
		w.merge(b, fmt.Sprint("y", i), entity.Merge{"v": i})
	}
	all := func(q pod.Query, over ...string) (out []string) {
		for {
			r, err := w.pods.QueryAll(ctx, over, q)
			w.must(err)
			for _, i := range r.Items {
				out = append(out, i.View.Pod+"/"+i.View.Name)
			}
			if q.Cursor = r.Next; q.Cursor == "" {
				return out
			}
		}
	}
	require.Equal(t, []string{"attic/y0", "attic/y1", "attic/y2", "attic/y3", "attic/y4", "attic/y5", "twins/x0", "twins/x1", "twins/x2", "twins/x3", "twins/x4", "twins/x5"}, all(pod.Query{Limit: 5}))
	require.Equal(t, []string{"attic/y0", "twins/x0", "attic/y1", "twins/x1"}, all(pod.Query{Limit: 3, Sort: []pod.Order{{Path: path(t, "state.v")}}, Filter: compiled(t, "state.v < 2")}))
	require.Equal(t, []string{"twins/x5"}, all(pod.Query{Filter: compiled(t, "state.v == 5")}, "twins", "twins"))
	_, err = w.pods.QueryAll(ctx, []string{"nowhere"}, pod.Query{})
	require.ErrorIs(t, err, pod.ErrNoPod)
	_, err = w.pods.QueryAll(ctx, nil, pod.Query{Cursor: "x"})
	require.ErrorIs(t, err, pod.ErrCursor)
	r, err := w.pods.QueryAll(ctx, nil, pod.Query{Group: &pod.Group{By: []filter.Path{path(t, "pod")}, Fields: []pod.Aggregate{{Of: pod.SumOf, Path: path(t, "state.v")}}}})
	w.must(err)
	require.Len(t, r.Groups, 2)
	require.Equal(t, `"attic"`, r.Groups[0].By[0].String())
	require.Equal(t, "15", r.Groups[1].Values[0].String())
}

// What cannot be read is told of, whichever way a query takes.
func TestQueryTellsOfTheUnreadable(t *testing.T) {
	for _, index := range [][]string{nil, {"state.v"}} {
		store := persisttest.NewMemory()
		w, p := twins(t, 1, store, pod.Config{})
		for i := range 5 {
			w.merge(p, fmt.Sprint("n", i), entity.Merge{"v": 1})
		}
		w.close()
		store.Damage(persist.Key{Pod: "twins", Name: "n2"})
		w, p = twins(t, 2, store, pod.Config{}, index...)
		w.exec.RunFor(time.Minute)
		for _, q := range []pod.Query{{}, {Count: true}, {Filter: compiled(t, "state.v == 1")}, {Sort: []pod.Order{{Path: path(t, "state.v")}}}, {Group: &pod.Group{}}} {
			r, err := p.Query(context.Background(), q)
			w.must(err)
			require.Equal(t, 1, r.Unreadable)
			require.Len(t, r.Quarantined, 1)
			require.Equal(t, "n2", r.Quarantined[0].Name)
			require.ErrorIs(t, r.Quarantined[0].Reason, entity.ErrQuarantined)
			if q.Group == nil {
				require.Equal(t, []string{"n0", "n1", "n3", "n4"}, names(r))
			} else {
				require.Equal(t, 4, r.Groups[0].Count)
			}
		}
		w.close()
	}
}

func TestQueryIsBounded(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	for i := range 600 {
		w.sendTo(p.Ref(fmt.Sprint("n", i)), entity.Merge{"v": i, "s": strings.Repeat("x", 100)})
	}
	w.exec.RunFor(time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.Query(ctx, pod.Query{Count: true})
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.Query(context.Background(), pod.Query{Filter: compiled(t, strings.Repeat(`state.s.matches("x*y") || `, 250)+`state.s.contains("z")`)})
	w.must(err)
	w.merge(p, "huge", entity.Merge{"s": strings.Repeat("x", 1<<20)})
	_, err = p.Query(context.Background(), pod.Query{Filter: compiled(t, strings.Repeat(`state.s.matches("x*y") || `, 250)+"false")})
	require.ErrorIs(t, err, filter.ErrTooCostly)
	require.ErrorContains(t, err, "twins/huge")
	r, err := p.Query(context.Background(), pod.Query{Limit: 1 << 30})
	w.must(err)
	require.Len(t, r.Items, 601)
}

// ending is a context that ends when it is looked at for the third time.
type ending struct {
	context.Context
	looks atomic.Int32
}

func (e *ending) Err() error {
	if e.looks.Add(1) >= 3 {
		return context.Canceled
	}
	return nil
}

// A context ends a query of costly filters, or over large states, long before
// that has seen as many entities as one of cheap ones sees between two looks.
func TestQueryLooksAtItsContextByWork(t *testing.T) {
	for _, idle := range []time.Duration{-1, time.Minute} {
		w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: idle})
		for i := range 60 {
			state := entity.Merge{}
			if i < 20 {
				state = entity.Merge{"s": strings.Repeat("a", 1000), "p": "(?:a?){100}b"}
			}
			w.merge(p, fmt.Sprint("n", i), state)
		}
		w.exec.RunFor(time.Hour)
		for range 2 { // what a query needs to be answered from memory, and from a table
			_, err := p.Query(context.Background(), pod.Query{Filter: compiled(t, `state.s == "b"`), Count: true})
			w.must(err)
		}
		for _, costly := range []string{
			`state.s.matches("(?:a?){100}b")`,                     // from a table
			`state.s.matches("(?:a?){100}b") || has(state.x.y)`,   // from the states
			`state.s.matches(state.p)`,                            // by cel-go
			`state.s.matches(state.p) && state.s.contains("zzz")`, // by both
		} {
			q := pod.Query{Filter: compiled(t, costly), Count: true}
			_, err := p.Query(&ending{Context: context.Background()}, q)
			require.ErrorIs(t, err, context.Canceled, costly)
			_, err = p.Query(context.Background(), q)
			w.must(err)
		}
		cheap := pod.Query{Filter: compiled(t, `has(state.x)`), Count: true}
		if idle < 0 {
			_, err := p.Query(&ending{Context: context.Background()}, cheap)
			w.must(err)
		}
		for i := range 60 {
			w.merge(p, fmt.Sprint("n", i), entity.Merge{"big": strings.Repeat("a", 20_000)})
		}
		_, err := p.Query(&ending{Context: context.Background()}, cheap)
		require.ErrorIs(t, err, context.Canceled, "to read is work, too")
		w.close()
	}
}

func TestTooManyGroups(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: -1, MaxActive: -1})
	defer w.close()
	q := pod.Query{Group: &pod.Group{By: []filter.Path{path(t, "name")}}}
	for i := range pod.MaxGroups {
		w.sendTo(p.Ref(fmt.Sprint("n", i)), entity.Merge{})
	}
	w.exec.RunFor(time.Second)
	r, err := p.Query(context.Background(), q)
	w.must(err)
	require.Len(t, r.Groups, pod.MaxGroups)
	w.merge(p, "more", entity.Merge{})
	_, err = p.Query(context.Background(), q)
	require.ErrorIs(t, err, pod.ErrTooManyGroups)
}

func TestGroups(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	for i, state := range []entity.Merge{
		{"floor": "1", "v": 1}, {"floor": "1", "v": 2.5}, {"floor": "1", "v": nil, "w": "x"}, {"floor": "2", "v": "text"},
		{"floor": 2, "v": 9007199254740993}, {"floor": 2.0, "v": 1}, {"v": 4}, {"floor": "1"},
	} {
		w.merge(p, fmt.Sprint("n", i), state)
	}
	v := path(t, "state.v")
	r, err := p.Query(context.Background(), pod.Query{Group: &pod.Group{
		By:     []filter.Path{path(t, "state.floor")},
		Fields: []pod.Aggregate{{pod.CountOf, v}, {pod.SumOf, v}, {pod.AvgOf, v}, {pod.MinOf, v}, {pod.MaxOf, v}},
	}})
	w.must(err)
	var got []string
	for _, g := range r.Groups {
		got = append(got, fmt.Sprint(g.By, g.Count, g.Values))
	}
	require.Equal(t, []string{
		"[null] 1 [1 4 4 4 4]",
		"[2] 2 [2 9007199254740994 4503599627370497 1 9007199254740993]",
		`["1"] 4 [2 3.5 1.75 1 2.5]`,
		`["2"] 1 [1 null null "text" "text"]`,
	}, got)
	require.Empty(t, r.Items)
}

// The numbers of groups are those of a loop over what was written.
func TestGroupArithmetic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
		defer w.close()
		type sums struct {
			n, whole    int
			least, most int
		}
		want := map[int]*sums{}
		for i, v := range rapid.SliceOfN(rapid.IntRange(-1000, 1000), 0, 30).Draw(rt, "values") {
			floor := rapid.IntRange(0, 3).Draw(rt, "floor")
			w.merge(p, fmt.Sprint("n", i), entity.Merge{"floor": floor, "v": v})
			g := want[floor]
			if g == nil {
				g = &sums{least: v, most: v}
				want[floor] = g
			}
			g.n, g.whole, g.least, g.most = g.n+1, g.whole+v, min(g.least, v), max(g.most, v)
		}
		v := path(rt, "state.v")
		r, err := p.Query(context.Background(), pod.Query{Group: &pod.Group{
			By: []filter.Path{path(rt, "state.floor")}, Fields: []pod.Aggregate{{pod.SumOf, v}, {pod.AvgOf, v}, {pod.MinOf, v}, {pod.MaxOf, v}},
		}})
		require.NoError(rt, err)
		require.Len(rt, r.Groups, len(want))
		for _, g := range r.Groups {
			floor, _ := g.By[0].Int()
			s := want[int(floor)]
			require.Equal(rt, s.n, g.Count)
			avg, _ := g.Values[1].Float()
			require.InDelta(rt, float64(s.whole)/float64(s.n), avg, 1e-9)
			require.Equal(rt, fmt.Sprint(s.whole, s.least, s.most), fmt.Sprint(g.Values[0], g.Values[2], g.Values[3]))
		}
	})
}

// Page after page, while other entities come, go and change: what did not change
// is on exactly one page.
func TestCursorsAreStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, p := twins(t, rapid.Uint64().Draw(rt, "seed"), persisttest.NewMemory(), pod.Config{IdleAfter: time.Minute})
		defer w.close()
		var still []string
		for i := range rapid.IntRange(0, 20).Draw(rt, "still") {
			name := fmt.Sprintf("n%02d", 2*i)
			w.merge(p, name, entity.Merge{"v": rapid.IntRange(0, 4).Draw(rt, "v")})
			still = append(still, name)
		}
		change := func() {
			for range rapid.IntRange(0, 4).Draw(rt, "changes") {
				name := fmt.Sprintf("n%02d", 2*rapid.IntRange(0, 20).Draw(rt, "who")+1)
				switch rapid.IntRange(0, 3).Draw(rt, "change") {
				case 0:
					_, _ = w.wait(w.sendTo(p.Ref(name), entity.Delete(entity.Condition{})))
				case 1:
					w.exec.RunFor(10 * time.Minute) // all leave memory
				default:
					w.merge(p, name, entity.Merge{"v": rapid.IntRange(0, 4).Draw(rt, "v")})
				}
			}
		}
		q := pod.Query{Limit: rapid.IntRange(1, 5).Draw(rt, "limit"), Count: rapid.Bool().Draw(rt, "count")}
		if rapid.Bool().Draw(rt, "sorted") {
			q.Sort = []pod.Order{{Path: path(rt, "state.v"), Descending: rapid.Bool().Draw(rt, "descending")}}
		}
		var seen []string
		for {
			change()
			r, err := p.Query(context.Background(), q)
			require.NoError(rt, err)
			seen = append(seen, names(r)...)
			if q.Cursor = r.Next; q.Cursor == "" {
				break
			}
		}
		got := slices.DeleteFunc(slices.Clone(seen), func(n string) bool { return !slices.Contains(still, n) })
		slices.Sort(got)
		require.Equal(rt, fmt.Sprint(still), fmt.Sprint(got))
	})
}

// listing counts what is asked of a store.
type listing struct {
	persist.PersistenceService
	lists atomic.Int64
	fail  atomic.Int64 // so many times it fails
}

func (l *listing) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	l.lists.Add(1)
	if l.fail.Load() > 0 && pod == "twins" {
		l.fail.Add(-1)
		return persist.Page{}, persist.ErrUnavailable
	}
	return l.PersistenceService.List(ctx, pod, o)
}

// A pod of which all is in memory is not looked for in the store, from the first
// whole look on until somebody leaves.
func TestQueryKnowsThatAllIsInMemory(t *testing.T) {
	store := &listing{PersistenceService: persisttest.NewMemory()}
	w, p := twins(t, 1, store, pod.Config{IdleAfter: time.Minute})
	defer w.close()
	for i := range 10 {
		w.merge(p, fmt.Sprint("n", i), entity.Merge{"v": i})
	}
	lists := func(want int) int64 {
		t.Helper()
		before := store.lists.Load()
		r, err := p.Query(context.Background(), pod.Query{Filter: compiled(t, "state.v >= 0"), Count: true})
		w.must(err)
		require.Equal(t, want, r.Count)
		return store.lists.Load() - before
	}
	require.Equal(t, int64(1), lists(10))
	require.Zero(t, lists(10))
	w.merge(p, "new", entity.Merge{"v": 3})
	require.Zero(t, lists(11))
	_, err := w.wait(w.sendTo(p.Ref("new"), entity.Delete(entity.Condition{})))
	w.must(err)
	w.exec.RunFor(time.Millisecond)
	require.Zero(t, lists(10))
	w.exec.RunFor(time.Hour)
	require.Zero(t, w.pods.Active())
	require.Equal(t, int64(1), lists(10))
	require.Equal(t, int64(1), lists(10))
	for i := range 10 {
		w.merge(p, fmt.Sprint("n", i), entity.Merge{"w": i})
	}
	require.Equal(t, int64(1), lists(10))
	require.Zero(t, lists(10))
}

// Queries next to writers, in every way that a query can take: each sees what
// was acknowledged before it.
func TestQueriesSeeWhatIsAcknowledged(t *testing.T) {
	for name, def := range map[string]pod.Definition{
		"resident": {Type: "document"}, "sync": {Type: "document"}, "indexed": {Type: "document", Index: []string{"state.v", "state.me"}},
		"async": {Type: "document", Durability: "async:5ms", Index: []string{"state.me"}}, "volatile": {Type: "document", Durability: "volatile"},
	} {
		t.Run(name, func(t *testing.T) {
			sys := actor.NewSystem("queries", actor.Config{})
			cfg := pod.Config{MaxActive: 6, IdleAfter: 5 * time.Millisecond}
			if name == "resident" {
				cfg = pod.Config{MaxActive: -1, IdleAfter: -1}
			}
			pods, err := pod.Open(sys, memory.Open(memory.Config{}), cfg)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			p, _, _, err := pods.Declare(ctx, "twins", def)
			require.NoError(t, err)
			var wg sync.WaitGroup
			for g := range 8 {
				me := fmt.Sprint("n", g)
				queries := []pod.Query{
					{Filter: compiled(t, fmt.Sprintf("state.me == %d", g))},
					{Filter: compiled(t, fmt.Sprintf("state.me == %d && state.v >= 0", g)), Sort: []pod.Order{{Path: path(t, "state.v")}}},
					{Filter: compiled(t, fmt.Sprintf("state.me == %d", g)), Count: true}, {Prefix: me},
				}
				shown := []filter.Path{path(t, "state")}
				wg.Add(1)
				go func() {
					defer wg.Done()
					rng := rand.New(rand.NewPCG(uint64(g), 1))
					for i := range 60 {
						if _, err := p.Ask(ctx, me, entity.Merge{"me": g, "v": i}); err != nil {
							t.Error(err)
							return
						}
						q := queries[rng.IntN(len(queries))]
						q.Select = shown
						r, err := p.Query(ctx, q)
						if err != nil || len(r.Items) != 1 || string(r.Items[0].Selected) != fmt.Sprintf(`{"state":{"me":%d,"v":%d}}`, g, i) {
							t.Errorf("%s %d: %v %v", me, i, err, r.Items)
							return
						}
						if rng.IntN(8) == 0 {
							if _, err := p.Delete(ctx, me, entity.Condition{}); err != nil {
								t.Error(err)
								return
							}
							if r, err = p.Query(ctx, q); err != nil || len(r.Items) != 0 {
								t.Errorf("%s is deleted: %v %v", me, err, r.Items)
								return
							}
						}
					}
				}()
			}
			wg.Wait()
			require.NoError(t, pods.Close(ctx))
			require.NoError(t, sys.Stop(ctx))
		})
	}
}

// A page of large states ends early, and the pages have everything once, in
// whatever order.
func TestPagesOfLargeStatesEndEarly(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	var all []string
	for i := range 21 {
		name := fmt.Sprintf("t%02d", i)
		w.merge(p, name, entity.Merge{"n": -i, "text": strings.Repeat("x", 1<<20+i)})
		all = append(all, name)
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	for name, q := range map[string]pod.Query{
		"by name": {}, "filtered": {Filter: compiled(t, `state.n <= 0`)}, "sorted": {Sort: []pod.Order{{Path: path(t, "state.n")}}},
	} {
		q.Limit = 1000
		var found []string
		for pages := 1; ; pages++ {
			r, err := p.Query(t.Context(), q)
			require.NoError(t, err)
			require.LessOrEqual(t, len(r.Items), 8, name)
			require.NotEmpty(t, r.Items, name)
			found = append(found, names(r)...)
			if q.Cursor = r.Next; q.Cursor == "" {
				require.Equal(t, 4, pages, name)
				break
			}
		}
		want := all
		if q.Sort != nil {
			want = reversed
		}
		require.Equal(t, want, found, name)
	}
}
