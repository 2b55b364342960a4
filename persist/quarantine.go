package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// ErrQuarantined is why a persistent actor takes no messages: its recovery
// failed, since its snapshot is damaged, newer than this program or cannot be
// upgraded, or since Recover or PostRecovery failed. It never goes on blank.
//
// The first time it is a failure like any other: it is logged, the system's
// events have it as actor.ActorFailed, and the supervisor decides. The instance
// that comes of a restart (or goes on, by Resume) reads again, and when that
// fails too the actor is in quarantine: Committer.Quarantined lists it, its
// messages are answered with an error that wraps ErrQuarantined and what
// failed, and are dead letters when nobody waits for an answer. It ends by
// RetryRecovery or DiscardSnapshot, or with the actor; what happens to the
// actor otherwise does not touch the snapshot.
var ErrQuarantined = errors.New("quarantined: it could not be recovered")

// The messages that end a quarantine. Asked, they are answered once the actor
// has recovered (with nil), or with why it has not; then it stays in
// quarantine. An actor that is not in quarantine answers the first with nil and
// the second with an error, and does nothing.
type (
	// RetryRecovery has the snapshot read and recovered from again.
	RetryRecovery struct{}
	// DiscardSnapshot deletes the snapshot, durably, and has the actor recover
	// without one.
	DiscardSnapshot struct{}
)

var errNotQuarantined = errors.New("it is not in quarantine: nothing was discarded")

// Quarantined is a persistent actor in quarantine.
type Quarantined struct {
	Key    Key
	Ref    *actor.Ref
	Reason error // wraps ErrQuarantined
	Since  time.Time
}

// Quarantined returns the persistent actors on this committer that are in
// quarantine, by key.
func (c *Committer) Quarantined() []Quarantined {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Quarantined, 0, len(c.quarantined))
	for _, q := range c.quarantined {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b Quarantined) int {
		return cmp.Or(cmp.Compare(a.Key.Pod, b.Key.Pod), cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Ref.Path(), b.Ref.Path()))
	})
	return out
}

// isolate lists an actor, or with a nil reason takes it off.
func (c *Committer) isolate(q Quarantined) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.Reason == nil {
		delete(c.quarantined, q.Ref)
		return
	}
	if c.quarantined == nil {
		c.quarantined = make(map[*actor.Ref]Quarantined)
	}
	c.quarantined[q.Ref] = q
}

// failedBefore marks, over restarts, that the supervisor has heard of the
// failing recovery.
const failedBefore = actor.Key[bool]("persist.failed-recovery")

// unrecovered deals with a recovery that failed. The error, if any, is for the
// supervisor.
func (h *persistentHost) unrecovered(ctx *actor.Context, cause error) error {
	h.reason = fmt.Errorf("%s: %w: %w", h.key, ErrQuarantined, cause)
	if known, _ := failedBefore.Get(ctx.Store()); !known {
		failedBefore.Set(ctx.Store(), true)
		return h.reason
	}
	h.quarantine(ctx)
	return nil
}

// quarantine has messages come and be refused.
func (h *persistentHost) quarantine(ctx *actor.Context) {
	for _, c := range ctx.Children() {
		c.Stop() // what a half-done Recover has made
	}
	h.committer.isolate(Quarantined{Key: h.key, Ref: h.self, Reason: h.reason, Since: ctx.Now()})
	ctx.System().Logger().Error("a persistent actor is in quarantine: send it RetryRecovery or DiscardSnapshot",
		"actor", h.self.Path(), "key", h.key.String(), "error", h.reason)
	h.healed(h.reason)
	ctx.Resume()
}

// healed answers who asked for the end of the quarantine.
func (h *persistentHost) healed(err error) {
	p := h.healing
	h.healing = nil
	switch {
	case p == nil:
	case err != nil:
		p.Fail(err)
	default:
		p.Complete(nil)
	}
}

// refuse handles a message in quarantine.
func (h *persistentHost) refuse(ctx *actor.Context, msg any) {
	switch msg.(type) {
	case RetryRecovery:
		h.again(ctx)
		h.read(ctx)
	case DiscardSnapshot:
		h.again(ctx)
		h.discard(ctx)
	default:
		m := ctx.Message()
		if m.Reply != nil {
			ctx.Fail(h.reason)
			return
		}
		ctx.System().DeadLetters().Publish(actor.ZombieMsg{To: h.self.Path(), Message: m, Reason: h.reason})
	}
}

// again begins a recovery of a new instance. The message in progress, if it is
// an ask, is answered at its end.
func (h *persistentHost) again(ctx *actor.Context) {
	ctx.Hold()
	h.healing = ctx.Defer()
	h.user, h.behaviours = h.factory(), nil
}

// discard deletes the snapshot, and then goes on as if none had been found.
func (h *persistentHost) discard(ctx *actor.Context) {
	committer, self := h.committer, h.self
	scope := h.scope
	ctx.System().Go(func() {
		outcome := committer.commit1(scope, Unit{Key: h.key, Delete: true, Force: true})
		r := recovered{host: h, err: ErrNotFound}
		if outcome.Err != nil {
			r.err, r.kept = fmt.Errorf("the snapshot may not have been discarded: %w", outcome.Err), true
		}
		self.TellSystem(r)
	})
}

// commit1 brings one unit into the store, by a lane of its own, and waits for
// its outcome. When ctx ends first that is unknown.
func (c *Committer) commit1(ctx context.Context, u Unit) Outcome {
	var o Outcome
	w := c.sys.NewWaiter()
	c.Lane(func(r []Result) {
		o = r[0].Outcome
		w.Wake()
	}).Submit(u, nil)
	if err := w.Wait(ctx); err != nil {
		return Outcome{Err: fmt.Errorf("%s: %w: %w", u.Key, ErrUnknown, err)}
	}
	return o
}

// notQuarantined answers the messages for quarantine outside of one. It says
// whether msg was one.
func notQuarantined(ctx *actor.Context, msg any) bool {
	switch msg.(type) {
	case RetryRecovery:
		if ctx.Message().Reply != nil {
			ctx.Respond(nil)
		}
		return true
	case DiscardSnapshot:
		ctx.Fail(errNotQuarantined)
		return true
	}
	return false
}
