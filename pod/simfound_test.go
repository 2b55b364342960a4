package pod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// What the simulation found, as small as it gets.

// TestViewAfterAnUnknownOutcome: an entity that cannot be read after a commit of
// unknown outcome reads itself again once it can, so that its view does not stay
// behind what the store holds.
func TestViewAfterAnUnknownOutcome(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{IdleAfter: -1})
	defer w.close()
	_, err := w.ask("x", add{"1"})
	w.must(err)
	store.OnCommit(store.Commits()+1, persisttest.UnknownApplied)
	allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
	_, err = w.ask("x", add{"2"})
	require.ErrorIs(t, err, persist.ErrUnknown)
	w.exec.RunFor(time.Second)
	allow()
	w.exec.RunFor(5 * time.Second)
	require.Equal(t, []string{"1", "2"}, w.log("x"), "it was written")
}

// TestRevisionOfAForcedDeletion: the change that tells of the deletion of a
// quarantined entity has the revision that the journal has.
func TestRevisionOfAForcedDeletion(t *testing.T) {
	memory := persisttest.NewMemory()
	w := newWorld(t, 1, memory, ledgers(nil), pod.Config{IdleAfter: 10 * time.Millisecond})
	defer w.close()
	for _, id := range []string{"1", "2"} {
		_, err := w.ask("x", add{id})
		w.must(err)
	}
	w.exec.RunFor(time.Second)
	memory.Damage(persist.Key{Pod: "ledgers", Name: "x"})
	var told []persist.Change
	defer w.pods.OnChange(func(c persist.Change) { told = append(told, c) })()
	ack, err := w.ask("x", entity.Delete(entity.Condition{}))
	w.must(err)
	require.Len(t, told, 1)
	require.Equal(t, uint64(3), told[0].Revision)
	require.Equal(t, uint64(3), ack.(entity.Ack).Revision)
	log, err := memory.Log(t.Context(), told[0].Position-1, 1)
	w.must(err)
	require.Equal(t, uint64(3), log[0].Revision)
}

// TestUnreadAbsentNameLeaves: a name of which nothing could be read, and of which
// nobody has seen anything, does not stay in memory.
func TestUnreadAbsentNameLeaves(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{IdleAfter: -1})
	defer w.close()
	store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" }, persisttest.FailBefore)
	allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, nil)
	first := w.send("x", add{"1"})
	w.exec.RunUntil(func() bool { return w.pods.Active() > 0 })
	allow()
	store.OnLoads(func(k persist.Key) bool { return k.Name == "x" }, persist.ErrUnavailable)
	_, err := w.wait(first)
	require.Error(t, err)
	_, err = w.ask("x", refuse{"2"})
	require.Error(t, err)
	w.exec.RunFor(time.Minute)
	require.Zero(t, w.pods.Active())
}

// TestViewAfterAFailedDeletion: what an asynchronous entity writes after a
// deletion that failed is seen, also what nobody was told the outcome of.
func TestViewAfterAFailedDeletion(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	async := ledgers(func(typ *entity.Type[ledger]) { typ.Durability = entity.Async(40 * time.Millisecond) })
	w := newWorld(t, 1, store, async, pod.Config{IdleAfter: -1})
	_, err := w.ask("x", add{"1"})
	w.must(err)
	ctx, cancel := w.sys.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w.must(w.pods.Close(ctx)) // nothing stays reserved
	w.must(w.sys.Stop(ctx))
	w.exec.Close()

	w = newWorld(t, 2, store, async, pod.Config{IdleAfter: -1})
	defer w.close()
	_, err = w.ask("x", peek{})
	w.must(err)
	allow := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" }, persisttest.RefuseUnit)
	second := w.send("x", add{"2"})
	w.exec.RunUntil(func() bool { return store.Commits() > 0 })
	w.exec.RunFor(5 * time.Millisecond)
	_, err = w.ask("x", entity.Delete(entity.Condition{}))
	require.Error(t, err)
	_, err = w.wait(second)
	require.ErrorIs(t, err, persist.ErrUnknown)
	allow()
	ack, err := w.ask("x", touch{"3"}) // changes nothing, and is computed on what stands
	w.must(err)
	v, err := w.h.Get(t.Context(), "x")
	w.must(err)
	require.Equal(t, ack.(entity.Ack).Revision, v.Revision, "a read sees what was acknowledged before it")
	w.exec.RunFor(10 * time.Second)
	stored, err := store.Load(t.Context(), persist.Key{Pod: "ledgers", Name: "x"})
	w.must(err)
	v, err = w.h.Get(t.Context(), "x")
	w.must(err)
	require.Equal(t, stored.Revision, v.Revision)
	require.Equal(t, []string{"1", "2"}, v.State.Log)
}

// TestRefusalHeardAfterTheOutboxWasReadAnew: a receiver refuses a message whose
// sender has read its outbox again meanwhile, because a commit of its own was
// refused. The message was sent again then, and is known to the receiver; it
// becomes a dead letter all the same, and one alone.
func TestRefusalHeardAfterTheOutboxWasReadAnew(t *testing.T) {
	for seed := range uint64(20) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		var b *bank
		slow := accounts(func(typ *entity.Type[account]) {
			typ.Handlers["no"] = entity.On(func(*entity.Context, *account, no) error {
				_ = b.sys.Sleep(t.Context(), time.Second)
				return entity.Rejectf("no")
			})
		})
		b = newBank(t, seed, store, slow, pod.Config{})
		letters := b.deadLetters()
		for _, name := range []string{"ann", "bob"} {
			_, err := b.ask(name, open{100})
			b.must(err)
		}
		_, err := b.ask("ann", rebuff{"x", "bob"})
		b.must(err)
		b.exec.RunFor(100 * time.Millisecond)
		allow := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "ann" }, persisttest.RefuseUnit)
		_, err = b.ask("ann", open{1})
		require.ErrorIs(t, err, persist.ErrInvalid)
		allow()
		b.exec.RunFor(time.Minute)
		require.Equal(t, 1, undelivered(letters), "seed %d", seed)
		b.close()
	}
}
