package entity

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// turn judges one message against the head and handles it.
func (a *activation) turn(ctx *actor.Context, m *Message, reply *actor.Promise) {
	if a.known(ctx, m, reply) {
		return
	}
	if err := a.spec.admits(a.key, &a.head, m); err != nil {
		a.push(ctx, &entry{reply: reply, message: m, err: err})
		return
	}
	switch {
	case a.head.revision > 0 || a.spec.sourcing != nil:
		a.run(ctx, m, reply)
	case a.spec.init != nil:
		a.startInit(ctx, m, reply)
	default:
		a.model.adopt(reflect.New(a.spec.State).Interface())
		a.run(ctx, m, reply)
	}
}

// known answers, behind what is in flight, a message that the entity has had
// before or that has come too early, and reports whether it did.
func (a *activation) known(ctx *actor.Context, m *Message, reply *actor.Promise) bool {
	if m.once == nil {
		return a.repeated(ctx, m, reply)
	}
	e := &entry{reply: reply, message: m, life: a.head.life, revision: a.head.revision}
	arrived := a.mail.inbox.judge(m.once)
	if mutant.On(mutant.OnceHandledTwice) && arrived == taken {
		arrived = fresh
	}
	switch arrived {
	case fresh:
		return false
	case early:
		e.err = fmt.Errorf("%s: %w", a.key, errEarly)
	case taken:
		e.silent = true
	}
	a.push(ctx, e)
	return true
}

// admits says why the message is not for an entity as it is at a head, or nil.
func (s *Spec) admits(key persist.Key, h *head, m *Message) error {
	if m.Life != 0 && m.Life != h.life && !mutant.On(mutant.LateReachesNextLife) {
		return fmt.Errorf("%w: the message is for life %d of %s, which has ended", ErrNotFound, m.Life, key)
	}
	if h.revision == 0 {
		if err := s.mayCreate(key.Name, m); err != nil {
			return err
		}
	}
	if err := s.meets(key, h, &m.If); err != nil && !mutant.On(mutant.ConditionIgnored) {
		return err
	}
	return nil
}

// run calls the handler and queues what comes of it. A turn that fails leaves
// the head as it was and the state to be restored from it; that the message was
// refused is noted all the same where its sender counts on it.
func (a *activation) run(ctx *actor.Context, m *Message, reply *actor.Promise) {
	e := &entry{reply: reply, message: m, revision: a.head.revision, life: a.head.life}
	c := &Context{a: a, actor: ctx, message: m}
	a.asked = reply // the handler may leave without returning
	enc, kept, err := a.compute(c, e)
	c.ended.Store(true)
	a.asked = nil
	if err != nil {
		if !mutant.On(mutant.FailedStateKept) {
			a.model.forget()
		}
		if mutant.On(mutant.EffectsOfRejected) {
			e.effects = c.effects
			e.doEffects(ctx)
		}
		e.err, e.value = a.failure(m.handler.name, err), nil
		if r := m.reminder(); r != nil && !errors.Is(e.err, ErrBusy) { // its outbox is full
			a.remindFailed(ctx, e, r, e.err)
			a.push(ctx, e)
			return
		}
		if a.head.revision > 0 && (m.once == nil || !later(e.err)) { // else it comes again, and is to be handled then
			a.finish(ctx, e, a.noted(m, kept, e))
		}
		a.push(ctx, e)
		return
	}
	e.effects = c.effects
	if m.reminder() != nil {
		e.value = nil // nobody asked
	}
	if m.handler.kind != KindQuery {
		a.change(ctx, c, e, enc, kept)
	} else if mutant.On(mutant.QueryUndurable) {
		a.letOut(ctx, e)
		return
	}
	if mutant.On(mutant.EffectsBeforeCommit) {
		e.doEffects(ctx)
		e.effects = nil
	}
	a.push(ctx, e)
}

// change has committed what a handler changed and sent.
func (a *activation) change(ctx *actor.Context, c *Context, e *entry, enc []byte, kept *remembered) {
	changed := len(c.raised) > 0
	if a.spec.sourcing == nil {
		changed = a.head.revision == 0 || !bytes.Equal(enc, a.head.enc)
	}
	if !changed && a.head.revision == 0 {
		return // a command that raised no event, of an entity that is not there
	}
	rows := a.mail.outbox.add(c.parcels)
	rows = append(rows, a.remind(ctx, c, e)...)
	if !changed {
		a.finish(ctx, e, append(rows, a.noted(e.message, kept, e)...))
		return
	}
	a.advance(ctx, c, e, enc)
	rows = append(rows, a.noted(e.message, kept, e)...)
	a.commit(ctx, e, rows)
}

