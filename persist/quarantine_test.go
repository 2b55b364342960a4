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

// stopped saves a till of two coins and stops it.
func (b *bench) stopped() {
	ref, _ := b.till()
	b.tell(ref, coin{}, coin{}, save{})
	b.exec.RunFor(time.Second)
	ref.Stop()
	require.NoError(b.t, b.sys.AwaitStop(context.Background(), ref))
}

func tillKey() persist.Key { return persist.Key{Pod: "tills", Name: "t"} }

// TestUnreadableSnapshotIsQuarantined: it never becomes a blank actor, nothing
// stops for good, everybody hears of it, and it ends by a message.
func TestUnreadableSnapshotIsQuarantined(t *testing.T) {
	for _, cause := range []error{snapshot.ErrCorrupt, snapshot.ErrNewer} {
		b := newBench(t, 1, persist.CommitterConfig{})
		b.stopped()
		var failed []actor.Event
		b.sys.Events().Subscribe(func(e actor.Event) {
			if e.Kind == actor.ActorFailed {
				failed = append(failed, e)
			}
		})
		heal := b.store.OnLoads(func(persist.Key) bool { return true }, cause)
		ref, events := b.till()
		dead := b.sys.DeadLetters().Count()
		b.tell(ref, coin{})
		_, err := ref.Ask(context.Background(), count{})
		require.ErrorIs(t, err, persist.ErrQuarantined)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "tills/t")
		require.Empty(t, *events, "it was never recovered")
		require.Equal(t, dead+1, b.sys.DeadLetters().Count(), "a message that nobody waits for is a dead letter")
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0].Reason, persist.ErrQuarantined)
		require.Same(t, ref, failed[0].Ref)
		list := b.committer.Quarantined()
		require.Len(t, list, 1)
		require.Equal(t, tillKey(), list[0].Key)
		require.Same(t, ref, list[0].Ref)
		require.ErrorIs(t, list[0].Reason, cause)

		for range 20 {
			_, err = ref.Ask(context.Background(), persist.RetryRecovery{})
			require.ErrorIs(t, err, cause, "it spends no restarts")
		}
		require.Len(t, failed, 1)
		heal()
		require.Nil(t, ask[any](b, ref, persist.RetryRecovery{}))
		require.Equal(t, 2, ask[int](b, ref, count{}))
		require.Equal(t, []string{"recover", "post-recovery", "pre-start"}, *events)
		require.Empty(t, b.committer.Quarantined())
		require.Nil(t, ask[any](b, ref, persist.RetryRecovery{}), "nothing to do")
		_, err = ref.Ask(context.Background(), persist.DiscardSnapshot{})
		require.Error(t, err)
		require.EqualValues(t, 1, b.revisionOf(tillKey()), "nothing was discarded")
		b.close()
	}
}

func (b *bench) revisionOf(k persist.Key) uint64 {
	r, err := b.store.Load(context.Background(), k)
	if errors.Is(err, persist.ErrNotFound) {
		return 0
	}
	require.NoError(b.t, err)
	return r.Revision
}

func TestDiscardedSnapshot(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	b.stopped()
	heal := b.store.OnLoads(func(persist.Key) bool { return true }, snapshot.ErrCorrupt)
	ref, _ := b.till()
	stop := b.store.OnUnits(func(u persist.Unit) bool { return u.Delete }, persisttest.RefuseUnit)
	_, err := ref.Ask(context.Background(), persist.DiscardSnapshot{})
	require.ErrorIs(t, err, persist.ErrInvalid)
	_, err = ref.Ask(context.Background(), count{})
	require.ErrorIs(t, err, snapshot.ErrCorrupt, "it stays in quarantine, for what it was")
	stop()
	require.Nil(t, ask[any](b, ref, persist.DiscardSnapshot{}))
	heal()
	require.Zero(t, b.revisionOf(tillKey()), "the deletion is durable before it is acknowledged")
	require.Equal(t, 0, ask[int](b, ref, count{}))
	b.tell(ref, coin{}, save{})
	b.exec.RunFor(time.Second)
	require.Equal(t, persist.SnapshotSaved{Revision: 1}, ask[any](b, ref, answer{}))
}

// TestStopEndsQuarantine: the actor is off the list, and who waits is answered.
func TestStopEndsQuarantine(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	b.stopped()
	b.store.OnLoads(func(persist.Key) bool { return true }, snapshot.ErrCorrupt)
	ref, events := b.till()
	b.exec.RunFor(time.Second)
	require.Len(t, b.committer.Quarantined(), 1)
	ref.Stop()
	require.NoError(t, b.sys.AwaitStop(context.Background(), ref))
	require.Empty(t, b.committer.Quarantined())
	require.Empty(t, *events, "PostStop is for an actor that had started")
}

// frail fails its recovery in the way it is told.
type frail struct {
	till
	how   *string
	tries *int
}

