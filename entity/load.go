package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// InitTimeout bounds an Init.
const InitTimeout = 30 * time.Second

// load reads the entity's record off the workers, with the mailbox held.
func (a *activation) load(ctx *actor.Context) {
	a.phase = loading
	a.hold(ctx, holdLoad)
	committer, spec, key, self, anew := a.host.Committer(), a.spec, a.key, a.self, a.anew
	a.anew = false
	stopped, succeeds := a.work(ctx), a.host.Succeeds()
	ctx.System().Go(func() {
		l := loaded{err: errLeft}
		defer func() {
			l.by = a
			self.TellSystem(l)
		}()
		if succeeds && !mutant.On(mutant.SettleNotAwaited) {
			if err := committer.Settle(stopped); err != nil {
				l.err = err
				return
			}
		}
		l = read(stopped, committer.Service(), spec, key, anew)
	})
}

// work returns the context of reading or Init, which ends with the activation.
// It is not the actor's own: that would stay as long as the entity does.
func (a *activation) work(ctx *actor.Context) context.Context {
	work, end := ctx.System().WithCancel(context.Background())
	a.endWork = end
	return work
}

// errLeft is the failure of user code that ended its goroutine.
var errLeft = errors.New("it called runtime.Goexit")

func read(ctx context.Context, store persist.PersistenceService, spec *Spec, key persist.Key, anew bool) (l loaded) {
	r, err := store.Load(ctx, key)
	switch {
	case spec.sourcing != nil:
		if l = spec.replay(ctx, store, key, r, err, anew); l.err == nil && l.repair {
			l.err = restoreRecord(ctx, store, key, l.record)
		}
	case errors.Is(err, persist.ErrNotFound):
		return loaded{missing: true}
	case err != nil:
		return loaded{err: err}
	default:
		l.record = r
		if l.state, l.enc, l.err = spec.decode(&r); l.err != nil {
			l.err = fmt.Errorf("%s: %w", key, l.err)
		}
	}
	if l.err != nil || l.missing {
		return l
	}
	rows, err := readRows(ctx, store, key)
	if err == nil {
		l.mail, err = parseMail(rows)
	}
	if err != nil {
		return loaded{err: err}
	}
	return l
}

// recovered takes the record in and opens the mailbox.
func (a *activation) recovered(ctx *actor.Context, l loaded) {
	if mutant.On(mutant.UnreadableBlank) && l.err != nil && unreadable(l.err) {
		l = loaded{missing: true}
	}
	a.endWork = nil
	a.owes = a.owesMail()
	if a.poison != nil {
		a.unsure = a.unsure || errors.Is(a.poison, persist.ErrUnknown)
		a.setback = min(max(2*a.setback, minResend), maxResend)
	}
	a.poison, a.lane = nil, nil
	a.model.forget()
	a.head = head{}
	a.async.reset()
	a.mail.outbox.stop()
	a.mail, a.snapshots = mail{}, a.noSnapshots()
	switch {
	case l.err != nil && unreadable(l.err):
		a.phase = quarantined
		a.reason = fmt.Errorf("%w: %w; run a program that reads it, or delete it", ErrQuarantined, l.err)
		a.viewed = false
		a.host.SetView(nil)
		a.host.SetRemoving(false)
		a.host.Quarantine(a.reason)
		ctx.Logger().Error("the entity is quarantined: its record cannot be read", "entity", a.key.String(), "error", l.err)
	case l.err != nil:
		// What was acknowledged before stays to be read.
		a.phase = failed
		a.reason = l.err
		a.tryAgain(ctx)
	default:
		a.phase = serving
		a.host.Quarantine(nil)
		a.owes, a.unsure = false, false
		a.begin(l)
		a.host.SetRemoving(false)
		a.resumeOutbox(ctx)
		if n, _ := a.mail.outbox.undelivered(a.key); n > 0 && a.barrier != nil && a.barrier.delivers {
			a.hold(ctx, holdBarrier)
		}
	}
	a.unhold(ctx, holdLoad|holdPoison|holdFull)
	a.runBarrier(ctx)
}

