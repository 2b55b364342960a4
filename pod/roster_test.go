package pod_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestTablesAreExact: what queries find in the tables of a pod that is all in
// memory is what a look at all entities finds, whatever happened to these.
func TestTablesAreExact(t *testing.T) {
	for _, durability := range []string{"sync", "async:3ms", "volatile"} {
		t.Run(durability, func(t *testing.T) {
			forSeeds(t, 25, func(t *testing.T, seed uint64) {
				store := persisttest.NewFaultStore(persisttest.NewMemory())
				w := emptyWorld(t, seed, store, pod.Config{IdleAfter: time.Minute, MaxActive: -1})
				defer w.close()
				p, _, _, err := w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Durability: durability})
				w.must(err)
				rand := func(n uint64) int { return int(w.sys.Uint64() % n) }
				for range 80 {
					name := fmt.Sprint("n", rand(12))
					switch rand(16) {
					case 0:
						w.sendTo(p.Ref(name), entity.Delete(entity.Condition{}))
					case 1:
						w.sendTo(p.Ref(name), entity.Passivate())
					case 2:
						faults := []persisttest.Fault{persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost, persisttest.RefuseUnit}
						remove := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == name }, faults[rand(4)])
						w.sendTo(p.Ref(name), entity.Merge{"v": rand(5)})
						w.exec.RunFor(time.Duration(rand(10)) * time.Millisecond)
						remove()
					case 3:
						w.sendTo(p.Ref(name), entity.Remove{Pointer: "/v"}) // creates nothing
					case 4:
						if rand(4) == 0 {
							w.exec.RunFor(time.Hour) // all leave
						}
					case 5:
						if ref, err := w.sys.Lookup("/user/pods/twins/" + name); err == nil {
							ref.Stop() // whatever is under way; the next message is for another slot
						}
					default:
						w.sendTo(p.Ref(name), entity.Merge{"v": float64(rand(10)) / 2, "s": fmt.Sprint("a", rand(3))})
					}
					for range rand(20) {
						w.exec.Step()
					}
					if rand(2) == 0 {
						compareTables(w, p)
					}
				}
				w.exec.RunFor(time.Second)
				for range 4 {
					compareTables(w, p)
				}
			})
		})
	}
}

// TestTablesOfFiltersOnNames: queries for names with some beginning come to be
// answered from tables, too, when all of the pod is in memory, and do not go
// through the others again and again when it is not.
func TestTablesOfFiltersOnNames(t *testing.T) {
	w := emptyWorld(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: -1, MaxActive: -1})
	defer w.close()
	p, _, _, err := w.pods.Declare(bg, "twins", pod.Definition{Type: "document"})
	w.must(err)
	for _, name := range []string{"lobby-1", "tower-1", "tower-2"} {
		_, err := w.wait(w.sendTo(p.Ref(name), entity.Merge{"v": 1.0}))
		w.must(err)
	}
	count := func() {
		r, err := p.Query(bg, pod.Query{Filter: compiled(t, `name.startsWith("tower-") && state.v > 0`), Count: true})
		w.must(err)
		require.Equal(t, 2, r.Count)
	}
	count()
	require.False(t, p.Counted(), "it has seen the towers alone")
	count()
	require.True(t, p.Counted())

	w.sendTo(p.Ref("lobby-1"), entity.Passivate())
	w.exec.RunFor(time.Second)
	for range 2 {
		count()
	}
	require.True(t, p.CountFailed(), "the lobby is not in memory")
	for range 3 {
		count()
		require.False(t, p.Counted())
	}
}

// TestTablesForgetWhoIsReplaced: one that was stopped with a commit under way keeps
// its place until the next one of its name comes. No table lists both.
func TestTablesForgetWhoIsReplaced(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w, p := twins(t, 1, store, pod.Config{IdleAfter: -1, MaxActive: -1})
	defer w.close()
	w.merge(p, "n1", entity.Merge{"v": 1})
	w.merge(p, "n2", entity.Merge{"v": 1})
	for range 2 { // a census, and a table
		_, err := p.Query(bg, pod.Query{Filter: compiled(t, "state.v == 1"), Count: true})
		w.must(err)
	}
	require.Equal(t, 1, p.Tables())
	release := w.sys.NewPromise()
	store.Pause = func(ctx context.Context) error { _, err := release.Wait(ctx); return err }
	w.sendTo(p.Ref("n1"), entity.Merge{"v": 2})
	w.exec.RunFor(time.Millisecond)
	ref, err := w.sys.Lookup("/user/pods/twins/n1")
	w.must(err)
	ref.Stop()
	w.exec.RunFor(time.Millisecond)
	require.Equal(t, 1, p.Tables(), "its commit is under way, so it keeps its place")
	w.must(p.Replace("n1", func() {
		require.Zero(t, p.Tables())
		require.Zero(t, p.Late())
	}))
	store.Pause = nil
	release.Complete(nil)
	w.exec.RunFor(time.Second)
}