func (f *frail) Recover(ctx *persist.Context, s persist.Snapshot) error {
	*f.tries++
	ctx.Become(func(*persist.Context, any) error { panic("a half-recovered actor got a message") })
	switch *f.how {
	case "error":
		return errors.New("on purpose")
	case "panic":
		panic("on purpose")
	}
	ctx.Unbecome()
	return f.till.Recover(ctx, s)
}

func (f *frail) PostRecovery(*persist.Context) error {
	if *f.how == "post" {
		return errors.New("on purpose")
	}
	return nil
}

// TestFailingRecoveryIsTriedAgainAndQuarantined: Recover and PostRecovery that
// fail or panic do not end the actor.
func TestFailingRecoveryIsTriedAgainAndQuarantined(t *testing.T) {
	for _, how := range []string{"error", "panic", "post"} {
		for _, directive := range []actor.Directive{actor.Restart, actor.Resume, actor.Escalate, actor.Stop} {
			b := newBench(t, 3, persist.CommitterConfig{})
			mode, tries := how, 0
			props := persist.Persistent(b.committer, snapshot.Msgpack(), func() persist.PersistentActor {
				return &frail{till: till{events: &[]string{}}, how: &mode, tries: &tries}
			})
			var ref *actor.Ref
			parent := actor.PropsFunc(func(ctx *actor.Context, msg any) (err error) {
				if msg == "spawn" {
					ref, err = ctx.Spawn("till", props)
				}
				return err
			})
			parent.Supervisor = &actor.Strategy{Decide: func(error) actor.Directive { return directive }}
			p, err := b.sys.Spawn("p", parent)
			require.NoError(t, err)
			b.tell(p, "spawn")
			b.exec.RunFor(time.Minute)
			switch directive {
			case actor.Stop: // which is what the supervisor wants
				require.True(t, ref.Stopped())
				require.Equal(t, 1, tries)
			case actor.Escalate: // the parent is restarted, and its children are stopped
				require.True(t, ref.Stopped())
			default:
				_, err = ref.Ask(context.Background(), count{})
				require.ErrorIs(t, err, persist.ErrQuarantined)
				require.ErrorContains(t, err, "on purpose")
				mode = "well"
				require.Nil(t, ask[any](b, ref, persist.RetryRecovery{}))
				require.Equal(t, 0, ask[int](b, ref, count{}))
				b.tell(ref, fail{}) // the supervisor is asked anew
				require.Equal(t, 0, ask[int](b, ref, count{}))
			}
			b.close()
		}
	}
}

// TestRecoveryWaitsForTheStore: an unavailable store is no failure, and holds up
// no stop.
func TestRecoveryWaitsForTheStore(t *testing.T) {
	for seed := range uint64(20) {
		b := newBench(t, seed, persist.CommitterConfig{})
		b.stopped()
		failures := 0
		b.sys.Events().Subscribe(func(e actor.Event) {
			if e.Kind == actor.ActorFailed {
				failures++
			}
		})
		heal := b.store.OnLoads(func(persist.Key) bool { return true }, persist.ErrUnavailable)
		ref, _ := b.till()
		b.tell(ref, coin{})
		b.exec.RunFor(time.Hour)
		if seed%2 == 0 {
			began := b.sys.Now()
			ref.Stop()
			require.NoError(t, b.sys.AwaitStop(context.Background(), ref))
			require.Zero(t, b.sys.Now().Sub(began), "a stop waits for no store")
			heal()
		} else {
			heal()
			require.Equal(t, 3, ask[int](b, ref, count{}), "nothing was lost meanwhile")
		}
		require.Zero(t, failures)
		b.close()
	}
}

// purse has a snapshot with fields, of a version.
type purse struct {
	Coins int `json:"coins"`
	Notes int `json:"notes"`
}

type purseActor struct {
	purse
	stop func(*persist.Context)
	own  *persist.Committer
}

func (p *purseActor) PersistenceID() persist.Key { return persist.Key{Pod: "purses", Name: "p"} }

func (p *purseActor) Committer() *persist.Committer { return p.own }

func (p *purseActor) Recover(_ *persist.Context, s persist.Snapshot) error { return s.Decode(&p.purse) }

func (p *purseActor) PreStart(ctx *persist.Context) error {
	ctx.BecomeStacked(func(ctx *persist.Context, msg any) error {
		if msg == "open" {
			ctx.Unbecome()
			ctx.UnstashAll()
			return nil
		}
		return ctx.Stash()
	})
	return nil
}

func (p *purseActor) PostStop(ctx *persist.Context) {
	if p.stop != nil {
		p.stop(ctx)
	}
}

func (p *purseActor) Receive(ctx *persist.Context, msg any) error {
	switch msg := msg.(type) {
	case purse:
		p.purse = msg
		ctx.SaveSnapshot(p.purse)
	case count:
		ctx.Respond(p.purse)
	}
	return nil
}

