package pod_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// chronicle is a world whose every change is known.
type chronicle struct {
	*world
	book   *booked
	purses *pod.Pod
	states map[string]map[entity.ETag]string // what reads have shown, by key and revision
}

func newChronicle(t *testing.T, seed uint64, cfg pod.Config) *chronicle {
	c := &chronicle{book: &booked{PersistenceService: persisttest.NewMemory()}, states: map[string]map[entity.ETag]string{}}
	c.world = newWorld(t, seed, c.book, ledgers(nil), cfg)
	h, err := pod.Start(c.pods, purses(func(s *entity.Sourced[purse]) { s.SnapshotEvery = 4 }))
	c.must(err)
	c.purses = h.Pod
	return c
}

// live has entities x and y live for a while, in several lives.
func (c *chronicle) live(ops int) {
	ledgersPod, err := c.pods.Pod("ledgers")
	c.must(err)
	for i := range ops {
		name, p := []string{"x", "y"}[c.sys.Uint64()%2], ledgersPod
		var m any = set{i}
		if c.sys.Uint64()%3 == 0 {
			p, m = c.purses, fill{ids(fmt.Sprint(i, "-"), int(1+c.sys.Uint64()%3)), 1}
		}
		switch c.sys.Uint64() % 20 {
		case 0:
			m = unconditional()
		case 1, 2:
			m = entity.Passivate()
		}
		_, _ = c.wait(c.sendTo(p.Ref(name), m))
		c.exec.RunFor(time.Duration(1+c.sys.Uint64()%20) * time.Millisecond)
		if v, err := p.Get(bg, name); err == nil {
			key := p.Name() + "/" + name
			if c.states[key] == nil {
				c.states[key] = map[entity.ETag]string{}
			}
			b, err := v.JSON()
			c.must(err)
			c.states[key][v.ETag()] = string(b)
		}
	}
}

// of returns what the journal should have of an entity, and the mark.
func (c *chronicle) of(key persist.Key) (out []persist.Change, mark uint64) {
	all, mark := c.book.all()
	return slices.DeleteFunc(all, func(ch persist.Change) bool { return ch.Key != key }), mark
}

func TestHistoryIsExact(t *testing.T) {
	forSeeds(t, 40, func(t *testing.T, seed uint64) {
		cfg := pod.Config{}
		if seed%2 == 1 {
			cfg.Committer.KeepFor = 300 * time.Millisecond
		}
		c := newChronicle(t, seed, cfg)
		c.live(120)
		for _, p := range c.pods.All() {
			for _, name := range []string{"x", "y", "never"} {
				c.checkEntity(t, p, name, seed%2 == 1)
			}
		}
		c.close()
	})
}

func (c *chronicle) checkEntity(t *testing.T, p *pod.Pod, name string, trims bool) {
	key := persist.Key{Pod: p.Name(), Name: name}
	truth, mark := c.of(key)
	kept := slices.DeleteFunc(slices.Clone(truth), func(ch persist.Change) bool { return ch.Position <= mark && (!trims || !ch.Event) })
	require.True(t, trims || len(kept) == len(truth))
	now, getErr := p.Get(bg, name)
	states := c.states[key.String()]

	// All lives, page by page.
	var got []pod.Revision
	o := pod.HistoryOptions{Earlier: true, Limit: int(1 + c.sys.Uint64()%7)}
	for {
		page, err := p.History(bg, name, o)
		c.must(err)
		require.LessOrEqual(t, len(page.Revisions), o.Limit)
		got = append(got, page.Revisions...)
		if o.After = page.Next; page.Next == (entity.ETag{}) {
			break
		}
	}
	if !trims {
		require.Len(t, got, len(truth))
	}
	require.GreaterOrEqual(t, len(got), len(slices.DeleteFunc(slices.Clone(kept), func(ch persist.Change) bool { return ch.Event })))
	for _, r := range got {
		i := slices.IndexFunc(truth, func(ch persist.Change) bool { return ch.Position == r.Position })
		require.GreaterOrEqual(t, i, 0)
		ch := truth[i]
		require.Equal(t, []any{ch.Life, ch.Revision, ch.Type, ch.Type == "deleted"}, []any{r.Life, r.Revision, r.Type, r.Deleted})
		require.True(t, ch.Time.Equal(r.Time))
		require.Equal(t, ch.Event && !r.Deleted, r.Data != nil)
		if want, is := states[entity.ETag{Life: r.Life, Revision: r.Revision}]; is && r.Err == nil {
			require.Equal(t, want, string(r.State), "%s life %d revision %d", key, r.Life, r.Revision)
		}
		if r.Err != nil {
			require.ErrorIs(t, r.Err, pod.ErrDropped)
			require.True(t, trims && r.Life != now.Life)
		}
	}
	require.True(t, slices.IsSortedFunc(got, func(a, b pod.Revision) int { return int(a.Position) - int(b.Position) }))

	if getErr != nil {
		require.ErrorIs(t, getErr, entity.ErrNotFound)
		_, err := p.At(bg, name, 1)
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = p.History(bg, name, pod.HistoryOptions{})
		require.ErrorIs(t, err, entity.ErrNotFound)
	} else {
		c.checkRevisions(t, p, name, now, got)
	}
	c.checkTimes(t, p, name, truth, got, now)
}

