package entity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// deleted is the type of the change that ends a life.
const deleted = "deleted"

// barrier is a message that waits until nothing is in flight.
type barrier struct {
	message  *Message
	reply    *actor.Promise
	run      func(*actor.Context)
	delivers bool // it waits for the outbox, too
}

// barrierLate says that a barrier has waited for the outbox long enough.
type barrierLate struct{ barrier *barrier }

// deliverWait is how long a deletion waits for messages of SendOnce to be
// delivered.
const deliverWait = 5 * time.Second

// drained runs f once nothing of the entity is in flight, now or later; until
// then the mailbox is held.
func (a *activation) drained(ctx *actor.Context, m *Message, reply *actor.Promise, f func(*actor.Context)) {
	unheld := mutant.On(mutant.PassivateInFlight) && m.op == opPassivate && !a.spec.Durability.IsAsync()
	if unheld || a.queue.len() == 0 && a.inFlight == 0 && a.poison == nil {
		f(ctx)
		return
	}
	a.hold(ctx, holdBarrier)
	a.barrier = &barrier{message: m, reply: reply, run: f}
}

// delivered is drained that also waits until the receivers of all messages of
// SendOnce have had their last word, for a time.
func (a *activation) delivered(ctx *actor.Context, m *Message, reply *actor.Promise, f func(*actor.Context)) {
	switch n, refused := a.mail.outbox.undelivered(a.key); {
	case n == 0:
		a.drained(ctx, m, reply, f)
	case refused, a.host.Closing() && !a.spec.Durability.IsVolatile(): // it may take long, and nothing else would be handled meanwhile
		a.refuse(ctx, m, reply, a.undeliverable(n))
	default:
		a.hold(ctx, holdBarrier)
		a.barrier = &barrier{message: m, reply: reply, run: f, delivers: true}
		a.barrierSoon(ctx)
	}
}

// barrierSoon looks after a barrier that waits for the outbox.
func (a *activation) barrierSoon(ctx *actor.Context) {
	b, self := a.barrier, a.self
	ctx.System().After(deliverWait, func() { self.TellSystem(barrierLate{b}) })
}

func (a *activation) undeliverable(n int) error {
	return fmt.Errorf("%s: %w: %d messages that it sent are not delivered yet; try again, or discard them with it", a.key, ErrBusy, n)
}

func (a *activation) barrierLate(ctx *actor.Context, m barrierLate) {
	b := a.barrier
	if b == nil || b != m.barrier {
		return
	}
	n, _ := a.mail.outbox.undelivered(a.key)
	if n == 0 { // it waits for a commit, which may fail and bring messages back
		a.barrierSoon(ctx)
		return
	}
	a.barrier = nil
	a.unhold(ctx, holdBarrier)
	a.refuse(ctx, b.message, b.reply, a.undeliverable(n))
}

func (a *activation) runBarrier(ctx *actor.Context) {
	b := a.barrier
	if b == nil || a.queue.len() > 0 || a.inFlight > 0 || a.poison != nil || a.phase == loading {
		return
	}
	if n, _ := a.mail.outbox.undelivered(a.key); b.delivers && n > 0 {
		return
	}
	a.barrier = nil
	a.unhold(ctx, holdBarrier)
	b.run(ctx)
}

// remove ends the life. Nothing is in flight when it is called, and nothing is
// handled until its outcome is there.
func (a *activation) remove(ctx *actor.Context, m *Message, reply *actor.Promise) {
	u := persist.Unit{Key: a.key, Delete: true}
	e := &entry{waits: true, removes: true, reply: reply, message: m}
	switch {
	case a.phase == failed:
		a.refuse(ctx, m, reply, a.reason)
		return
	case a.phase == quarantined && m.If.Where != nil: // nothing is known of what it asks about
		a.refuse(ctx, m, reply, a.reason)
		return
	case a.phase == quarantined:
		a.removeUnreadable(ctx, m, reply)
		return
	case a.head.revision == 0:
		a.refuse(ctx, m, reply, fmt.Errorf("%w: %s", ErrNotFound, a.key))
		return
	default:
		if err := a.meets(&m.If); err != nil {
			a.refuse(ctx, m, reply, err)
			return
		}
		e.life, e.revision = a.head.life, max(a.head.revision, a.head.floor)+1
		u.Life, u.Expect = a.head.life, a.head.stored
		u.Force = a.async.failure() != nil // the store may hold a write whose outcome is unknown
		u.Changes = []persist.Change{a.ending(ctx, e.revision)}
		e.reminders = a.mail.reminders.gone()
	}
	a.submitRemoval(ctx, u, e)
}

