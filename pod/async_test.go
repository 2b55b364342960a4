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

func async(d *entity.Type[ledger]) { d.Durability = entity.Async(time.Second) }

// TestAsyncAcknowledgesBeforeItIsDurable, and is durable within the interval.
func TestAsyncAcknowledgesBeforeItIsDurable(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(async), pod.Config{})
		defer w.close()
		key := persist.Key{Pod: "ledgers", Name: "x"}
		ack, err := w.ask("x", add{"0"})
		w.must(err)
		r, err := store.Load(context.Background(), key)
		w.must(err)
		require.Equal(t, ack.(entity.Ack).Life, r.Life, "creation is durable before it is acknowledged")
		commits := store.Commits()
		for i := range 50 {
			ack, err = w.ask("x", add{fmt.Sprint(i + 1)})
			w.must(err)
			require.EqualValues(t, i+2, ack.(entity.Ack).Revision)
		}
		require.Equal(t, commits, store.Commits(), "nothing was written for it")
		require.Len(t, w.log("x"), 51, "but it can be read")
		w.exec.RunFor(1100 * time.Millisecond)
		r, err = store.Load(context.Background(), key)
		w.must(err)
		require.EqualValues(t, 51, r.Revision)
		require.Equal(t, commits+1, store.Commits(), "one write for all of it")
	})
}

// TestAsyncGivesNoRevisionTwice: over crashes, no revision of a life is given
// for two states.
func TestAsyncGivesNoRevisionTwice(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		given := map[entity.ETag]int{}
		v := 0
		for round := range 4 {
			w := newWorld(t, seed*4+uint64(round), store, ledgers(async), pod.Config{IdleAfter: 3 * time.Second})
			for range 1 + w.sys.Uint64()%1500 {
				v++
				ack, err := w.ask("x", set{v})
				w.must(err)
				tag := entity.ETag{Life: ack.(entity.Ack).Life, Revision: ack.(entity.Ack).Revision}
				_, again := given[tag]
				require.False(t, again, "%v was given before", tag)
				given[tag] = v
				if w.sys.Uint64()%200 == 0 {
					w.exec.RunFor(time.Duration(w.sys.Uint64()%5000) * time.Millisecond)
				}
			}
			store = store.Crash(w.sys.Uint64())
			w.kill()
			w = newWorld(t, seed, store, ledgers(async), pod.Config{})
			r, err := w.h.Get(context.Background(), "x")
			w.must(err)
			require.Equal(t, given[entity.ETag{Life: r.Life, Revision: r.Revision}], r.State.By["v"], "a revision that can be read is the one that was given")
			w.kill()
		}
	})
}

// TestAsyncRetriesWithoutRollback: writes that fail, or whose outcome is
// unknown, are tried again, and nothing acknowledged is undone.
func TestAsyncRetriesWithoutRollback(t *testing.T) {
	for name, fault := range map[string]persisttest.Fault{
		"fails": persisttest.FailBefore, "applied": persisttest.UnknownApplied, "lost": persisttest.UnknownLost,
		"refused": persisttest.RefuseUnit,
	} {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 50, func(t *testing.T, seed uint64) {
				store := persisttest.NewFaultStore(persisttest.NewMemory())
				w := newWorld(t, seed, store, ledgers(async), pod.Config{})
				defer w.close()
				_, err := w.ask("x", add{"0"})
				w.must(err)
				spent := 0
				stop := store.OnUnits(func(u persist.Unit) bool { spent++; return u.Key.Name == "x" && spent < 4 }, fault)
				var want []string
				for i := range 30 {
					id := fmt.Sprint(i)
					_, err := w.ask("x", add{id})
					w.must(err)
					want = append(want, id)
					w.exec.RunFor(200 * time.Millisecond)
				}
				stop()
				w.exec.RunFor(time.Minute)
				require.Equal(t, append([]string{"0"}, want...), w.log("x"))
				r, err := store.Load(context.Background(), persist.Key{Pod: "ledgers", Name: "x"})
				w.must(err)
				require.EqualValues(t, 31, r.Revision, "all of it is durable in the end")
			})
		})
	}
}

// TestAsyncBeyondItsReservation: an entity that gives out revisions faster than
// they are reserved waits for the store, and loses nothing.
func TestAsyncBeyondItsReservation(t *testing.T) {
	forSeeds(t, 10, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(async), pod.Config{Mailbox: 5000})
		defer w.close()
		var promises []*actor.Promise
		for i := range 3000 {
			promises = append(promises, w.send("x", set{i}))
		}
		for i, p := range promises {
			v, err := w.wait(p)
			w.must(err)
			require.EqualValues(t, i+1, v.(entity.Ack).Revision)
		}
		_, err := w.ask("x", unconditional())
		w.must(err)
		_, err = w.h.Get(context.Background(), "x")
		require.ErrorIs(t, err, entity.ErrNotFound)
	})
}

// TestAsyncIsDurableAfterClose: an orderly stop loses nothing and gives the
// reserved revisions back.
func TestAsyncIsDurableAfterClose(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(async), pod.Config{})
	for i := range 10 {
		_, err := w.ask("x", add{fmt.Sprint(i)})
		w.must(err)
	}
	w.close()
	w = newWorld(t, 2, store, ledgers(async), pod.Config{})
	defer w.close()
	require.Equal(t, ids("", 10), w.log("x"))
	ack, err := w.ask("x", add{"10"})
	w.must(err)
	require.EqualValues(t, 11, ack.(entity.Ack).Revision)
}
