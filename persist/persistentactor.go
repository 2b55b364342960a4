package persist

import (
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// PersistentActor is an actor with a snapshot of its own. It is run by the
// Props that Persistent makes: first its snapshot is read, with the mailbox
// held; then Recover is called, PostRecovery and PreStart if it has them, and
// only then do its messages come. A restart begins with the recovery again.
//
// The other optional methods of actors (PostStop, PreRestart, Resumed) work as
// they do there.
type PersistentActor interface {
	// PersistenceID is the key under which the snapshot is kept. It must not
	// change while the actor runs.
	PersistenceID() Key
	// Recover takes the last snapshot, or one whose Found is false.
	Recover(ctx *Context, s Snapshot) error
	// Receive handles one message.
	Receive(ctx *Context, msg any) error
}

// PostRecoverer is implemented by persistent actors that want to act once they
// are recovered, before PreStart and before their first message.
type PostRecoverer interface {
	PostRecovery(ctx *Context) error
}

// Snapshot is what a PersistentActor recovers from.
type Snapshot struct {
	Found    bool
	Revision uint64 // counts the snapshots since the first, or the last deletion
	Saved    time.Time
	codec    snapshot.Codec
	state    []byte
}

// Decode decodes the snapshot into a pointer; without a snapshot it does
// nothing.
func (s Snapshot) Decode(into any) error {
	if !s.Found {
		return nil
	}
	return s.codec.Decode(s.state, into)
}

// The answers to SaveSnapshot and DeleteSnapshot, which come as messages.
type (
	// SnapshotSaved says that a snapshot is durable.
	SnapshotSaved struct{ Revision uint64 }
	// SnapshotFailed says that a snapshot was not saved or, if the error wraps
	// ErrUnknown, that it is not known whether it was.
	SnapshotFailed struct {
		Revision uint64
		Err      error
	}
	// SnapshotDeleted says that there is no snapshot any more.
	SnapshotDeleted struct{}
	// SnapshotDeleteFailed says that a snapshot was not deleted, as above.
	SnapshotDeleteFailed struct{ Err error }
)

// Context is an actor's context with a way to the store.
type Context struct {
	*actor.Context
	host *persistentHost
}

// SaveSnapshot encodes state now and saves it. The answer is SnapshotSaved or
// SnapshotFailed. Several may be under way; they are saved in order.
func (c *Context) SaveSnapshot(state any) {
	h := c.host
	rev := h.revision + 1
	data, err := h.codec.Append(nil, state)
	if err == nil {
		err = h.stale
	}
	if err != nil {
		h.tell(SnapshotFailed{Revision: rev, Err: fmt.Errorf("%s: save a snapshot: %w", h.key, err)})
		return
	}
	u := Unit{Key: h.key, Life: h.life, Expect: h.revision, Record: &snapshot.Record{
		Life: h.life, Revision: rev, Reserved: rev, Changed: c.Now().UTC(), Codec: h.codec.Name(), State: data,
	}}
	h.revision = rev
	h.submit(u, saving(rev))
}

// DeleteSnapshot deletes the snapshot, also one that is still being saved. The
// answer is SnapshotDeleted or SnapshotDeleteFailed.
func (c *Context) DeleteSnapshot() {
	h := c.host
	if h.stale != nil {
		h.tell(SnapshotDeleteFailed{Err: fmt.Errorf("%s: delete the snapshot: %w", h.key, h.stale)})
		return
	}
	h.submit(Unit{Key: h.key, Delete: true, Force: true}, deleting{})
	h.life, h.revision = 0, 0
	h.lane = nil // what follows begins a new life
}

// Persistent returns Props that run persistent actors on a committer, with
// their snapshots in a codec.
func Persistent(c *Committer, codec snapshot.Codec, factory func() PersistentActor) actor.Props {
	return actor.Props{New: func() actor.Actor {
		return &persistentHost{committer: c, codec: codec, user: factory()}
	}}
}

// persistentHost is the actor around a PersistentActor.
type persistentHost struct {
	committer *Committer
	codec     snapshot.Codec
	user      PersistentActor
	key       Key
	self      *actor.Ref
	lane      *Lane

	life, revision uint64 // of the newest snapshot asked for
	inFlight       int
	stale          error // why life and revision are not what the store has
}

type (
	saving    uint64
	deleting  struct{}
	recovered struct {
		host   *persistentHost
		record snapshot.Record
		err    error
	}
	answered struct {
		host    *persistentHost
		lane    *Lane
		results []Result
	}
)

func (h *persistentHost) PreStart(ctx *actor.Context) error {
	h.self, h.key = ctx.Self(), h.user.PersistenceID()
	ctx.Hold()
	h.read(ctx)
	return nil
}

func (h *persistentHost) read(ctx *actor.Context) {
	committer, key, self, stopped := h.committer, h.key, h.self, ctx.Context()
	ctx.System().Go(func() {
		// An earlier instance may still have snapshots under way.
		err := committer.Settle(stopped)
		var r snapshot.Record
		if err == nil {
			r, err = committer.Service().Load(stopped, key)
		}
		self.TellSystem(recovered{host: h, record: r, err: err})
	})
}

func (h *persistentHost) ReceiveSystem(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case recovered:
		if m.host == h {
			return h.recovered(ctx, m)
		}
	case answered:
		if m.host == h {
			h.answered(ctx, m)
		}
	}
	return nil
}

