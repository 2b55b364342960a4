package pod_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// What the simulation found, as small as it gets.

// TestViewAfterAnUnknownOutcome: an entity that cannot be read after a commit of
// unknown outcome reads itself again once it can, so that its view does not stay
// behind what the store holds.
func TestViewAfterAnUnknownOutcome(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{IdleAfter: -1})
	defer w.close()
	_, err := w.ask("x", add{"1"})
	w.must(err)
	store.OnCommit(store.Commits()+1, persisttest.UnknownApplied)
	allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
	_, err = w.ask("x", add{"2"})
	require.ErrorIs(t, err, persist.ErrUnknown)
	w.exec.RunFor(time.Second)
	allow()
	w.exec.RunFor(5 * time.Second)
	require.Equal(t, []string{"1", "2"}, w.log("x"), "it was written")
}

// TestRevisionOfAForcedDeletion: the change that tells of the deletion of a
// quarantined entity has the revision that the journal has.
func TestRevisionOfAForcedDeletion(t *testing.T) {
	memory := persisttest.NewMemory()
	w := newWorld(t, 1, memory, ledgers(nil), pod.Config{IdleAfter: 10 * time.Millisecond})
	defer w.close()
	for _, id := range []string{"1", "2"} {
		_, err := w.ask("x", add{id})
		w.must(err)
	}
	w.exec.RunFor(time.Second)
	memory.Damage(persist.Key{Pod: "ledgers", Name: "x"})
	var told []persist.Change
	defer w.pods.OnChange(func(c persist.Change) { told = append(told, c) })()
	ack, err := w.ask("x", entity.Delete(entity.Condition{}))
	w.must(err)
	require.Len(t, told, 1)
	require.Equal(t, uint64(3), told[0].Revision)
	require.Equal(t, uint64(3), ack.(entity.Ack).Revision)
	log, err := memory.Log(t.Context(), told[0].Position-1, 1)
	w.must(err)
	require.Equal(t, uint64(3), log[0].Revision)
}

// TestUnreadAbsentNameLeaves: a name of which nothing could be read, and of which
// nobody has seen anything, does not stay in memory.
func TestUnreadAbsentNameLeaves(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{IdleAfter: -1})
	defer w.close()
	store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" }, persisttest.FailBefore)
	allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, nil)
	first := w.send("x", add{"1"})
	w.exec.RunUntil(func() bool { return w.pods.Active() > 0 })
	allow()
	store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
	_, err := w.wait(first)
	require.Error(t, err)
	_, err = w.ask("x", refuse{"2"})
	require.Error(t, err)
	w.exec.RunFor(time.Minute)
	require.Zero(t, w.pods.Active())
}

// TestViewAfterAFailedDeletion: what an asynchronous entity writes after a
// deletion that failed is seen, also what nobody was told the outcome of.
func TestViewAfterAFailedDeletion(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	async := ledgers(func(typ *entity.Type[ledger]) { typ.Durability = entity.Async(40 * time.Millisecond) })
	w := newWorld(t, 1, store, async, pod.Config{IdleAfter: -1})
	_, err := w.ask("x", add{"1"})
	w.must(err)
	ctx, cancel := w.sys.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w.must(w.pods.Close(ctx)) // nothing stays reserved
	w.must(w.sys.Stop(ctx))
	w.exec.Close()

	w = newWorld(t, 2, store, async, pod.Config{IdleAfter: -1})
	defer w.close()
	_, err = w.ask("x", peek{})
	w.must(err)
	allow := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" }, persisttest.RefuseUnit)
	second := w.send("x", add{"2"})
	w.exec.RunUntil(func() bool { return store.Commits() > 0 })
	w.exec.RunFor(5 * time.Millisecond)
	_, err = w.ask("x", entity.Delete(entity.Condition{}))
	require.Error(t, err)
	_, err = w.wait(second)
	require.ErrorIs(t, err, persist.ErrUnknown)
	allow()
	ack, err := w.ask("x", touch{"3"}) // changes nothing, and is computed on what stands
	w.must(err)
	v, err := w.h.Get(t.Context(), "x")
	w.must(err)
	require.Equal(t, ack.(entity.Ack).Revision, v.Revision, "a read sees what was acknowledged before it")
	w.exec.RunFor(10 * time.Second)
	stored, err := store.Load(t.Context(), persist.Key{Pod: "ledgers", Name: "x"})
	w.must(err)
	v, err = w.h.Get(t.Context(), "x")
	w.must(err)
	require.Equal(t, stored.Revision, v.Revision)
	require.Equal(t, []string{"1", "2"}, v.State.Log)
}

