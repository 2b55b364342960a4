package pod_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// stuckWorld has asynchronous entities x and y, of which the store refuses x.
// Nothing is reserved for it: it was read after an orderly end.
func stuckWorld(t *testing.T, typ entity.Type[ledger]) (*world, *persisttest.FaultStore, *persisttest.Memory) {
	t.Helper()
	memory := persisttest.NewMemory()
	store := persisttest.NewFaultStore(memory)
	w := newWorld(t, 1, store, typ, pod.Config{IdleAfter: -1})
	for _, name := range []string{"x", "y"} {
		_, err := w.ask(name, add{"1"})
		w.must(err)
	}
	ctx, cancel := w.sys.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w.must(w.pods.Close(ctx))
	w.must(w.sys.Stop(ctx))
	w.exec.Close()

	w = newWorld(t, 2, store, typ, pod.Config{IdleAfter: -1})
	_, err := w.ask("x", peek{})
	w.must(err)
	store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" }, persisttest.RefuseUnit)
	return w, store, memory
}

// TestTakenOnceAfterAFailedDeletion: what x has taken in a turn that a deletion
// failed, which then failed itself, is not acknowledged before it is durable.
func TestTakenOnceAfterAFailedDeletion(t *testing.T) {
	async := ledgers(func(typ *entity.Type[ledger]) {
		typ.Durability = entity.Async(40 * time.Millisecond)
		typ.Handlers["tally"] = entity.On(func(c *entity.Context, l *ledger, m tally) error {
			l.accept(m.ID)
			c.SendOnce("ledgers", m.Name, add{m.ID})
			return nil
		})
	})
	w, _, memory := stuckWorld(t, async)
	_, err := w.ask("y", tally{"x", "2"})
	w.must(err)
	w.exec.RunFor(20 * time.Millisecond)
	_, err = w.ask("x", entity.Delete(entity.Condition{}))
	require.Error(t, err)
	w.exec.RunFor(10 * time.Second)
	w.exec.Close() // the process dies

	w = newWorld(t, 3, persisttest.NewFaultStore(memory), async, pod.Config{IdleAfter: -1})
	defer w.close()
	w.exec.RunFor(20 * time.Second)
	require.Equal(t, []string{"1", "2"}, w.log("x"))
}

// TestRevisionAfterAFailedDeletion: no answer tells of a revision that the store
// has not reserved, and none is given twice.
func TestRevisionAfterAFailedDeletion(t *testing.T) {
	async := ledgers(func(typ *entity.Type[ledger]) { typ.Durability = entity.Async(40 * time.Millisecond) })
	w, store, memory := stuckWorld(t, async)
	second := w.send("x", add{"2"})
	w.exec.RunUntil(func() bool { return store.Commits() > 0 })
	w.exec.RunFor(5 * time.Millisecond)
	_, err := w.ask("x", entity.Delete(entity.Condition{}))
	require.Error(t, err)
	_, err = w.wait(second)
	require.ErrorIs(t, err, persist.ErrUnknown)
	_, err = w.ask("x", touch{"3"}) // computed on revision 2
	require.Error(t, err)
	v, err := w.h.Get(t.Context(), "x")
	w.must(err)
	require.Equal(t, uint64(1), v.Revision)
	_, err = w.ask("x", entity.Delete(entity.Condition{}))
	require.Error(t, err, "it is told at once that it cannot be, and does not wait")
	require.NotErrorIs(t, err, persist.ErrUnknown)
	w.exec.Close() // the process dies

	w = newWorld(t, 3, persisttest.NewFaultStore(memory), async, pod.Config{IdleAfter: -1})
	defer w.close()
	ack, err := w.ask("x", add{"other"})
	w.must(err)
	require.Equal(t, uint64(2), ack.(entity.Ack).Revision)
}

// TestWatchOfAPodWithoutItsType: that the program lacks a type is no damage, and
// no gap for each event.
func TestWatchOfAPodWithoutItsType(t *testing.T) {
	memory := persisttest.NewMemory()
	x := newTill(t, 1, memory, purses(nil), pod.Config{})
	for i := range 3 {
		_, err := x.wait(x.sendTo(x.p.Ref("p"), fill{ids(fmt.Sprint(i, "-"), 2), 1}))
		x.must(err)
	}
	x.close()
	w := emptyWorld(t, 2, memory, pod.Config{})
	defer w.close()
	watch, err := w.pods.Watch(bg, pod.WatchRequest{Resume: true, Match: func(*pod.View) (bool, error) { return true, nil }})
	w.must(err)
	defer watch.Close()
	ctx, cancel := w.sys.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for e, err := watch.Next(ctx); err == nil; e, err = watch.Next(ctx) {
		require.NotEqual(t, pod.EventGap, e.Kind, "%+v", e)
	}
}
