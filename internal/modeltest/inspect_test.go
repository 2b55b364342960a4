package modeltest

import (
	"context"
	"errors"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// told takes a change that was published.
func (w *world) told(c persist.Change) {
	b := w.books[c.Key]
	l := b.life(c.Life)
	if c.Position == 0 && b.exact() { // what is not durable yet has none
		b.failf("a change without a position was published: %+v", c)
	}
	switch {
	case c.Type == "deleted":
		l.ended = true
	case !c.Event && b.exact():
		log, err := changeLog(c)
		w.must(err, "read a published change")
		b.was(c.Life, c.Revision, log)
	}
}

// inspect compares what a store holds with the model. Nobody uses the store.
func (w *world) inspect(s persist.PersistenceService) {
	w.t.Helper()
	ctx := context.Background()
	report, err := persist.Check(ctx, s, persist.CheckOptions{})
	w.must(err, "check the store")
	if !report.OK() {
		w.failf("the store has problems: %v", report.Problems)
	}
	for _, k := range w.keys {
		if k.Pod == volatilePod {
			continue
		}
		r, err := s.Load(ctx, k)
		if err != nil && !errors.Is(err, persist.ErrNotFound) {
			w.failf("load %s: %v", k, err)
		}
		changes, err := s.Changes(ctx, k, 0, 0, 1<<20)
		w.must(err, "read the changes of an entity")
		w.journal(w.books[k], r, changes)
	}
}

// journal compares an entity's changes with the model. r has revision 0 when
// there is no record.
func (w *world) journal(b *book, r snapshot.Record, changes []persist.Change) {
	var before persist.Change
	var events []string
	trims := w.cfg.Committer.KeepFor > 0
	// The events that retention passed while their life went on stay for a while
	// behind its end, when those after them may be gone.
	over := func(c persist.Change) bool { return b.key.Pod == sourcedPod && c.Life != r.Life }
	for _, c := range changes {
		if c.Life != before.Life {
			events = nil
			if c.Life < before.Life || c.Revision != 1 && b.exact() && !trims {
				b.failf("its journal goes from %d-%d to %d-%d", before.Life, before.Revision, c.Life, c.Revision)
			}
		} else if c.Revision <= before.Revision || c.Revision != before.Revision+1 && b.exact() && (!trims || !over(c)) {
			b.failf("its journal of life %d goes from revision %d to %d", c.Life, before.Revision, c.Revision)
		}
		if c.Position <= before.Position {
			b.failf("its journal goes from position %d to %d", before.Position, c.Position)
		}
		before = c
		events = w.journaled(b, c, events)
	}
	switch {
	case r.Revision == 0:
	case before.Life == r.Life && before.Revision != r.Revision && b.exact(), b.key.Pod == sourcedPod && before.Life != r.Life:
		b.failf("its journal ends with %d-%d, its record is %d-%d", before.Life, before.Revision, r.Life, r.Revision)
	case b.key.Pod == sourcedPod && len(events) != int(r.Revision):
		b.failf("its record has revision %d, its journal only %d events", r.Revision, len(events))
	}
}

// journaled compares one change with the model, and returns the events of its
// life so far.
func (w *world) journaled(b *book, c persist.Change, events []string) []string {
	if c.Err != nil {
		b.failf("its change at position %d: %v", c.Position, c.Err)
	}
	l := b.life(c.Life)
	switch {
	case c.Type == "deleted":
		l.ended = true
	case c.Event:
		var e entered
		w.must(snapshot.Msgpack().Decode(c.Data, &e), "read an event")
		events = append(events, e.ID)
		if int(c.Revision) == len(events) { // else the first were trimmed
			b.was(c.Life, c.Revision, append([]string{}, events...))
		}
	default:
		log, err := changeLog(c)
		w.must(err, "read a change")
		if b.exact() {
			b.was(c.Life, c.Revision, log)
			break
		}
		b.sound(log)
		if known, is := l.logs[c.Revision]; is && !b.same(known, log) {
			b.failf("revision %d-%d is %v in the journal, and was %v", c.Life, c.Revision, log, known)
		}
	}
	return events
}

// delivered waits until no message of SendOnce is on its way.
func (w *world) delivered() {
	w.t.Helper()
	const step = 100 // milliseconds
	for range 600 {
		rows, err := w.faults.Rows(context.Background(), entity.OutboxRows, nil, 1000)
		if err == nil && len(rows) == 0 {
			return
		}
		w.pass(step * 1e6)
	}
	rows, _ := w.faults.Rows(context.Background(), entity.OutboxRows, nil, 1000)
	w.failf("%d messages of SendOnce are not delivered, the first of %v", len(rows), rows[0].Key)
}

// conserved requires that what was sent once has arrived, in order. All
// entities are settled, and nothing is on its way.
func (w *world) conserved() {
	for _, k := range w.keys {
		for _, e := range w.sentBy(w.books[k]) {
			to := w.books[e.to]
			if to.everDeleted() || (k.Pod == volatilePod || e.to.Pod == volatilePod) {
				continue
			}
			if to.latest == nil || !contains(to.latest.logs[to.latest.top], e.parcels) {
				w.books[k].failf("%s has sent %v, which is not there:\n%s", e.id, e.parcels, to.history())
			}
		}
	}
	for _, k := range w.keys {
		if to := w.books[k]; to.ordered() && to.latest != nil {
			w.ordered(to, to.latest.logs[to.latest.top])
		}
	}
}

// sentBy returns the effects that have sent something and certainly happened.
func (w *world) sentBy(b *book) (out []*effect) {
	seen := map[*effect]bool{}
	for _, a := range b.attempts {
		if e := a.effect; e != nil && len(e.parcels) > 0 && a.fate == accepted && !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	return out
}

// ordered requires that what came from a sender is in the order of its log.
func (w *world) ordered(to *book, log []string) {
	at := map[*book]int{}
	for _, entry := range log {
		e := w.parcels[entry]
		if e == nil || to.effects[entry] != nil {
			continue
		}
		from := e.attempts[0].book
		if from.everDeleted() || from.key.Pod == volatilePod || from.latest == nil {
			continue
		}
		sent := from.latest.logs[from.latest.top]
		i := indexOf(sent, e.id)
		if i < at[from] {
			to.failf("%s of %s is out of order: it has %v, sent was %v", entry, from.key, log, sent)
		}
		at[from] = i
	}
}

func indexOf(log []string, id string) int {
	for i, s := range log {
		if s == id {
			return i
		}
	}
	return -1
}