// TestWatchBehindAnotherIsNotEarly: a watch that begins while another one, which
// has ended, was waited for, shows nothing before reads do.
func TestWatchBehindAnotherIsNotEarly(t *testing.T) {
	forSeeds(t, 20, func(t *testing.T, seed uint64) {
		var w *world
		w = newWorld(t, seed, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) {
			d.Handlers["tally"] = entity.On(func(_ *entity.Context, l *ledger, m tally) error {
				l.accept(m.ID)
				return w.sys.Sleep(bg, 50*time.Millisecond)
			})
		}), pod.Config{})
		defer w.close()
		_, err := w.ask("x", add{"1"})
		w.must(err)
		first, err := w.pods.Watch(bg, pod.WatchRequest{})
		w.must(err)
		from := first.Position()
		w.send("x", add{"2"})
		w.send("x", tally{ID: "3"}) // keeps it busy while 2 becomes durable
		w.exec.RunFor(10 * time.Millisecond)
		first.Close()
		second, err := w.pods.Watch(bg, pod.WatchRequest{Resume: true, After: from})
		w.must(err)
		defer second.Close()
		showsWhatReadsDo(t, w, second, 2)
	})
}

// TestWatchOfWhoWasSlowIsNotEarly: an entity that could not be read for a while
// is waited for again once it can.
func TestWatchOfWhoWasSlowIsNotEarly(t *testing.T) {
	forSeeds(t, 20, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{IdleAfter: -1})
		defer w.close()
		_, err := w.ask("x", add{"1"})
		w.must(err)
		watch, err := w.pods.Watch(bg, pod.WatchRequest{})
		w.must(err)
		defer watch.Close()
		store.OnCommit(store.Commits()+1, persisttest.UnknownApplied)
		allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
		_, err = w.ask("x", add{"2"})
		require.ErrorIs(t, err, persist.ErrUnknown)
		e, err := watch.Next(bg)
		w.must(err)
		require.Equal(t, uint64(2), e.Revision, "it is not waited for any longer")
		allow()
		w.exec.RunFor(5 * time.Second)
		w.send("x", add{"3"})
		showsWhatReadsDo(t, w, watch, 3)
	})
}

// showsWhatReadsDo: the next event is of a revision of x that reads show.
func showsWhatReadsDo(t *testing.T, w *world, watch *pod.Watch, revision uint64) {
	t.Helper()
	told := false
	w.sys.Go(func() {
		e, err := watch.Next(bg)
		w.must(err)
		told = true
		require.Equal(t, revision, e.Revision)
		v, there := w.h.Resident("x")
		require.True(t, there)
		require.GreaterOrEqual(t, v.Revision, revision, "seed %d", w.seed)
	})
	w.exec.RunUntil(func() bool { return told })
	require.True(t, told)
}

// TestWatchOfWhatCannotBeJudged: an event whose state can no longer be made, since
// its life has ended and retention has dropped it, is a gap under a Match: it may
// be one for which that holds.
func TestWatchOfWhatCannotBeJudged(t *testing.T) {
	w := emptyWorld(t, 1, persisttest.NewMemory(), pod.Config{Committer: persist.CommitterConfig{KeepFor: 100 * time.Millisecond}})
	defer w.close()
	h, err := pod.Start(w.pods, purses(nil))
	w.must(err)
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Match: func(*pod.View) (bool, error) { return true, nil }})
	w.must(err)
	defer watch.Close()
	for _, name := range []string{"x", "y"} {
		_, err = w.wait(w.sendTo(h.Ref(name), fill{ids(name, 1), 1}))
		w.must(err)
	}
	w.exec.RunFor(time.Millisecond)
	first, err := watch.Next(bg)
	w.must(err)
	require.Equal(t, "x", first.Name)
	w.must(h.Delete(bg, "y"))
	w.exec.RunFor(2 * time.Second)
	e, err := watch.Next(bg)
	w.must(err)
	require.Equal(t, pod.EventGap, e.Kind, "%+v", e)
	require.Equal(t, pod.GapTrimmed, e.Reason)
	require.Equal(t, []uint64{e.To - 1, e.To, e.ID}, []uint64{e.From, e.ID, e.To})
}

