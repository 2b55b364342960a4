package pod_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// TestReadsSeeWhatIsAcknowledged: a read never misses a write that was
// acknowledged before it, never goes back, and never shows what is not durable.
func TestReadsSeeWhatIsAcknowledged(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		store := &slowReads{CrashStore: persisttest.NewCrashStore()}
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{IdleAfter: 2 * time.Millisecond})
		defer w.close()
		store.pause = func(ctx context.Context) error {
			return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%4)*time.Millisecond/2)
		}
		store.Pause = store.pause
		ctx := context.Background()
		acked, writing := 0, true
		w.sys.Go(func() {
			for i := range 40 {
				if _, err := entity.Ask[entity.Ack](ctx, w.h.Ref("x"), add{fmt.Sprint(i)}); err == nil {
					acked = i + 1
				}
				if w.sys.Uint64()%3 == 0 {
					_ = w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%6)*time.Millisecond)
				}
			}
			writing = false
		})
		var wrong []string
		for reader := range 3 {
			w.sys.Go(func() {
				for seen := 0; writing; {
					before := acked
					got := read(w, reader)
					r, err := store.CrashStore.Load(ctx, persist.Key{Pod: "ledgers", Name: "x"})
					if got < before || got < seen {
						wrong = append(wrong, fmt.Sprintf("read %d after %d were acknowledged and %d were seen", got, before, seen))
					}
					if got > 0 && (err != nil || uint64(got) > r.Revision) {
						wrong = append(wrong, fmt.Sprintf("read %d of which %d are durable", got, r.Revision))
					}
					if again := read(w, 1); again < got {
						wrong = append(wrong, fmt.Sprintf("read %d and then %d", got, again))
					}
					seen = got
					_ = w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%1000)*time.Microsecond)
				}
			})
		}
		w.exec.RunUntil(func() bool { return !writing })
		require.Empty(t, wrong)
		require.Equal(t, 40, acked)
	})
}

// slowReads is a store whose reads take time, in which writes go on.
type slowReads struct {
	*persisttest.CrashStore
	pause func(context.Context) error
}

func (s *slowReads) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	if s.pause != nil {
		_ = s.pause(ctx)
	}
	return s.CrashStore.Load(ctx, key)
}

func (s *slowReads) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	if s.pause != nil {
		_ = s.pause(ctx)
	}
	return s.CrashStore.List(ctx, pod, o)
}

func read(w *world, how int) int {
	ctx := context.Background()
	if how == 0 {
		page, err := w.h.Pod.List(ctx, persist.ListOptions{})
		if err != nil || len(page.Items) == 0 {
			return 0
		}
		return int(page.Items[0].View.Revision)
	}
	v, err := w.h.Get(ctx, "x")
	if err != nil {
		return 0
	}
	return int(v.Revision)
}

// TestListPages: pages have every entity once, by name, whatever is in memory.
func TestListPages(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{IdleAfter: time.Minute})
	defer w.close()
	names := ids("e", 25)
	for _, name := range names {
		_, err := w.ask(name, add{name})
		w.must(err)
	}
	w.exec.RunFor(10 * time.Minute)
	for _, name := range names[:10] {
		_, err := w.ask(name, add{"again"})
		w.must(err)
	}
	slices.Sort(names)
	var got []string
	for after, pages := "", 0; ; pages++ {
		views, next, err := w.h.List(context.Background(), persist.ListOptions{After: after, Limit: 7})
		w.must(err)
		for _, v := range views {
			got = append(got, v.Name)
			require.Equal(t, v.Name, v.State.Log[0])
		}
		if after = next; next == "" {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, names, got)
}

// TestEarlierVersionsOfAType: states written before a field was added, or
// before an upgrade, are read as the type is now, in memory or not.
func TestEarlierVersionsOfAType(t *testing.T) {
	type v1 struct {
		Name string `json:"name"`
	}
	type v2 struct {
		Full  string `json:"full"`
		Count int    `json:"count"`
	}
	type note struct{ Text string }
	store := persisttest.NewMemory()
	first := entity.Type[v1]{Name: "things", Handlers: entity.Handlers[v1]{
		"note": entity.On(func(_ *entity.Context, s *v1, m note) error { s.Name = m.Text; return nil }),
	}}
	second := entity.Type[v2]{
		Name: "things", Version: 1,
		Upgrades: snapshot.Upgrades{0: func(state map[string]any) error {
			state["full"] = fmt.Sprint("the ", state["name"])
			return nil
		}},
		Handlers: entity.Handlers[v2]{
			"note": entity.On(func(_ *entity.Context, s *v2, m note) error { s.Count++; return nil }),
		},
	}
	ctx := context.Background()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	h1, err := pod.Start(w.pods, first)
	w.must(err)
	_, err = h1.Ask(ctx, "x", note{"lamp"})
	w.must(err)
	w.close()

	w = newWorld(t, 2, store, ledgers(nil), pod.Config{IdleAfter: time.Minute})
	h2, err := pod.Start(w.pods, second)
	w.must(err)
	passive, err := h2.Get(ctx, "x")
	w.must(err)
	require.Equal(t, v2{Full: "the lamp"}, passive.State)
	_, err = h2.Ask(ctx, "x", entity.Touch())
	w.must(err)
	active, err := h2.Get(ctx, "x")
	w.must(err)
	require.Equal(t, passive, active, "being read is no change")
	ack, err := h2.Ask(ctx, "x", note{})
	w.must(err)
	require.EqualValues(t, 2, ack.(entity.Ack).Revision)
	w.close()

	w = newWorld(t, 3, store, ledgers(nil), pod.Config{})
	defer w.close()
	h1, err = pod.Start(w.pods, first)
	w.must(err)
	_, err = h1.Get(ctx, "x")
	require.ErrorIs(t, err, entity.ErrQuarantined)
	require.ErrorIs(t, err, snapshot.ErrNewer, "a newer record is refused, not guessed at")
	_, err = h1.Ask(ctx, "x", note{"lamp"})
	require.ErrorIs(t, err, entity.ErrQuarantined)
}