// checkRevisions asks for every revision of the present life.
func (c *chronicle) checkRevisions(t *testing.T, p *pod.Pod, name string, now pod.View, got []pod.Revision) {
	_, err := p.At(bg, name, now.Revision+1)
	require.ErrorIs(t, err, pod.ErrNoRevision)
	_, err = p.At(bg, name, 0)
	require.ErrorIs(t, err, pod.ErrNoRevision)
	oldest := now.Revision
	for _, r := range got {
		if r.Life == now.Life {
			oldest = min(oldest, r.Revision)
		}
	}
	for rev := uint64(1); rev <= now.Revision; rev++ {
		v, err := p.At(bg, name, rev)
		if rev < oldest {
			var dropped *pod.DroppedError
			require.ErrorAs(t, err, &dropped)
			require.ErrorIs(t, err, pod.ErrDropped)
			require.Equal(t, entity.ETag{Life: now.Life, Revision: oldest}, dropped.Oldest)
			continue
		}
		c.must(err)
		b, err := v.JSON()
		c.must(err)
		require.Equal(t, entity.ETag{Life: now.Life, Revision: rev}, v.ETag())
		if want, is := c.states[p.Name()+"/"+name][v.ETag()]; is {
			require.Equal(t, want, string(b))
		}
	}
	page, err := p.History(bg, name, pod.HistoryOptions{From: oldest + 1, To: oldest + 3})
	c.must(err)
	for i, r := range page.Revisions {
		require.Equal(t, oldest+1+uint64(i), r.Revision)
	}
	require.Len(t, page.Revisions, int(min(3, now.Revision-oldest)))
}

// checkTimes asks for the state at, before and behind every change.
func (c *chronicle) checkTimes(t *testing.T, p *pod.Pod, name string, truth []persist.Change, got []pod.Revision, now pod.View) {
	lives := now.Life != 0
	kept := map[uint64]bool{}
	for _, r := range got {
		kept[r.Position] = r.Err == nil
	}
	for i := range truth {
		for _, d := range []time.Duration{0, -1} {
			at := truth[i].Time.Add(d)
			var want *persist.Change
			for j := range truth {
				if !truth[j].Time.After(at) {
					want = &truth[j]
				}
			}
			v, err := p.AtTime(bg, name, at)
			switch {
			case err == nil:
				require.NotNil(t, want)
				require.Equal(t, entity.ETag{Life: want.Life, Revision: want.Revision}, v.ETag(), "at %s", at)
			case want == nil || want.Type == "deleted":
				require.True(t, errors.Is(err, pod.ErrNoRevision) || errors.Is(err, pod.ErrDropped) || !lives && errors.Is(err, entity.ErrNotFound), "%v", err)
			default:
				require.False(t, kept[want.Position] && (want.Life == now.Life || !want.Event), "position %d is kept: %v", want.Position, err)
				require.True(t, errors.Is(err, pod.ErrDropped) || errors.Is(err, pod.ErrNoRevision) || !lives && errors.Is(err, entity.ErrNotFound), "%v", err)
			}
		}
	}
}

// TestHistoryOfAsynchronous: the journal has what was written; the revisions
// between are told apart from those that were dropped.
func TestHistoryOfAsynchronous(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) { d.Durability = entity.Async(10 * time.Millisecond) }), pod.Config{})
	defer w.close()
	p := w.h.Pod
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"ledgers"}, Match: oddView})
	w.must(err)
	defer watch.Close()
	for i := range 40 {
		_, err := w.ask("x", set{1 + i/20})
		w.must(err)
		_, err = w.ask("x", add{fmt.Sprint(i)})
		w.must(err)
		w.exec.RunFor(time.Millisecond)
	}
	w.exec.RunFor(time.Second)
	page, err := p.History(bg, "x", pod.HistoryOptions{})
	w.must(err)
	kept := map[uint64]bool{}
	for _, r := range page.Revisions {
		kept[r.Revision] = true
		require.NotNil(t, r.State)
	}
	now, err := p.Get(bg, "x")
	w.must(err)
	require.True(t, kept[now.Revision])
	require.Less(t, len(kept), int(now.Revision)/2)
	for rev := uint64(1); rev <= now.Revision; rev++ {
		v, err := p.At(bg, "x", rev)
		if !kept[rev] {
			require.ErrorIs(t, err, pod.ErrNoRevision)
			continue
		}
		w.must(err)
		require.Equal(t, rev, v.Revision)
	}
	var kinds []pod.EventKind
	for {
		short, cancel := w.sys.WithTimeout(bg, time.Second)
		e, err := watch.Next(short)
		cancel()
		if err != nil {
			break
		}
		require.True(t, kept[e.Revision])
		require.False(t, e.Unsure)
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, pod.EventLeft, kinds[len(kinds)-1], "the state before is found across revisions that were never written")
	require.Equal(t, 1, len(slices.DeleteFunc(kinds, func(k pod.EventKind) bool { return k != pod.EventLeft })))
}

