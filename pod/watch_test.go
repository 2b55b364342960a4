package pod_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
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
	forSeeds(t, 150, func(t *testing.T, seed uint64) { watchRun(t, seed, false, kinds) })
}

// TestWatchSeesWhatTheStoreHas: also of commits that failed, and whether they
// were applied or not.
func TestWatchSeesWhatTheStoreHas(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) { watchRun(t, seed, true, map[string]int{}) })
}

func watchRun(t *testing.T, seed uint64, faults bool, kinds map[string]int) {
	crash := persisttest.NewCrashStore()
	book := &booked{PersistenceService: crash}
	store := persist.PersistenceService(book)
	var fault *persisttest.FaultStore
	if faults {
		book.PersistenceService = persisttest.NewMemory()
		fault = persisttest.NewFaultStore(book)
		store = fault
	}
	cfg := pod.Config{IdleAfter: 30 * time.Millisecond}
	// A run is short, and one in twelve messages meets a fault.
	cfg.Committer.MinBackoff, cfg.Committer.MaxBackoff = 10*time.Millisecond, 20*time.Millisecond
	if seed%3 > 0 {
		cfg.Committer.KeepFor = 150 * time.Millisecond
	}
	w := newWorld(t, seed, store, ledgers(nil), cfg)
	crash.Pause = func(ctx context.Context) error {
		return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%3)*time.Millisecond)
	}
	w.pods.KeepForWatches(int(1+seed%7*seed%7), seed%5)
	purseHandle, err := pod.Start(w.pods, purses(nil))
	w.must(err)
	draw := func(n uint64) uint64 { return w.sys.Uint64() % n }
	ctx := context.Background()
	var target uint64
	var clients []*client
	ended := 0
	for i := range uint64(8) {
		c := &client{
			sys: w.sys, pods: w.pods, book: book, draw: draw,
			pause: func() { _ = w.sys.Sleep(ctx, time.Duration(draw(120))*time.Millisecond) },
		}
		if !faults {
			c.reads = readsShow(w.pods)
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
			if faults {
				fault.OnCommit(fault.Commits()+1, persisttest.Fault(1+draw(6)))
			}
		default:
			w.sendTo(to, set{int(draw(10))})
		}
		for range draw(6) {
			w.exec.Step()
		}
	}
	w.exec.RunFor(30 * time.Second)
	truth, _ := book.all()
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
}

