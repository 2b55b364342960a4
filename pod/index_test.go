package pod_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// scanned returns the names that match among all that the pod lists.
// ok is false when the store is out of service.
func scanned(t require.TestingT, p *pod.Pod, f *filter.Filter) (out []string, ok bool) {
	for o := (persist.ListOptions{Limit: 7}); ; {
		page, err := p.List(context.Background(), o)
		if errors.Is(err, persist.ErrUnavailable) {
			return nil, false
		}
		require.NoError(t, err)
		for _, i := range page.Items {
			if i.Err != nil {
				continue
			}
			ok, err := f.Match(context.Background(), subjectOf(t, &i.View))
			require.NoError(t, err)
			if ok {
				out = append(out, i.Name)
			}
		}
		if o.After = page.Next; page.Next == "" {
			return out, true
		}
	}
}

func subjectOf(t require.TestingT, v *pod.View) *filter.Subject {
	state, err := v.JSON()
	require.NoError(t, err)
	return filter.NewSubject(v.Pod, v.Name, &snapshot.Record{Life: v.Life, Revision: v.Revision, Changed: v.Changed, Codec: "json", State: state})
}

// TestIndexIsExact: whatever happened to the entities (changes, deletions, new
// lives, commits that fail or whose outcome is unknown, passivation, restarts
// while messages are under way), an indexed query finds what a look at all of
// them finds.
func TestIndexIsExact(t *testing.T) {
	for _, durability := range []string{"sync", "async:3ms", "volatile"} {
		t.Run(durability, func(t *testing.T) {
			forSeeds(t, 25, func(t *testing.T, seed uint64) {
				memory := persisttest.NewMemory()
				for round := range uint64(2) {
					store := persisttest.NewFaultStore(memory)
					lists := &slowLists{FaultStore: store}
					w := emptyWorld(t, 2*seed+round, lists, pod.Config{IdleAfter: 20 * time.Millisecond, MaxActive: 8})
					p, _, _, err := w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Durability: durability, Index: []string{"state.v", "state.s"}})
					w.must(err)
					history(w, store, lists, p)
					if round == 0 && w.sys.Uint64()%2 == 0 {
						w.kill()
						continue
					}
					w.close()
				}
			})
		})
	}
}

// history does random things to the entities of a pod and compares.
func history(w *world, store *persisttest.FaultStore, lists *slowLists, p *pod.Pod) {
	rand := func(n uint64) int { return int(w.sys.Uint64() % n) }
	lists.wait = func(ctx context.Context) error {
		return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%5)*time.Millisecond)
	}
	def := p.Definition()
	for range 60 {
		name := fmt.Sprint("n", rand(12))
		switch rand(12) {
		case 0:
			w.sendTo(p.Ref(name), entity.Delete(entity.Condition{}))
		case 1:
			w.exec.RunFor(time.Duration(rand(100)) * time.Millisecond)
		case 2:
			faults := []persisttest.Fault{persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost, persisttest.RefuseUnit, persisttest.ConflictUnit}
			remove := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == name }, faults[rand(5)])
			w.sendTo(p.Ref(name), entity.Merge{"v": rand(5)})
			w.exec.RunFor(time.Duration(rand(10)) * time.Millisecond)
			remove()
		case 3:
			w.sendTo(p.Ref(name), entity.Merge{"v": nil, "s": []string{"a", "b", "ab"}[rand(3)]})
		case 4:
			w.sendTo(p.Ref(name), entity.Passivate())
			if rand(2) == 0 { // an index is made, while messages go on
				lists.slow.Store(true)
				w.sys.Go(func() {
					_, _, _, _ = w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Durability: def.Durability})
					_, _, _, _ = w.pods.Declare(context.Background(), "twins", def)
				})
			}
		case 5, 6, 7:
			w.sendTo(p.Ref(name), entity.Merge{"v": float64(rand(10)) / 2})
		default:
			w.sendTo(p.Ref(name), entity.Merge{"v": rand(5), "s": fmt.Sprint("a", rand(3))})
		}
		for range rand(20) {
			w.exec.Step()
		}
		if rand(3) == 0 {
			lists.slow.Store(false)
			compare(w, p)
			lists.slow.Store(true)
		}
	}
	w.exec.RunFor(time.Second)
	lists.slow.Store(false)
	compare(w, p)
}

// slowLists is a store whose lists take time, in which writes go on: they show
// what was there at the beginning.
type slowLists struct {
	*persisttest.FaultStore
	slow atomic.Bool
	wait func(context.Context) error
}

func (s *slowLists) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	o.Limit = min(o.Limit, 3)
	page, err := s.FaultStore.List(ctx, pod, o)
	if err == nil && s.slow.Load() && pod == "twins" {
		err = s.wait(ctx)
	}
	return page, err
}

