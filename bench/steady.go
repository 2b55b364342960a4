package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

const (
	// Of so many entities every page of the store has been rewritten within the
	// first parts: a tree that was filled in order grows to nearly twice its size
	// while its pages are split for the first time.
	steadyNames    = 100_000
	steadyEntities = 20_000 // at most in memory
	steadyKept     = 200_000
	steadyFrom     = 3   // the first of ten parts that count: the journal is full and segments are in use by then
	steadyGrowth   = 1.2 // by so much the last part may be above the first that counts
)

// steady has 256 senders command entities by chance, of 100,000 behind a commit
// log, and prints ten times what memory and disk take. It fails when that
// grows.
func steady(period time.Duration, dir string, out io.Writer) (err error) {
	if dir, err = os.MkdirTemp(dir, "twinsrv-steady-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fillStore(boltPath(dir), steadyNames); err != nil {
		return err
	}
	store, err := openLogged(dir)
	if err != nil {
		return err
	}
	cfg := pod.Config{MaxActive: steadyEntities, Committer: persist.CommitterConfig{KeepChanges: steadyKept}}
	return withPods(store, cfg, func(ctx context.Context, _ *pod.Pods, h *pod.Handle[meter]) error {
		return steadily(ctx, h, period, dir, out)
	})
}

func steadily(ctx context.Context, h *pod.Handle[meter], period time.Duration, dir string, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	var failed atomic.Value
	var senders sync.WaitGroup
	for who := range manyEntities {
		senders.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(who), 1))
			for ctx.Err() == nil {
				_, err := entity.Ask[entity.Ack](ctx, h.Ref(millionth(rng.IntN(steadyNames))), tick{Celsius: rng.Float64()})
				if err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					failed.Store(err)
				}
			}
		})
	}
	_, _ = fmt.Fprintln(out, "# steady: part\tcommands/s\theap MB\tlog MB\tstore MB")
	var first, last usage
	var before int64
	since := time.Now()
	for part := range 10 {
		time.Sleep(period / 10)
		now := done.Load()
		rate := float64(now-before) / time.Since(since).Seconds()
		before, since = now, time.Now()
		var err error
		if last, err = used(dir); err != nil {
			return err
		}
		if part == steadyFrom {
			first = last
		}
		_, _ = fmt.Fprintf(out, "steady/%d\t%.0f\t%.0f\t%.0f\t%.0f\n", part, rate, last.heap, last.log, last.store)
	}
	stop()
	senders.Wait()
	if err, _ := failed.Load().(error); err != nil {
		return fmt.Errorf("a command failed: %w", err)
	}
	if last.heap > steadyGrowth*first.heap || last.log > steadyGrowth*first.log || last.store > steadyGrowth*first.store {
		return fmt.Errorf("memory or disk grew: from %+v to %+v MB", first, last)
	}
	return nil
}

// usage is what memory and files take, in megabytes.
type usage struct{ heap, log, store float64 }

func used(dir string) (u usage, err error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.heap = float64(m.HeapInuse) / 1e6
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*"))
	if err != nil {
		return u, err
	}
	for _, path := range segments {
		i, err := os.Stat(path)
		if err != nil {
			return u, err
		}
		u.log += float64(i.Size()) / 1e6
	}
	i, err := os.Stat(boltPath(dir))
	if err != nil {
		return u, err
	}
	u.store = float64(i.Size()) / 1e6
	return u, nil
}
