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

// TestFailedTurnsChangeNothing: a handler that fails or panics after it changed
// the state leaves state and revision alone, its caller hears at once, and a
// hundred in a row do not stop the entity.
func TestFailedTurnsChangeNothing(t *testing.T) {
	forSeeds(t, 20, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.close()
		_, err := w.ask("x", add{"a"})
		w.must(err)
		before, err := w.h.Get(context.Background(), "x")
		w.must(err)
		for i := range 100 {
			_, err := w.ask("x", spoil{fmt.Sprint(i)})
			var failed *entity.HandlerError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "spoil", failed.Message)
			_, err = w.ask("x", crash{fmt.Sprint(i)})
			require.ErrorAs(t, err, &failed)
			var p *actor.PanicError
			require.ErrorAs(t, err, &p)
			_, err = w.ask("x", refuse{fmt.Sprint(i)})
			var rejected *entity.RejectedError
			require.ErrorAs(t, err, &rejected)
		}
		after, err := w.h.Get(context.Background(), "x")
		w.must(err)
		require.Equal(t, before, after)
		ack, err := w.ask("x", add{"b"})
		w.must(err)
		require.Equal(t, entity.Ack{Life: before.Life, Revision: 2}, ack)
		require.Equal(t, []string{"a", "b"}, w.log("x"))
	})
}

// TestUnchangedStateKeepsItsRevision: a message that changes nothing writes
// nothing.
func TestUnchangedStateKeepsItsRevision(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	first, err := w.ask("x", touch{})
	w.must(err)
	require.EqualValues(t, 1, first.(entity.Ack).Revision, "the first message creates even if it changes nothing")
	commits := store.Commits()
	again, err := w.ask("x", touch{})
	w.must(err)
	require.Equal(t, entity.Ack{Life: first.(entity.Ack).Life, Revision: 1}, again)
	require.True(t, first.(entity.Ack).Created)
	require.Equal(t, commits, store.Commits())
}

// TestRepliesKeepTheirTurnsValues: a reply that is a map of the state itself
// holds what it held in its turn, although later turns ran before it was
// released.
func TestRepliesKeepTheirTurnsValues(t *testing.T) {
	forSeeds(t, 200, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.close()
		var promises []*actor.Promise
		for i := range 20 {
			promises = append(promises, w.send("x", shares{fmt.Sprint(i % 3)}))
		}
		for i, p := range promises {
			v, err := w.wait(p)
			w.must(err)
			want := map[string]int{}
			for j := range i + 1 {
				want[fmt.Sprint(j%3)]++
			}
			require.Equal(t, want, v)
		}
	})
}

// TestQueriesWorkOnACopy: what a query does to the state is forgotten, and a
// query cannot send.
func TestQueriesWorkOnACopy(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) {
		type scribble struct{}
		type gossip struct{}
		d.Handlers["scribble"] = entity.Query(func(_ *entity.Context, l *ledger, _ scribble) (int, error) {
			l.By["a"] = 100
			l.Log[0] = "scribbled"
			return len(l.Log), nil
		})
		d.Handlers["gossip"] = entity.Query(func(c *entity.Context, _ *ledger, _ gossip) (int, error) {
			c.Send("ledgers", "y", add{"gossip"})
			return 0, nil
		})
	}), pod.Config{})
	defer w.close()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	spec := w.h.Spec()
	m, err := spec.Parse("scribble", nil)
	w.must(err)
	_, err = w.ask("x", m)
	w.must(err)
	v, err := w.ask("x", peek{})
	w.must(err)
	require.Equal(t, []string{"a"}, v)
	m, err = spec.Parse("gossip", nil)
	w.must(err)
	_, err = w.ask("x", m)
	require.ErrorContains(t, err, "query")
	_, err = w.h.Get(context.Background(), "y")
	require.ErrorIs(t, err, entity.ErrNotFound)
}

