package entity

import (
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// maxReminders is how many reminders an entity may have.
	maxReminders = 1000
	// maxReminderBytes is how large the message of one may be: pages of them are
	// read.
	maxReminderBytes = 64 << 10
	// minPeriod is the shortest period of a reminder; each one is a commit.
	minPeriod = time.Second
	// Reminders are due between these seconds of Unix time: 1970 and 2200.
	firstDue, lastDue = 0, 7258118400
)

// Reminder is what an entity has itself reminded of, and when.
type Reminder struct {
	// At is when it is due, the first time. A time in the past means at once; the
	// zero time one period from now, or without a period at once.
	At time.Time
	// Every is the period after which it is due again, at least a second,
	// counted from At. 0 means that it is due once.
	Every time.Duration
	// Message is what the entity is then sent: a Go value of one of its own
	// messages, no query, of at most 64 KiB.
	Message any
	// Missed says what becomes of periods that went by while nobody could be
	// reminded. A reminder without a period comes however late.
	Missed Missed
}

// Missed says what becomes of the periods of a reminder that went by: because
// no server ran, say, or the entity was quarantined.
type Missed uint8

const (
	// MissedOnce reminds once for all that went by.
	MissedOnce Missed = iota
	// MissedAll reminds of each, in order.
	MissedAll
	// MissedSkip reminds of none of them. One has gone by that is more than a
	// minute late, or more than half a period if that is less.
	MissedSkip
)

// Occurrence is one time that a reminder was due.
type Occurrence struct {
	// Name is the reminder's.
	Name string
	// Due is when it was due; of several periods that went by, the first.
	Due time.Time
	// Attempt counts the times that the handler was called for it, from 1. Calls
	// that a crash cut short, or whose commit failed, are not counted.
	Attempt int
}

// Remind has the entity sent a message when a reminder is due, whether it is in
// memory then or not, and whatever happens to the process. A reminder is set
// with the turn's commit and ends with the life; one of the same name is
// replaced.
//
// It is never early. The handler's turn takes it away, or moves it on by its
// period, in the same commit as what the handler changes and sends: that happens
// once, while the handler may be called again after a crash. A handler that
// fails is called again after a second, two, four and so on, up to five
// minutes; the tenth failure, or a rejection at once, makes a dead letter of the
// message, and a reminder with a period goes on with the next. Others do not
// wait for it.
//
// The turn fails when the reminder is malformed, the entity has 1,000, or the
// pod is volatile.
func (c *Context) Remind(name string, r Reminder) {
	if !c.changes("set a reminder") {
		return
	}
	set, err := c.reminder(name, r)
	if err != nil {
		c.fail(fmt.Errorf("remind of %q: %w", name, err))
		return
	}
	c.setReminder(name, set)
}

// Forget takes a reminder away with the turn's commit, if there is one.
func (c *Context) Forget(name string) {
	if c.changes("forget a reminder") {
		c.setReminder(name, nil)
	}
}

// Reminder returns what the handler's message reminds of; false if it is not a
// reminder's.
func (c *Context) Reminder() (Occurrence, bool) {
	r := c.message.reminder()
	if r == nil {
		return Occurrence{}, false
	}
	return Occurrence{Name: r.name, Due: r.due, Attempt: r.attempt}, true
}

// reminder checks a reminder and makes it what is kept.
func (c *Context) reminder(name string, r Reminder) (*reminder, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if c.a.spec.Durability.IsVolatile() {
		return nil, fmt.Errorf("%w: pod %s is volatile and nothing of it outlives the process; use SendAfter", persist.ErrInvalid, c.Pod())
	}
	what, body, err := c.a.spec.Encode(r.Message)
	if err != nil {
		return nil, err
	}
	now := c.Now()
	due := r.At
	if due.IsZero() {
		due = now.Add(r.Every)
	}
	switch {
	case c.a.spec.handlers[what].kind == KindQuery:
		return nil, fmt.Errorf("%w: %q is a query, which changes nothing", persist.ErrInvalid, what)
	case len(body) > maxReminderBytes:
		return nil, fmt.Errorf("%w: the message has %d bytes, at most %d are kept", persist.ErrInvalid, len(body), maxReminderBytes)
	case r.Every < 0, r.Every > 0 && r.Every < minPeriod:
		return nil, fmt.Errorf("%w: the period is %v, want 0 or at least %v", persist.ErrInvalid, r.Every, minPeriod)
	case due.Unix() < firstDue, due.Unix() >= lastDue:
		return nil, fmt.Errorf("%w: it would be due at %v; want a time from 1970 to 2199", persist.ErrInvalid, due)
	case r.Missed > MissedSkip:
		return nil, fmt.Errorf("%w: Missed is %d; use one of the constants", persist.ErrInvalid, r.Missed)
	}
	due = time.Unix(0, due.UnixNano()).UTC()
	next := due
	if mutant.On(mutant.ReminderEarly) {
		next = due.Add(-20 * time.Millisecond)
	}
	return &reminder{name: name, due: due, next: next, every: r.Every, missed: r.Missed, attempt: 1, what: what, body: body}, nil
}

// setReminder notes what the turn is to make of a name; nil takes its reminder
// away.
func (c *Context) setReminder(name string, r *reminder) {
	if c.reminders == nil {
		c.reminders = &setReminders{to: map[string]*reminder{}, count: c.a.mail.reminders.size()}
	}
	s := c.reminders
	before, set := s.to[name]
	if !set {
		before = c.a.mail.reminders.get(name)
		s.names = append(s.names, name)
	}
	s.to[name] = r
	switch {
	case before == nil && r != nil:
		s.count++
	case before != nil && r == nil:
		s.count--
	}
	if s.count > maxReminders {
		c.fail(fmt.Errorf("remind of %q: %w: the entity has %d reminders already", name, persist.ErrInvalid, maxReminders))
	}
}

// setReminders is what a turn makes of an entity's reminders.
type setReminders struct {
	names []string // in the order of the calls
	to    map[string]*reminder
	count int // how many the entity has then
}
