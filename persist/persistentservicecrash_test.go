package persist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// TestJobsOverCrashes: what was accepted is done at least once, each attempt has
// a higher number, and what was not is done or not; over crashes of the machine
// at any moment.
func TestJobsOverCrashes(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() || raceEnabled {
		seeds = 100
	}
	repeated := 0
	for seed := range seeds {
		repeated += jobsOverCrashes(t, seed)
	}
	require.Greater(t, repeated, int(seeds/4), "crashes meet jobs at work")
}

func jobsOverCrashes(t *testing.T, seed uint64) (repeated int) {
	store := persisttest.NewCrashStore()
	o := &office{}
	accepted, offered := map[int]string{}, 0
	for life := range uint64(6) {
		b := newBench(t, seed*10+life, persist.CommitterConfig{MaxUnits: 1 + int(seed%9)})
		store.Pause = func(ctx context.Context) error {
			return b.sys.Sleep(ctx, time.Duration(b.sys.Uint64()%4)*time.Millisecond)
		}
		b.committer = persist.NewCommitter(b.sys, store, persist.CommitterConfig{MaxUnits: 1 + int(seed%9)})
		o.took, o.now = time.Duration(seed%6)*time.Millisecond, 0
		ref := b.manager(o, errands{Slots: 1 + int(seed%4), MaxAttempts: 100, MinBackoff: time.Millisecond})
		for range 12 {
			n := offered
			offered++
			e := errand{N: n}
			if n%4 == 0 {
				e.Way, e.Until = "fails", 2
			}
			b.offer(ref, e, func(id string, err error) {
				if err == nil {
					accepted[n] = id
				}
			})
			b.exec.RunFor(time.Duration(b.sys.Uint64()%5) * time.Millisecond)
		}
		if life == 5 {
			b.exec.RunFor(time.Hour)
			b.store = persisttest.NewFaultStore(store)
			require.Empty(t, b.jobRows(), "seed %d", seed)
			require.Empty(t, o.letters)
			b.close()
			break
		}
		store = store.Crash(seed + life)
		b.exec.Close() // nobody hears of what was under way
	}
	require.Greater(t, len(accepted), 20)
	byID := map[string][]int{}
	for n := range offered {
		attempts := o.attempts(n)
		for i := 1; i < len(attempts); i++ {
			require.Greater(t, attempts[i], attempts[i-1], "seed %d: errand %d", seed, n)
			repeated++
		}
		if id, ok := accepted[n]; ok {
			require.NotEmpty(t, attempts, "seed %d: errand %d was accepted as %s and never begun", seed, n, id)
			byID[id] = append(byID[id], n)
		}
	}
	for id, numbers := range byID {
		require.Len(t, numbers, 1, "seed %d: job %s", seed, id)
	}
	for _, g := range o.begun {
		if id, ok := accepted[g.n]; ok {
			require.Equal(t, id, g.id, fmt.Sprint(seed))
		}
	}
	return repeated
}