// TestEffectsLeaveAfterTheCommit: whoever got a message of an entity finds the
// change that sent it durable; a turn that fails sends nothing.
func TestEffectsLeaveAfterTheCommit(t *testing.T) {
	forSeeds(t, 200, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		defer w.close()
		var early []string
		w.pods.OnChange(func(c persist.Change) {
			r, err := store.Load(context.Background(), c.Key)
			if err != nil || r.Revision < c.Revision {
				early = append(early, c.Key.String())
			}
		})
		ids := ids("", 10)
		for _, id := range ids {
			w.send("x", tally{Name: "y", ID: id})
			w.send("x", tally{Name: "y", ID: "fail"})
		}
		w.exec.RunUntil(func() bool {
			y, errY := store.Load(context.Background(), persist.Key{Pod: "ledgers", Name: "y"})
			x, errX := store.Load(context.Background(), persist.Key{Pod: "ledgers", Name: "x"})
			if errY == nil && (errX != nil || x.Revision < y.Revision) {
				early = append(early, "y before x")
			}
			return errY == nil && y.Revision == 10
		})
		w.exec.RunFor(time.Second)
		require.Empty(t, early)
		require.Equal(t, ids, w.log("x"))
		require.Equal(t, ids, w.log("y"), "in the order of the turns that sent them")
	})
}

// TestSendingToNowhereFailsTheTurn: an unknown pod or message is an error of
// the handler, not a message that vanishes.
func TestSendingToNowhereFailsTheTurn(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(d *entity.Type[ledger]) {
		d.Handlers["tally"] = entity.On(func(c *entity.Context, l *ledger, m tally) error {
			l.accept(m.ID)
			c.Send("nowhere", m.Name, add{m.ID})
			return nil
		})
	}), pod.Config{})
	defer w.close()
	_, err := w.ask("x", tally{Name: "y", ID: "1"})
	require.ErrorIs(t, err, pod.ErrNoPod)
	_, err = w.h.Get(context.Background(), "x")
	require.ErrorIs(t, err, entity.ErrNotFound, "the turn that would have created it failed")
}

// TestWorkComesBackAsAMessage: PipeTo starts after the commit and brings its
// result, or its failure, to the same life only.
func TestWorkComesBackAsAMessage(t *testing.T) {
	type begin struct{ Fail, Send bool }
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		var w *world
		w = newWorld(t, seed, persisttest.NewCrashStore(), ledgers(func(d *entity.Type[ledger]) {
			d.Handlers["begin"] = entity.On(func(c *entity.Context, l *ledger, m begin) error {
				l.accept("begun")
				c.PipeTo(func(ctx context.Context) (any, error) {
					if err := w.sys.Sleep(ctx, time.Second); err != nil {
						return nil, err
					}
					if m.Fail {
						return nil, errors.New("no luck")
					}
					if m.Send { // behind the turn, which could not send it any more
						c.Send("ledgers", "other", add{"lost"})
					}
					log, err := entity.Ask[[]string](ctx, w.h.Ref("other"), peek{})
					if err != nil {
						return nil, err
					}
					return piped{log[0]}, nil
				})
				return nil
			})
			d.Handlers["failed"] = entity.On(func(_ *entity.Context, l *ledger, m entity.PipeFailed) error {
				l.accept(m.Error)
				return nil
			})
		}), pod.Config{})
		defer w.close()
		_, err := w.ask("other", add{"from other"})
		w.must(err)
		_, err = w.ask("x", begin{})
		w.must(err)
		w.exec.RunFor(2 * time.Second)
		require.Equal(t, []string{"begun", "from other"}, w.log("x"))
		_, err = w.ask("y", begin{Fail: true})
		w.must(err)
		w.exec.RunFor(2 * time.Second)
		require.Equal(t, []string{"begun", "no luck"}, w.log("y"))
		_, err = w.ask("v", begin{Send: true})
		w.must(err)
		w.exec.RunFor(2 * time.Second)
		require.Contains(t, w.log("v")[1], "the Context of ledgers/v was used to send behind the call that it belongs to")

		_, err = w.ask("z", begin{})
		w.must(err)
		_, err = w.ask("z", entity.Delete(entity.Condition{}))
		w.must(err)
		letters := w.sys.DeadLetters().Count()
		_, err = w.ask("z", add{"new life"})
		w.must(err)
		w.exec.RunFor(2 * time.Second)
		require.Equal(t, []string{"new life"}, w.log("z"), "a result of the earlier life does not reach the new one")
		require.Greater(t, w.sys.DeadLetters().Count(), letters, "and is seen as a dead letter")
	})
}
