package pod_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

func TestDeclareAfterAnUnknownOutcome(t *testing.T) {
	faults := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, faults, ledgers(nil), pod.Config{})
	defer w.close()
	stop := faults.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$pods" }, persisttest.UnknownApplied)
	_, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	require.ErrorIs(t, err, persist.ErrUnknown)
	stop()
	w.exec.RunFor(time.Minute)
	_, _, _, err = w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	require.NoError(t, err, "declared again, a minute later")
}

func TestDeclareWhoseCallerLeft(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.close()
	ctx, cancel := context.WithCancel(bg)
	cancel() // the caller went away while the commit is under way
	_, _, _, _ = w.pods.Declare(ctx, "docs", pod.Definition{Type: "document"})
	w.exec.RunFor(time.Minute)
	_, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	require.NoError(t, err, "declared again, a minute later")
}

func TestDropWithAnUnknownOutcome(t *testing.T) {
	mem := persisttest.NewMemory()
	faults := persisttest.NewFaultStore(mem)
	w := newWorld(t, 1, faults, ledgers(nil), pod.Config{})
	docs, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	w.must(err)
	stop := faults.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$pods" }, persisttest.UnknownApplied)
	err = w.pods.Drop(bg, "docs", true)
	require.ErrorIs(t, err, persist.ErrUnknown)
	stop()
	w.exec.RunFor(time.Minute)
	_, err = docs.Ask(bg, "d", entity.Merge{"a": "b"})
	acked := err == nil
	dropAgain := w.pods.Drop(bg, "docs", true)
	_ = dropAgain
	if dropAgain != nil {
		t.Errorf("a drop cannot be repeated: %v", dropAgain)
	}
	_, err = docs.Ask(bg, "d", entity.Merge{"a": "c"})
	acked = acked || err == nil
	w.close()
	w = newWorld(t, 2, mem, ledgers(nil), pod.Config{})
	defer w.close()
	_, err = w.pods.Pod("docs")
	if acked && err != nil && dropAgain != nil {
		t.Errorf("acknowledged entity is out of reach after the restart: %v", err)
	}
}

type forward struct{ To, ID string }

func TestDropWhileEffectsArrive(t *testing.T) {
	bad := 0
	forSeeds(t, 300, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(func(d *entity.Type[ledger]) {
			d.Handlers["forward"] = entity.On(func(c *entity.Context, l *ledger, m forward) error {
				l.accept(m.ID)
				c.Send("docs", m.To, entity.Merge{"id": m.ID})
				return nil
			})
		}), pod.Config{})
		defer w.close()
		_, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
		w.must(err)
		for i := range 20 {
			w.send(fmt.Sprint("s", i%3), forward{To: fmt.Sprint("d", i), ID: fmt.Sprint(i)})
		}
		err = w.pods.Drop(bg, "docs", true)
		w.exec.RunFor(time.Second)
		page, lerr := w.store.List(bg, "docs", persist.ListOptions{})
		items := page.Items
		w.must(lerr)
		if err == nil && len(items) > 0 {
			bad++
		}
	})
	require.Zero(t, bad, "seeds in which entities stay in the store without their pod")
}

func TestRedefineUnderTraffic(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.kill()
	docs, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	w.must(err)
	stop := false
	n := 0
	var next func()
	next = func() {
		if stop {
			return
		}
		n++
		w.sys.After(time.Millisecond, next)
		_ = docs.Tell(fmt.Sprint("d", n%5), entity.Merge{"a": fmt.Sprint(n)})
	}
	next()
	ctx, cancel := w.sys.WithTimeout(bg, 10*time.Second)
	defer cancel()
	_, _, _, err = w.pods.Declare(ctx, "docs", pod.Definition{Type: "document", Durability: "async:1s"})
	stop = true
	require.NoError(t, err, "a definition changes while messages come (one a millisecond)")
}

func TestCloseEndsEagerRecovery(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(nil), pod.Config{})
	for _, n := range ids("e", 2000) {
		w.send(n, add{"a"})
	}
	w.exec.RunFor(time.Second)
	w.close()
	loads := 0
	store := persisttest.NewFaultStore(mem)
	store.OnLoads(func(persist.Key) bool { loads++; return false }, nil)
	w = newWorld(t, 2, store, ledgers(func(d *entity.Type[ledger]) { d.Eager = true }), pod.Config{RecoverAtOnce: 16})
	w.exec.RunUntil(func() bool { return loads > 32 })
	before := loads
	ctx, cancel := w.sys.WithTimeout(bg, time.Minute)
	defer cancel()
	w.must(w.pods.Close(ctx))
	w.exec.RunFor(time.Second)
	w.kill()
	require.Less(t, loads-before, 200, "Close lets the recovery go on")
}