func (a *activation) submitRemoval(ctx *actor.Context, u persist.Unit, e *entry) {
	a.host.SetRemoving(true)
	a.async.cancel() // nothing is written or read behind it until its outcome is there
	a.hold(ctx, holdBarrier)
	a.queue.add(e)
	a.submit(u, e)
	if mutant.On(mutant.DeleteAckedEarly) {
		answer(e.reply, Ack{Life: e.life, Revision: e.revision}, nil)
		e.reply = nil
	}
}

// ending is the change that ends a life. That of an event-sourced entity is told
// from others, since its events must not be kept beyond it.
func (a *activation) ending(ctx *actor.Context, revision uint64) persist.Change {
	return persist.Change{Revision: revision, Time: ctx.Now().UTC(), Type: deleted, Event: a.spec.sourcing != nil}
}

// removable brings what must be known before an unreadable entity is removed.
type removable struct {
	by      *activation
	message *Message
	reply   *actor.Promise
	outbox  *outbox // what it has not delivered, as far as it can be read
	last    uint64  // the last revision that the journal has
	err     error
}

// removeUnreadable removes a quarantined entity, by force, once its undelivered
// messages are read, which become dead letters. An event-sourced one whose record
// is lost gets it back first: without a record there is nothing to remove, and
// its events would bring it back.
func (a *activation) removeUnreadable(ctx *actor.Context, m *Message, reply *actor.Promise) {
	a.hold(ctx, holdBarrier)
	a.removal = &removable{message: m, reply: reply}
	store, key, self, stopped, sourced := a.host.Committer().Service(), a.key, a.self, ctx.Context(), a.spec.sourcing != nil
	ctx.System().Go(func() {
		r := removable{by: a, message: m, reply: reply, outbox: &outbox{}}
		defer func() { self.TellSystem(r) }()
		if sourced {
			if r.err = recordBack(stopped, store, key); r.err != nil {
				return
			}
		}
		var last persist.Change
		if last, r.err = lastChange(stopped, store, key); r.err != nil && !unreadable(r.err) {
			return
		}
		r.last = last.Revision // of a damaged one 0: the store raises what is too low
		rows, err := store.RowsOf(stopped, key)
		if r.err = err; unreadable(err) {
			r.err = nil // some stores have them with the record: they are lost with it
		}
		for _, row := range rows {
			if row.Kind == OutboxRows && row.Err == nil {
				_ = r.outbox.parse(row) // one that is no message is lost
			}
		}
	})
}

// recordBack puts back the record of a life that the journal has not ended.
func recordBack(ctx context.Context, store persist.PersistenceService, key persist.Key) error {
	if _, err := store.Load(ctx, key); !errors.Is(err, persist.ErrNotFound) {
		if errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer) {
			return nil
		}
		return err
	}
	last, err := lastChange(ctx, store, key)
	if err != nil || last.Revision == 0 || last.Type == deleted {
		return err
	}
	return restoreRecord(ctx, store, key, snapshot.Record{Life: last.Life, Revision: last.Revision, Reserved: last.Revision, Changed: last.Time})
}

func (a *activation) removeNow(ctx *actor.Context, r removable) {
	a.removal = nil
	if r.err != nil {
		a.unhold(ctx, holdBarrier)
		a.refuse(ctx, r.message, r.reply, fmt.Errorf("%s: %w", a.key, r.err))
		return
	}
	a.mail.outbox = r.outbox
	a.submitRemoval(ctx, persist.Unit{
		Key: a.key, Delete: true, Force: true,
		Changes: []persist.Change{a.ending(ctx, r.last+1)},
	}, &entry{waits: true, removes: true, revision: r.last + 1, reply: r.reply, message: r.message})
}

