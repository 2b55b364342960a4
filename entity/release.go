package entity

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// entry holds what one turn produced until everything the turn was computed on
// is durable.
type entry struct {
	waits    bool // its commit has no outcome yet
	removes  bool
	creates  bool
	silent   bool // it shows nothing: answered with an Ack, if anybody waits
	reply    *actor.Promise
	message  *Message
	value    any // the handler's answer; nil stands for an Ack
	err      error
	effects  []effect
	life     uint64 // 0: the life that the commit before it begins
	revision uint64
	record   *snapshot.Record // the state after a turn that changed it
	changes  []persist.Change // of such a turn
	position uint64           // of the last of them
	rows     uint64           // the last of its rows, counted by the flusher of an asynchronous entity

	reminders []remindNews // that the turn has changed
}

// releaseQueue holds the entries of turns that wait, in the order of the turns.
type releaseQueue struct {
	entries []*entry
	start   int
	bytes   int // of the states that wait
}

func (q *releaseQueue) len() int { return len(q.entries) - q.start }

func (q *releaseQueue) add(e *entry) {
	q.entries = append(q.entries, e)
	q.bytes += e.size()
}

// full reports whether no more may be added for now, roomy whether there is
// room for a good deal again.
func (q *releaseQueue) full() bool  { return q.len() >= maxInFlight || q.bytes >= maxBytesInFlight }
func (q *releaseQueue) roomy() bool { return q.len() <= maxInFlight/2 && q.bytes <= maxBytesInFlight/2 }

// last returns the newest state that waits, nil if there is none.
func (q *releaseQueue) last() *snapshot.Record {
	for i := len(q.entries) - 1; i >= q.start; i-- {
		if r := q.entries[i].record; r != nil {
			return r
		}
	}
	return nil
}

func (e *entry) size() int {
	if e.record == nil {
		return 0
	}
	return len(e.record.State)
}

// ready removes the first entry if it waits for nothing.
func (q *releaseQueue) ready() *entry {
	if q.len() == 0 || q.entries[q.start].waits {
		return nil
	}
	e := q.entries[q.start]
	q.entries[q.start] = nil
	q.bytes -= e.size()
	if q.start++; q.start == len(q.entries) {
		q.entries, q.start = q.entries[:0], 0
		if cap(q.entries) > maxInFlight/4 {
			q.entries = nil // do not keep a burst's memory for an idle entity
		}
	}
	return e
}

// failAll answers every entry with an error and releases nothing of them. The
// guilty entry, if any, gets the cause itself.
func (q *releaseQueue) failAll(ctx *actor.Context, a *activation, guilty *entry, cause error) {
	held := q.entries[q.start:]
	q.entries, q.start, q.bytes = nil, 0, 0
	for _, e := range held {
		err := cause
		// A turn behind a commit of unknown outcome may have been part of it.
		// So may one of an asynchronous entity, whose state others have written.
		shared := (e.waits || e.record != nil && a.spec.Durability.IsAsync()) && errors.Is(cause, persist.ErrUnknown)
		if guilty != nil && e != guilty && !shared {
			err = fmt.Errorf("%s: %w: the change before it failed: %v", a.key, persist.ErrUnavailable, cause)
		}
		if e.message != nil {
			a.refuse(ctx, e.message, e.reply, err)
		}
	}
}

// push queues a turn's entry and releases what waits for nothing.
func (a *activation) push(ctx *actor.Context, e *entry) {
	e.waits = e.waits || a.async.hides()
	a.queue.add(e)
	a.release(ctx)
	if a.queue.full() {
		a.hold(ctx, holdFull)
	}
}

// release lets out, in order, the entries that everything before them is
// durable for.
func (a *activation) release(ctx *actor.Context) {
	a.letReady(ctx)
	if a.queue.roomy() {
		a.unhold(ctx, holdFull)
	}
	a.runBarrier(ctx)
}

func (a *activation) letReady(ctx *actor.Context) {
	for e := a.queue.ready(); e != nil; e = a.queue.ready() {
		a.letOut(ctx, e)
	}
}

// letOut publishes one turn: the view first, so that whoever hears of the turn
// also sees it; then the reply, the effects and the change.
func (a *activation) letOut(ctx *actor.Context, e *entry) {
	a.tellReminders(e.reminders)
	if e.err != nil {
		a.refuse(ctx, e.message, e.reply, e.err)
		return
	}
	if e.life == 0 {
		e.life = a.head.life
	}
	if e.silent {
		answer(e.reply, Ack{Life: e.life, Revision: e.revision}, nil)
		e.doEffects(ctx)
		return
	}
	switch {
	case e.removes:
		a.viewed = false
		a.host.SetView(&snapshot.Record{Life: e.life}) // which has ended
		a.host.SetRemoving(false)
	case e.record != nil:
		e.record.Life = e.life
		a.viewed = true
		a.async.shown()
		a.host.SetView(e.record)
	case a.async.hidden() != nil: // the answer was computed on it
		a.show(a.async.hidden())
	}
	a.answer(e)
	e.doEffects(ctx)
	if e.creates && e.record != nil { // and not an answer that is repeated
		a.host.Created(e.life)
	}
	for i, c := range e.changes {
		c.Life, c.Position = e.life, e.position-uint64(len(e.changes)-1-i)
		a.host.Published(c)
	}
	if e.removes {
		a.host.Published(persist.Change{Position: e.position, Key: a.key, Life: e.life, Revision: e.revision, Time: ctx.Now().UTC(), Type: deleted})
	}
}