// TestNobodyFillsNoRoster: what comes to names that have no entity, and entities
// that come and go, are not listed for ever.
func TestNobodyFillsNoRoster(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: -1, MaxActive: -1})
	defer w.close()
	w.merge(p, "here", entity.Merge{"v": 1})
	count := func() {
		r, err := p.Query(bg, pod.Query{Filter: compiled(t, "state.v == 1"), Count: true})
		w.must(err)
		require.Equal(t, 1, r.Count)
	}
	count()
	count()
	require.Equal(t, 1, p.Tables())
	most := 0
	for i := range 700 {
		name := fmt.Sprint("nobody", i)
		if i%2 == 0 {
			w.sendTo(p.Ref(name), entity.Remove{Pointer: "/v"})
		} else {
			w.sendTo(p.Ref(name), entity.Merge{"v": 1})
			w.sendTo(p.Ref(name), unconditional())
		}
		w.exec.Run()
		most = max(most, p.Late())
	}
	require.Less(t, most, 300)
	require.Positive(t, most)
	count()
	require.Equal(t, 1, p.Tables(), "there are tables again")
}

// compareTables asks a query that tables can answer, and counts by hand.
func compareTables(w *world, p *pod.Pod) {
	w.t.Helper()
	texts := []string{`state.v >= 1.5`, `state.s == "a1" && revision > 1`, `name > "n3"`, `state.v == 2 || state.v == 3.0 || !(state.s == "a2")`, `state.v > 0 && has(state.s)`, `name.startsWith("n1") && state.v >= 0.5`}
	text := texts[w.sys.Uint64()%uint64(len(texts))]
	f := compiled(w.t, text)
	active := w.pods.Active()
	q := pod.Query{Filter: f, Count: true, Limit: 3}
	if w.sys.Uint64()%2 == 0 {
		q.Sort = []pod.Order{{Path: path(w.t, "state.v"), Descending: true}}
	}
	ctx := context.Background()
	got, err := p.Query(ctx, q)
	groups, errGroups := p.Query(ctx, pod.Query{Filter: f, Group: &pod.Group{By: []filter.Path{path(w.t, "state.s")}, Fields: []pod.Aggregate{{Of: pod.SumOf, Path: path(w.t, "state.v")}}}})
	want, ok := scanned(w.t, p, f)
	if !ok || errors.Is(err, persist.ErrUnavailable) || errors.Is(errGroups, persist.ErrUnavailable) {
		return
	}
	w.must(err)
	w.must(errGroups)
	require.Equal(w.t, active, w.pods.Active(), "queries wake nobody")
	require.Equal(w.t, len(want), got.Count, "seed %d: %s", w.seed, text)
	grouped := 0
	for _, g := range groups.Groups {
		grouped += g.Count
	}
	require.Equal(w.t, len(want), grouped, "seed %d: groups of %s", w.seed, text)
	require.Len(w.t, got.Items, min(len(want), 3))
	if len(want) == 0 {
		return
	}
	if len(q.Sort) == 0 {
		require.Equal(w.t, want[:len(got.Items)], names(got), "seed %d: %s", w.seed, text)
		return
	}
	q.Limit = 1000
	all, err := p.Query(ctx, q)
	w.must(err)
	require.ElementsMatch(w.t, want, names(all), "seed %d: %s", w.seed, text)
	require.Equal(w.t, names(all)[:len(got.Items)], names(got))
	v := path(w.t, "state.v")
	for i := 1; i < len(all.Items); i++ {
		a, _ := v.Value(subjectOf(w.t, &all.Items[i-1].View))
		b, _ := v.Value(subjectOf(w.t, &all.Items[i].View))
		require.GreaterOrEqual(w.t, a.Compare(b), 0)
	}
}
