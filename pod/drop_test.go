package pod_test

import (
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

// T5: one entity that cannot leave keeps other pods' changes from being written.
func TestCloseFlushesOtherPods(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(async), pod.Config{})
	defer w.kill()
	docs, _, _, err := w.pods.Declare(bg, "zdocs", documentPod("async:1m"))
	w.must(err)
	_, err = docs.Ask(bg, "d", entity.Merge{"n": 1})
	w.must(err)
	_, err = docs.Ask(bg, "d", entity.Merge{"n": 2}) // acknowledged, to be written within a minute
	w.must(err)
	_, err = w.ask("x", add{"a"})
	w.must(err)
	store.OnUnits(func(u persist.Unit) bool { return u.Key == xKey && u.Record != nil && u.Record.Revision > 1 }, persisttest.RefuseUnit)
	_, err = w.ask("x", add{"b"})
	w.must(err)
	ctx, cancel := w.sys.WithTimeout(bg, 20*time.Second)
	defer cancel()
	require.Error(t, w.pods.Close(ctx))
	w.exec.RunFor(10 * time.Second)
	r, err := store.Load(bg, persist.Key{Pod: "zdocs", Name: "d"})
	w.must(err)
	require.Equal(t, `{"n":2}`, string(r.State), "20 seconds were there to write it")
}

// T8a: a drop that certainly did nothing.
func TestDropThatFailsLeavesThePodUsable(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	docs, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
	w.must(err)
	store.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$pods" && u.Delete }, persisttest.UnknownLost)
	store.FailReopens(3)
	require.Error(t, w.pods.Drop(bg, "docs", false))
	w.exec.RunFor(time.Minute)
	_, _, _, err = w.pods.Declare(bg, "docs", documentPod(""))
	w.must(err)
	_, err = docs.Ask(bg, "x", entity.Merge{"a": 1})
	require.NoError(t, err, "declared, and takes no messages")
}

// T8b: declared after a drop whose outcome was not known and that happened.
func TestDeclareAfterAnUnknownDrop(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	_, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
	w.must(err)
	stop := store.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$pods" && u.Delete }, persisttest.UnknownApplied)
	store.FailReopens(3)
	require.Error(t, w.pods.Drop(bg, "docs", false))
	stop()
	w.exec.RunFor(time.Minute)
	docs, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
	w.must(err)
	_, lerr := store.Load(bg, persist.Key{Pod: "$pods", Name: "docs"})
	_, aerr := docs.Ask(bg, "x", entity.Merge{"a": 1})
	require.NoError(t, errors.Join(lerr, aerr))
}

// T9a: a definition that an earlier version took.
func TestEarlierDefinitionOpens(t *testing.T) {
	mem := persisttest.NewMemory()
	r := snapshot.Record{Revision: 1, Reserved: 1, Codec: "json", State: []byte(`{"type":"document","durability":"async:500us","create":{}}`)}
	o, err := mem.Commit(bg, []persist.Unit{{Key: persist.Key{Pod: "$pods", Name: "old"}, Record: &r}})
	require.NoError(t, err)
	require.NoError(t, o[0].Err)
	sys := actor.NewSystem("t", actor.Config{})
	defer func() { require.NoError(t, sys.Stop(bg)) }()
	pods, err := pod.Open(sys, mem, pod.Config{})
	require.NoError(t, err)
	require.NoError(t, pods.Close(bg))
}

// T9b: a redefinition whose outcome could not be read.
func TestRedefineUnknownWhileAway(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	_, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
	w.must(err)
	stop := store.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$pods" }, persisttest.UnknownApplied)
	store.FailReopens(3)
	_, _, _, err = w.pods.Declare(bg, "docs", documentPod("async:1s"))
	require.Error(t, err)
	stop()
	w.exec.RunFor(time.Minute)
	_, _, _, err = w.pods.Declare(bg, "docs", documentPod("")) // sync, says the caller, and is told: so it is
	w.must(err)
	r, err := store.Load(bg, persist.Key{Pod: "$pods", Name: "docs"})
	w.must(err)
	require.Contains(t, string(r.State), `"sync"`, "after a restart the pod is asynchronous")
}

// T13: a dropped pod leaves nothing behind.
func TestDropLeavesNoOrphans(t *testing.T) {
	bad := 0
	forSeeds(t, 300, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), fewAtATime(2))
		defer w.kill()
		docs, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
		w.must(err)
		for i := range 12 {
			name := fmt.Sprint("n", w.sys.Uint64()%3)
			p := w.sys.NewPromise()
			var m any = entity.Merge{"i": i}
			if w.sys.Uint64()%2 == 0 {
				m = unconditional()
			}
			_ = docs.Ref(name).Post(actor.Message{Payload: m, Reply: p})
			for range w.sys.Uint64() % 15 {
				w.exec.Step()
			}
		}
		if err := w.pods.Drop(bg, "docs", true); err != nil {
			t.Log(err)
			return
		}
		w.exec.RunFor(10 * time.Second)
		page, err := store.List(bg, "docs", persist.ListOptions{})
		w.must(err)
		if len(page.Items) > 0 {
			bad++
		}
	})
	require.Zero(t, bad, "seeds with entities of a pod that is gone")
}

// T13b: a deletion that the store has and the entity does not know yet, with a creation behind it.
func TestDropBetweenLives(t *testing.T) {
	orphans, acked := 0, 0
	forSeeds(t, 200, func(t *testing.T, seed uint64) {
		store := persisttest.NewCrashStore()
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		defer w.kill()
		docs, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
		w.must(err)
		_, err = docs.Ask(bg, "x", entity.Merge{"a": 1})
		w.must(err)
		post := func(m any) *actor.Promise {
			p := w.sys.NewPromise()
			w.must(docs.Ref("x").Post(actor.Message{Payload: m, Reply: p}))
			return p
		}
		post(unconditional())
		again := post(entity.Merge{"a": 2})
		w.exec.RunUntil(func() bool {
			page, err := store.List(bg, "docs", persist.ListOptions{})
			return err == nil && len(page.Items) == 0
		})
		if err := w.pods.Drop(bg, "docs", true); err != nil {
			return
		}
		w.exec.RunFor(10 * time.Second)
		_, err = w.wait(again)
		page, lerr := store.List(bg, "docs", persist.ListOptions{})
		w.must(lerr)
		if len(page.Items) > 0 {
			orphans++
			if err == nil {
				acked++
			}
		}
	})
	require.Zero(t, orphans, "entities of a pod that is gone: %d, acknowledged %d", orphans, acked)
}

// T8c: a drop that happened without anybody knowing, repeated while the store is away.
func TestRepeatedDropWhileAway(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	docs, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
	w.must(err)
	stop := store.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$pods" && u.Delete }, persisttest.UnknownApplied)
	store.FailReopens(4)
	require.Error(t, w.pods.Drop(bg, "docs", true))
	stop()
	require.Error(t, w.pods.Drop(bg, "docs", true))
	w.exec.RunFor(time.Minute)
	_, lerr := store.Load(bg, persist.Key{Pod: "$pods", Name: "docs"})
	_, aerr := docs.Ask(bg, "x", entity.Merge{"a": 1})
	require.False(t, errors.Is(lerr, persist.ErrNotFound) && aerr == nil, "a pod without a definition takes messages: they are lost at the next start")
}
