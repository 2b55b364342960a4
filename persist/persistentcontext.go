package persist

import (
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Context is an actor's context with a way to the store. As an actor.Context
// it belongs to the call that it was handed to.
type Context struct {
	*actor.Context
	host *persistentHost
}

// Behaviour handles messages in place of PersistentActor.Receive.
type Behaviour func(ctx *Context, msg any) error

// SaveSnapshot encodes state now and saves it. The answer is SnapshotSaved or
// SnapshotFailed. Several may be under way; they are saved in order.
func (c *Context) SaveSnapshot(state any) {
	h := c.host
	rev := h.revision + 1
	data, err := h.cfg.Codec.Append(nil, state)
	if err == nil {
		err = h.stale
	}
	if err != nil {
		h.tell(SnapshotFailed{Revision: rev, Err: fmt.Errorf("%s: save a snapshot: %w", h.key, err)})
		return
	}
	u := Unit{Key: h.key, Life: h.life, Expect: h.revision, Record: &snapshot.Record{
		Life: h.life, Revision: rev, Reserved: rev, Changed: c.Now().UTC(),
		Schema: h.cfg.Schema, Codec: h.cfg.Codec.Name(), State: data,
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

// InShutdown says that the whole system is stopping, not this actor alone. An
// actor whose end is to delete its snapshot keeps it then.
func (c *Context) InShutdown() bool { return c.Stopping() }

// Become replaces the handler that messages go to, from the next one on. A
// restart goes back to Receive.
func (c *Context) Become(f Behaviour) {
	h := c.host
	if n := len(h.behaviours); n > 0 {
		h.behaviours[n-1] = f
	} else {
		h.behaviours = append(h.behaviours, f)
	}
}

// BecomeStacked is Become, but Unbecome comes back to the handler before.
func (c *Context) BecomeStacked(f Behaviour) { c.host.behaviours = append(c.host.behaviours, f) }

// Unbecome undoes the last BecomeStacked. Without any, it goes back to Receive.
func (c *Context) Unbecome() {
	if n := len(c.host.behaviours); n > 0 {
		c.host.behaviours = c.host.behaviours[:n-1]
	}
}
