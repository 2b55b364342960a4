package pod_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestStormLeaves: entities that came at once, and were busy when room was made, leave all
// the same.
func TestStormLeaves(t *testing.T) {
	for _, most := range []int{1, 10, 100} {
		w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{MaxActive: most, IdleAfter: -1})
		for i := range 1000 {
			w.send(fmt.Sprint("e", i), add{"x"})
		}
		w.exec.RunFor(time.Hour)
		if w.pods.Active() > 2*most+1 {
			t.Errorf("MaxActive %d: %d are in memory", most, w.pods.Active())
		}
		w.close()
	}
}

// TestResidentsStorm: many senders, readers, deletions and pauses on the real executor.
func TestResidentsStorm(t *testing.T) {
	sys := actor.NewSystem("storm", actor.Config{})
	store := memory.Open(memory.Config{})
	pods, err := pod.Open(sys, store, pod.Config{MaxActive: 6, IdleAfter: 20 * time.Millisecond, Committer: persist.CommitterConfig{KeepChanges: 1}})
	require.NoError(t, err)
	a, err := pod.Start(pods, accounts(nil))
	require.NoError(t, err)
	p, err := pod.Start(pods, purses(nil))
	require.NoError(t, err)
	v, err := pod.Start(pods, ledgers(func(t *entity.Type[ledger]) { t.Durability = entity.Volatile() }))
	require.NoError(t, err)
	for i := range 8 {
		_, err := a.Ask(t.Context(), fmt.Sprint("a", i), open{100})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for i := 0; ctx.Err() == nil; i++ {
				n, o := fmt.Sprint("a", rng.IntN(8)), fmt.Sprint("a", rng.IntN(8))
				var err error
				switch rng.IntN(10) {
				case 0:
					_, err = a.Get(ctx, n)
				case 1:
					_, err = p.Get(ctx, "p"+n)
				case 2:
					_, _, err = p.List(ctx, persist.ListOptions{})
				case 3:
					_, err = p.Ask(ctx, "p"+n, entity.Delete(entity.Condition{}))
				case 4, 5:
					_, err = p.Ask(ctx, "p"+n, fill{[]string{"x", "y"}, 1})
				case 6:
					_, err = v.Ask(ctx, n, add{"x"})
				case 7:
					a.PausePassivation(n)
					a.ResumePassivation(n)
					_, err = a.Ask(ctx, n, entity.Passivate())
				default:
					_, err = a.Ask(ctx, n, transfer{fmt.Sprint(g, ".", i), o, 1})
				}
				if err != nil && ctx.Err() == nil && !errors.Is(err, entity.ErrNotFound) && !errors.Is(err, entity.ErrBusy) && !errors.As(err, new(*entity.RejectedError)) {
					t.Errorf("%v", err)
					return
				}
			}
		}()
	}
	wg.Wait()
	require.Empty(t, pods.Quarantined())
	require.Eventually(t, func() bool {
		rows, _ := store.Rows(context.Background(), "outbox", nil, 10)
		return len(rows) == 0
	}, 10*time.Second, 10*time.Millisecond)
	sum := 0
	for i := range 8 {
		v, err := a.Get(t.Context(), fmt.Sprint("a", i))
		require.NoError(t, err)
		sum += v.State.Balance
	}
	require.Equal(t, 800, sum)
	require.Eventually(t, func() bool { return pods.Active() == 0 }, 10*time.Second, 10*time.Millisecond, "the count drifts")
	end, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	require.NoError(t, pods.Close(end))
	require.NoError(t, sys.Stop(end))
}
