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
)

func TestAsyncCleanWriteGivesReservationBack(t *testing.T) {
	key := persist.Key{Pod: "ledgers", Name: "x"}
	forSeeds(t, 20, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(async), pod.Config{IdleAfter: -1})
		clean := false
		stop := store.OnUnits(func(u persist.Unit) bool {
			clean = clean || u.Record != nil && u.Record.Reserved == u.Record.Revision
			return false
		}, persisttest.FailBefore)
		store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 10*time.Millisecond) }
		_, err := w.ask("x", set{1})
		w.must(err)
		w.exec.RunFor(2 * time.Second) // idle, everything flushed but the reservation
		m, err := w.sys.Lookup("/user/pods/ledgers/x")
		w.must(err)
		m.TellSystem(entity.Sweep())
		require.True(t, w.exec.RunUntil(func() bool { return clean }))
		ack, err := w.ask("x", set{2}) // while the clean write is under way
		w.must(err)
		w.exec.RunFor(100 * time.Millisecond)
		r, err := store.Load(bg, key)
		w.must(err)
		stop()
		w.kill()
		require.GreaterOrEqual(t, r.Reserved, ack.(entity.Ack).Revision,
			"revision given out beyond what the store reserves: after a crash it is given again")
	})
}

func TestAsyncFloorOutlivesAFailedDeletion(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(async), pod.Config{})
	var last entity.Ack
	for i := range 20 {
		ack, err := w.ask("x", set{i})
		w.must(err)
		last = ack.(entity.Ack)
	}
	w.kill() // unclean
	store := persisttest.NewFaultStore(mem)
	w = newWorld(t, 2, store, ledgers(async), pod.Config{})
	defer w.close()
	stop := store.OnUnits(func(u persist.Unit) bool { return u.Delete }, persisttest.FailBefore)
	_, err := w.ask("x", unconditional())
	require.Error(t, err)
	stop()
	w.exec.RunFor(time.Minute)
	ack, err := w.ask("x", set{99})
	w.must(err)
	require.Greater(t, ack.(entity.Ack).Revision, last.Revision, "revision given twice")
}

func TestAsyncUnknownDeletionIsSettledFirst(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{Mailbox: 5000, IdleAfter: -1})
	defer w.close()
	_, err := w.ask("x", set{-1})
	w.must(err)
	stop := store.OnUnits(func(u persist.Unit) bool { return u.Delete }, persisttest.UnknownApplied)
	_, err = w.ask("x", unconditional())
	require.ErrorIs(t, err, persist.ErrUnknown)
	stop()
	var ps []*actor.Promise
	for i := range 1500 {
		ps = append(ps, w.send("x", set{i}))
	}
	w.exec.RunFor(time.Minute)
	for i, p := range ps {
		ack, err := w.wait(p)
		w.must(err)
		require.EqualValues(t, i+1, ack.(entity.Ack).Revision, "the deletion had happened, so this is a new life")
	}
	ctx, cancel := w.sys.WithTimeout(bg, time.Minute)
	defer cancel()
	_, err = w.send("x", set{7}).Wait(ctx)
	if errors.Is(err, actor.ErrTimeout) {
		t.Error("the entity hangs for ever")
	}
}

func TestCloseRepeatsAFailedWrite(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{})
	_, err := w.ask("x", add{"a"})
	w.must(err)
	_, err = w.ask("x", add{"b"})
	w.must(err)
	n := 0
	store.OnUnits(func(u persist.Unit) bool { n++; return n == 1 }, persisttest.FailBefore)
	ctx, cancel := w.sys.WithTimeout(bg, time.Minute)
	defer cancel()
	err = w.pods.Close(ctx)
	r, lerr := store.Load(bg, persist.Key{Pod: "ledgers", Name: "x"})
	w.must(lerr)
	w.kill()
	require.NoError(t, err, "one write failed, a minute was there to repeat it")
	require.EqualValues(t, 2, r.Revision)
}

func TestCloseGoesRoundUntilNobodyIsAwake(t *testing.T) {
	lost := 0
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(func(d *entity.Type[ledger]) {
			d.Handlers["forward"] = entity.On(func(c *entity.Context, l *ledger, m forward) error {
				l.accept(m.ID)
				c.Send("buildings", m.To, entity.Merge{"id": m.ID})
				return nil
			})
		}), pod.Config{})
		_, _, _, err := w.pods.Declare(bg, "buildings", pod.Definition{Type: "document", Durability: "async:1s"})
		w.must(err)
		_, err = w.ask("r", forward{To: "b", ID: "0"})
		w.must(err)
		w.exec.RunFor(5 * time.Second)
		for i := range 5 {
			w.send("r", forward{To: "b", ID: fmt.Sprint(i + 1)})
		}
		ctx, cancel := w.sys.WithTimeout(bg, time.Minute)
		defer cancel()
		w.must(w.pods.Close(ctx))
		r, err := store.Load(bg, persist.Key{Pod: "ledgers", Name: "r"})
		w.must(err)
		b, err := store.Load(bg, persist.Key{Pod: "buildings", Name: "b"})
		w.must(err)
		if r.Revision == 6 && string(b.State) != `{"id":"5"}` {
			lost++
		}
		w.kill()
	})
	require.Zero(t, lost, "seeds in which Close returned nil and left an asynchronous change behind")
}

func TestAsyncThatIsRefusedForGoodCanBeDeleted(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	store.OnUnits(func(u persist.Unit) bool { return u.Record != nil && u.Record.Revision > 1 }, persisttest.RefuseUnit)
	acked := 0
	for i := range 300 {
		if _, err := w.ask("x", add{fmt.Sprint(i)}); err == nil {
			acked++
		}
		w.exec.RunFor(100 * time.Millisecond)
	}
	t.Logf("%d acknowledged while the store refuses every write for its data", acked)
	_, err = w.ask("x", unconditional())
	require.NoError(t, err, "it cannot be deleted")
}
