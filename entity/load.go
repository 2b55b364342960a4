package entity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// InitTimeout bounds an Init.
const InitTimeout = 30 * time.Second

// load reads the entity's record off the workers, with the mailbox held.
func (a *activation) load(ctx *actor.Context) {
	a.phase = loading
	a.hold(ctx, holdLoad)
	committer, spec, key, self := a.host.Committer(), a.spec, a.key, a.self
	stopped, succeeds := ctx.Context(), a.host.Succeeds()
	ctx.System().Go(func() {
		l := loaded{err: errLeft}
		defer func() {
			l.by = a
			self.TellSystem(l)
		}()
		if succeeds {
			if err := committer.Settle(stopped); err != nil {
				l.err = err
				return
			}
		}
		l = read(stopped, committer.Service(), spec, key)
	})
}

// errLeft is the failure of user code that ended its goroutine.
var errLeft = errors.New("it called runtime.Goexit")

func read(ctx context.Context, store persist.PersistenceService, spec *Spec, key persist.Key) (l loaded) {
	l.record, l.err = store.Load(ctx, key)
	if errors.Is(l.err, persist.ErrNotFound) {
		return loaded{missing: true}
	}
	if l.err == nil {
		if l.state, l.enc, l.err = spec.decode(&l.record); l.err != nil {
			l.err = fmt.Errorf("%s: %w", key, l.err)
		}
	}
	return l
}

// recovered takes the record in and opens the mailbox.
func (a *activation) recovered(ctx *actor.Context, l loaded) {
	a.poison, a.lane = nil, nil
	a.model.forget()
	a.head = head{}
	a.async.reset()
	switch {
	case l.err != nil && unreadable(l.err):
		a.phase = quarantined
		a.reason = fmt.Errorf("%w: %w; delete it, or run a version that reads it", ErrQuarantined, l.err)
		a.viewed = false
		a.host.SetView(nil)
		a.host.Quarantine(a.reason)
		ctx.Logger().Error("the entity is quarantined: its record cannot be read", "entity", a.key.String(), "error", l.err)
	case l.err != nil:
		// What was acknowledged before stays to be read.
		a.phase = failed
		a.reason = l.err
	default:
		a.phase = serving
		a.host.Quarantine(nil)
		a.begin(l)
	}
	a.unhold(ctx, holdLoad|holdPoison|holdFull)
	a.runBarrier(ctx)
	if a.phase == failed && !a.viewed {
		a.leaveIfIdle(ctx)
	}
}

// begin makes a record that was read the head and the view.
func (a *activation) begin(l loaded) {
	a.viewed = true
	if l.missing {
		a.host.SetView(&snapshot.Record{})
		return
	}
	r := l.record
	a.head = head{life: r.Life, revision: r.Revision, floor: r.Reserved, stored: r.Revision, enc: l.enc}
	a.async.recovered(r.Revision)
	a.model.adopt(l.state)
	r.State, r.Schema = l.enc, a.spec.Version
	a.host.SetView(&r)
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
	a.hold(ctx, holdCreate)
	init, name, self, sys, stopped := a.spec.init, a.key.Name, a.self, ctx.System(), ctx.Context()
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
	a.creating = nil
	if i.err != nil {
		a.push(ctx, &entry{reply: c.reply, message: c.message, err: a.failure("Init", i.err)})
	} else {
		a.model.adopt(i.state)
		a.run(ctx, c.message, c.reply)
	}
	a.unhold(ctx, holdCreate)
}
