package entity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// maxAttempts is how often a handler fails a reminder before that is a dead
	// letter.
	maxAttempts = 10
	// The wait before the next attempt doubles from minRemindPause to
	// maxRemindPause.
	minRemindPause = time.Second
	maxRemindPause = 5 * time.Minute
	// maxLate is how late a period may be before MissedSkip passes over it.
	maxLate = time.Minute
)

// reminder is a row of its entity. It does not change: another one takes its
// place.
type reminder struct {
	name    string
	due     time.Time // the period's
	next    time.Time // when it is to be handled: due, or later after a failure
	every   time.Duration
	missed  Missed
	attempt int // the next one's number
	what    string
	body    []byte
}

// reminders are an entity's, by name.
type reminders struct {
	byName  map[string]*reminder
	changed bool // since they were read
}

// remindNews tells the host when a reminder is due; the zero time says that it
// is gone.
type remindNews struct {
	name string
	next time.Time
}

// reminding is what a Message has that is about a reminder.
type reminding struct {
	name    string
	refused error     // see Remind
	of      *reminder // which led to it; nil in Remind's message itself
}

// Remind returns a message that has the entity handle one of its reminders, if
// that is due. The answer comes when the outcome of that, if any, is durable,
// and is no error then though the handler may have failed. refused, if not nil,
// says that the store refused the last attempt's commit for its data: the
// attempt counts as one that failed, and the handler is not called.
func Remind(name string, refused error) *Message {
	return &Message{op: opRemind, remind: &reminding{name: name, refused: refused}}
}

// reminder returns the one that led to the message; nil if none did.
func (m *Message) reminder() *reminder {
	if m.remind == nil {
		return nil
	}
	return m.remind.of
}

func (r *reminders) size() int {
	if r == nil {
		return 0
	}
	return len(r.byName)
}

func (r *reminders) get(name string) *reminder {
	if r == nil {
		return nil
	}
	return r.byName[name]
}

// unsettled reports whether commits that changed reminders may be under way.
func (r *reminders) unsettled() bool { return r != nil && r.changed }

// news tells of all reminders by name.
func (r *reminders) news() []remindNews {
	if r == nil {
		return nil
	}
	out := make([]remindNews, 0, len(r.byName))
	for _, name := range slices.Sorted(maps.Keys(r.byName)) {
		out = append(out, remindNews{name, r.byName[name].next})
	}
	return out
}

// gone tells that all of them are no longer.
func (r *reminders) gone() []remindNews {
	out := r.news()
	for i := range out {
		out[i].next = time.Time{}
	}
	return out
}

// put makes of a name's reminder what it is to be, and returns the rows of that.
func (r *reminders) put(rows []persist.RowOp, e *entry, name string, to *reminder) []persist.RowOp {
	before := r.byName[name]
	switch {
	case before == nil && to == nil:
		return rows
	case before != nil && to != nil && before.equal(to):
		e.reminders = append(e.reminders, remindNews{name, to.next})
		return rows
	}
	r.changed = true
	if to == nil {
		delete(r.byName, name)
		e.reminders = append(e.reminders, remindNews{name: name})
		return append(rows, persist.RowOp{Kind: ReminderRows, ID: name, Delete: true})
	}
	if r.byName == nil {
		r.byName = make(map[string]*reminder)
	}
	r.byName[name] = to
	e.reminders = append(e.reminders, remindNews{name, to.next})
	return append(rows, persist.RowOp{Kind: ReminderRows, ID: name, Value: to.encode()})
}

func (r *reminder) equal(o *reminder) bool {
	return r.due.Equal(o.due) && r.next.Equal(o.next) && r.every == o.every && r.missed == o.missed &&
		r.attempt == o.attempt && r.what == o.what && bytes.Equal(r.body, o.body)
}

// after is what becomes of the reminder once it was handled; nil when it is not
// due again.
func (r *reminder) after(now time.Time) *reminder {
	if r.every == 0 {
		return nil
	}
	due := r.due.Add(r.every)
	if r.missed != MissedAll && !due.After(now) {
		due = r.due.Add((now.Sub(r.due)/r.every + 1) * r.every)
	}
	if due.Unix() >= lastDue {
		return nil
	}
	n := *r
	n.due, n.next, n.attempt = due, due, 1
	return &n
}

// again is the reminder after an attempt that failed.
func (r *reminder) again(now time.Time) *reminder {
	n := *r
	n.next = now.Add(min(minRemindPause<<(r.attempt-1), maxRemindPause)).UTC()
	n.attempt++
	return &n
}

// passedOver returns what becomes of a reminder whose period went by when
// MissedSkip has nobody reminded of it, and whether that is so. A reminder of
// which an attempt was made has not gone by.
func (r *reminder) passedOver(now time.Time) (to *reminder, is bool) {
	earliest := now.Add(-min(r.every/2, maxLate))
	if r.missed != MissedSkip || r.every == 0 || r.attempt > 1 || !r.due.Before(earliest) {
		return nil, false
	}
	return r.after(earliest.Add(-1)), true
}

// encode writes the reminder as its row. When it is to be handled comes first:
// it is all that is read of the rows of passive entities.
func (r *reminder) encode() []byte {
	v := make([]byte, 0, len(r.what)+len(r.body)+40)
	v = binary.AppendVarint(v, r.next.UnixNano())
	v = binary.AppendVarint(v, r.due.UnixNano())
	v = binary.AppendUvarint(v, uint64(r.every))
	v = binary.AppendUvarint(v, uint64(r.missed))
	v = binary.AppendUvarint(v, uint64(r.attempt))
	v = binary.AppendUvarint(v, uint64(len(r.what)))
	v = append(v, r.what...)
	return append(v, r.body...)
}

