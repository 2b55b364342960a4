package pod_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func children(w *world) []*actor.Ref {
	manager, err := w.sys.Lookup("/user/pods/ledgers")
	w.must(err)
	return manager.Children()
}

// TestIdleEntitiesLeaveMemory: they do, they can still be read without coming
// back, and a message brings them back as they were.
func TestIdleEntitiesLeaveMemory(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{IdleAfter: time.Minute})
		defer w.close()
		for _, name := range ids("e", 10) {
			_, err := w.ask(name, add{"a"})
			w.must(err)
		}
		require.Len(t, children(w), 10)
		w.exec.RunFor(50 * time.Second)
		require.Len(t, children(w), 10, "not idle for long enough")
		w.exec.RunFor(2 * time.Minute)
		require.Empty(t, children(w))
		require.Equal(t, []string{"a"}, w.log("e3"))
		require.Empty(t, children(w), "reading wakes nobody")
		ack, err := w.ask("e3", add{"b"})
		w.must(err)
		require.EqualValues(t, 2, ack.(entity.Ack).Revision)
	})
}

// TestPassivationLosesNothing: messages that race with passivations are each
// handled once, in order, and answered.
func TestPassivationLosesNothing(t *testing.T) {
	forSeeds(t, 300, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{IdleAfter: time.Millisecond})
		defer w.close()
		var promises []*actor.Promise
		var sent []string
		for i := range 60 {
			id := fmt.Sprint(i)
			sent = append(sent, id)
			promises = append(promises, w.send("x", add{id}))
			switch w.sys.Uint64() % 4 {
			case 0:
				w.must(w.h.Ref("x").Post(actor.Message{Payload: entity.Passivate()}))
			case 1:
				w.exec.RunFor(time.Duration(w.sys.Uint64()%4) * time.Millisecond)
			case 2:
				for _, c := range children(w) {
					w.must(c.Tell(actor.PoisonPill{}))
				}
			case 3:
				for range w.sys.Uint64() % 9 {
					w.exec.Step()
				}
			}
		}
		for _, p := range promises {
			_, err := w.wait(p)
			w.must(err)
		}
		require.Equal(t, sent, w.log("x"))
	})
}

// TestEagerPodsComeBackWhole: every stored entity is in memory again soon after
// the start, and stays.
func TestEagerPodsComeBackWhole(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	for _, name := range ids("e", 150) {
		_, err := w.ask(name, add{name})
		w.must(err)
	}
	store.Damage(persist.Key{Pod: "ledgers", Name: "e77"})
	w.close()

	w = newWorld(t, 2, store, ledgers(func(d *entity.Type[ledger]) { d.Eager = true }), pod.Config{IdleAfter: time.Minute, RecoverAtOnce: 16})
	defer w.close()
	require.False(t, w.pods.Recovered())
	require.Equal(t, []string{"ledgers"}, w.pods.Recovering())
	require.True(t, w.exec.RunUntil(w.pods.Recovered))
	require.GreaterOrEqual(t, len(children(w)), 149)
	require.Len(t, w.pods.Quarantined(), 1, "one damaged record stops nobody else's recovery")
	w.exec.RunFor(10 * time.Minute)
	require.GreaterOrEqual(t, len(children(w)), 149)
}

// TestEagerRecoveryGoesOn: what a store keeps from it that is down for a while is
// recovered when that is back.
func TestEagerRecoveryGoesOn(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(nil), pod.Config{})
	for _, name := range ids("e", 50) {
		_, err := w.ask(name, add{name})
		w.must(err)
	}
	w.close()
	store, down := persisttest.NewFaultStore(mem), true
	store.OnLoads(func(k persist.Key) bool { return down && k.Name == "e30" }, persist.ErrUnavailable)
	w = newWorld(t, 2, store, ledgers(func(d *entity.Type[ledger]) { d.Eager = true }), pod.Config{RecoverAtOnce: 16})
	defer w.close()
	w.exec.RunFor(time.Minute)
	require.False(t, w.pods.Recovered())
	down = false
	w.exec.RunFor(10 * time.Second)
	require.True(t, w.pods.Recovered())
	require.Len(t, children(w), 50)
}

