package pod_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// applying is a store whose commits are seen before they return.
type applying struct {
	persist.PersistenceService
	pause func(context.Context) error
}

func (a *applying) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	o, err := a.PersistenceService.Commit(ctx, units)
	if a.pause != nil {
		_ = a.pause(ctx)
	}
	return o, err
}

// TestListShowsWhatIsBeingDeleted: an entity is there, for listings as for reads,
// until its deletion is acknowledged.
func TestListShowsWhatIsBeingDeleted(t *testing.T) {
	store := &applying{PersistenceService: persisttest.NewMemory()}
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	for _, n := range []string{"a", "b", "c"} {
		_, err := w.ask(n, add{"1"})
		w.must(err)
	}
	store.pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, time.Millisecond) }
	p := w.send("b", entity.Delete(entity.Condition{}))
	key := persist.Key{Pod: "ledgers", Name: "b"}
	w.exec.RunUntil(func() bool { _, err := store.Load(t.Context(), key); return err != nil })
	require.False(t, p.Done())
	names := func(o persist.ListOptions) (out []string) {
		views, _, err := w.h.List(t.Context(), o)
		w.must(err)
		for _, v := range views {
			out = append(out, v.Name)
		}
		return out
	}
	_, err := w.h.Get(t.Context(), "b")
	w.must(err)
	require.Equal(t, []string{"a", "b", "c"}, names(persist.ListOptions{}))
	require.Equal(t, []string{"b", "c"}, names(persist.ListOptions{After: "a"}))
	require.Equal(t, []string{"a"}, names(persist.ListOptions{Limit: 1}))
	require.Equal(t, []string{"c"}, names(persist.ListOptions{After: "b"}))
	require.Equal(t, []string{"b"}, names(persist.ListOptions{Prefix: "b"}))
	_, err = w.wait(p)
	w.must(err)
	require.Equal(t, []string{"a", "c"}, names(persist.ListOptions{}))
}

// TestUnavailableMeansNothingWasDone: the commit that creates an asynchronous
// entity has an unknown outcome, and with it the one that carries what came
// behind; nobody whose change may be there is told that nothing was done.
func TestUnavailableMeansNothingWasDone(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(func(t *entity.Type[ledger]) { t.Durability = entity.Async(5 * time.Millisecond) }), pod.Config{})
		store.OnCommit(store.Commits()+1, persisttest.UnknownApplied)
		w.send("x", add{"c1"})
		second := w.send("x", add{"c2"})
		w.send("x", entity.WithID("c3", add{"c3"})) // its rows have the state written at once
		_, err := w.wait(second)
		w.exec.RunFor(5 * time.Second)
		if err != nil && !errors.Is(err, persist.ErrUnknown) {
			_, _ = w.ask("x", peek{})
			v, got := w.h.Get(t.Context(), "x")
			if got == nil {
				require.NotContains(t, v.State.Log, "c2", "seed %d: %v", seed, err)
			}
		}
		w.close()
	})
}