// TestRefusalHeardAfterTheOutboxWasReadAnew: a receiver refuses a message whose
// sender has read its outbox again meanwhile, because a commit of its own was
// refused. The message was sent again then, and is known to the receiver; it
// becomes a dead letter all the same, and one alone.
func TestRefusalHeardAfterTheOutboxWasReadAnew(t *testing.T) {
	for seed := range uint64(20) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		var b *bank
		slow := accounts(func(typ *entity.Type[account]) {
			typ.Handlers["no"] = entity.On(func(*entity.Context, *account, no) error {
				_ = b.sys.Sleep(t.Context(), time.Second)
				return entity.Rejectf("no")
			})
		})
		b = newBank(t, seed, store, slow, pod.Config{})
		letters := b.deadLetters()
		for _, name := range []string{"ann", "bob"} {
			_, err := b.ask(name, open{100})
			b.must(err)
		}
		_, err := b.ask("ann", rebuff{"x", "bob"})
		b.must(err)
		b.exec.RunFor(100 * time.Millisecond)
		allow := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "ann" }, persisttest.RefuseUnit)
		_, err = b.ask("ann", open{1})
		require.ErrorIs(t, err, persist.ErrInvalid)
		allow()
		b.exec.RunFor(time.Minute)
		require.Equal(t, 1, undelivered(letters), "seed %d", seed)
		b.close()
	}
}

// TestTurnsFailedByADeletion: what turns have sent and are to be reminded of that
// a deletion failed, and that stand since the deletion failed itself, comes once
// it is durable.
func TestTurnsFailedByADeletion(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	async := ledgers(func(typ *entity.Type[ledger]) {
		typ.Durability = entity.Async(40 * time.Millisecond)
		typ.Handlers["tally"] = entity.On(func(c *entity.Context, l *ledger, m tally) error {
			l.accept(m.ID)
			c.SendOnce("ledgers", m.Name, add{m.ID})
			c.Remind("later", entity.Reminder{At: c.Now().Add(time.Second), Message: add{m.ID + "-rung"}})
			return nil
		})
	})
	w := newWorld(t, 2, store, async, pod.Config{IdleAfter: -1})
	defer w.close()
	_, err := w.ask("x", add{"1"})
	w.must(err)
	allow := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" }, persisttest.RefuseUnit)
	second := w.send("x", tally{"y", "2"})
	w.exec.RunUntil(func() bool { return store.Commits() > 1 })
	w.exec.RunFor(5 * time.Millisecond)
	_, err = w.ask("x", entity.Delete(entity.Condition{}))
	require.Error(t, err)
	_, err = w.wait(second)
	require.ErrorIs(t, err, persist.ErrUnknown)
	_, err = w.h.Get(t.Context(), "y")
	require.ErrorIs(t, err, entity.ErrNotFound, "nothing is sent that is not durable")
	allow()
	w.exec.RunFor(10 * time.Second)
	require.Equal(t, []string{"2"}, w.log("y"))
	require.Equal(t, []string{"1", "2", "2-rung"}, w.log("x"))
}

// TestWatchOfAVolatilePodThatIsDropped: a watch that resumes says that changes of
// volatile pods may be missing, also of one that is dropped while it begins.
func TestWatchOfAVolatilePodThatIsDropped(t *testing.T) {
	dropped := 0
	forSeeds(t, 60, func(t *testing.T, seed uint64) {
		w := emptyWorld(t, seed, persisttest.NewCrashStore(), pod.Config{})
		defer w.close()
		_, _, _, err := w.pods.Declare(bg, "short", pod.Definition{Type: "document", Durability: "volatile"})
		w.must(err)
		ended := false
		w.sys.Go(func() {
			watch, err := w.pods.Watch(bg, pod.WatchRequest{Pods: []string{"short"}, Resume: true})
			if ended = errors.Is(err, pod.ErrNoPod); ended {
				return
			}
			w.must(err)
			defer watch.Close()
			if _, err := w.pods.Pod("short"); err != nil {
				dropped++
			}
			ctx, cancel := w.sys.WithTimeout(bg, time.Second)
			defer cancel()
			e, err := watch.Next(ctx)
			w.must(err)
			require.Equal(t, pod.GapVolatile, e.Reason, "seed %d", seed)
			ended = true
		})
		w.sys.Go(func() { w.must(w.pods.Drop(bg, "short", true)) })
		w.exec.RunFor(2 * time.Second)
		require.True(t, ended)
	})
	require.NotZero(t, dropped)
}

