package pod_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestFiltersOnNamesWhileOthersComeAndGo: queries for names with some beginning
// find each entity that stays as it is once, on one page or many, in one pod or
// over two, whether or not it is in memory, and name each one that cannot be read;
// however many others are made, deleted, stopped or leave memory while the query
// goes through the store.
func TestFiltersOnNamesWhileOthersComeAndGo(t *testing.T) {
	counted, failed := 0, 0
	forSeeds(t, 40, func(t *testing.T, seed uint64) {
		memory := persisttest.NewMemory()
		lists := &slowLists{FaultStore: persisttest.NewFaultStore(memory)}
		idle := []time.Duration{-1, 30 * time.Millisecond}[seed%2]
		w, twins := twins(t, seed, lists, pod.Config{IdleAfter: idle, MaxActive: -1})
		defer w.close()
		attic, _, _, err := w.pods.Declare(bg, "attic", documentPod(""))
		w.must(err)
		r := &restless{world: w, of: []*pod.Pod{twins, attic}}
		lists.wait = func(ctx context.Context) error { return w.sys.Sleep(ctx, time.Duration(r.draw(4))*time.Millisecond) }
		for _, p := range r.of {
			for i := range 12 {
				w.merge(p, fmt.Sprintf("%c-s%d", 'a'+i%2, i/2), entity.Merge{"v": i})
			}
		}
		if r.draw(2) == 0 {
			_, err := w.wait(w.sendTo(twins.Ref("a-s3"), entity.Passivate()))
			w.must(err)
			memory.Damage(persist.Key{Pod: "twins", Name: "a-s3"})
			r.damaged = true
		}
		lists.slow.Store(true)
		for range 25 {
			many := r.draw(2) == 0
			q := pod.Query{Filter: compiled(t, []string{`name.startsWith("a-")`, `state.v >= 0 && name.startsWith("a-")`}[r.draw(2)]), Limit: 1 + r.draw(40)}
			switch r.draw(3) {
			case 0:
				q.Count = true
			case 1:
				q.Sort = []pod.Order{{Path: path(t, "name"), Descending: r.draw(2) == 0}}
			}
			r.walk(q, many)
			if twins.Counted() {
				counted++
			}
			if twins.CountFailed() {
				failed++
			}
		}
		lists.slow.Store(false)
	})
	if raceDivisor == 1 && !testing.Short() { // else the seeds are few
		require.Positive(t, counted)
		require.Positive(t, failed)
	}
}

// restless is pods in which some entities stay as they are and others do not.
type restless struct {
	*world
	of      []*pod.Pod
	damaged bool // twins/a-s3 is
}

func (r *restless) draw(n uint64) int { return int(r.sys.Uint64() % n) }

// disturb has something happen to those that do not stay.
func (r *restless) disturb() {
	p := r.of[r.draw(2)]
	name := fmt.Sprintf("%c-x%d", 'a'+r.draw(2), r.draw(6))
	switch r.draw(8) {
	case 0, 1:
		r.sendTo(p.Ref(name), unconditional())
	case 2:
		r.sendTo(p.Ref(name), entity.Passivate())
	case 3:
		if ref, err := r.sys.Lookup("/user/pods/" + p.Name() + "/" + name); err == nil {
			ref.Stop()
		}
	case 4:
		if r.draw(4) == 0 {
			r.sendTo(p.Ref(fmt.Sprint("b-s", r.draw(6))), entity.Passivate())
		}
	case 5:
		r.sendTo(p.Ref(name), entity.Remove{Pointer: "/v"})
	default:
		r.sendTo(p.Ref(name), entity.Merge{"v": r.draw(9)})
	}
}

// walk goes through all pages of a query while others are disturbed.
func (r *restless) walk(q pod.Query, many bool) {
	found, unreadable, done := map[string]int{}, map[string]int{}, false
	count := -1
	r.sys.Go(func() {
		defer func() { done = true }()
		for {
			ask := func() (pod.Result, error) { return r.of[0].Query(bg, q) }
			if many {
				ask = func() (pod.Result, error) { return r.world.pods.QueryAll(bg, nil, q) }
			}
			page, err := ask()
			if err != nil {
				r.t.Errorf("seed %d: %v", r.seed, err)
				return
			}
			for _, i := range page.Items {
				found[i.View.Pod+"/"+i.View.Name]++
			}
			for _, i := range page.Quarantined {
				unreadable[i.Pod+"/"+i.Name]++
			}
			count = page.Count
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	})
	left := 40 // while there is work the clock stands still
	for !done {
		if left > 0 && r.draw(6) == 0 {
			left--
			r.disturb()
		}
		if !r.exec.Step() {
			r.exec.RunFor(time.Millisecond)
		}
	}
	r.check(q, many, found, unreadable)
	if q.Count {
		staying := len(r.staying(many))
		others := 6
		if many {
			others = 12
		}
		require.True(r.t, staying <= count && count <= staying+others, "seed %d: counted %d", r.seed, count)
	}
}

func (r *restless) staying(many bool) (keys []string) {
	for i, p := range r.of {
		for at := range 6 {
			if (i == 0 || many) && (!r.damaged || i != 0 || at != 3) {
				keys = append(keys, fmt.Sprintf("%s/a-s%d", p.Name(), at))
			}
		}
	}
	return keys
}

func (r *restless) check(q pod.Query, many bool, found, unreadable map[string]int) {
	told := fmt.Sprintf("seed %d: %s, limit %d, count %t, sorted by %v, many %t", r.seed, q.Filter, q.Limit, q.Count, q.Sort, many)
	for _, key := range r.staying(many) {
		require.Equal(r.t, 1, found[key], "%s: %s", told, key)
	}
	for key, n := range found {
		require.True(r.t, n == 1, "%s: %s was found %d times", told, key, n)
		require.Contains(r.t, key, "/a-", told)
	}
	if r.damaged {
		require.Positive(r.t, unreadable["twins/a-s3"], told)
	}
}
