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
)

var xKey = persist.Key{Pod: "ledgers", Name: "x"}

// T1: an async flush of unknown outcome that was applied.
func TestAsyncUnknownAppliedFlushGoesOn(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{IdleAfter: -1})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	w.exec.RunFor(3 * time.Second)
	hit := false
	stop := store.OnUnits(func(u persist.Unit) bool {
		if u.Record != nil && u.Record.Revision == 2 && !hit {
			hit = true
			return true
		}
		return false
	}, persisttest.UnknownApplied)
	_, err = w.ask("x", add{"b"})
	w.must(err)
	w.exec.RunFor(20 * time.Second)
	require.True(t, hit)
	stop()
	n := store.Commits()
	w.exec.RunFor(time.Minute)
	require.LessOrEqual(t, store.Commits()-n, 1, "writes are repeated for ever")
	ctx, cancel := w.sys.WithTimeout(bg, 20*time.Second)
	defer cancel()
	require.NoError(t, w.pods.Close(ctx))
}

// T2: the retry's read is under way, or comes due, while a deletion is in flight.
func TestRetryDuringADeletion(t *testing.T) {
	ghosts, acks, conflicts := 0, 0, 0
	forSeeds(t, 60, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(async), pod.Config{IdleAfter: -1})
		defer w.kill()
		_, err := w.ask("x", add{"a"})
		w.must(err)
		w.exec.RunFor(3 * time.Second)
		stop := store.OnUnits(func(u persist.Unit) bool { return u.Record != nil && u.Record.Revision >= 2 }, persisttest.FailBefore)
		_, err = w.ask("x", add{"b"})
		w.must(err)
		w.exec.RunFor(1500 * time.Millisecond) // the flush has failed
		stop()
		store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 5*time.Second) }
		del := w.send("x", unconditional())
		w.exec.RunFor(3 * time.Second)
		c := w.send("x", add{"c"})
		w.exec.RunFor(time.Minute)
		_, derr := w.wait(del)
		cack, cerr := w.wait(c)
		if derr != nil {
			conflicts++
			t.Log("delete:", derr)
		}
		_, lerr := store.Load(bg, xKey)
		v, gerr := w.h.Get(bg, "x")
		if gerr == nil && errors.Is(lerr, persist.ErrNotFound) {
			ghosts++
			t.Log("ghost", v)
		}
		if cerr == nil && errors.Is(lerr, persist.ErrNotFound) {
			acks++
			t.Log("acked into the void", cack)
		}
	})
	require.Zero(t, ghosts+acks+conflicts, "ghosts %d acks %d deletions that failed %d", ghosts, acks, conflicts)
}

// T3: a flush comes due while a deletion is in flight.
func TestFlushDueDuringADeletion(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{IdleAfter: -1})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	w.exec.RunFor(3 * time.Second)
	_, err = w.ask("x", add{"b"})
	w.must(err)
	store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 5*time.Second) }
	del := w.send("x", unconditional())
	w.exec.RunFor(2 * time.Second)
	c := w.send("x", add{"c"})
	_, err = w.wait(del)
	w.must(err)
	_, err = w.wait(c)
	require.NoError(t, err, "the first message of a new life")
}

// T4: a clean entity above a floor.
func TestFloorAndClose(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(async), pod.Config{})
	for i := range 20 {
		_, err := w.ask("x", set{i})
		w.must(err)
	}
	w.kill() // unclean
	store := persisttest.NewFaultStore(mem)
	w = newWorld(t, 2, store, ledgers(async), pod.Config{})
	defer w.kill()
	stop := store.OnUnits(func(u persist.Unit) bool { return u.Delete }, persisttest.FailBefore)
	_, err := w.ask("x", unconditional())
	require.Error(t, err)
	stop()
	w.exec.RunFor(time.Minute)
	n := store.Commits()
	ctx, cancel := w.sys.WithTimeout(bg, time.Minute)
	defer cancel()
	err = w.pods.Close(ctx)
	t.Log("commits during close", store.Commits()-n)
	require.NoError(t, err)
}

// T12: stop while a flush runs and newer changes stand.
func TestStopDuringAFlush(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	w.exec.RunFor(3 * time.Second)
	store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 200*time.Millisecond) }
	_, err = w.ask("x", add{"b"})
	w.must(err)
	w.exec.RunFor(1050 * time.Millisecond) // the flush is under way
	_, err = w.ask("x", add{"c"})
	w.must(err)
	for _, c := range children(w) {
		c.Stop()
	}
	w.exec.RunFor(time.Minute)
	require.Equal(t, []string{"a", "b", "c"}, w.log("x"), "Stop is to passivate")
}

// T14: more than the reservation while the store refuses for good.
func TestRefusedForGoodBeyondReservation(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{Mailbox: 5000})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	store.OnUnits(func(u persist.Unit) bool { return u.Record != nil && u.Record.Revision > 1 }, persisttest.RefuseUnit)
	for i := range 1100 {
		w.send("x", set{i})
	}
	w.exec.RunFor(10 * time.Second)
	d := w.send("x", unconditional())
	w.exec.RunFor(time.Minute)
	require.True(t, d.Done(), "it cannot be deleted")
}

// T17: a deletion behind a flush that fails; what was sent after it must not overtake it.
func TestNothingOvertakesADeletion(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{IdleAfter: -1})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	w.must(errOf(w.ask("x", entity.Passivate())))
	n := 0
	store.OnUnits(func(u persist.Unit) bool { n++; return n == 1 }, persisttest.FailBefore)
	b := w.send("x", add{"b"}) // waits for a reservation
	d := w.send("x", unconditional())
	c := w.send("x", add{"c"})
	w.exec.RunFor(time.Minute)
	require.True(t, b.Done())
	require.True(t, d.Done())
	_, err = w.wait(d)
	w.must(err)
	_, err = w.wait(c)
	w.must(err)
	require.Equal(t, []string{"c"}, w.log("x"), "c was sent behind the deletion")
}

func errOf(_ any, err error) error { return err }
