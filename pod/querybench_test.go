package pod_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// chamber is a state of twelve fields, as people write them.
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
	Count     int64     `json:"count"`
	Note      string    `json:"note"`
}

type furnish struct{ I int }

const chambersCount = 100_000

func chamberOf(i int) chamber {
	return chamber{
		Building: fmt.Sprintf("tower-%d", i%7), Floor: fmt.Sprintf("tower-%d-%d", i%7, i%40),
		Celsius: 15 + float64(i*7919%1200)/100, Humidity: 0.4, Pressure: 1013.25, Occupants: i % 30, Alarms: 1,
		Lit: i%2 == 0, Updated: time.Unix(1700000000+int64(i), 5).UTC(), Count: int64(i), Note: "fine",
	}
}

func chamberName(i int) string {
	if i%3 == 0 {
		return fmt.Sprintf("lobby-%d-%d", i%40, i)
	}
	return fmt.Sprintf("tower-%d-%d", i%40, i)
}

func chambers(index ...string) entity.Type[chamber] {
	return entity.Type[chamber]{
		Name: "chambers", Index: index,
		Handlers: entity.Handlers[chamber]{
			"furnish": entity.On(func(_ *entity.Context, c *chamber, m furnish) error { *c = chamberOf(m.I); return nil }),
		},
	}
}

// manyChambers is a store with a hundred thousand entities, and pods on it: with
// all of them in memory, or with none.
func manyChambers(b *testing.B, warm bool, index ...string) (*pod.Pod, persist.PersistenceService) {
	b.Helper()
	store := memory.Open(memory.Config{})
	ctx := context.Background()
	open := func() (*actor.System, *pod.Pods, *pod.Handle[chamber]) {
		sys := actor.NewSystem("bench", actor.Config{})
		pods, err := pod.Open(sys, store, pod.Config{MaxActive: -1, IdleAfter: -1, Committer: persist.CommitterConfig{KeepChanges: 1}})
		require.NoError(b, err)
		h, err := pod.Start(pods, chambers(index...))
		require.NoError(b, err)
		return sys, pods, h
	}
	sys, pods, h := open()
	for i := range chambersCount {
		require.NoError(b, h.Tell(ctx, chamberName(i), furnish{i}))
	}
	require.Eventually(b, func() bool {
		r, err := h.Pod.Query(ctx, pod.Query{Filter: compiled(b, "state.count >= 0 && state.note == 'fine'"), Count: true, Limit: 1})
		return err == nil && r.Count == chambersCount
	}, time.Minute, 50*time.Millisecond)
	stop := func() {
		require.NoError(b, pods.Close(ctx))
		require.NoError(b, sys.Stop(ctx))
	}
	if !warm {
		stop()
		sys, pods, h = open()
	}
	b.Cleanup(stop)
	return h.Pod, store
}

func perChamber(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chambersCount, "ns/entity")
}

const chamberFilter = `state.celsius > 21.0 && name.startsWith("tower-")`

// BenchmarkQueryWarm looks at a hundred thousand entities in memory, next to a
// loop over their decoded states.
func BenchmarkQueryWarm(b *testing.B) {
	p, _ := manyChambers(b, true)
	names, states := make([]string, chambersCount), make([]chamber, chambersCount)
	for i := range chambersCount {
		names[i], states[i] = chamberName(i), chamberOf(i)
	}
	b.Run("loop", func(b *testing.B) {
		for b.Loop() {
			found := 0
			for i := range states {
				if states[i].Celsius > 21.0 && strings.HasPrefix(names[i], "tower-") {
					found++
				}
			}
			if found == 0 {
				b.Fatal("none is found")
			}
		}
		perChamber(b)
	})
	for name, q := range map[string]pod.Query{
		"count": {Filter: compiled(b, chamberFilter), Count: true, Limit: 1}, "page": {Filter: compiled(b, chamberFilter)},
		"sorted": {Filter: compiled(b, chamberFilter), Sort: []pod.Order{{Path: path(b, "state.celsius")}}},
		"group":  {Group: &pod.Group{By: []filter.Path{path(b, "state.floor")}, Fields: []pod.Aggregate{{Of: pod.AvgOf, Path: path(b, "state.celsius")}}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Query(context.Background(), q); err != nil {
					b.Fatal(err)
				}
			}
			perChamber(b)
		})
	}
}

// BenchmarkQueryPassive looks at a hundred thousand entities in the store, next
// to reading and decoding them.
func BenchmarkQueryPassive(b *testing.B) {
	p, store := manyChambers(b, false)
	b.Run("read", func(b *testing.B) {
		codec := snapshot.Msgpack()
		for b.Loop() {
			found, o := 0, persist.ListOptions{Limit: 1024}
			for {
				page, err := store.List(context.Background(), "chambers", o)
				require.NoError(b, err)
				for i := range page.Items {
					var c chamber
					if err := codec.Decode(page.Items[i].Record.State, &c); err != nil {
						b.Fatal(err)
					}
					if c.Celsius > 21.0 && strings.HasPrefix(page.Items[i].Name, "tower-") {
						found++
					}
				}
				if !page.More {
					break
				}
				o.After = page.Items[len(page.Items)-1].Name
			}
		}
		perChamber(b)
	})
	b.Run("query", func(b *testing.B) {
		q := pod.Query{Filter: compiled(b, chamberFilter), Count: true, Limit: 1}
		for b.Loop() {
			_, err := p.Query(context.Background(), q)
			require.NoError(b, err)
		}
		perChamber(b)
	})
}

// BenchmarkQueryIndexed finds passive entities by an index.
func BenchmarkQueryIndexed(b *testing.B) {
	p, _ := manyChambers(b, false, "state.count")
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := pod.Query{Filter: compiled(b, fmt.Sprintf("state.count >= 5000 && state.count < %d", 5000+n)), Limit: 1000}
			for b.Loop() {
				r, err := p.Query(context.Background(), q)
				require.NoError(b, err)
				require.Len(b, r.Items, n)
			}
		})
	}
}