// TestFoldingIsLinear: a page of events costs reads in their number.
func TestFoldingIsLinear(t *testing.T) {
	store := &counted{PersistenceService: persisttest.NewMemory()}
	w := emptyWorld(t, 1, store, pod.Config{})
	defer w.close()
	h, err := pod.Start(w.pods, purses(func(s *entity.Sourced[purse]) { s.SnapshotEvery = 10_000 }))
	w.must(err)
	for i := range 40 {
		_, err := w.wait(w.sendTo(h.Ref("p"), fill{ids(fmt.Sprint(i, "-"), 10), 1}))
		w.must(err)
	}
	store.changes = 0
	page, err := h.Pod.History(bg, "p", pod.HistoryOptions{Limit: 300})
	w.must(err)
	require.Equal(t, 300, len(page.Revisions))
	require.Less(t, store.changes, 600)
	for i, r := range page.Revisions {
		var p purse
		require.NoError(t, json.Unmarshal(r.State, &p))
		require.Equal(t, i+1, p.Balance)
	}
}

// counted counts the changes that are read.
type counted struct {
	persist.PersistenceService
	changes, logged int
	most            int // that were asked for at a time
}

func (c *counted) NextLife(ctx context.Context, key persist.Key, after uint64) (uint64, error) {
	return persist.NextLife(ctx, c.PersistenceService, key, after)
}

func (c *counted) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	out, err := c.PersistenceService.Log(ctx, after, limit)
	c.logged, c.most = c.logged+len(out), max(c.most, limit)
	return out, err
}

func (c *counted) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	out, err := c.PersistenceService.Changes(ctx, key, life, from, limit)
	c.changes, c.most = c.changes+len(out), max(c.most, limit)
	return out, err
}

// TestHistoryGoesFromLifeToLife: to come to a life, the lives before it are not
// read.
func TestHistoryGoesFromLifeToLife(t *testing.T) {
	store := &counted{PersistenceService: persisttest.NewFaultStore(persisttest.NewMemory())}
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	const lives, each = 20, 30
	for range lives {
		for i := range each - 1 {
			_, err := w.ask("x", set{i + 1})
			w.must(err)
		}
		_, err := w.ask("x", unconditional())
		w.must(err)
	}
	o, read, store0 := pod.HistoryOptions{Earlier: true, Limit: 100}, 0, store.changes
	for {
		page, err := w.h.Pod.History(bg, "x", o)
		w.must(err)
		read += len(page.Revisions)
		require.False(t, page.Dropped)
		if o.After = page.Next; o.After == (entity.ETag{}) {
			break
		}
	}
	require.Equal(t, lives*each, read)
	require.Less(t, store.changes-store0, 2*lives*each)
	store.changes = 0
	_, err := w.h.Pod.AtTime(bg, "x", w.sys.Now())
	require.ErrorIs(t, err, pod.ErrNoRevision)
	require.Less(t, store.changes, 3*lives)
}

// TestHistorySaysWhatIsGone: from where on it is kept, and whether there was
// anything before.
func TestHistorySaysWhatIsGone(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{Committer: persist.CommitterConfig{KeepFor: time.Second}})
	defer w.close()
	_, err := w.ask("x", set{1})
	w.must(err)
	page, err := w.h.Pod.History(bg, "x", pod.HistoryOptions{})
	w.must(err)
	first := page.Revisions[0]
	require.Equal(t, []any{entity.ETag{Life: first.Life, Revision: 1}, first.Time, false}, []any{page.Oldest, page.OldestTime, page.Dropped})
	for i := range 5 {
		w.exec.RunFor(time.Hour)
		_, err := w.ask("x", set{i + 2})
		w.must(err)
	}
	page, err = w.h.Pod.History(bg, "x", pod.HistoryOptions{From: 6})
	w.must(err)
	require.Len(t, page.Revisions, 1)
	require.True(t, page.Dropped)
	require.Greater(t, page.Oldest.Revision, uint64(1))
	w.exec.RunFor(time.Hour)
	page, err = w.h.Pod.History(bg, "x", pod.HistoryOptions{})
	w.must(err)
	if len(page.Revisions) == 0 {
		require.Equal(t, pod.HistoryPage{Dropped: true}, page)
	}
}

