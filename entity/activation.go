package entity

import (
	"context"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// maxInFlight is how many turns may wait for their commits before the entity
// takes no further message.
const maxInFlight = 256

// maxBytesInFlight bounds the states of those turns; one may be larger.
const maxBytesInFlight = 4 << 20

// phase is what an activation does with the messages it is given.
type phase uint8

const (
	loading     phase = iota // the mailbox is held until the record is there
	serving                  // turns run
	failed                   // the store did not answer; the next message tries again
	quarantined              // the record cannot be read; only deletion helps
)

// hold is a reason to keep the user mailbox shut. The mailbox is open while no
// reason stands.
type hold uint8

const (
	holdLoad    hold = 1 << iota // the record is being read
	holdCreate                   // Init is running
	holdFull                     // too many turns in flight
	holdBarrier                  // something waits for all commits in flight
	holdPoison                   // a commit failed; the state must be read anew
)

// head is the state that the next turn builds on. It may be ahead of what is
// durable.
type head struct {
	life     uint64 // 0 until the commit that creates is durable
	revision uint64 // 0: the entity is absent
	floor    uint64 // revisions up to here may have been given out before
	stored   uint64 // the revision that the next unit expects in the store
	changed  time.Time
	enc      []byte // the state's canonical encoding
}

// activation is one entity in memory, from its recovery to its passivation:
// the half that does not depend on the state's type. All of it belongs to the
// actor's turns.
type activation struct {
	host  Host
	key   persist.Key
	spec  *Spec
	model model

	// Small fields together save 32 bytes.
	phase     phase
	holds     hold
	viewed    bool // the view shows an acknowledged state, also while reading fails
	anew      bool // the next recovery is from the journal alone
	owes      bool // the store has, or may have, messages of it to deliver, or reminders that the host does not know of
	unsure    bool // a commit's outcome is unknown, and the store was not read since
	reloading bool // a timer is set that reads it again
	leaving   bool // it leaves once what it began for that is durable

	reason    error // why the phase is failed or quarantined
	lane      *persist.Lane
	head      head
	queue     releaseQueue
	inFlight  int // units submitted whose outcome has not come
	poison    error
	creating  *creation
	barrier   *barrier   // runs once nothing is in flight
	removal   *removable // of an unreadable entity, being prepared
	async     *flusher   // of an asynchronous entity
	mail      mail
	snapshots *snapshots         // of an event-sourced entity
	setback   time.Duration      // the pause before messages go out again after commits that failed
	endWork   context.CancelFunc // ends the reading or the Init that is under way
	self      *actor.Ref
	asked     *actor.Promise // of the message in progress
}

// Receive handles one user message; it comes only while nothing holds the
// mailbox.
func (a *activation) Receive(ctx *actor.Context, msg any) error {
	a.host.Used()
	a.leaving = false
	m, err := a.bind(msg)
	reply := ctx.Defer()
	if reply != nil && reply.Done() && !reply.GivenUp() {
		reply = nil // whoever forwarded the message has answered it already
	}
	a.asked = reply
	switch {
	case err != nil:
		a.refuse(ctx, msg, reply, err)
	case reply != nil && reply.GivenUp():
		// The asker was told that the outcome is unknown. Doing nothing is one
		// of the possible ones, and keeps a backlog from outliving its askers.
		a.refuse(ctx, msg, nil, fmt.Errorf("%s: %w: its asker had given up before its turn", a.key, actor.ErrTimeout))
	case a.phase == failed && m.op != opPassivate:
		a.reload(ctx, m, reply, func(ctx *actor.Context) { a.dispatch(ctx, m, reply) })
	default:
		a.dispatch(ctx, m, reply)
	}
	a.asked = nil
	a.leaveIfAbsent(ctx)
	return nil
}

// dispatch does what a message asks for.
func (a *activation) dispatch(ctx *actor.Context, m *Message, reply *actor.Promise) {
	switch {
	case m.op == opPassivate:
		a.passivate(ctx, m, reply)
	case a.phase == failed:
		a.refuse(ctx, m, reply, a.reason)
	case m.op == opRetry:
		a.retry(ctx, m, reply)
	case m.op == opAdmit:
		a.answerAdmit(ctx, m, reply)
	case m.deletes() && a.stuck():
		a.removeStuck(ctx, m, reply)
	case m.op == opDelete:
		a.delivered(ctx, m, reply, func(ctx *actor.Context) { a.remove(ctx, m, reply) })
	case m.op == opDiscard:
		a.drained(ctx, m, reply, func(ctx *actor.Context) { a.remove(ctx, m, reply) })
	case m.op == opRebuild:
		a.rebuild(ctx, m, reply)
	case a.phase == quarantined:
		a.refuse(ctx, m, reply, a.reason)
	case m.op == opTouch:
		answer(reply, nil, nil)
	case m.op == opRemind:
		a.reminderDue(ctx, m, reply)
	default:
		a.turn(ctx, m, reply)
	}
}

// bind accepts what may stand in the mailbox: a Message, a Go value of one of
// the entity's messages, a PoisonPill.
func (a *activation) bind(msg any) (*Message, error) {
	if _, ok := msg.(actor.PoisonPill); ok {
		return Passivate(), nil
	}
	return a.spec.Wrap(msg)
}

// PreStart begins the recovery.
func (a *activation) PreStart(ctx *actor.Context) error {
	a.self = ctx.Self()
	a.load(ctx)
	return nil
}

// PostStop answers whoever still waits.
func (a *activation) PostStop(ctx *actor.Context) {
	a.abandon(ctx)
	a.host.Gone(a.inFlight > 0)
}

// PreRestart answers whoever still waits. The actor that follows reads the
// store.
func (a *activation) PreRestart(ctx *actor.Context, _ error, _ any) {
	a.abandon(ctx)
}

// abandon ends an activation that did not retire. What it has in flight may or
// may not become durable.
func (a *activation) abandon(ctx *actor.Context) {
	a.async.last(a)
	a.async.cancel()
	a.mail.outbox.stop()
	a.host.SetRemoving(false)
	if a.owesMail() {
		a.host.Owes()
	}
	if a.inFlight > 0 || a.phase == failed || a.poison != nil || !a.async.clean(a) {
		a.host.SetView(nil) // the store alone knows what becomes of it
	}
	if mutant.On(mutant.AbandonSilent) {
		a.queue = releaseQueue{}
	}
	a.queue.failAll(ctx, a, nil, fmt.Errorf("%s: %w: the entity was stopped before its commit was answered", a.key, persist.ErrUnknown))
	if a.creating != nil {
		a.refuse(ctx, a.creating.message, a.creating.reply, fmt.Errorf("%s: %w", a.key, actor.ErrStopped))
		a.creating = nil
	}
	if a.endWork != nil {
		a.endWork()
		a.endWork = nil
	}
	if r := a.removal; r != nil {
		a.removal = nil
		a.refuse(ctx, r.message, r.reply, fmt.Errorf("%s: %w", a.key, actor.ErrStopped))
	}
	if b := a.barrier; b != nil {
		a.barrier = nil
		if b.reply != nil || b.message.op != opPassivate {
			a.refuse(ctx, b.message, b.reply, fmt.Errorf("%s: %w", a.key, actor.ErrStopped))
		}
	}
	if a.asked != nil && !a.asked.Done() { // its handler neither returned nor panicked
		a.asked.Fail(fmt.Errorf("%s: %w", a.key, actor.ErrStopped))
	}
}

// The messages that an activation's own work sends it, ahead of the mailbox.
// They say whose they are, since a restarted actor still gets those of the
// activation before it.
type (
	loaded struct {
		by      *activation
		record  snapshot.Record
		state   any
		enc     []byte
		missing bool
		err     error
		mail    mail

		// Of an event-sourced entity: its snapshot, and whether its record was
		// made again.
		snapshotAt uint64
		snapshotOf time.Time
		repair     bool
	}
	initialised struct {
		by    *activation
		state any
		err   error
	}
	settled struct {
		by      *activation
		results []persist.Result
	}
	flushDue  struct{ timer *flushTimer }
	sweepOver struct{}
)

// Sweep returns the message of Ref.TellSystem that has an idle entity leave
// memory, and a busy one stay.
func Sweep() any { return sweepOver{} }

// ReceiveSystem handles what comes back from the activation's own work.
func (a *activation) ReceiveSystem(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case loaded:
		if m.by == a {
			a.recovered(ctx, m)
		}
	case initialised:
		if m.by == a {
			a.initialised(ctx, m)
		}
	case settled:
		if m.by == a {
			a.settle(ctx, m.results)
		}
	case flushDue:
		a.flushDue(ctx, m)
	case parcelAnswered:
		a.parcelAnswered(ctx, m)
	case *lineTimer:
		a.lineDue(ctx, m)
	case *tidyTimer:
		a.tidyDue(ctx, m)
	case removable:
		if m.by == a {
			a.removeNow(ctx, m)
		}
	case barrierLate:
		a.barrierLate(ctx, m)
	case reloadDue:
		if m.by == a {
			a.reloadDue(ctx)
		}
	case flushHead:
		if m.by == a {
			a.flushHead(ctx, m)
		}
	case sweepOver:
		a.leaveIfIdle(ctx)
	}
	if a.leaving {
		a.leaveIfIdle(ctx)
	}
	a.leaveIfAbsent(ctx)
	return nil
}

