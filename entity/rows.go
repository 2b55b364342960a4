package entity

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The kinds of row that entities keep beside their records.
const (
	// OutboxRows hold messages of SendOnce until they are acknowledged; the
	// number of a message is its ID.
	OutboxRows = "outbox"
	// numberRows hold the last number that was given to such a message.
	numberRows = "number"
	// inboxRows hold, by sender, what was taken of it last.
	inboxRows = "inbox"
	// answerRows hold first answers by message id.
	answerRows = "answer"
	// ReminderRows hold, by name, what the entity is to be reminded of.
	ReminderRows = "reminder"
	// SnapshotRows hold the last snapshot of an event-sourced entity.
	SnapshotRows = "snapshot"
)

// The IDs of rows of which an entity has one.
const (
	lastNumber = "last"
	// StateSnapshot is the ID of the row of SnapshotRows.
	StateSnapshot = "state"
)

// mail is what an entity keeps beside its state: messages on their way, and
// what it must know of those that came. Like the head it may be ahead of what
// is durable; a commit that fails has it read anew.
//
// Most entities have nothing of one kind or the other: nil, for the methods that
// read.
type mail struct {
	outbox    *outbox
	inbox     inbox
	answers   *answers
	reminders *reminders
}

// sends returns the outbox, made if need be.
func (m *mail) sends() *outbox {
	if m.outbox == nil {
		m.outbox = &outbox{}
	}
	return m.outbox
}

// answered returns the answers, made if need be.
func (m *mail) answered() *answers {
	if m.answers == nil {
		m.answers = &answers{}
	}
	return m.answers
}

// reminds returns the reminders, made if need be.
func (m *mail) reminds() *reminders {
	if m.reminders == nil {
		m.reminders = &reminders{}
	}
	return m.reminders
}

// readRows reads an entity's rows. One that cannot be read leaves the entity
// unreadable: a lost cursor or answer would let a message in twice. The
// snapshot of an event-sourced entity can be made again.
func readRows(ctx context.Context, store persist.PersistenceService, key persist.Key) ([]persist.Row, error) {
	rows, err := store.RowsOf(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Err != nil && r.Kind != SnapshotRows {
			return nil, fmt.Errorf("%s: its %s row %q: %w", key, r.Kind, r.ID, r.Err)
		}
	}
	return rows, nil
}

// parseMail makes an entity's mail of its rows.
func parseMail(rows []persist.Row) (m mail, err error) {
	for _, r := range rows {
		switch r.Kind {
		case OutboxRows, numberRows:
			err = m.sends().parse(r)
		case inboxRows:
			err = m.inbox.parse(r)
		case answerRows:
			err = m.answered().parse(r)
		case ReminderRows:
			err = m.reminds().parse(r)
		}
		if err != nil {
			return mail{}, fmt.Errorf("%s: its %s row %q: %w: %w", r.Key, r.Kind, r.ID, snapshot.ErrCorrupt, err)
		}
	}
	m.answers.sort()
	return m, nil
}

// keep has a turn's rows committed when its state has not changed.
func (a *activation) keep(ctx *actor.Context, e *entry, rows []persist.RowOp) {
	if a.spec.Durability.IsAsync() {
		a.async.keep(ctx, a, e, rows)
		return
	}
	e.waits = true
	a.submit(persist.Unit{Key: a.key, Life: a.head.life, Expect: a.head.stored, Rows: rows}, e)
}