// noted returns the rows that say what became of a message.
func (a *activation) noted(m *Message, kept *remembered, e *entry) []persist.RowOp {
	var rows []persist.RowOp
	if m.once != nil {
		rows = append(rows, a.mail.inbox.take(m.once))
		if mutant.On(mutant.OnceCursorNotKept) {
			rows = nil
		}
		if mutant.On(mutant.OnceAckedEarly) && e.err == nil {
			answer(e.reply, nil, nil)
			e.reply = nil
		}
	}
	if kept != nil {
		kept.Revision, kept.Created = e.revision, e.creates
		rows = append(rows, a.remember(kept)...)
	}
	return rows
}

// finish has a turn's rows committed, if it has any, when its state has not
// changed.
func (a *activation) finish(ctx *actor.Context, e *entry, rows []persist.RowOp) {
	if len(rows) > 0 {
		a.keep(ctx, e, append(rows, a.mail.outbox.removed()...))
	}
}

// compute calls the handler and encodes what comes of it, the answer too if it
// is to be remembered. It turns a panic of the user's code, also of a type that
// marshals itself, into an error.
func (a *activation) compute(c *Context, e *entry) (enc []byte, kept *remembered, err error) {
	defer func() {
		if p := recover(); p != nil {
			enc, kept, err = nil, nil, panicked(p)
		}
	}()
	if kept, err = a.question(c); err != nil {
		return nil, nil, err
	}
	enc, err = a.result(c, e)
	if kept != nil {
		kept, err = a.answerOf(kept, e, err)
	}
	return enc, kept, err
}

// result calls the handler and encodes the state that it leaves.
func (a *activation) result(c *Context, e *entry) (enc []byte, err error) {
	v, err := a.invoke(c)
	if err == nil {
		err = c.err
	}
	if err == nil && (len(c.parcels) > 0 || c.reminders.any()) && a.spec.sourcing != nil && a.head.revision == 0 && len(c.raised) == 0 {
		err = errors.New("it sends once, or sets a reminder, without an event that creates the entity")
	}
	if err == nil {
		e.value, err = a.replyOf(c.message, v)
	}
	if err != nil || c.message.handler.kind == KindQuery {
		return nil, err
	}
	if a.spec.sourcing != nil && len(c.raised) == 0 {
		return a.head.enc, nil
	}
	if enc, err = a.model.encode(); err != nil {
		return nil, fmt.Errorf("the state cannot be encoded: %w", err)
	}
	return enc, a.spec.fits(&a.head, c.message, enc, a.model.current(), a.host.MaxState())
}

// fits says why a state that a message makes, with its encoding, cannot follow on
// a head, or nil. It has at most so many bytes.
func (s *Spec) fits(h *head, m *Message, enc []byte, state any, most int) error {
	if len(enc) > most && len(enc) > len(h.enc) { // what is larger already may stay and shrink
		return &tooLarge{size: len(enc), most: most}
	}
	unjudged := h.revision > 0 && mutant.On(mutant.SchemaIgnored)
	if s.schema != nil && !unjudged && (h.revision == 0 || m.whole || !bytes.Equal(enc, h.enc)) { // what it was before may stay
		return s.schema.judge(map[string]any(*state.(*Object)))
	}
	return nil
}

// invoke calls the message's handler.
func (a *activation) invoke(c *Context) (any, error) {
	m := c.message
	msg, err := m.value(a.spec.codec)
	if err != nil {
		return nil, err
	}
	if m.handler.kind == KindQuery {
		return a.model.query(c, m.handler, msg, a.head.enc)
	}
	if a.spec.sourcing != nil {
		return a.decide(c, m.handler, msg)
	}
	if a.head.revision > 0 {
		if err := a.model.restore(a.head.enc); err != nil {
			return nil, err
		}
	}
	return a.model.handle(c, m.handler, msg)
}

func panicked(p any) error {
	return &actor.PanicError{Value: p, Stack: debug.Stack()}
}

// replyOf makes what a handler returned a reply that later turns do not change.
func (a *activation) replyOf(m *Message, v any) (any, error) {
	if m.JSON && m.handler.reply != nil {
		body, err := asJSON(v)
		return jsonReply{v: v, body: body}, err
	}
	return a.detach(m.handler, v)
}

// detach encodes a reply that shares memory with the state, so that later
// turns do not change it.
func (a *activation) detach(h *handler, v any) (any, error) {
	if h.reply == nil || !h.detachRe || mutant.On(mutant.ReplyNotDetached) {
		return v, nil
	}
	enc, err := a.spec.codec.Append(nil, v)
	if err != nil {
		return nil, fmt.Errorf("the reply cannot be encoded: %w", err)
	}
	return encodedReply{h: h, enc: enc}, nil
}

type encodedReply struct {
	h   *handler
	enc []byte
}