func (b *bench) purse(cfg persist.PersistentConfig, p *purseActor) *actor.Ref {
	ref, err := b.sys.Spawn("", cfg.Props(func() persist.PersistentActor {
		fresh := *p
		return &fresh
	}))
	require.NoError(b.t, err)
	b.tell(ref, "open")
	return ref
}

// TestSnapshotsAreUpgraded: older versions and another codec are carried
// forward, newer ones are refused.
func TestSnapshotsAreUpgraded(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	next := func(ref *actor.Ref) {
		ref.Stop()
		require.NoError(t, b.sys.AwaitStop(context.Background(), ref))
	}
	ref := b.purse(persist.PersistentConfig{Committer: b.committer, Codec: snapshot.JSON()}, &purseActor{})
	b.tell(ref, purse{Coins: 3})
	b.exec.RunFor(time.Second)
	next(ref)

	upgrades := snapshot.Upgrades{0: func(s map[string]any) error { s["notes"] = s["coins"]; return nil }}
	v1 := persist.PersistentConfig{Committer: b.committer, Schema: 1, Upgrades: upgrades}
	ref = b.purse(v1, &purseActor{})
	require.Equal(t, purse{3, 3}, ask[purse](b, ref, count{}))
	b.tell(ref, purse{4, 5})
	b.exec.RunFor(time.Second)
	next(ref)
	r, err := b.store.Load(context.Background(), persist.Key{Pod: "purses", Name: "p"})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Schema)
	require.Equal(t, "msgpack", r.Codec)

	ref = b.purse(persist.PersistentConfig{Committer: b.committer}, &purseActor{})
	_, err = ref.Ask(context.Background(), count{})
	require.ErrorIs(t, err, snapshot.ErrNewer)
	next(ref)

	bad := persist.PersistentConfig{Committer: b.committer, Schema: 2, Upgrades: snapshot.Upgrades{1: func(map[string]any) error { panic("bad upgrade") }}}
	ref = b.purse(bad, &purseActor{})
	_, err = ref.Ask(context.Background(), count{})
	require.ErrorIs(t, err, persist.ErrQuarantined)
	require.ErrorContains(t, err, "bad upgrade")
	next(ref)
	ref = b.purse(v1, &purseActor{})
	require.Equal(t, purse{4, 5}, ask[purse](b, ref, count{}))
}

type nameless struct{ *till }

func (nameless) PersistenceID() persist.Key { return persist.Key{Pod: "tills"} }

// TestServices: the system's default, that of the Props, and an actor's own.
func TestServices(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	ctx := context.Background()
	ref, err := b.sys.Spawn("", persist.PersistentConfig{}.Props(func() persist.PersistentActor { return &purseActor{} }))
	require.NoError(t, err)
	require.NoError(t, b.sys.AwaitStop(ctx, ref), "without any service it cannot start")
	ref, err = b.sys.Spawn("", persist.Persistent(b.committer, nil, func() persist.PersistentActor { return nameless{&till{}} }))
	require.NoError(t, err)
	require.NoError(t, b.sys.AwaitStop(ctx, ref), "nor without a key")

	b.committer.MakeDefault()
	ref = b.purse(persist.PersistentConfig{}, &purseActor{})
	b.tell(ref, purse{Coins: 1})
	b.exec.RunFor(time.Second)
	require.EqualValues(t, 1, b.revisionOf(persist.Key{Pod: "purses", Name: "p"}))

	other := persisttest.NewMemory()
	own := persist.NewCommitter(b.sys, other, persist.CommitterConfig{})
	ref = b.purse(persist.PersistentConfig{Committer: b.committer}, &purseActor{own: own})
	require.Equal(t, purse{}, ask[purse](b, ref, count{}))
	b.tell(ref, purse{Coins: 7})
	b.exec.RunFor(time.Second)
	r, err := other.Load(ctx, persist.Key{Pod: "purses", Name: "p"})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Revision)
	require.NoError(t, own.Close(ctx))
}

// TestPostStopSavesAndKnowsAShutdown.
func TestPostStopSavesAndKnowsAShutdown(t *testing.T) {
	for _, shutdown := range []bool{false, true} {
		b := newBench(t, 1, persist.CommitterConfig{})
		p := &purseActor{stop: func(ctx *persist.Context) {
			if !ctx.InShutdown() {
				ctx.DeleteSnapshot()
			} else {
				ctx.SaveSnapshot(purse{Notes: 9})
			}
		}}
		ref := b.purse(persist.PersistentConfig{Committer: b.committer}, p)
		b.tell(ref, purse{Coins: 1})
		b.exec.RunFor(time.Second)
		if shutdown {
			require.NoError(t, b.sys.Stop(context.Background()))
		} else {
			ref.Stop()
			require.NoError(t, b.sys.AwaitStop(context.Background(), ref))
		}
		b.exec.RunFor(time.Second)
		want := uint64(0)
		if shutdown {
			want = 2
		}
		require.Equal(t, want, b.revisionOf(persist.Key{Pod: "purses", Name: "p"}))
		b.close()
	}
}