// TestLeftIsKnownThoughTrimmed: whoever watches all the time is told nothing of
// entities that Match does not hold for, however long ago they changed.
func TestLeftIsKnownThoughTrimmed(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{Committer: persist.CommitterConfig{KeepFor: time.Second}})
	defer w.close()
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"ledgers"}, Match: oddView})
	w.must(err)
	defer watch.Close()
	for _, v := range []int{2, 4, 5, 6, 8, 7} {
		_, err := w.ask("x", set{v})
		w.must(err)
		w.exec.RunFor(time.Hour)
	}
	_, err = w.ask("x", unconditional())
	w.must(err)
	r, err := w.h.Pod.Retention(bg)
	w.must(err)
	require.NotZero(t, r.Through)
	var told []string
	for range 4 {
		e, err := watch.Next(bg)
		w.must(err)
		told = append(told, fmt.Sprintf("%s %d %v", e.Kind, e.Revision, e.Unsure))
	}
	require.Equal(t, []string{"changed 3 false", "left 4 false", "changed 6 false", "deleted 7 false"}, told)
	short, cancel := w.sys.WithTimeout(bg, time.Minute)
	defer cancel()
	_, err = watch.Next(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestWatchEnds with the pods, with Close, and with an error of Match, and is
// refused where it cannot begin.
func TestWatchEnds(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	_, err := w.ask("x", set{1})
	w.must(err)
	_, err = w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"none"}})
	require.ErrorIs(t, err, pod.ErrNoPod)
	_, err = w.pods.Watch(bg, pod.WatchRequest{Name: "x"})
	require.ErrorIs(t, err, entity.ErrName)
	_, err = w.pods.Watch(bg, pod.WatchRequest{Resume: true, After: 1000})
	require.ErrorIs(t, err, pod.ErrPosition)
	require.Zero(t, w.pods.Watchers())

	bad := errors.New("no filter for this")
	failing, err := w.pods.Watch(bg, pod.WatchRequest{Resume: true, Match: func(*pod.View) (bool, error) { return false, bad }})
	w.must(err)
	_, err = failing.Next(bg)
	require.ErrorIs(t, err, bad)
	_, err = failing.Next(bg)
	require.ErrorIs(t, err, bad)
	require.NotZero(t, failing.Position(), "it resumes behind the change that the filter failed for")

	slow, err := w.pods.Watch(bg, pod.WatchRequest{Resume: true})
	w.must(err)
	e, err := slow.Next(bg)
	w.must(err)
	require.Less(t, slow.Position(), e.ID, "whoever was given an event may not have it yet")
	w.sys.Go(func() { _, _ = slow.Next(bg) })
	w.exec.RunFor(time.Second)
	require.GreaterOrEqual(t, slow.Position(), e.ID)
	slow.Close()

	closed, err := w.pods.Watch(bg, pod.WatchRequest{})
	w.must(err)
	waiting := w.sys.NewPromise()
	w.sys.Go(func() {
		_, err := closed.Next(bg)
		waiting.Fail(err)
	})
	w.exec.RunFor(time.Second)
	require.Equal(t, 1, w.pods.Watchers())
	closed.Close()
	_, err = w.wait(waiting)
	require.ErrorIs(t, err, pod.ErrWatchClosed)
	require.Zero(t, w.pods.Watchers())

	last, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"ledgers"}, Name: "x"})
	w.must(err)
	ended := w.sys.NewPromise()
	w.sys.Go(func() {
		_, err := last.Next(bg)
		ended.Fail(err)
	})
	w.exec.RunFor(time.Second)
	w.close()
	require.True(t, ended.Done())
	_, err = w.pods.Watch(bg, pod.WatchRequest{})
	require.ErrorIs(t, err, pod.ErrStopping)
	_, err = last.Next(bg)
	require.ErrorIs(t, err, pod.ErrStopping)
}

// TestWatchOfVolatilePods: what comes is shown, with no position that anybody
// could mistake for another one's; what was before is not told again, and that is
// said.
func TestWatchOfVolatilePods(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	all, err := w.pods.Watch(bg, pod.WatchRequest{})
	w.must(err)
	docs, _, _, err := w.pods.Declare(bg, "docs", documentPod("volatile"))
	w.must(err)
	alone, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"docs"}})
	w.must(err)
	change := func(i int) {
		_, err := w.wait(w.sendTo(docs.Ref("d"), entity.Merge{"n": i}))
		w.must(err)
		_, err = w.ask("x", set{i})
		w.must(err)
		w.exec.RunFor(time.Second)
	}
	next := func(watch *pod.Watch) pod.Event {
		e, err := watch.Next(bg)
		w.must(err)
		return e
	}
	start := all.Position()
	change(1)
	change(2)
	pods, last := map[string]int{}, start
	for range 4 {
		e := next(all)
		pods[e.Pod]++
		if e.Pod == "ledgers" {
			require.Equal(t, e.Position, e.ID)
			require.Greater(t, e.ID, last)
		} else {
			require.Zero(t, e.Position)
			require.NotContains(t, string(e.JSON()), "position")
			require.LessOrEqual(t, e.ID, last)
		}
		last = max(last, e.ID)
	}
	require.Equal(t, map[string]int{"docs": 2, "ledgers": 2}, pods)

	for n := range uint64(2) {
		e := next(alone)
		require.Equal(t, []any{"docs", n + 1, uint64(0)}, []any{e.Pod, e.Revision, e.Position})
		require.LessOrEqual(t, e.ID, last, "it is a position of what is kept")
	}
	for _, pods := range [][]string{nil, {"docs"}, {"docs", "ledgers"}} {
		resumed, err := w.pods.Watch(bg, pod.WatchRequest{Pods: pods, Resume: true, After: start})
		w.must(err)
		e := next(resumed)
		require.Equal(t, []any{pod.EventGap, pod.GapVolatile, start}, []any{e.Kind, e.Reason, e.ID})
		require.JSONEq(t, `{"reason":"volatile"}`, string(e.JSON()))
		resumed.Close()
	}
	resumed, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"ledgers"}, Resume: true, After: start})
	w.must(err)
	require.Equal(t, "ledgers", next(resumed).Pod, "nothing volatile is watched")

	v, err := docs.At(bg, "d", 1)
	w.must(err)
	require.Equal(t, uint64(1), v.Revision)
	r, err := docs.Retention(bg)
	w.must(err)
	require.Equal(t, pod.Retention{Changes: 10_000, Volatile: true}, r)
	w.close()
}