// TestWatchOfACreationIsNotEarly: a watch that begins behind a creation, while
// the entity is busy, shows it no sooner than reads do; the same holds for a life
// that follows on a deletion.
func TestWatchOfACreationIsNotEarly(t *testing.T) {
	for _, again := range []bool{false, true} {
		forSeeds(t, 20, func(t *testing.T, seed uint64) {
			var w *world
			store := persisttest.NewFaultStore(persisttest.NewMemory())
			w = newWorld(t, seed, store, ledgers(func(d *entity.Type[ledger]) {
				d.Handlers["tally"] = entity.On(func(_ *entity.Context, l *ledger, m tally) error {
					l.accept(m.ID)
					return w.sys.Sleep(bg, 50*time.Millisecond)
				})
			}), pod.Config{})
			defer w.close()
			from := uint64(0)
			if again {
				ack, err := w.ask("x", add{"0"})
				w.must(err)
				w.must(w.h.Delete(bg, "x"))
				from = ack.(entity.Ack).Life + 1 // the deletion's position: a life is that of its first change
			}
			before := store.Commits()
			w.send("x", add{"1"})
			w.send("x", tally{ID: "3"})
			w.exec.RunUntil(func() bool { return store.Commits() > before })
			watch, err := w.pods.Watch(bg, pod.WatchRequest{Resume: true, After: from})
			w.must(err)
			defer watch.Close()
			showsWhatReadsDo(t, w, watch, 1)
		})
	}
}

// TestListOfAnAsyncEntityDeletedMeanwhile: a list that has read an asynchronous
// entity from the store, behind what it had acknowledged, does not show that when
// the entity is deleted before the list ends.
func TestListOfAnAsyncEntityDeletedMeanwhile(t *testing.T) {
	store := &lateLists{FaultStore: persisttest.NewFaultStore(persisttest.NewMemory())}
	w := newWorld(t, 1, store, ledgers(func(typ *entity.Type[ledger]) { typ.Durability = entity.Async(time.Hour) }), pod.Config{IdleAfter: time.Millisecond})
	defer w.close()
	_, err := w.ask("x", add{"1"})
	w.must(err)
	_, err = w.ask("x", add{"2"}) // which the store has not
	w.must(err)
	store.meanwhile = func() {
		w.must(w.h.Delete(bg, "x"))
		w.exec.RunFor(time.Second)
		_, there := w.h.Resident("x")
		require.False(t, there)
	}
	page, err := w.h.Pod.List(bg, persist.ListOptions{})
	w.must(err)
	require.Empty(t, page.Items)
}

// lateLists has something happen between a list and its arrival.
type lateLists struct {
	*persisttest.FaultStore
	meanwhile func()
}

func (l *lateLists) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	page, err := l.FaultStore.List(ctx, pod, o)
	if f := l.meanwhile; f != nil {
		l.meanwhile = nil
		f()
	}
	return page, err
}

// TestAdmitOfWhoHasLeftMeanwhile: what was sent before is behind an entity that has
// left memory while it was looked for in the store.
func TestAdmitOfWhoHasLeftMeanwhile(t *testing.T) {
	store := &lateLoads{FaultStore: persisttest.NewFaultStore(persisttest.NewMemory())}
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{IdleAfter: time.Millisecond})
	defer w.close()
	store.meanwhile = func() {
		_, err := w.ask("x", add{"1"})
		w.must(err)
		w.exec.RunFor(time.Second)
		_, there := w.h.Resident("x")
		require.False(t, there)
	}
	require.NoError(t, w.h.Admit(bg, "x", entity.Delete(entity.Condition{})))
}

// lateLoads has something happen between a load and its arrival.
type lateLoads struct {
	*persisttest.FaultStore
	meanwhile func()
}

func (l *lateLoads) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	r, err := l.FaultStore.Load(ctx, key)
	if f := l.meanwhile; f != nil {
		l.meanwhile = nil
		f()
	}
	return r, err
}