// stuck reports whether turns wait for a reservation that the store refuses for
// the state's data. They would wait for ever, and a deletion behind them.
func (a *activation) stuck() bool {
	return errors.Is(a.async.failure(), persist.ErrInvalid) && a.inFlight == 0 && a.queue.len() > 0
}

// removeStuck deletes an entity that is stuck. The turns that wait have an
// unknown outcome: their states were built on, and end with the life.
func (a *activation) removeStuck(ctx *actor.Context, m *Message, reply *actor.Promise) {
	if err := a.meets(&m.If); err != nil {
		a.refuse(ctx, m, reply, err)
		return
	}
	a.async.abandoned(a)
	a.queue.failAll(ctx, a, nil, fmt.Errorf("%s: %w: it was deleted before its changes were durable", a.key, persist.ErrUnknown))
	a.unhold(ctx, holdFull)
	a.remove(ctx, m, reply)
}

// removed makes the entity absent once its deletion is durable. Its view tells
// that when the deletion is let out.
func (a *activation) removed(ctx *actor.Context) {
	if a.phase == quarantined {
		a.phase, a.reason = serving, nil
		a.host.Quarantine(nil)
	}
	for _, k := range a.mail.outbox.receivers() { // none is left but by Discard
		for _, p := range a.mail.outbox.line(k).parcels {
			if !p.done {
				a.refused(ctx, p, fmt.Errorf("%w: %s was deleted before it could deliver it", ErrNotFound, a.key))
			}
		}
	}
	a.mail.outbox.stop()
	a.head, a.mail, a.snapshots = head{}, mail{}, a.noSnapshots()
	a.model.forget()
	a.async.reset()
	a.unhold(ctx, holdBarrier)
}

// passivate makes the entity leave memory once everything is durable. While
// messages of SendOnce wait to be delivered it stays, unless everything ends.
func (a *activation) passivate(ctx *actor.Context, m *Message, reply *actor.Promise) {
	a.leave(ctx, m, reply, true)
}

// leave is passivate; save says whether a snapshot is still to be tried, without
// which an event-sourced entity can do.
func (a *activation) leave(ctx *actor.Context, m *Message, reply *actor.Promise, save bool) {
	a.drained(ctx, m, reply, func(ctx *actor.Context) {
		switch {
		case !a.async.clean(a):
			if a.async.failing != nil {
				answer(reply, nil, a.async.failing)
				return
			}
			a.async.start(a, true)
			a.leave(ctx, m, reply, save)
		case save && a.snapshots.behind(a):
			a.saveSnapshot(ctx, nil, nil)
			a.leave(ctx, m, reply, false)
		case (a.owes || !a.mail.outbox.idle()) && !a.host.Closing():
			answer(reply, nil, fmt.Errorf("%s: %w: %d messages that it sent are not delivered yet", a.key, ErrBusy, a.mail.outbox.size()))
		case ctx.Retire():
			a.mail.outbox.stop()
			answer(reply, nil, nil)
		default:
			answer(reply, nil, fmt.Errorf("%s: %w", a.key, ErrBusy))
		}
	})
}

// leaveIfAbsent retires the slot of a name that no entity has, or of which nothing
// could be read, so that refused messages leave nothing behind.
func (a *activation) leaveIfAbsent(ctx *actor.Context) {
	absent := a.phase == serving && a.head.revision == 0 || a.phase == failed && !a.viewed
	if absent && !mutant.On(mutant.RefusedSlotStays) {
		a.leaveIfIdle(ctx)
	}
}

// leaveIfIdle retires an activation that nothing waits for; one with something
// that is to be made durable first leaves as soon as that is.
func (a *activation) leaveIfIdle(ctx *actor.Context) {
	a.leaving = false
	if a.holds != 0 || a.queue.len() > 0 || a.inFlight > 0 || a.creating != nil || ctx.Self().MailboxLen() > 0 {
		a.leaving = a.inFlight > 0
		return
	}
	if a.owes || !a.mail.outbox.idle() || a.head.revision > 0 && a.host.Stays() {
		return
	}
	switch {
	case !a.async.clean(a):
		if a.async.failing == nil {
			a.leaving = true
			a.async.start(a, true)
		}
	case a.snapshots.behind(a):
		a.leaving = true
		a.saveSnapshot(ctx, nil, nil)
	default:
		ctx.Retire()
	}
}