// TestUnreadableEntity: it is listed, blocked and removable, and never becomes
// a blank one.
func TestUnreadableEntity(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		store := persisttest.NewMemory()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		for _, name := range ids("e", 3) {
			_, err := w.ask(name, add{name})
			w.must(err)
		}
		w.close()
		store.Damage(persist.Key{Pod: "ledgers", Name: "e1"})

		w = newWorld(t, seed, store, ledgers(nil), pod.Config{IdleAfter: time.Minute})
		defer w.close()
		ctx := context.Background()
		page, err := w.h.Pod.List(ctx, persist.ListOptions{})
		w.must(err)
		require.Len(t, page.Items, 3)
		require.ErrorIs(t, page.Items[1].Err, entity.ErrQuarantined)
		for range 2 {
			for _, msg := range []any{add{"b"}, peek{}, touch{}} {
				_, err = w.ask("e1", msg)
				require.ErrorIs(t, err, entity.ErrQuarantined)
			}
			_, err = w.h.Get(ctx, "e1")
			require.ErrorIs(t, err, entity.ErrQuarantined)
			q := w.pods.Quarantined()
			require.Len(t, q, 1)
			require.Equal(t, "e1", q[0].Name)
			w.exec.RunFor(5 * time.Minute) // it leaves memory and is still blocked
		}
		_, err = w.ask("e2", add{"b"})
		w.must(err)
		_, err = w.ask("e1", unconditional())
		w.must(err)
		require.Empty(t, w.pods.Quarantined())
		_, err = w.h.Get(ctx, "e1")
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = w.ask("e1", add{"anew"})
		w.must(err)
		require.Equal(t, []string{"anew"}, w.log("e1"))
	})
}

// TestStoreThatIsAway: an entity that cannot be read now is refused now, and
// served when the store is back.
func TestStoreThatIsAway(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	_, err := w.ask("x", add{"a"})
	w.must(err)
	store := w.store
	w.close()
	faults := persisttest.NewFaultStore(store)
	w = newWorld(t, 2, faults, ledgers(nil), pod.Config{})
	defer w.close()
	back := faults.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
	for range 3 {
		_, err = w.ask("x", add{"b"})
		require.ErrorIs(t, err, persist.ErrUnavailable)
		_, err = w.h.Get(context.Background(), "x")
		require.ErrorIs(t, err, persist.ErrUnavailable)
	}
	require.Empty(t, w.pods.Quarantined())
	back()
	_, err = w.ask("x", add{"b"})
	w.must(err)
	require.Equal(t, []string{"a", "b"}, w.log("x"))
}

// TestFullMailbox: senders to an entity that stands still get an error, and
// nobody else notices.
func TestFullMailbox(t *testing.T) {
	release := make(chan struct{})
	sys := actor.NewSystem("full", actor.Config{})
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{Mailbox: 10})
	require.NoError(t, err)
	type stand struct{}
	h, err := pod.Start(pods, ledgers(func(d *entity.Type[ledger]) {
		d.Handlers["stand"] = entity.On(func(*entity.Context, *ledger, stand) error { <-release; return nil })
	}))
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, h.Tell(ctx, "x", stand{}))
	full := 0
	for range 20 {
		if err := h.Tell(ctx, "x", add{"a"}); err != nil {
			require.ErrorIs(t, err, actor.ErrMailboxFull)
			full++
		}
	}
	require.GreaterOrEqual(t, full, 9)
	_, err = entity.Ask[entity.Ack](ctx, h.Ref("y"), add{"a"})
	require.NoError(t, err)
	close(release)
	require.NoError(t, pods.Close(ctx))
	require.NoError(t, sys.Stop(ctx))
}

// TestSendersMeetRetiringSlots: real senders race with real passivations; a
// sender that meets a slot which has just retired resolves the name again.
func TestSendersMeetRetiringSlots(t *testing.T) {
	sys := actor.NewSystem("race", actor.Config{})
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{})
	require.NoError(t, err)
	h, err := pod.Start(pods, ledgers(nil))
	require.NoError(t, err)
	ctx := context.Background()
	const senders, each = 4, 300
	var sending, passivating sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		passivating.Go(func() {
			for !done.Load() {
				for _, name := range ids("e", 2) {
					_ = h.Ref(name).Post(actor.Message{Payload: entity.Passivate()})
				}
			}
		})
	}
	errs := make([]error, senders)
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				if _, err := h.Ask(ctx, fmt.Sprint("e", i%2), set{i}); err != nil && !errors.Is(err, actor.ErrMailboxFull) {
					errs[s] = err
				}
			}
		})
	}
	sending.Wait()
	done.Store(true)
	passivating.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, pods.Close(ctx))
	require.NoError(t, sys.Stop(ctx))
}