func (r encodedReply) value(c snapshot.Codec) (decoded any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	v := reflect.New(r.h.reply)
	if err := c.Decode(r.enc, v.Interface()); err != nil {
		return nil, fmt.Errorf("the reply to %q cannot be decoded: %w", r.h.name, err)
	}
	return v.Elem().Interface(), nil
}

// failure is the error that a handler's caller gets.
func (a *activation) failure(name string, err error) error {
	logPanic(a.host.System(), a.key, name, err)
	return failureOf(a.key, name, err)
}

// logPanic logs an error that is a panic's. Only the log has the stack, since who asked
// may be far away, or nobody.
func logPanic(sys *actor.System, key persist.Key, name string, err error) {
	if p := (*actor.PanicError)(nil); errors.As(err, &p) {
		sys.Logger().Error("a handler panicked", "entity", key.String(), "message", name, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
}

func failureOf(key persist.Key, name string, err error) error {
	if s := (*SchemaError)(nil); errors.As(err, &s) {
		return s
	}
	if r := (*RejectedError)(nil); errors.As(err, &r) {
		return r
	}
	if large := (*tooLarge)(nil); errors.As(err, &large) {
		return fmt.Errorf("%s: %w: its state would have %d bytes, at most %d are kept; nothing changed", key, persist.ErrInvalid, large.size, large.most)
	}
	return &HandlerError{Key: key, Message: name, Err: err}
}

// tooLarge refuses a turn whose state would be larger than an entity's may be.
type tooLarge struct{ size, most int }

func (t *tooLarge) Error() string { return fmt.Sprintf("state of %d bytes", t.size) }

// advance makes the turn's state the head.
func (a *activation) advance(ctx *actor.Context, c *Context, e *entry, enc []byte) {
	e.creates = a.head.revision == 0
	a.head.revision = max(a.head.revision, a.head.floor) + uint64(max(1, len(c.raised)))
	a.head.enc, a.head.changed = enc, ctx.Now().UTC()
	e.revision = a.head.revision
	e.record = &snapshot.Record{
		Life: a.head.life, Revision: e.revision, Reserved: e.revision, Changed: a.head.changed,
		Schema: a.spec.Version, Codec: a.spec.codec.Name(), State: enc,
	}
	e.changes = a.changes(c, e)
	if mutant.On(mutant.ViewBeforeCommit) && e.life != 0 {
		a.host.SetView(e.record)
	}
}

// commit has the head committed with the turn's rows.
func (a *activation) commit(ctx *actor.Context, e *entry, rows []persist.RowOp) {
	if a.spec.Durability.IsAsync() && !e.creates {
		a.async.changed(ctx, a, e, rows)
		return
	}
	if a.spec.Durability.IsAsync() {
		e.record.Reserved = e.revision + reserveAhead
		a.async.reserved = e.record.Reserved // holds once this commit does, and so does all behind it
		if mutant.On(mutant.AsyncReservesTooFew) {
			e.record.Reserved = e.revision + 1
		}
	}
	record := e.record
	if a.spec.sourcing != nil {
		record = a.sourcedRecord(e)
		if a.snapshots.due(a, ctx.Now()) {
			rows = append(rows, a.snapshots.save(a, ctx.Now()))
		}
	}
	e.waits = true
	a.submit(persist.Unit{
		Key: a.key, Life: a.head.life, Expect: a.head.stored, Record: record,
		Changes: e.changes, Rows: append(rows, a.mail.outbox.removed()...),
	}, e)
	if mutant.On(mutant.AnswerBeforeCommit) && e.life != 0 {
		a.answer(e)
		e.reply = nil
	}
	a.head.stored = e.revision
	a.head.floor = 0
}

// sourcedRecord is what the store keeps as the record of an event-sourced
// entity: which event is the last one. Its state is in the journal.
func (a *activation) sourcedRecord(e *entry) *snapshot.Record {
	r := *e.record
	r.State = nil
	return &r
}

// changes are the journal's lines for a turn.
func (a *activation) changes(c *Context, e *entry) []persist.Change {
	if a.spec.sourcing == nil {
		return []persist.Change{a.stateChange(e.record, e.message.handler.name)}
	}
	out := make([]persist.Change, len(c.raised))
	for i, r := range c.raised {
		out[i] = persist.Change{
			Key: a.key, Life: e.record.Life, Revision: e.revision - uint64(len(c.raised)-1-i), Time: e.record.Changed,
			Type: r.event.name, Schema: r.event.version, Codec: e.record.Codec, Data: r.data, Event: true,
		}
	}
	return out
}

// stateChange is the journal's line for a record.
func (a *activation) stateChange(r *snapshot.Record, what string) persist.Change {
	return persist.Change{
		Key: a.key, Life: r.Life, Revision: r.Revision, Time: r.Changed, Type: what,
		Schema: r.Schema, Codec: r.Codec, Data: r.State,
	}
}
