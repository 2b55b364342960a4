package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	asked    = 100_000 // entities that are asked about
	question = `state.celsius > 21.0 && name.startsWith("tower-")`
	watching = 1000
	// unmeasured queries come first: an index is built by the first that can use
	// it, and what a pod keeps to look through memory by the first three.
	unmeasured = 3
)

// chamber is a state of twelve fields.
type chamber struct {
	Building  string    `json:"building"`
	Floor     string    `json:"floor"`
	Celsius   float64   `json:"celsius"`
	Humidity  float64   `json:"humidity"`
	Pressure  float32   `json:"pressure"`
	Occupants int       `json:"occupants"`
	Alarms    uint32    `json:"alarms"`
	Lit       bool      `json:"lit"`
	Locked    bool      `json:"locked"`
	Updated   time.Time `json:"updated"`
	Number    int64     `json:"number"`
	Note      string    `json:"note"`
}

type furnish struct{ Number int }

func newChamber(i int) chamber {
	return chamber{
		Building: fmt.Sprintf("tower-%d", i%7), Floor: fmt.Sprintf("tower-%d-%d", i%7, i%40),
		Celsius: 15 + float64(i*7919%1200)/100, Humidity: 0.4, Pressure: 1013.25, Occupants: i % 30, Alarms: 1,
		Lit: i%2 == 0, Updated: time.Unix(1700000000+int64(i), 5).UTC(), Number: int64(i), Note: "fine",
	}
}

func chamberName(i int) string {
	if i%3 == 0 {
		return fmt.Sprintf("lobby-%d-%d", i%40, i)
	}
	return fmt.Sprintf("tower-%d-%d", i%40, i)
}

func fits(name string, c *chamber) bool {
	return c.Celsius > 21.0 && strings.HasPrefix(name, "tower-")
}

// queries measures one query over 100,000 entities: with all of them in memory,
// next to a loop over their decoded states; with none, next to reading and
// decoding all; and by an index, by how many it finds, next to as many reads by
// name.
func queries() []measurement {
	count := pod.Query{Filter: must(filter.Compile(question)), Count: true, Limit: 1}
	out := []measurement{
		{lines: []string{"query/warm-100000"}, cost: true, ours: query(true, count), reference: loopOverStates},
		{lines: []string{"query/passive-100000"}, cost: true, ours: query(false, count), reference: readAll},
		{lines: []string{"watch/change-to-1000"}, cost: true, ours: watchers, reference: channels},
	}
	for _, n := range []int{1, 100, 1000} {
		by := pod.Query{Filter: must(filter.Compile(fmt.Sprintf("state.number >= 5000 && state.number < %d", 5000+n))), Limit: 1000}
		out = append(out, measurement{
			lines: []string{fmt.Sprintf("query/indexed-%d", n)}, cost: true, ours: query(false, by), reference: byName(n),
		})
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a constant of this program
	}
	return v
}