// ReminderNext returns when a reminder is to be handled, of its row.
func ReminderNext(row persist.Row) (time.Time, error) {
	if row.Err != nil {
		return time.Time{}, row.Err
	}
	n, size := binary.Varint(row.Value)
	if size <= 0 {
		return time.Time{}, errNoReminder
	}
	return time.Unix(0, n).UTC(), nil
}

var errNoReminder = errors.New("it is not a reminder")

func (r *reminders) parse(row persist.Row) error {
	rest, bad := row.Value, false
	signed := func() int64 {
		n, size := binary.Varint(rest)
		bad = bad || size <= 0
		rest = rest[max(size, 0):]
		return n
	}
	unsigned := func(most uint64) uint64 {
		n, size := binary.Uvarint(rest)
		bad = bad || size <= 0 || n > most
		rest = rest[max(size, 0):]
		return n
	}
	x := &reminder{name: row.ID}
	x.next, x.due = time.Unix(0, signed()).UTC(), time.Unix(0, signed()).UTC()
	x.every = time.Duration(unsigned(1<<63 - 1))
	x.missed = Missed(unsigned(uint64(MissedSkip)))
	x.attempt = int(unsigned(maxAttempts))
	n := unsigned(uint64(len(rest)))
	if bad || n > uint64(len(rest)) || x.attempt == 0 {
		return errNoReminder
	}
	x.what, x.body = string(rest[:n]), rest[n:]
	if r.byName == nil {
		r.byName = make(map[string]*reminder)
	}
	r.byName[x.name] = x
	return nil
}

// remind takes in what a turn made of the entity's reminders, and of the one that
// led to it, and returns the rows of that.
func (a *activation) remind(ctx *actor.Context, c *Context, e *entry) (rows []persist.RowOp) {
	led := c.message.reminder()
	if mutant.On(mutant.ReminderStays) {
		led = nil
	}
	if led == nil && c.reminders == nil {
		return nil
	}
	all := a.mail.reminds()
	if led != nil && !c.reminders.sets(led.name) {
		rows = all.put(rows, e, led.name, led.after(ctx.Now()))
	}
	if c.reminders != nil {
		for _, name := range c.reminders.names {
			rows = all.put(rows, e, name, c.reminders.to[name])
		}
	}
	return rows
}

// sets reports whether the turn has said what becomes of a name.
func (s *setReminders) sets(name string) bool {
	if s == nil {
		return false
	}
	_, is := s.to[name]
	return is
}

// any reports whether the turn sets a reminder.
func (s *setReminders) any() bool { return s != nil && s.count > 0 }

// reminderDue handles a reminder, if it is due.
func (a *activation) reminderDue(ctx *actor.Context, m *Message, reply *actor.Promise) {
	r, now := a.mail.reminders.get(m.remind.name), ctx.Now()
	e := &entry{silent: true, reply: reply, message: m, life: a.head.life, revision: a.head.revision}
	if r == nil {
		a.push(ctx, e)
		return
	}
	to, passed := r.passedOver(now)
	switch {
	case now.Before(r.next):
		e.reminders = []remindNews{{r.name, r.next}}
	case m.remind.refused != nil:
		a.remindFailed(ctx, e, r, m.remind.refused)
	case passed:
		a.finish(ctx, e, a.mail.reminders.put(nil, e, r.name, to))
	default:
		msg, err := a.spec.Decode(r.what, r.body)
		if err == nil && msg.handler.kind == KindQuery {
			err = fmt.Errorf("%w: %q has become a query", ErrUnknownMessage, r.what)
		}
		if err == nil {
			msg.remind = &reminding{name: r.name, of: r}
			a.run(ctx, msg, reply)
			return
		}
		a.remindFailed(ctx, e, r, err)
	}
	a.push(ctx, e)
}

// remindFailed has the reminder of a turn that failed come again, or, after the
// last attempt, makes a dead letter of it.
func (a *activation) remindFailed(ctx *actor.Context, e *entry, r *reminder, failed error) {
	to, last := r.again(ctx.Now()), r.attempt >= maxAttempts
	if no := (*RejectedError)(nil); last || errors.As(failed, &no) {
		to, last = r.after(ctx.Now()), true
	}
	failed = fmt.Errorf("%s: its reminder %q, due at %v, failed at attempt %d: %w", a.key, r.name, r.due.Format(time.RFC3339), r.attempt, failed)
	e.silent, e.value, e.err = true, nil, nil
	e.effects = []effect{func(ctx *actor.Context, _ uint64) {
		if !last {
			ctx.Logger().Warn("the handler of a reminder failed; it is called again", "entity", a.key.String(), "reminder", r.name, "attempt", r.attempt, "error", failed)
			return
		}
		ctx.System().DeadLetters().Publish(actor.ZombieMsg{
			To: a.key.String(), Message: actor.Message{Payload: Undelivered{Type: r.what, Body: r.body}, Sender: a.self}, Reason: failed, At: ctx.Now(),
		})
	}}
	a.finish(ctx, e, a.mail.reminders.put(nil, e, r.name, to))
}

// tellReminders has the host know when reminders are due.
func (a *activation) tellReminders(news []remindNews) {
	for _, n := range news {
		a.host.Remind(n.name, n.next)
	}
}