// hold shuts the user mailbox for a reason.
func (a *activation) hold(ctx *actor.Context, h hold) {
	if a.holds == 0 {
		ctx.Hold()
	}
	a.holds |= h
}

// unhold takes a reason away and opens the mailbox when it was the last.
func (a *activation) unhold(ctx *actor.Context, h hold) {
	if a.holds == 0 {
		return
	}
	if a.holds &^= h; a.holds == 0 {
		ctx.Resume()
	}
}

// submit hands a unit to the committer; its outcome comes back as settled.
func (a *activation) submit(u persist.Unit, tag any) {
	if a.lane == nil {
		self := a.self
		a.lane = a.host.Committer().Lane(func(r []persist.Result) { self.TellSystem(settled{by: a, results: r}) })
	}
	if mutant.On(mutant.ReuseLife) && u.Life == 1 {
		u.Life = 0 // the lane knows the one that the store gave
	}
	a.inFlight++
	a.lane.Submit(u, tag)
}

// refuse answers a message that will not be handled, at once. One that nobody
// waits for becomes a dead letter.
func (a *activation) refuse(ctx *actor.Context, msg any, reply *actor.Promise, err error) {
	if reply != nil {
		answer(reply, nil, err)
		return
	}
	ctx.System().DeadLetters().Publish(actor.ZombieMsg{
		To: a.self.Path(), Message: actor.Message{Payload: msg}, Reason: err, At: ctx.Now(),
	})
}

func answer(reply *actor.Promise, v any, err error) {
	switch {
	case reply == nil:
	case err != nil:
		reply.Fail(err)
	default:
		reply.Complete(v)
	}
}
