package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/pod"
)

// restarts measures the time from opening a store to the first answer of an
// entity, to a question and to a command: with a million entities, and for
// reference with a thousand. Commands wait until the whole file is verified.
func restarts() []measurement {
	var base string
	start := func(file string) load {
		return func(string, time.Duration) ([]float64, error) { return startOn(filepath.Join(base, file)) }
	}
	return []measurement{{
		lines: []string{"start/million-first-answer", "start/million-first-command"}, cost: true,
		setup: func(dir string) error {
			base = dir
			if err := fillStore(filepath.Join(dir, "million.db"), million); err != nil {
				return err
			}
			return fillStore(filepath.Join(dir, "thousand.db"), thousand)
		},
		ours: start("million.db"), reference: start("thousand.db"),
	}}
}

func startOn(path string) (costs []float64, err error) {
	begin := time.Now()
	store, err := bolt.Open(path, bolt.Config{})
	if err != nil {
		return nil, err
	}
	err = withPods(store, pod.Config{}, func(ctx context.Context, _ *pod.Pods, h *pod.Handle[meter]) error {
		_, err := entity.Ask[float64](ctx, h.Ref(millionth(17)), read{})
		costs = append(costs, float64(time.Since(begin).Nanoseconds()))
		if err != nil {
			return err
		}
		_, err = entity.Ask[entity.Ack](ctx, h.Ref(millionth(17)), tick{Celsius: 1})
		costs = append(costs, float64(time.Since(begin).Nanoseconds()))
		return err
	})
	return costs, err
}

// residents is how many entities are in memory while their bytes are counted.
const residents = 20_000

// sizes measures the bytes of memory of an entity whose state has about 200
// bytes: while it is active, and once it has left memory (of a store that is not
// in memory, so what is left is ours). The reference is a map of such states.
func sizes() []measurement {
	return []measurement{{
		lines: []string{"memory/active-200-bytes", "memory/passive-bytes"}, cost: true,
		ours: activeBytes,
		reference: func(string, time.Duration) ([]float64, error) {
			before := heap()
			m := make(map[string]*meter)
			for i := range residents {
				m[millionth(i)] = new(fatMeter(i))
			}
			bytes := float64(heap()-before) / residents
			runtime.KeepAlive(m)
			return []float64{bytes, bytes}, nil
		},
	}}
}

func fatMeter(i int) meter {
	m := newMeter(millionth(i))
	m.Operator = fmt.Sprintf("the operator of meter %0100d", i)
	return m
}

func activeBytes(dir string, _ time.Duration) (values []float64, err error) {
	store, err := bolt.Open(boltPath(dir), bolt.Config{})
	if err != nil {
		return nil, err
	}
	err = withPods(store, pod.Config{IdleAfter: -1}, func(ctx context.Context, _ *pod.Pods, h *pod.Handle[meter]) error {
		before := heap()
		if err := together(manyEntities, func(who int) error {
			for i := who; i < residents; i += manyEntities {
				if _, err := entity.Ask[entity.Ack](ctx, h.Ref(millionth(i)), tick{Celsius: 1}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		active := heap() - before
		if err := together(manyEntities, func(who int) error {
			for i := who; i < residents; i += manyEntities {
				if _, err := entity.Ask[any](ctx, h.Ref(millionth(i)), entity.Passivate()); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		passive := heap() - before
		values = []float64{float64(active) / residents, float64(max(passive, 0)) / residents}
		return nil
	})
	return values, err
}
