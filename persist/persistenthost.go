package persist

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// persistentHost is the actor around a PersistentActor. All of its fields are
// its turns' own, but for what is set once in PreStart.
type persistentHost struct {
	cfg        PersistentConfig
	factory    func() PersistentActor
	user       PersistentActor
	behaviours []Behaviour

	committer *Committer
	key       Key
	self      *actor.Ref
	scope     context.Context // of what reads for this instance
	leave     context.CancelFunc

	running bool           // recovered and started: messages are the user's
	reason  error          // why it could not be recovered
	healing *actor.Promise // who waits for the end of a quarantine

	lane           *Lane
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
		err    error // nil, or wraps ErrNotFound, or why the snapshot cannot be read
		kept   bool  // err is why DiscardSnapshot did nothing
	}
	answered struct {
		host    *persistentHost
		lane    *Lane
		results []Result
	}
)

func (h *persistentHost) PreStart(ctx *actor.Context) error {
	h.self, h.key = ctx.Self(), h.user.PersistenceID()
	err := h.key.Check()
	if err == nil {
		err = h.cfg.check()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", h.key, err)
	}
	if h.committer, err = h.cfg.serviceOf(ctx.System(), h.user); err != nil {
		return fmt.Errorf("start %s: %w", h.key, err)
	}
	h.scope, h.leave = context.WithCancel(ctx.Context())
	ctx.Hold()
	h.read(ctx)
	return nil
}

// read has the snapshot read and brought as a recovered. A store that is
// unavailable is asked again, with growing pauses, until the instance ends.
func (h *persistentHost) read(ctx *actor.Context) {
	committer, key, self, scope, sys := h.committer, h.key, h.self, h.scope, ctx.System()
	sys.Go(func() {
		r, err := committer.readSettled(scope, key)
		if scope.Err() == nil {
			self.TellSystem(recovered{host: h, record: r, err: err})
		}
	})
}

// readSettled reads a record once nothing is under way for it. It asks until
// the store says what it holds, or that this cannot be read, or until ctx ends.
func (c *Committer) readSettled(ctx context.Context, key Key) (snapshot.Record, error) {
	for pause := c.cfg.MinBackoff; ; pause = min(2*pause, c.cfg.MaxBackoff) {
		err := c.Settle(ctx) // an earlier instance may still have units under way
		if err != nil {
			return snapshot.Record{}, err
		}
		r, err := c.store.Load(ctx, key)
		if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer) {
			return r, err
		}
		if ctx.Err() == nil {
			c.sys.Logger().Warn("a record cannot be read now; it is tried again", "key", key.String(), "error", err, "next_try_in", pause)
		}
		if err := c.sys.Sleep(ctx, pause); err != nil {
			return snapshot.Record{}, err
		}
	}
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
	switch {
	case h.running:
		h.refreshed(ctx, m)
		return nil
	case m.kept:
		h.healed(m.err)
		ctx.Resume()
		return nil
	}
	h.life, h.revision, h.lane, h.stale = m.record.Life, m.record.Revision, nil, nil
	s, err := h.snapshot(m)
	if err == nil {
		err = guarded(func() error { return h.restore(&Context{Context: ctx, host: h}, s) })
	}
	if err != nil {
		return h.unrecovered(ctx, err)
	}
	return h.start(ctx)
}

// refreshed takes what the store holds after a failed save.
func (h *persistentHost) refreshed(ctx *actor.Context, m recovered) {
	if m.err != nil && !errors.Is(m.err, ErrNotFound) { // the actor goes on without
		h.stale = fmt.Errorf("%w: %w", ErrUnavailable, m.err)
		ctx.System().After(time.Second, func() { h.self.TellSystem(answered{host: h}) })
		return
	}
	h.life, h.revision, h.lane, h.stale = m.record.Life, m.record.Revision, nil, nil
}

// snapshot makes of what was read what Recover takes.
func (h *persistentHost) snapshot(m recovered) (Snapshot, error) {
	switch {
	case errors.Is(m.err, ErrNotFound):
		return Snapshot{codec: h.cfg.Codec}, nil
	case m.err != nil:
		return Snapshot{}, m.err
	}
	r, codec := m.record, h.cfg.Codec
	if r.Codec != codec.Name() {
		var err error
		if codec, err = snapshot.CodecByName(r.Codec); err != nil {
			return Snapshot{}, err
		}
	}
	var state []byte
	err := guarded(func() (err error) {
		state, err = h.cfg.Upgrades.Apply(codec, r.State, r.Schema, h.cfg.Schema)
		return err
	})
	return Snapshot{Found: true, Revision: r.Revision, Saved: r.Changed, Schema: r.Schema, codec: codec, state: state}, err
}

// guarded calls f and makes an error of its panic.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &actor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

func (h *persistentHost) restore(ctx *Context, s Snapshot) error {
	if err := h.user.Recover(ctx, s); err != nil {
		return fmt.Errorf("its Recover failed: %w", err)
	}
	if p, ok := h.user.(PostRecoverer); ok {
		if err := p.PostRecovery(ctx); err != nil {
			return fmt.Errorf("its PostRecovery failed: %w", err)
		}
	}
	return nil
}

// start begins with messages. Its error is a failure of PreStart, as any
// actor's.
func (h *persistentHost) start(ctx *actor.Context) error {
	h.running, h.reason = true, nil
	failedBefore.Delete(ctx.Store())
	h.committer.isolate(Quarantined{Ref: h.self})
	h.healed(nil)
	defer ctx.Resume()
	switch p := h.user.(type) {
	case PreStarter:
		return p.PreStart(&Context{Context: ctx, host: h})
	case actor.PreStarter:
		return p.PreStart(ctx)
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
	if h.stale != nil && h.inFlight == 0 && h.running {
		h.read(ctx)
	}
}

// tell queues an answer behind what the actor has been sent already. Its
// mailbox has no bound.
func (h *persistentHost) tell(msg any) { _ = h.self.Tell(msg) }

func (h *persistentHost) Receive(ctx *actor.Context, msg any) error {
	if !h.running {
		h.refuse(ctx, msg)
		return nil
	}
	if notQuarantined(ctx, msg) {
		return nil
	}
	c := &Context{Context: ctx, host: h}
	if n := len(h.behaviours); n > 0 {
		return h.behaviours[n-1](c, msg)
	}
	return h.user.Receive(c, msg)
}

// ended lets go of what the instance has begun.
func (h *persistentHost) ended(err error) {
	h.leave()
	h.committer.isolate(Quarantined{Ref: h.self})
	h.healed(err)
}

func (h *persistentHost) PostStop(ctx *actor.Context) {
	h.ended(fmt.Errorf("%s: %w", h.self.Path(), actor.ErrStopped))
	if !h.running {
		return
	}
	switch p := h.user.(type) {
	case PostStopper:
		p.PostStop(&Context{Context: ctx, host: h})
	case actor.PostStopper:
		p.PostStop(ctx)
	}
}

func (h *persistentHost) PreRestart(ctx *actor.Context, reason error, msg any) {
	h.ended(reason)
	if p, ok := h.user.(actor.PreRestarter); ok && h.running {
		p.PreRestart(ctx, reason, msg)
	}
}

func (h *persistentHost) Resumed(ctx *actor.Context, reason error) {
	switch p, ok := h.user.(actor.Resumer); {
	case h.reason != nil:
		h.quarantine(ctx)
	case ok && h.running:
		p.Resumed(ctx, reason)
	}
}
