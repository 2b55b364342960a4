package pod_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// inMemory returns which of the names have a live actor.
func (w *world) inMemory(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		_, err := w.sys.Lookup("/user/pods/ledgers/" + n)
		return err != nil
	})
}

// TestLeastRecentlyUsedLeaves: with room for three, the one that was not used
// for the longest time goes, and comes back with what it was.
func TestLeastRecentlyUsedLeaves(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{MaxActive: 3})
	defer w.close()
	use := func(names ...string) {
		for _, n := range names {
			_, err := w.ask(n, add{n})
			w.must(err)
			w.exec.RunFor(time.Millisecond)
		}
	}
	use("a", "b", "c")
	require.Equal(t, []string{"a", "b", "c"}, w.inMemory("a", "b", "c"))
	use("a", "d")
	require.Equal(t, []string{"a", "c", "d"}, w.inMemory("a", "b", "c", "d"))
	use("b")
	require.Equal(t, []string{"a", "b", "d"}, w.inMemory("a", "b", "c", "d"))
	require.Equal(t, []string{"b", "b"}, w.log("b"))
	require.Equal(t, 3, w.pods.Active())
}

// TestBusyAndPausedStay: what is paused stays whatever comes, a busy entity too,
// and all else leaves.
func TestBusyAndPausedStay(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 2, store, ledgers(nil), pod.Config{MaxActive: 3, IdleAfter: time.Minute})
	defer w.close()
	w.h.PausePassivation("kept")
	for _, n := range []string{"kept", "busy"} {
		_, err := w.ask(n, add{n})
		w.must(err)
	}
	busy := w.send("busy", add{"more"}) // its commit is under way
	w.exec.Step()
	for i := range 20 {
		_, err := w.ask(fmt.Sprint("n", i), add{"x"})
		w.must(err)
	}
	_, err := w.wait(busy)
	w.must(err)
	w.exec.RunFor(time.Millisecond)
	require.Equal(t, []string{"kept"}, w.inMemory("kept"))
	require.LessOrEqual(t, w.pods.Active(), 4)
	w.exec.RunFor(5 * time.Minute)
	require.Equal(t, []string{"kept"}, w.inMemory(append(ids("n", 20), "kept", "busy")...))
	w.h.ResumePassivation("kept")
	w.exec.RunFor(5 * time.Minute)
	require.Empty(t, w.inMemory("kept"))
	require.Equal(t, 0, w.pods.Active())
}

// TestResidentsOverFaults: a storm of messages to more entities than there is
// room for, while commits fail: nothing that was acknowledged is lost.
func TestResidentsOverFaults(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{MaxActive: 4, IdleAfter: 10 * time.Millisecond})
		type sent struct {
			name, id string
			reply    *actor.Promise
		}
		var all []sent
		for i := range 150 {
			s := sent{name: fmt.Sprint("e", w.sys.Uint64()%12), id: fmt.Sprint(i)}
			s.reply = w.send(s.name, add{s.id})
			all = append(all, s)
			switch w.sys.Uint64() % 12 {
			case 0:
				store.OnCommit(store.Commits()+1, persisttest.FailBefore)
			case 1, 2:
				w.exec.RunFor(time.Duration(w.sys.Uint64()%30) * time.Millisecond)
			}
		}
		want := map[string][]string{}
		for _, s := range all {
			if _, err := w.wait(s.reply); err == nil {
				want[s.name] = append(want[s.name], s.id)
			}
		}
		w.exec.RunFor(time.Minute)
		require.Zero(t, w.pods.Active(), "seed %d", seed)
		for name, log := range want {
			require.Equal(t, log, only(w.log(name), log), "seed %d", seed)
		}
		w.close()
	})
}

// TestVolatilePods: entities of a volatile pod come and go like all others, leave
// nothing in the store, and are gone with the process; no ETag comes twice.
func TestVolatilePods(t *testing.T) {
	store := persisttest.NewMemory()
	typ := ledgers(func(t *entity.Type[ledger]) { t.Durability = entity.Volatile() })
	w := newWorld(t, 1, store, typ, pod.Config{IdleAfter: time.Second})
	_, err := w.ask("x", add{"a"})
	w.must(err)
	w.exec.RunFor(10 * time.Second)
	require.Empty(t, w.inMemory("x"))
	_, err = w.ask("x", add{"b"})
	w.must(err)
	require.Equal(t, []string{"a", "b"}, w.log("x"))
	views, _, err := w.h.List(t.Context(), persist.ListOptions{})
	w.must(err)
	require.Len(t, views, 1)
	stored, err := store.Pods(t.Context())
	w.must(err)
	require.Equal(t, []string{"$pods"}, stored, "only the definition")
	w.close()

	w = newWorld(t, 2, store, typ, pod.Config{})
	opened := w.sys.Now()
	_, err = w.h.Get(t.Context(), "x")
	require.ErrorIs(t, err, entity.ErrNotFound)
	_, err = pod.Start(w.pods, ledgers(nil))
	require.ErrorIs(t, err, pod.ErrExists)
	ack, err := w.ask("x", add{"c"})
	w.must(err)
	require.Greater(t, ack.(entity.Ack).Life, uint64(opened.UnixMicro()), "lives count on from the time")
	w.close()
}

// TestVolatileCannotBecomeDurable: a pod keeps its store.
func TestVolatileCannotBecomeDurable(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	w.kill()
	exec := actortest.NewSeeded(3)
	sys := actor.NewSystem("again", actor.Config{Executor: exec})
	pods, err := pod.Open(sys, store, pod.Config{})
	require.NoError(t, err)
	_, err = pod.Start(pods, ledgers(func(t *entity.Type[ledger]) { t.Durability = entity.Volatile() }))
	require.ErrorIs(t, err, pod.ErrExists)
	require.ErrorContains(t, err, "volatile")
	exec.Close()
}

// TestCreatedChild: whoever subscribed hears of each life once, when it is
// durable.
func TestCreatedChild(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	var heard []pod.CreatedChild
	cancel := w.pods.OnCreated(func(c pod.CreatedChild) { heard = append(heard, c) })
	w.pods.OnCreated(func(pod.CreatedChild) { panic("on purpose") })
	var told []any
	listener, err := w.sys.Spawn("listener", actor.PropsFunc(func(_ *actor.Context, msg any) error { told = append(told, msg); return nil }))
	w.must(err)
	manager, err := w.sys.Lookup("/user/pods/ledgers")
	w.must(err)
	ctx, end := w.sys.WithTimeout(t.Context(), time.Minute)
	defer end()
	_, err = manager.Ask(ctx, actor.Subscribe{Ref: listener})
	w.must(err)
	made, err := w.ask("x", add{"a"})
	w.must(err)
	_, err = w.ask("x", add{"b"})
	w.must(err)
	_, _ = w.ask("y", refuse{"c"})
	w.exec.RunFor(time.Second)
	want := pod.CreatedChild{Pod: "ledgers", Name: "x", Life: made.(entity.Ack).Life}
	require.Equal(t, []pod.CreatedChild{want}, heard)
	require.Equal(t, []any{want}, told)
	cancel()
	_, err = manager.Ask(ctx, actor.Unsubscribe{Ref: listener})
	w.must(err)
	_, err = w.ask("z", add{"a"})
	w.must(err)
	w.exec.RunFor(time.Second)
	require.Len(t, heard, 1)
	require.Len(t, told, 1)
}
