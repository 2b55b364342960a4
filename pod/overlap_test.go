package pod_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

var bg = context.Background()

func TestUnknownGroupIsUnknownToAll(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		faults := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, faults, ledgers(nil), pod.Config{})
		defer w.close()
		_, err := w.ask("x", add{"first"})
		w.must(err)
		spent := false
		faults.OnUnits(func(u persist.Unit) bool { return !spent && u.Key.Name == "x" && u.Expect >= 2 }, persisttest.UnknownApplied)
		sent := ids("m", 10)
		var ps []*actor.Promise
		for _, id := range sent {
			ps = append(ps, w.send("x", add{id}))
		}
		errs := map[string]error{}
		for i, p := range ps {
			_, errs[sent[i]] = w.wait(p)
		}
		spent = true
		w.exec.RunFor(10 * time.Second)
		for _, id := range w.log("x") {
			if err := errs[id]; err != nil {
				require.ErrorIs(t, err, persist.ErrUnknown, "seed %d: %s is durable, its sender was told: %v", seed, id, err)
			}
		}
	})
}

func TestPipelineGoesOnAfterADeletion(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.close()
		ps := []*actor.Promise{w.send("x", add{"a"}), w.send("x", unconditional()), w.send("x", add{"b"}), w.send("x", add{"c"}), w.send("x", add{"d"})}
		for i, p := range ps {
			_, err := w.wait(p)
			require.NoError(t, err, "seed %d message %d", seed, i)
		}
	})
}

type later struct{ ID string }

func TestOwnTimersEndWithTheLife(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) {
		d.Handlers["later"] = entity.On(func(c *entity.Context, l *ledger, m later) error {
			l.accept(m.ID)
			c.SendAfter(time.Second, c.Pod(), c.Name(), add{"tick"})
			return nil
		})
	}), pod.Config{})
	defer w.close()
	_, err := w.ask("x", later{"a"})
	w.must(err)
	_, err = w.ask("x", unconditional())
	w.must(err)
	w.exec.RunFor(5 * time.Second)
	_, err = w.h.Get(bg, "x")
	require.ErrorIs(t, err, entity.ErrNotFound, "a timer of a deleted life revived the entity")
}

func TestOwnMessagesEndWithTheLife(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	a := w.send("x", tally{Name: "x", ID: "a"})
	d := w.send("x", unconditional())
	_, err := w.wait(a)
	w.must(err)
	_, err = w.wait(d)
	w.must(err)
	w.exec.RunFor(5 * time.Second)
	_, err = w.h.Get(bg, "x")
	require.ErrorIs(t, err, entity.ErrNotFound, "a message of a deleted life to itself revived the entity")
}

func TestStopPassivates(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(async), pod.Config{})
	defer w.close()
	for _, id := range ids("", 5) {
		_, err := w.ask("x", add{id})
		w.must(err)
	}
	r, err := w.sys.Lookup("/user/pods/ledgers/x")
	w.must(err)
	r.Stop()
	w.exec.RunFor(5 * time.Second)
	require.Equal(t, ids("", 5), w.log("x"), "Stop is to passivate")
}

func TestStopLeavesNoStaleView(t *testing.T) {
	stale, conflict := 0, 0
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		defer w.close()
		_, err := w.ask("x", add{"a"})
		w.must(err)
		store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 10*time.Millisecond) }
		r, err := w.sys.Lookup("/user/pods/ledgers/x")
		w.must(err)
		b := w.send("x", add{"b"})
		w.exec.RunFor(2 * time.Millisecond)
		r.Stop()
		_, err = w.wait(b)
		if err == nil {
			return
		}
		_, _ = w.ask("x", peek{}) // wakes a second activation while the commit of the first is under way
		w.exec.RunFor(time.Second)
		rec, err := store.Load(bg, persist.Key{Pod: "ledgers", Name: "x"})
		w.must(err)
		v, err := w.h.Get(bg, "x")
		w.must(err)
		if v.Revision < rec.Revision {
			stale++
		}
		if _, err := w.ask("x", add{"c"}); errors.Is(err, persist.ErrConflict) {
			conflict++
		}
	})
	require.Zero(t, stale+conflict, "stale views %d, spurious conflicts %d", stale, conflict)
}

func TestStopOverwritesNothing(t *testing.T) {
	bad := 0
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(async), pod.Config{})
		defer w.close()
		_, err := w.ask("x", add{"a"})
		w.must(err)
		store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 50*time.Millisecond) }
		_, err = w.ask("x", add{"b"})
		w.must(err)
		w.exec.RunFor(1010 * time.Millisecond) // the flush of b is under way
		r, err := w.sys.Lookup("/user/pods/ledgers/x")
		w.must(err)
		r.Stop()
		c := w.send("x", add{"c"})
		w.exec.RunFor(time.Minute)
		_, _ = w.wait(c)
		if l := w.log("x"); !slices.Contains(l, "b") {
			bad++
		}
	})
	require.Zero(t, bad, "a durable, journaled change was overwritten by a second activation")
}