// begin makes a record that was read the head and the view.
func (a *activation) begin(l loaded) {
	a.viewed = !l.missing
	if l.missing {
		a.host.SetView(&snapshot.Record{})
		return
	}
	r := l.record
	a.head = head{life: r.Life, revision: r.Revision, floor: r.Reserved, stored: r.Revision, changed: r.Changed, enc: l.enc}
	if mutant.On(mutant.AsyncFloorForgotten) {
		a.head.floor = r.Revision
	}
	a.async.recovered(r.Revision)
	a.mail = l.mail
	if a.snapshots != nil {
		*a.snapshots = snapshots{l.snapshotAt, l.snapshotOf}
	}
	a.model.adopt(l.state)
	r.State, r.Schema = l.enc, a.spec.Version
	a.host.SetView(&r)
	a.tellReminders(a.mail.reminders.news())
}

// owesMail reports whether the store has, or may have, rows of messages that the
// entity is to deliver or to remove, or of reminders that the host does not know
// of.
func (a *activation) owesMail() bool {
	o, unsettled := a.mail.outbox, a.poison != nil || a.inFlight > 0
	return a.owes || !o.idle() || unsettled && (o != nil && o.last > 0 || a.mail.reminders.unsettled())
}

// tryAgain reads an entity again after a while that has messages to deliver, or
// whose view may be behind what the store holds.
func (a *activation) tryAgain(ctx *actor.Context) {
	if !a.owes && !a.unsure || a.reloading {
		return
	}
	a.reloading = true
	self := a.self
	ctx.System().After(reloadPause, func() { self.TellSystem(reloadDue{by: a}) })
}

// reloadPause is the wait before an entity is read again without being asked.
const reloadPause = time.Second

type reloadDue struct{ by *activation }

func (a *activation) reloadDue(ctx *actor.Context) {
	a.reloading = false
	if a.phase == failed && (a.owes || a.unsure) && a.holds&holdLoad == 0 {
		a.load(ctx)
	}
}

// unreadable tells a damaged or too new record from a store that is away. Only
// the former says something about the entity.
func unreadable(err error) bool {
	return errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer)
}

// creation is a first message that waits for Init.
type creation struct {
	message *Message
	reply   *actor.Promise
}

// startInit runs the type's Init off the workers, with the mailbox held.
func (a *activation) startInit(ctx *actor.Context, m *Message, reply *actor.Promise) {
	a.creating = &creation{message: m, reply: reply}
	if !mutant.On(mutant.CreationNotHeld) {
		a.hold(ctx, holdCreate)
	}
	init, name, self, sys, stopped := a.spec.init, a.key.Name, a.self, ctx.System(), a.work(ctx)
	sys.Go(func() {
		bounded, cancel := sys.WithTimeout(stopped, InitTimeout)
		defer cancel()
		i := initialised{err: errLeft}
		defer func() {
			i.by = a
			self.TellSystem(i)
		}()
		i = runInit(bounded, init, name)
	})
}

func runInit(ctx context.Context, init func(context.Context, string) (any, error), name string) (i initialised) {
	defer func() {
		if p := recover(); p != nil {
			i = initialised{err: panicked(p)}
		}
	}()
	i.state, i.err = init(ctx, name)
	return i
}

func (a *activation) initialised(ctx *actor.Context, i initialised) {
	c := a.creating
	if c == nil {
		return
	}
	a.creating, a.endWork = nil, nil
	if mutant.On(mutant.FailedInitCreates) && i.err != nil {
		i = initialised{state: reflect.New(a.spec.State).Interface()}
	}
	if i.err != nil {
		a.push(ctx, &entry{reply: c.reply, message: c.message, err: a.failure("Init", i.err)})
	} else {
		a.model.adopt(i.state)
		a.run(ctx, c.message, c.reply)
	}
	if mutant.On(mutant.RefusedHoldsMailbox) && a.head.revision == 0 {
		return
	}
	a.unhold(ctx, holdCreate)
}
