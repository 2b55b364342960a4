package pod_test

import (
	"context"
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

func unconditional() *entity.Message { return entity.Delete(entity.Condition{}) }

// TestDeletedIsGone: a deletion waits for what was sent before it, is durable
// when it is answered, and what follows begins a new life.
func TestDeletedIsGone(t *testing.T) {
	forSeeds(t, 300, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		defer w.close()
		before := w.send("x", add{"a"})
		gone := w.send("x", unconditional())
		twice := w.send("x", unconditional())
		query := w.send("x", peek{})
		after := w.send("x", add{"b"})

		v, err := w.wait(before)
		w.must(err)
		first := v.(entity.Ack)
		v, err = w.wait(gone)
		w.must(err)
		require.Equal(t, entity.Ack{Life: first.Life, Revision: 2}, v)
		_, err = w.wait(twice)
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = w.wait(query)
		require.ErrorIs(t, err, entity.ErrNotFound)
		v, err = w.wait(after)
		w.must(err)
		require.EqualValues(t, 1, v.(entity.Ack).Revision)
		require.Greater(t, v.(entity.Ack).Life, first.Life)
		require.Equal(t, []string{"b"}, w.log("x"))

		_, err = w.ask("x", unconditional())
		w.must(err)
		_, err = store.Load(context.Background(), persist.Key{Pod: "ledgers", Name: "x"})
		require.ErrorIs(t, err, persist.ErrNotFound, "durable when answered")
		_, err = w.h.Get(context.Background(), "x")
		require.ErrorIs(t, err, entity.ErrNotFound)
	})
}

// TestOneOfManyWritersWins: of several messages with the same condition exactly
// one is handled, and a tag of an earlier life never matches.
func TestOneOfManyWritersWins(t *testing.T) {
	forSeeds(t, 300, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.close()
		race := func(c entity.Condition) (won int) {
			t.Helper()
			var promises []*actor.Promise
			for i := range 5 {
				m, err := w.h.Spec().Wrap(add{fmt.Sprint(i)})
				w.must(err)
				m.If = c
				promises = append(promises, w.send("x", m))
			}
			for _, p := range promises {
				if _, err := w.wait(p); err == nil {
					won++
				} else {
					require.ErrorIs(t, err, entity.ErrStale)
				}
			}
			return won
		}
		require.Equal(t, 1, race(entity.Condition{Absent: true}))
		v, err := w.h.Get(context.Background(), "x")
		w.must(err)
		tag := []entity.ETag{{Life: v.Life, Revision: v.Revision}}
		require.Equal(t, 1, race(entity.Condition{Match: tag}))
		require.Equal(t, 0, race(entity.Condition{Match: tag}))
		_, err = w.ask("x", entity.Delete(entity.Condition{Match: tag}))
		require.ErrorIs(t, err, entity.ErrStale)
		_, err = w.ask("x", unconditional())
		w.must(err)
		_, err = w.ask("x", add{"again"})
		w.must(err)
		require.Equal(t, 0, race(entity.Condition{Match: tag}), "the same revision of a later life is another one")
	})
}

// TestInit: it supplies the first state once an entity is created, and creates
// nothing when it fails, panics, or when the first message is rejected.
func TestInit(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		var w *world
		fail := ""
		w = newWorld(t, seed, persisttest.NewCrashStore(), ledgers(func(d *entity.Type[ledger]) {
			d.Init = func(ctx context.Context, name string) (ledger, error) {
				if err := w.sys.Sleep(ctx, time.Second); err != nil {
					return ledger{}, err
				}
				switch fail {
				case "error":
					return ledger{}, fmt.Errorf("no facts about %s", name)
				case "panic":
					panic("on purpose")
				}
				return ledger{Log: []string{"init " + name}}, nil
			}
		}), pod.Config{})
		defer w.close()
		for _, fail = range []string{"error", "panic"} {
			_, err := w.ask("x", add{"a"})
			var failed *entity.HandlerError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "Init", failed.Message)
		}
		fail = ""
		refused := w.send("x", refuse{"b"})
		query := w.send("x", peek{})
		accepted := w.send("x", add{"c"})
		_, err := w.wait(refused)
		var rejected *entity.RejectedError
		require.ErrorAs(t, err, &rejected)
		_, err = w.wait(query)
		require.ErrorIs(t, err, entity.ErrNotFound)
		v, err := w.wait(accepted)
		w.must(err)
		require.EqualValues(t, 1, v.(entity.Ack).Revision, "Init and the first message are one revision")
		require.Equal(t, []string{"init x", "c"}, w.log("x"))
	})
}

// TestRefusedMessagesLeaveNothing: a flood to names that nothing creates keeps
// neither slots nor records.
func TestRefusedMessagesLeaveNothing(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) {
		d.Create.Names = "e[0-9]+"
	}), pod.Config{})
	defer w.close()
	for _, name := range ids("x", 100) {
		w.must(w.h.Tell(context.Background(), name, add{"a"}))
	}
	w.exec.RunFor(time.Second)
	manager, err := w.sys.Lookup("/user/pods/ledgers")
	w.must(err)
	require.Empty(t, manager.Children())
	page, err := w.h.Pod.List(context.Background(), persist.ListOptions{})
	w.must(err)
	require.Empty(t, page.Items)
	require.EqualValues(t, 100, w.pods.DeadLetters("ledgers"))
}

// TestMessagesByPathReachTheEntity: a message to the path of an absent child of
// a pod is claimed by the pod, in the sender's call.
func TestMessagesByPathReachTheEntity(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	for _, id := range ids("", 5) {
		w.must(w.sys.Send("/user/pods/ledgers/x", actor.Message{Payload: add{id}}))
	}
	w.exec.RunFor(time.Second)
	require.Equal(t, ids("", 5), w.log("x"))

	manager, err := w.sys.Lookup("/user/pods/ledgers")
	w.must(err)
	v, err := actor.Ask[entity.Ack](context.Background(), manager, pod.CreateChild{Name: "y", Message: add{"a"}})
	w.must(err)
	require.EqualValues(t, 1, v.Revision)
	_, err = actor.Ask[entity.Ack](context.Background(), manager, pod.CreateChild{Name: "..", Message: add{"a"}})
	require.ErrorIs(t, err, entity.ErrName)
}