// withChambers calls f with a pod of 100,000 entities, in memory or not.
func withChambers(warm bool, f func(ctx context.Context, p *pod.Pod, store persist.PersistenceService) ([]float64, error)) (values []float64, err error) {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	t := entity.Type[chamber]{
		Name: "chambers", Index: []string{"state.number"},
		Handlers: entity.Handlers[chamber]{
			"furnish": entity.On(func(_ *entity.Context, c *chamber, m furnish) error { *c = newChamber(m.Number); return nil }),
		},
	}
	open := func(do func(h *pod.Handle[chamber]) error) (err error) {
		sys := actor.NewSystem("bench", actor.Config{})
		defer func() { err = errors.Join(err, sys.Stop(ctx)) }()
		pods, err := pod.Open(sys, store, pod.Config{MaxActive: -1, IdleAfter: -1, Committer: persist.CommitterConfig{KeepChanges: 1}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, pods.Close(ctx)) }()
		h, err := pod.Start(pods, t)
		if err != nil {
			return err
		}
		return do(h)
	}
	measure := func(h *pod.Handle[chamber]) (err error) {
		values, err = f(ctx, h.Pod, store)
		return err
	}
	if err := open(func(h *pod.Handle[chamber]) error {
		if err := together(manyEntities, func(who int) error {
			for i := who; i < asked; i += manyEntities {
				if _, err := entity.Ask[entity.Ack](ctx, h.Ref(chamberName(i)), furnish{i}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil || !warm {
			return err
		}
		return measure(h)
	}); err != nil || warm {
		return values, err
	}
	return values, open(measure)
}

func query(warm bool, q pod.Query) load {
	return func(_ string, period time.Duration) ([]float64, error) {
		return withChambers(warm, func(ctx context.Context, p *pod.Pod, _ persist.PersistenceService) ([]float64, error) {
			once := func() error {
				r, err := p.Query(ctx, q)
				if err == nil && len(r.Items) == 0 {
					err = errors.New("the query found nothing")
				}
				return err
			}
			for range unmeasured {
				if err := once(); err != nil {
					return nil, err
				}
			}
			return each(period, 1, once)
		})
	}
}

func loopOverStates(_ string, period time.Duration) ([]float64, error) {
	names, states := make([]string, asked), make([]*chamber, asked)
	for i := range asked {
		names[i], states[i] = chamberName(i), new(newChamber(i))
	}
	return each(period, 1, func() error {
		found := 0
		for i := range states {
			if fits(names[i], states[i]) {
				found++
			}
		}
		if found == 0 {
			return errors.New("the loop found nothing")
		}
		return nil
	})
}

func readAll(_ string, period time.Duration) ([]float64, error) {
	return withChambers(false, func(ctx context.Context, _ *pod.Pod, store persist.PersistenceService) ([]float64, error) {
		return each(period, 1, func() error {
			codec, found := snapshot.Msgpack(), 0
			for o := (persist.ListOptions{Limit: 1024}); ; {
				page, err := store.List(ctx, "chambers", o)
				if err != nil {
					return err
				}
				for i := range page.Items {
					var c chamber
					if err := codec.Decode(page.Items[i].Record.State, &c); err != nil {
						return err
					}
					if fits(page.Items[i].Name, &c) {
						found++
					}
				}
				if !page.More {
					break
				}
				o.After = page.Items[len(page.Items)-1].Name
			}
			if found == 0 {
				return errors.New("the loop found nothing")
			}
			return nil
		})
	})
}

func byName(n int) load {
	return func(_ string, period time.Duration) ([]float64, error) {
		return withChambers(false, func(ctx context.Context, p *pod.Pod, _ persist.PersistenceService) ([]float64, error) {
			return each(period, 1, func() error {
				for i := range n {
					if _, err := p.Get(ctx, chamberName(5000+i)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// watchers measures the time of a change until the last of 1,000 watchers has it
// as JSON.
func watchers(_ string, period time.Duration) ([]float64, error) {
	var values []float64
	store := memory.Open(memory.Config{})
	err := withPods(store, pod.Config{}, func(ctx context.Context, all *pod.Pods, h *pod.Handle[meter]) (err error) {
		var told, readers sync.WaitGroup
		defer readers.Wait()
		for range watching {
			w, err := all.Watch(ctx, pod.WatchRequest{Pods: []string{"meters"}})
			if err != nil {
				return err
			}
			defer w.Close()
			readers.Go(func() {
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
		celsius := 0.0
		values, err = each(period, 1, func() error {
			told.Add(watching)
			celsius++
			_, err := entity.Ask[entity.Ack](ctx, h.Ref("meter"), tick{Celsius: celsius})
			if err != nil {
				return err
			}
			told.Wait()
			return nil
		})
		return err
	})
	return values, err
}

// channels measures the time until the last of 1,000 goroutines has received a
// value through a channel of its own.
func channels(_ string, period time.Duration) ([]float64, error) {
	var told, readers sync.WaitGroup
	defer readers.Wait()
	all := make([]chan []byte, watching)
	for i := range all {
		c := make(chan []byte, 1)
		all[i] = c
		defer close(c)
		readers.Go(func() {
			for range c {
				told.Done()
			}
		})
	}
	change := []byte(`{"celsius":21.5}`)
	return each(period, 1, func() error {
		told.Add(watching)
		for _, c := range all {
			c <- change
		}
		told.Wait()
		return nil
	})
}