func compare(w *world, p *pod.Pod) {
	w.t.Helper()
	texts := []string{
		`state.v == 1`, `state.v > 1 && state.v <= 3.5`, `state.v in [0, 4, "x"]`, `state.s.startsWith("a1") || state.s == "b"`,
		`state.s >= "a1" && state.v < 3`, `state.v == 2 && name != "n3"`, `state.v == 1 && state.v == 2`,
	}
	text := texts[w.sys.Uint64()%uint64(len(texts))]
	f := compiled(w.t, text)
	active := w.pods.Active()
	got, err := p.Query(context.Background(), pod.Query{Filter: f, Count: w.sys.Uint64()%2 == 0})
	want, ok := scanned(w.t, p, f)
	if !ok {
		return
	}
	w.must(err)
	require.Equal(w.t, active, w.pods.Active())
	require.Equal(w.t, want, names(got), "seed %d: %s", w.seed, text)
}

// An indexed filter reads from the store what it returns, and not the rest, as
// soon as the index is ready; and the definition of the index is durable.
func TestIndexedQueriesReadWhatTheyReturn(t *testing.T) {
	store := &listing{PersistenceService: persisttest.NewMemory()}
	w, p := twins(t, 1, store, pod.Config{IdleAfter: time.Minute}, "state.v", `state["odd name"]`, "changed")
	for i := range 600 {
		w.sendTo(p.Ref(fmt.Sprintf("n%03d", i)), entity.Merge{"v": i % 100})
	}
	w.exec.RunFor(time.Hour)
	require.Zero(t, w.pods.Active())
	look := func(text string) (found []string, lists int64) {
		before := store.lists.Load()
		r, err := p.Query(context.Background(), pod.Query{Filter: compiled(t, text), Limit: 1000})
		w.must(err)
		return names(r), store.lists.Load() - before
	}
	check := func() {
		t.Helper()
		found, lists := look("state.v == 7 && true")
		require.Equal(t, []string{"n007", "n107", "n207", "n307", "n407", "n507"}, found)
		require.Zero(t, lists)
		found, lists = look("state.v >= 98.5")
		require.Len(t, found, 6)
		require.Zero(t, lists)
		found, lists = look("state.v >= 0")
		require.Len(t, found, 600)
		require.Positive(t, lists, "too many to read one by one")
		found, lists = look("state.w == 0")
		require.Empty(t, found)
		require.Positive(t, lists)
		require.Zero(t, w.pods.Active())
	}
	check()
	w.close()

	w = emptyWorld(t, 2, store, pod.Config{IdleAfter: time.Minute})
	var err error
	p, err = w.pods.Pod("twins")
	w.must(err)
	require.Equal(t, []string{"state.v", `state["odd name"]`, "changed"}, p.Definition().Index)
	found, lists := look("state.v == 7")
	require.Len(t, found, 6)
	require.Positive(t, lists, "the index is not read yet")
	w.exec.RunFor(time.Second)
	check()
	_, _, _, err = w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document"})
	w.must(err)
	found, lists = look("state.v == 7")
	require.Len(t, found, 6)
	require.Positive(t, lists)
	_, _, _, err = w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Index: []string{"state.v"}})
	w.must(err)
	w.exec.RunFor(time.Second)
	check()
	w.close()
}

func TestIndexesOfTypes(t *testing.T) {
	store := &listing{PersistenceService: persisttest.NewMemory()}
	w := newWorld(t, 1, store, ledgers(func(d *entity.Type[ledger]) { d.Index = []string{"state.by.v"} }), pod.Config{})
	defer w.close()
	for i := range 5 {
		_, err := w.ask(fmt.Sprint("e", i), set{i})
		w.must(err)
	}
	w.exec.RunFor(time.Second)
	before := store.lists.Load()
	r, err := w.h.Pod.Query(context.Background(), pod.Query{Filter: compiled(t, "state.by.v == 3")})
	w.must(err)
	require.Equal(t, []string{"e3"}, names(r))
	require.Equal(t, before, store.lists.Load())
	require.Equal(t, []string{"state.by.v"}, w.h.Pod.Definition().Index)
}

func TestBadIndexesAreRefused(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	for _, index := range [][]string{{"state."}, {"v"}, {"state.v", `state["v"]`}, ids("state.v", 17)} {
		_, _, _, err := w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Index: index})
		require.ErrorIs(t, err, entity.ErrDefinition)
		_, err = w.pods.Start(context.Background(), entity.Document{Name: "twins", Index: index})
		require.ErrorIs(t, err, entity.ErrDefinition)
	}
	_, err := w.pods.Pod("twins")
	require.ErrorIs(t, err, pod.ErrNoPod)
}

// A store that does not answer while the index is read is read again.
func TestIndexOutlastsAStoreThatIsAway(t *testing.T) {
	inner := persisttest.NewMemory()
	w, p := twins(t, 1, inner, pod.Config{})
	w.merge(p, "a", entity.Merge{"v": 1})
	w.close()
	store := &listing{PersistenceService: inner}
	w = emptyWorld(t, 2, store, pod.Config{})
	defer w.close()
	store.fail.Store(3)
	p, _, _, err := w.pods.Declare(context.Background(), "twins", pod.Definition{Type: "document", Index: []string{"state.v"}})
	w.must(err)
	w.exec.RunFor(time.Minute)
	require.Zero(t, store.fail.Load())
	before := store.lists.Load()
	r, err := p.Query(context.Background(), pod.Query{Filter: compiled(t, "state.v == 1")})
	w.must(err)
	require.Equal(t, []string{"a"}, names(r))
	require.Equal(t, before, store.lists.Load())
}