// TestPagesOfTheJournalAreBounded: however many large states follow on small ones,
// those who read them hold no more than a bound.
func TestPagesOfTheJournalAreBounded(t *testing.T) {
	store := &counted{PersistenceService: persisttest.NewMemory()}
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{MaxState: 32 << 20})
	defer w.close()
	for i := range 400 {
		_, err := w.ask("x", set{i})
		w.must(err)
	}
	store.most = 0
	w.pods.KeepForWatches(1, 1<<20)
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Resume: true, Match: oddView})
	w.must(err)
	defer watch.Close()
	for range 100 {
		_, err := watch.Next(bg)
		w.must(err)
	}
	_, err = w.h.Pod.History(bg, "x", pod.HistoryOptions{Limit: 300})
	w.must(err)
	_, err = w.h.Pod.Buckets(bg, "x", pod.BucketRequest{Value: func(*pod.View) (float64, bool) { return 1, true }, From: w.sys.Now().Add(-time.Hour), Width: time.Hour})
	w.must(err)
	require.Positive(t, store.most)
	require.LessOrEqual(t, store.most, 4)
}

func TestBuckets(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	start := w.sys.Now()
	for i := range 60 {
		_, err := w.ask("x", set{i})
		w.must(err)
		w.exec.RunFor(time.Second)
	}
	value := func(v *pod.View) (float64, bool) {
		b, _ := v.JSON()
		var l ledger
		_ = json.Unmarshal(b, &l)
		n, is := l.By["v"]
		return float64(n), is && n != 25
	}
	got, err := w.h.Pod.Buckets(bg, "x", pod.BucketRequest{Value: value, From: start.Add(20 * time.Second), To: start.Add(45 * time.Second), Width: 10 * time.Second})
	w.must(err)
	require.Zero(t, got.Since)
	require.InDelta(t, 220.0/9, got.Buckets[0].Avg, 1e-9)
	got.Buckets[0].Avg = 0
	require.Equal(t, []pod.Bucket{
		{Start: start.Add(20 * time.Second), Count: 9, Min: 20, Max: 29, Last: 29},
		{Start: start.Add(30 * time.Second), Count: 10, Min: 30, Max: 39, Avg: 34.5, Last: 39},
		{Start: start.Add(40 * time.Second), Count: 5, Min: 40, Max: 44, Avg: 42, Last: 44},
	}, got.Buckets)

	_, err = w.h.Pod.Buckets(bg, "x", pod.BucketRequest{Value: value, From: start, To: start.Add(time.Hour), Width: time.Millisecond})
	require.ErrorIs(t, err, pod.ErrBuckets)
	_, err = w.h.Pod.Buckets(bg, "x", pod.BucketRequest{Value: value, From: start, To: start, Width: time.Second})
	require.ErrorIs(t, err, pod.ErrBuckets)
	_, err = w.h.Pod.Buckets(bg, "y", pod.BucketRequest{Value: value, From: start, Width: time.Second})
	require.ErrorIs(t, err, entity.ErrNotFound)
	r, err := w.h.Pod.Retention(bg)
	w.must(err)
	require.Equal(t, uint64(1_000_000), r.Changes)
	require.GreaterOrEqual(t, r.Position, uint64(60))
}

// TestHistoryIsNotAheadOfReads: what is durable and not acknowledged yet is not
// told.
func TestHistoryIsNotAheadOfReads(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		defer w.close()
		store.Pause = func(ctx context.Context) error {
			return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%3)*time.Millisecond)
		}
		_, err := w.ask("x", set{0})
		w.must(err)
		writing := true
		w.sys.Go(func() {
			for i := range 60 {
				_, _ = w.wait(w.send("x", set{i + 1}))
			}
			writing = false
		})
		var wrong []string
		w.sys.Go(func() {
			for writing {
				before, err1 := w.h.Pod.Get(bg, "x")
				page, err2 := w.h.Pod.History(bg, "x", pod.HistoryOptions{})
				after, err3 := w.h.Pod.Get(bg, "x")
				last := uint64(len(page.Revisions))
				if err := errors.Join(err1, err2, err3); err != nil || last < before.Revision || last > after.Revision {
					wrong = append(wrong, fmt.Sprint(before.Revision, last, after.Revision, err))
				}
				_ = w.sys.Sleep(bg, time.Duration(w.sys.Uint64()%400)*time.Microsecond)
			}
		})
		w.exec.RunUntil(func() bool { return !writing })
		require.Empty(t, wrong)
	})
}