// tag is the revision behind the turn.
func (e *entry) tag() ETag {
	if e.revision == 0 {
		return ETag{}
	}
	return ETag{Life: e.life, Revision: e.revision}
}

// doEffects has what the turn asked for happen.
func (e *entry) doEffects(ctx *actor.Context) {
	for _, f := range e.effects {
		f(ctx, e.life)
	}
}

func (a *activation) answer(e *entry) {
	if e.reply == nil {
		return
	}
	before := a.asked
	a.asked = e.reply // decoding runs the type's own code, which may leave
	v, err := e.value, error(nil)
	if r, is := v.(encodedReply); is {
		v, err = r.remembered(a.spec.codec, e.message)
	}
	switch r := v.(type) {
	case jsonReply:
		v = JSONReply{Tag: e.tag(), Body: r.body}
	case nil:
		if e.removes || e.message.handler.reply == nil {
			v = Ack{Life: e.life, Revision: e.revision, Created: e.creates}
		}
	}
	a.asked = before
	answer(e.reply, v, err)
}

// settle takes the outcomes of commits, in the order of their submission.
func (a *activation) settle(ctx *actor.Context, results []persist.Result) {
	for _, r := range results {
		a.inFlight--
		switch tag := r.Tag.(type) {
		case *flush:
			a.flushed(ctx, tag, r.Outcome)
		case *entry:
			a.applied(ctx, tag, r.Outcome)
		}
	}
	a.release(ctx)
	if a.poison != nil && a.inFlight == 0 {
		a.load(ctx)
	}
}

// applied notes one turn's outcome. The first failure poisons the activation:
// every turn that is held was computed on the failed one.
func (a *activation) applied(ctx *actor.Context, e *entry, o persist.Outcome) {
	switch {
	case a.poison != nil:
		return // it was failed together with the one that poisoned
	case o.Err != nil:
		a.letReady(ctx) // what came before the failed commit is durable
		a.unapplied(ctx, e, o.Err)
		return
	}
	if mutant.On(mutant.ReuseLife) && e.creates {
		o.Life = 1 // see submit
	}
	e.waits, a.setback = false, 0
	e.position = o.Position
	e.life = o.Life
	if e.removes {
		a.removed(ctx)
		return
	}
	if a.head.life == 0 {
		a.head.life = o.Life
	}
}

func (a *activation) unapplied(ctx *actor.Context, e *entry, err error) {
	if e.removes && a.spec.Durability.IsAsync() && a.phase == serving {
		// Reading anew would lose acknowledged changes. The deletion alone fails;
		// nothing is handled until the store has said whether it happened.
		a.queue.failAll(ctx, a, e, err)
		a.async.removing = true
		a.async.fail(ctx, a, err)
		return
	}
	if mutant.On(mutant.FailedHeadKept) {
		e.waits, e.err, a.lane = false, err, nil
		return
	}
	a.poison, a.leaving = err, false
	a.hold(ctx, holdPoison)
	a.unhold(ctx, holdBarrier)
	a.model.forget()
	a.async.cancel()
	a.queue.failAll(ctx, a, e, err)
}

// post sends an effect's message on its way. What cannot be taken is a dead
// letter.
func (a *activation) post(to persist.Key, m *Message) {
	err := a.host.Post(to, actor.Message{Payload: m, Sender: a.self})
	if err == nil {
		return
	}
	sys := a.host.System()
	sys.DeadLetters().Publish(actor.ZombieMsg{
		To: to.String(), Message: actor.Message{Payload: m, Sender: a.self}, Reason: err, At: sys.Now(),
	})
}

// pipe runs f off the workers and posts its result to the same life.
func (a *activation) pipe(ctx *actor.Context, f func(context.Context) (any, error), life uint64) {
	host, key, sys, self, stopped := a.host, a.key, ctx.System(), a.self, ctx.Context()
	sys.Go(func() {
		v, err := any(nil), errLeft
		defer func() {
			m, err := wrapResult(host, key.Pod, v, err)
			if err != nil {
				logPanic(sys, key, "PipeTo", err)
				sys.Logger().Warn("work that an entity started failed", "entity", key.String(), "error", err)
				m, err = host.Wrap(key.Pod, PipeFailed{Error: err.Error()})
			}
			if err == nil {
				m.Life, m.NoCreate = life, true
				if mutant.On(mutant.LateResultRevives) {
					m.Life, m.NoCreate = 0, false
				}
				err = host.Post(key, actor.Message{Payload: m, Sender: self})
			}
			if err != nil {
				sys.DeadLetters().Publish(actor.ZombieMsg{To: key.String(), Message: actor.Message{Payload: v}, Reason: err, At: sys.Now()})
			}
		}()
		v, err = guarded(stopped, f)
	})
}

// wrapResult binds what work brought to its message. It runs the type's own
// code.
func wrapResult(host Host, pod string, v any, failed error) (m *Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	if failed != nil {
		return nil, failed
	}
	return host.Wrap(pod, v)
}

func guarded(ctx context.Context, f func(context.Context) (any, error)) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return f(ctx)
}