func (h *persistentHost) recovered(ctx *actor.Context, m recovered) error {
	found := m.err == nil
	if !found && !errors.Is(m.err, ErrNotFound) {
		if h.stale != nil { // after a failed save: the actor goes on without
			h.stale = fmt.Errorf("%w: %w", ErrUnavailable, m.err)
			ctx.System().After(time.Second, func() { h.self.TellSystem(answered{host: h}) })
			return nil
		}
		return fmt.Errorf("recover %s: %w", h.key, m.err)
	}
	h.life, h.revision = m.record.Life, m.record.Revision
	h.lane = nil
	if h.stale != nil {
		h.stale = nil
		return nil
	}
	defer ctx.Resume()
	return h.start(&Context{Context: ctx, host: h}, Snapshot{
		Found: found, Revision: m.record.Revision, Saved: m.record.Changed, codec: h.codec, state: m.record.State,
	})
}

func (h *persistentHost) start(ctx *Context, s Snapshot) error {
	if err := h.user.Recover(ctx, s); err != nil {
		return fmt.Errorf("recover %s: %w", h.key, err)
	}
	if p, ok := h.user.(PostRecoverer); ok {
		if err := p.PostRecovery(ctx); err != nil {
			return fmt.Errorf("after the recovery of %s: %w", h.key, err)
		}
	}
	if p, ok := h.user.(actor.PreStarter); ok {
		return p.PreStart(ctx.Context)
	}
	return nil
}

func (h *persistentHost) submit(u Unit, tag any) {
	if h.lane == nil {
		var lane *Lane
		lane = h.committer.Lane(func(r []Result) { h.self.TellSystem(answered{host: h, lane: lane, results: r}) })
		h.lane = lane
	}
	h.inFlight++
	h.lane.Submit(u, tag)
}

// answered turns outcomes into the messages that the actor waits for. After a
// failure the store says what it holds before anything more is saved.
func (h *persistentHost) answered(ctx *actor.Context, m answered) {
	for _, r := range m.results {
		h.inFlight--
		err := r.Outcome.Err
		if err == nil && m.lane == h.lane {
			h.life = r.Outcome.Life
		}
		if err != nil && h.stale == nil {
			h.stale = fmt.Errorf("%w: an earlier snapshot failed: %v", ErrUnavailable, err)
		}
		switch tag := r.Tag.(type) {
		case saving:
			if err != nil {
				h.tell(SnapshotFailed{Revision: uint64(tag), Err: err})
			} else {
				h.tell(SnapshotSaved{Revision: uint64(tag)})
			}
		case deleting:
			if err != nil {
				h.tell(SnapshotDeleteFailed{Err: err})
			} else {
				h.tell(SnapshotDeleted{})
			}
		}
	}
	if h.stale != nil && h.inFlight == 0 {
		h.read(ctx)
	}
}

// tell queues an answer behind what the actor has been sent already. Its
// mailbox has no bound.
func (h *persistentHost) tell(msg any) { _ = h.self.Tell(msg) }

func (h *persistentHost) Receive(ctx *actor.Context, msg any) error {
	return h.user.Receive(&Context{Context: ctx, host: h}, msg)
}

func (h *persistentHost) PostStop(ctx *actor.Context) {
	if p, ok := h.user.(actor.PostStopper); ok {
		p.PostStop(ctx)
	}
}

func (h *persistentHost) PreRestart(ctx *actor.Context, reason error, msg any) {
	if p, ok := h.user.(actor.PreRestarter); ok {
		p.PreRestart(ctx, reason, msg)
	}
}

func (h *persistentHost) Resumed(ctx *actor.Context, reason error) {
	if p, ok := h.user.(actor.Resumer); ok {
		p.Resumed(ctx, reason)
	}
}
