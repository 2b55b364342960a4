package pod_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestWatchSeesEveryChange: whatever happens to entities, and however often a
// reader is slow, cut off and resumes, it sees every change of its scope once, in
// order, with what it was, or a gap that covers it.
func TestWatchSeesEveryChange(t *testing.T) {
	kinds := map[string]int{}
	defer func() {
		for _, what := range []string{"changed", "deleted", "left", "gap", "resumed"} {
			require.NotZero(t, kinds[what], what)
		}
		t.Log(kinds)
	}()
	forSeeds(t, 150, func(t *testing.T, seed uint64) {
		crash := persisttest.NewCrashStore()
		store := &booked{PersistenceService: crash}
		cfg := pod.Config{IdleAfter: 30 * time.Millisecond}
		trims := seed%3 > 0
		if trims {
			cfg.Committer.KeepFor = 150 * time.Millisecond
		}
		w := newWorld(t, seed, store, ledgers(nil), cfg)
		crash.Pause = func(ctx context.Context) error {
			return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%3)*time.Millisecond)
		}
		w.pods.KeepForWatches(int(1 + seed%7*seed%7))
		purseHandle, err := pod.Start(w.pods, purses(nil))
		w.must(err)
		draw := func(n uint64) uint64 { return w.sys.Uint64() % n }
		ctx := context.Background()
		var target uint64
		var clients []*client
		ended := 0
		for i := range uint64(8) {
			c := &client{
				sys: w.sys, pods: w.pods, book: store, draw: draw, reads: readsShow(w.pods),
				pause: func() { _ = w.sys.Sleep(ctx, time.Duration(draw(120))*time.Millisecond) },
			}
			c.req, c.odd = scopes(i)
			clients = append(clients, c)
			w.sys.Go(func() {
				c.pause()
				c.run(ctx, func() uint64 { return target })
				ended++
			})
		}
		names := []string{"x", "y", "z"}
		for i := range 200 {
			to := w.h.Ref(names[draw(3)])
			switch draw(12) {
			case 0:
				w.sendTo(to, unconditional())
			case 1:
				w.sendTo(to, entity.Passivate())
			case 2, 3:
				w.sendTo(purseHandle.Ref(names[draw(2)]), fill{ids(fmt.Sprint(i, "-"), int(1+draw(3))), 1})
			case 4:
				w.sendTo(purseHandle.Ref(names[draw(2)]), unconditional())
			case 5:
				w.exec.RunFor(time.Duration(draw(60)) * time.Millisecond)
			case 6:
				w.sendTo(to, touch{fmt.Sprint(i)})
			default:
				w.sendTo(to, set{int(draw(10))})
			}
			for range draw(6) {
				w.exec.Step()
			}
		}
		w.exec.RunFor(time.Second)
		truth, _ := store.all()
		target = truth[len(truth)-1].Position
		if !w.exec.RunUntil(func() bool { return ended == len(clients) }) {
			t.Fatalf("seed %d: %d clients of %d have come to the end", seed, ended, len(clients))
		}
		for _, c := range clients {
			c.check(t)
			kinds["resumed"] += c.resume
			for _, e := range c.events {
				kinds[string(e.Kind)]++
				if e.Unsure {
					kinds["unsure"]++
				}
			}
		}
		w.close()
	})
}