// TestSlowWatchOfVolatilePods: one that is so far behind that changes are gone is
// told so, without positions, and goes on.
func TestSlowWatchOfVolatilePods(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{Committer: persist.CommitterConfig{KeepFor: time.Second}})
	defer w.close()
	docs, _, _, err := w.pods.Declare(bg, "docs", documentPod("volatile"))
	w.must(err)
	w.pods.KeepForWatches(1, 10)
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"docs"}})
	w.must(err)
	defer watch.Close()
	for i := range 10 {
		_, err := w.wait(w.sendTo(docs.Ref("d"), entity.Merge{"n": i}))
		w.must(err)
		w.exec.RunFor(time.Hour)
	}
	e, err := watch.Next(bg)
	w.must(err)
	require.Equal(t, pod.Event{Kind: pod.EventGap, Reason: pod.GapVolatile, ID: e.ID}, e)
	_, err = w.wait(w.sendTo(docs.Ref("d"), entity.Merge{"n": 10}))
	w.must(err)
	for last := uint64(0); last < 11; last = e.Revision {
		e, err = watch.Next(bg)
		w.must(err)
		require.Greater(t, e.Revision, last)
	}
}

// TestAFilterThatIsTooCostlyAtTimes: what it cannot say is a gap, and it goes on.
func TestAFilterThatIsTooCostlyAtTimes(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"ledgers"}, Match: func(v *pod.View) (bool, error) {
		if v.Revision == 2 {
			return false, fmt.Errorf("%s: %w", v.Name, filter.ErrTooCostly)
		}
		return true, nil
	}})
	w.must(err)
	defer watch.Close()
	for i := range 3 {
		_, err := w.ask("x", set{i + 1})
		w.must(err)
	}
	var told []string
	var gap pod.Event
	for range 3 {
		e, err := watch.Next(bg)
		w.must(err)
		if told = append(told, fmt.Sprint(e.Kind, e.Reason, e.Revision)); e.Kind == pod.EventGap {
			gap = e
		}
	}
	require.Equal(t, []string{"changed1", "gaptoo_costly0", "changed3"}, told)
	require.Equal(t, []uint64{gap.To - 1, gap.ID}, []uint64{gap.From, gap.To})
}

// TestWatchOfABurst: what becomes durable at once is told in several pages.
func TestWatchOfABurst(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	watch, err := w.pods.Watch(bg, pod.WatchRequest{})
	w.must(err)
	defer watch.Close()
	for i := range 300 {
		w.send(fmt.Sprint(i), set{i})
	}
	last := uint64(0)
	for range 300 {
		e, err := watch.Next(bg)
		w.must(err)
		require.Greater(t, e.Position, last)
		last = e.Position
	}
}

// TestWatchOfOneEntityReadsItAlone: one that is far behind does not read what
// happened to all others.
func TestWatchOfOneEntityReadsItAlone(t *testing.T) {
	store := &counted{PersistenceService: persisttest.NewMemory()}
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	for i := range 400 {
		name := "other"
		if i%10 == 0 {
			name = "x"
		}
		_, err := w.ask(name, set{i})
		w.must(err)
	}
	w.pods.KeepForWatches(1, 10)
	for _, half := range []bool{false, true} {
		r := pod.WatchRequest{Pods: []string{"ledgers"}, Name: "x", Resume: true}
		if half {
			page, err := w.h.Pod.History(bg, "x", pod.HistoryOptions{From: 20, To: 20})
			w.must(err)
			r.After = page.Revisions[0].Position
		}
		store.changes, store.logged = 0, 0
		watch, err := w.pods.Watch(bg, r)
		w.must(err)
		for rev := uint64(1); rev <= 40; rev++ {
			if half && rev <= 20 {
				continue
			}
			e, err := watch.Next(bg)
			w.must(err)
			require.Equal(t, rev, e.Revision)
		}
		require.Less(t, store.changes, 100)
		require.Zero(t, store.logged)
		watch.Close()
	}
}
