package sim

import (
	"context"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// keeper is a persistent actor that counts, and saves its count when it is told
// to. What it was told is saved must be there after a crash.
type keeper struct {
	w     *process
	count int
}

// kept is what is known of the keeper's snapshot.
type kept struct {
	saved  int  // the count of the last snapshot that is known to be durable
	unsure bool // it was deleted, or may have been
}

type (
	countOne  struct{}
	saveCount struct{}
	forgetAll struct{}
)

// keepers is the pod of the keeper's record.
const keepers = "keepers"

func (k *keeper) PersistenceID() persist.Key { return persist.Key{Pod: keepers, Name: "k"} }

// Recover looks whether nothing that was saved is lost.
func (k *keeper) Recover(_ *persist.Context, s persist.Snapshot) error {
	if err := s.Decode(&k.count); err != nil {
		return err
	}
	if known := &k.w.kept; !k.w.dead && !known.unsure && k.count < known.saved {
		k.w.wrong("G5: the keeper had saved %d, and is recovered with %d", known.saved, k.count)
	}
	return nil
}

func (k *keeper) Receive(ctx *persist.Context, msg any) error {
	known := &k.w.kept
	switch m := msg.(type) {
	case countOne:
		k.count++
		if k.count%5 == 0 {
			return errOnPurpose // its supervisor starts it again, from the snapshot
		}
	case saveCount:
		ctx.SaveSnapshot(k.count)
	case persist.RetryRecovery, persist.DiscardSnapshot:
		ctx.BecomeStacked(k.Receive) // it is not quarantined
		ctx.Unbecome()
	case forgetAll:
		known.unsure = true
		ctx.DeleteSnapshot()
	case persist.SnapshotSaved:
		if !known.unsure && !k.w.dead {
			known.saved = k.saved()
		}
	case persist.SnapshotFailed:
		if m.Err == nil {
			k.w.wrong("G7: a snapshot failed and does not say why")
		}
	}
	return nil
}

// saved is the count that the store has.
func (k *keeper) saved() (n int) {
	r, err := k.w.disk.base.Load(context.Background(), k.PersistenceID())
	if err == nil {
		err = snapshot.Msgpack().Decode(r.State, &n)
	}
	if err != nil && len(k.w.damaged) == 0 {
		k.w.wrong("G2: the keeper was told that its snapshot is saved; the store says %v", err)
	}
	return n
}

func (w *process) newKeeper() {
	ref, err := w.sys.Spawn("keeper", persist.Persistent(w.pods.Committer(), nil, func() persist.PersistentActor { return &keeper{w: w} }))
	w.must(err)
	w.keeper = ref
}

// keep tells the keeper something.
func (w *process) keep(n int) {
	var msg any = countOne{}
	switch n {
	case 0:
		msg = forgetAll{}
	case 1, 2, 3:
		msg = saveCount{}
	case 4:
		msg = actor.PoisonPill{}
	case 5:
		msg = persist.RetryRecovery{}
	case 6:
		w.kept.unsure = true
		msg = persist.DiscardSnapshot{}
	}
	if w.keeper.Stopped() {
		w.newKeeper()
	}
	_ = w.keeper.Tell(msg) // it may be stopping
}
