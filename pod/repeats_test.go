package pod_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestRepeatedMessageGetsItsFirstAnswer: an Ack, a reply and a rejection are
// given again, changing nothing, also after the entity left memory and after a
// restart.
func TestRepeatedMessageGetsItsFirstAnswer(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{IdleAfter: time.Second})
	first := map[string]any{}
	messages := map[string]any{"made": add{"a"}, "told": shares{"b"}, "not": refuse{"c"}}
	ask := func(id string) (any, error) { return w.ask("x", entity.WithID(id, messages[id])) }
	for _, id := range []string{"made", "told", "not"} {
		v, err := ask(id)
		if id == "not" {
			require.ErrorContains(t, err, "not c")
		} else {
			w.must(err)
		}
		first[id] = v
	}
	require.True(t, first["made"].(entity.Ack).Created)
	for _, again := range []func(){
		func() {},
		func() { w.exec.RunFor(10 * time.Second) }, // out of memory and back
		func() {
			w.kill()
			w = newWorld(t, 2, store, ledgers(nil), pod.Config{})
		},
	} {
		again()
		_, err := w.ask("x", add{"between"})
		w.must(err)
		for _, id := range []string{"told", "made", "not"} {
			v, err := ask(id)
			if id == "not" {
				require.ErrorContains(t, err, "not c")
			} else {
				w.must(err)
			}
			require.Equal(t, first[id], v, id)
		}
	}
	require.Equal(t, []string{"a", "b", "between", "between", "between"}, w.log("x"))
	w.close()
}

func TestMessageIDs(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(func(t *entity.Type[ledger]) { t.Repeats = entity.Window{Count: 3, For: time.Hour} }), pod.Config{})
	defer w.close()
	_, err := w.ask("x", entity.WithID("1", add{"a"}))
	w.must(err)

	_, err = w.ask("x", entity.WithID("1", add{"other"}))
	require.ErrorIs(t, err, entity.ErrReused, "another message under the same id")
	_, err = w.ask("x", entity.WithID("1", touch{"a"}))
	require.ErrorIs(t, err, entity.ErrReused)
	for _, bad := range []string{"", "a\x00", string(make([]byte, 201)), "\xff"} {
		_, err = w.ask("x", entity.WithID(bad, add{"z"}))
		require.ErrorIs(t, err, entity.ErrMalformed, "%q", bad)
	}
	_, err = w.ask("y", entity.WithID("1", add{"a"}))
	w.must(err)
	require.Equal(t, []string{"a"}, w.log("y"), "ids are an entity's own")

	_, err = w.ask("x", entity.WithID("crash", crash{"c"}))
	require.Error(t, err)
	_, err = w.ask("x", entity.WithID("crash", add{"after"}))
	w.must(err) // a failure is no answer, so the id is free

	// Three answers are remembered, and each for an hour.
	_, err = w.ask("x", entity.WithID("2", touch{"b"}))
	w.must(err)
	_, err = w.ask("x", entity.WithID("3", touch{"b"}))
	w.must(err)
	_, err = w.ask("x", entity.WithID("1", add{"a"})) // pushed out by the others
	w.must(err)
	require.Equal(t, []string{"a", "after", "a"}, w.log("x"))
	rows := func() (n int) {
		all, err := store.Rows(context.Background(), "answer", nil, 100)
		w.must(err)
		for _, r := range all {
			if r.Key.Name == "x" {
				n++
			}
		}
		return n
	}
	require.Equal(t, 3, rows())
	w.exec.RunFor(2 * time.Hour)
	_, err = w.ask("x", entity.WithID("1", add{"a"}))
	w.must(err)
	require.Equal(t, []string{"a", "after", "a", "a"}, w.log("x"))
	require.Equal(t, 1, rows(), "what has run out is removed")

	_, err = w.ask("x", entity.Delete(entity.Condition{}))
	w.must(err)
	_, err = w.ask("x", entity.WithID("1", add{"a"}))
	w.must(err)
	require.Equal(t, []string{"a"}, w.log("x"), "a new life remembers nothing")
}

// TestRepeatsOverCrashes: a client that repeats every message until it is
// answered has each of them done once, whatever crashes in between.
func TestRepeatsOverCrashes(t *testing.T) {
	for name, durability := range map[string]entity.Durability{"sync": entity.Sync(), "async": entity.Async(5 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 200, func(t *testing.T, seed uint64) {
				rng := rand.New(rand.NewPCG(seed, 9))
				store := persisttest.NewCrashStore()
				typ := ledgers(func(t *entity.Type[ledger]) { t.Durability = durability })
				cfg := pod.Config{IdleAfter: 20 * time.Millisecond}
				w := newWorld(t, seed, store, typ, cfg)
				want := []string{}
				for i := range 12 {
					id := fmt.Sprint("m", i)
					want = append(want, id)
					for {
						p := w.send("x", entity.WithID(id, add{id}))
						for range rng.IntN(60) {
							w.exec.Step()
						}
						if rng.IntN(3) > 0 {
							_, err := w.wait(p)
							w.must(err)
							if !durability.IsAsync() || rng.IntN(2) == 0 {
								w.exec.RunFor(20 * time.Millisecond) // an asynchronous ack with an id is durable, too
							}
							break
						}
						store = store.Crash(rng.Uint64())
						w.kill()
						w = newWorld(t, seed*100+uint64(i), store, typ, cfg)
					}
				}
				require.Equal(t, want, w.log("x"), "seed %d", seed)
				w.close()
			})
		})
	}
}