func TestDropUnderTrafficLeavesNoOrphans(t *testing.T) {
	orphans, ghosts := 0, 0
	forSeeds(t, 6, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(func(d *entity.Type[ledger]) {
			d.Handlers["forward"] = entity.On(func(c *entity.Context, l *ledger, m forward) error {
				c.Send("docs", m.To, entity.Merge{"id": m.ID})
				return nil
			})
		}), pod.Config{})
		defer w.close()
		_, err := w.ask("s", add{"a"})
		w.must(err)
		_, _, _, err = w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
		w.must(err)
		stop, n := false, 0
		var next func()
		next = func() {
			if stop || n > 40 {
				return
			}
			n++
			w.sys.After(time.Duration(100+w.sys.Uint64()%2000)*time.Microsecond, next)
			_ = w.h.Tell(bg, "s", forward{To: fmt.Sprint("d", n), ID: fmt.Sprint(n)})
		}
		next()
		w.exec.RunFor(5 * time.Millisecond)
		ctx, cancel := w.sys.WithTimeout(bg, time.Second)
		defer cancel()
		err = w.pods.Drop(ctx, "docs", true)
		stop = true
		if err != nil {
			t.Logf("seed %d: %v", seed, err)
			return
		}
		w.exec.RunFor(time.Second)
		page, lerr := w.store.List(bg, "docs", persist.ListOptions{})
		items := page.Items
		w.must(lerr)
		if len(items) > 0 {
			orphans++
			docs, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
			w.must(err)
			if _, err := docs.Get(bg, items[0].Name); err == nil {
				ghosts++
			}
		}
	})
	require.Zero(t, orphans, "entities that outlive their pod; %d of them seen in a new pod of that name", ghosts)
}

func TestRedefineUnderHeavyTraffic(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.kill()
	docs, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	w.must(err)
	stop := false
	n := 0
	var next func()
	next = func() {
		if stop || n > 40 {
			return
		}
		n++
		w.sys.After(time.Millisecond, next)
		for i := range 10 {
			_ = docs.Tell(fmt.Sprint("d", (n+i)%20), entity.Merge{"a": fmt.Sprint(n)})
		}
	}
	next()
	ctx, cancel := w.sys.WithTimeout(bg, time.Second)
	defer cancel()
	_, _, _, err = w.pods.Declare(ctx, "docs", pod.Definition{Type: "document", Durability: "async:1s"})
	stop = true
	require.NoError(t, err, "a definition changes while messages come")
}

func TestDeletionOfAQuarantinedEntityIsJournaled(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	m, _ := w.sys.Lookup("/user/pods/ledgers/x")
	m.TellSystem(entity.Sweep())
	w.exec.RunFor(time.Second)
	var published []persist.Change
	w.pods.OnChange(func(c persist.Change) { published = append(published, c) })
	store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, snapshot.ErrCorrupt)
	ack, err := w.ask("x", unconditional())
	w.must(err)
	log, err := store.Log(bg, 0, 100)
	w.must(err)
	last := log[len(log)-1]
	require.Equal(t, "deleted", last.Type)
	require.EqualValues(t, 2, last.Revision, "above what the journal has")
	require.Len(t, published, 1)
	require.NotZero(t, ack)
}

func TestRedefineReachesEntitiesInMemory(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	docs, _, _, err := w.pods.Declare(bg, "docs", pod.Definition{Type: "document", Durability: "async:1s"})
	w.must(err)
	for i := range 2 {
		_, err = docs.Ask(bg, "d", entity.Merge{"a": fmt.Sprint(i)})
		w.must(err)
	}
	fail := true
	store.OnUnits(func(u persist.Unit) bool { return fail && u.Key.Pod == "docs" }, persisttest.FailBefore)
	_, _, _, err = w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	w.must(err)
	fail = false
	_, _, _, err = w.pods.Declare(bg, "docs", pod.Definition{Type: "document"})
	w.must(err)
	w.exec.RunFor(time.Minute)
	c := store.Commits()
	_, err = docs.Ask(bg, "d", entity.Merge{"a": "z"})
	w.must(err)
	if store.Commits() == c {
		t.Error("the pod says sync, the entity goes on acknowledging before it is durable")
	}
}

func TestSecondCloseWaits(t *testing.T) {
	store := persisttest.NewCrashStore()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, time.Second) }
	p := w.send("x", add{"a"})
	w.exec.RunFor(time.Millisecond)
	second := false
	w.sys.Go(func() { _ = w.pods.Close(bg) })
	w.exec.RunFor(time.Millisecond)
	_ = w.pods.Close(bg)
	second = true
	if second && !p.Done() {
		t.Error("the second Close returned nil while the first still waits; its caller may close the store")
	}
	w.kill()
}

func TestFailedLoadIsTriedAgain(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	m, _ := w.sys.Lookup("/user/pods/ledgers/x")
	m.TellSystem(entity.Sweep())
	w.exec.RunFor(time.Second)
	stop := store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
	var ps []*actor.Promise
	for i := range 500 {
		ps = append(ps, w.send("x", add{fmt.Sprint(i)}))
	}
	_, err = w.wait(ps[0])
	require.Error(t, err)
	stop()
	bad := 0
	for _, p := range ps {
		if _, err := w.wait(p); errors.Is(err, persist.ErrUnavailable) {
			bad++
		}
	}
	require.Less(t, bad, 3, "of 500 messages behind one that found the store away")
}
