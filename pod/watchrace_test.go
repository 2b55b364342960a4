package pod_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

// TestWatchesSideBySide: many watches in goroutines of their own, some too slow
// for what is kept in memory and some for the journal.
func TestWatchesSideBySide(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	store := &booked{PersistenceService: memory.Open(memory.Config{})}
	pods, err := pod.Open(sys, store, pod.Config{Committer: persist.CommitterConfig{KeepChanges: 500}})
	require.NoError(t, err)
	pods.KeepForWatches(50, 100)
	h, err := pod.Start(pods, ledgers(nil))
	require.NoError(t, err)
	p, err := pod.Start(pods, purses(nil))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	var target atomic.Uint64
	var clients []*client
	var watching, writing sync.WaitGroup
	for i := range uint64(12) {
		draw := rand.New(rand.NewPCG(i, 7))
		c := &client{
			sys: sys, pods: pods, book: store, draw: draw.Uint64N,
			pause: func() {
				for range draw.IntN(2000) {
					runtime.Gosched()
				}
			},
		}
		c.req, c.odd = scopes(i)
		clients = append(clients, c)
		watching.Go(func() { c.run(ctx, target.Load) })
	}
	for writer := range 4 {
		writing.Go(func() {
			name := []string{"x", "y", "z", "x"}[writer]
			for i := range 700 {
				to, m := h.Ref(name), any(set{i})
				switch {
				case i%5 == 0:
					to, m = p.Ref(name), fill{[]string{fmt.Sprint(writer, "-", i)}, 1}
				case i%41 == 0:
					m = unconditional()
				case i%31 == 0:
					m = entity.Passivate()
				}
				_, _ = actor.Ask[any](ctx, to, m)
			}
		})
	}
	writing.Wait()
	truth, _ := store.all()
	require.Greater(t, len(truth), 1500)
	target.Store(truth[len(truth)-1].Position)
	watching.Wait()
	gaps := 0
	for _, c := range clients {
		c.check(t)
		for _, e := range c.events {
			if e.Kind == pod.EventGap {
				gaps++
			}
		}
	}
	t.Logf("%d changes, %d gaps", len(truth), gaps)
	require.NoError(t, pods.Close(ctx))
	require.NoError(t, sys.Stop(ctx))
}

// BenchmarkWatchers is one change shown to 1,000 watchers: the time until the
// last of them has it.
func BenchmarkWatchers(b *testing.B) {
	for _, scope := range []string{"pod", "entity", "match"} {
		b.Run(scope, func(b *testing.B) { benchmarkWatchers(b, scope) })
	}
}

func benchmarkWatchers(b *testing.B, scope string) {
	const n = 1000
	sys := actor.NewSystem("bench", actor.Config{})
	pods, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	require.NoError(b, err)
	h, err := pod.Start(pods, ledgers(nil))
	require.NoError(b, err)
	ctx := context.Background()
	var told, reach sync.WaitGroup
	var watches []*pod.Watch
	for i := range n {
		r := pod.WatchRequest{Pods: []string{"ledgers"}}
		switch scope {
		case "entity":
			r.Name = fmt.Sprint(i)
		case "match":
			r.Match = func(v *pod.View) (bool, error) { _, state := v.Encoded(); return len(state) > 0, nil }
		}
		w, err := pods.Watch(ctx, r)
		require.NoError(b, err)
		watches = append(watches, w)
		reach.Go(func() {
			for {
				e, err := w.Next(ctx)
				if err != nil {
					return
				}
				_ = e.JSON()
				told.Done()
			}
		})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if scope == "entity" {
			told.Add(1)
		} else {
			told.Add(n)
		}
		_, err := actor.Ask[any](ctx, h.Ref("7"), set{i})
		require.NoError(b, err)
		told.Wait()
	}
	b.StopTimer()
	for _, w := range watches {
		w.Close()
	}
	reach.Wait()
	require.NoError(b, pods.Close(ctx))
	require.NoError(b, sys.Stop(ctx))
}
