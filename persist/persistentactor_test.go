package persist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// till is a persistent actor that counts coins and tells what happens to it.
type till struct {
	coins  int
	events *[]string
	last   any
}

type (
	coin   struct{}
	save   struct{}
	forget struct{}
	fail   struct{}
	count  struct{}
	answer struct{}
)

func (c *till) PersistenceID() persist.Key { return persist.Key{Pod: "tills", Name: "t"} }

func (c *till) Recover(_ *persist.Context, s persist.Snapshot) error {
	*c.events = append(*c.events, "recover")
	return s.Decode(&c.coins)
}

func (c *till) PostRecovery(*persist.Context) error {
	*c.events = append(*c.events, "post-recovery")
	return nil
}

func (c *till) PreStart(*actor.Context) error {
	*c.events = append(*c.events, "pre-start")
	return nil
}

func (c *till) Receive(ctx *persist.Context, msg any) error {
	switch msg := msg.(type) {
	case coin:
		c.coins++
	case save:
		ctx.SaveSnapshot(c.coins)
	case forget:
		ctx.DeleteSnapshot()
	case fail:
		return errors.New("on purpose")
	case count:
		ctx.Respond(c.coins)
	case answer:
		ctx.Respond(c.last)
	default:
		c.last = msg
	}
	return nil
}

func (b *bench) till() (*actor.Ref, *[]string) {
	events := &[]string{}
	ref, err := b.sys.Spawn("", persist.Persistent(b.committer, snapshot.Msgpack(), func() persist.PersistentActor {
		return &till{events: events}
	}))
	require.NoError(b.t, err)
	return ref, events
}

func (b *bench) tell(ref *actor.Ref, msgs ...any) {
	for _, m := range msgs {
		require.NoError(b.t, ref.Tell(m))
	}
}

func ask[T any](b *bench, ref *actor.Ref, msg any) T {
	b.t.Helper()
	v, err := actor.Ask[T](context.Background(), ref, msg)
	require.NoError(b.t, err)
	return v
}

// TestPersistentActorRecovers: recovery comes first, also when there is nothing
// to recover from, and messages sent meanwhile wait for it.
func TestPersistentActorRecovers(t *testing.T) {
	for seed := range uint64(100) {
		b := newBench(t, seed, persist.CommitterConfig{})
		ref, events := b.till()
		b.tell(ref, coin{}, coin{}, save{}, coin{})
		require.Equal(t, 3, ask[int](b, ref, count{}))
		require.Equal(t, []string{"recover", "post-recovery", "pre-start"}, *events)
		b.exec.RunFor(time.Second)
		require.Equal(t, persist.SnapshotSaved{Revision: 1}, ask[any](b, ref, answer{}))

		b.tell(ref, fail{}) // the supervisor restarts it
		require.Equal(t, 2, ask[int](b, ref, count{}), "what was saved, and no more")
		require.Equal(t, []string{"recover", "post-recovery", "pre-start", "recover", "post-recovery", "pre-start"}, *events)

		b.tell(ref, coin{}, save{}, save{})
		b.exec.RunFor(time.Second)
		require.Equal(t, persist.SnapshotSaved{Revision: 3}, ask[any](b, ref, answer{}))
		ref.Stop()
		require.NoError(t, b.sys.AwaitStop(context.Background(), ref))
		ref, _ = b.till()
		require.Equal(t, 3, ask[int](b, ref, count{}))

		b.tell(ref, forget{}, save{}, coin{})
		b.exec.RunFor(time.Second)
		require.Equal(t, persist.SnapshotSaved{Revision: 1}, ask[any](b, ref, answer{}), "a deletion begins anew")
		b.tell(ref, forget{})
		b.exec.RunFor(time.Second)
		require.Equal(t, persist.SnapshotDeleted{}, ask[any](b, ref, answer{}))
		b.tell(ref, fail{})
		require.Equal(t, 0, ask[int](b, ref, count{}))
		b.close()
	}
}

// TestPersistentActorOutlivesFailedSaves: it hears of them and can save again.
func TestPersistentActorOutlivesFailedSaves(t *testing.T) {
	for _, fault := range []persisttest.Fault{persisttest.UnknownApplied, persisttest.UnknownLost, persisttest.RefuseUnit, persisttest.ConflictUnit} {
		b := newBench(t, 7, persist.CommitterConfig{})
		ref, _ := b.till()
		b.tell(ref, coin{}, save{})
		b.exec.RunFor(time.Second)
		stop := b.store.OnUnits(func(persist.Unit) bool { return true }, fault)
		b.tell(ref, coin{}, save{})
		b.exec.RunFor(100 * time.Millisecond)
		require.IsType(t, persist.SnapshotFailed{}, ask[any](b, ref, answer{}))
		stop()
		b.exec.RunFor(time.Minute)
		b.tell(ref, coin{}, save{})
		b.exec.RunFor(time.Second)
		require.IsType(t, persist.SnapshotSaved{}, ask[any](b, ref, answer{}))
		b.tell(ref, fail{})
		require.Equal(t, 3, ask[int](b, ref, count{}))
		b.close()
	}
}
