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

// replayPage is how many events are read at a time.
const replayPage = 256

// Complete returns what Load gave of a stored entity as the spec's type sees it
// now: the record upgraded, or for an event-sourced type, whose record holds no
// state, with the state that its events make.
func (s *Spec) Complete(ctx context.Context, store persist.PersistenceService, key persist.Key, r snapshot.Record, err error) (snapshot.Record, error) {
	if s.sourcing != nil {
		l := s.replay(ctx, store, key, r, err, false)
		switch {
		case l.err != nil:
			return r, l.err
		case l.missing:
			return r, fmt.Errorf("%w: %s", persist.ErrNotFound, key)
		}
		l.record.State = l.enc
		return l.record, nil
	}
	if err != nil {
		return r, err
	}
	return s.Modern(r)
}

// replay recovers an event-sourced entity: from its snapshot, unless it is to be
// made anew, and from exactly the events behind that. A record that is lost or
// cannot be read is made again from the journal. l.mail is left empty.
func (s *Spec) replay(ctx context.Context, store persist.PersistenceService, key persist.Key, r snapshot.Record, failed error, anew bool) (l loaded) {
	defer func() {
		if p := recover(); p != nil { // an event's Apply, or an Upgrade
			l = loaded{err: fmt.Errorf("%s: %w: replaying its events panicked: %v", key, snapshot.ErrCorrupt, p)}
		}
	}()
	if failed != nil {
		if !errors.Is(failed, persist.ErrNotFound) && !errors.Is(failed, snapshot.ErrCorrupt) {
			return loaded{err: failed}
		}
		head, err := lastChange(ctx, store, key)
		switch {
		case err != nil:
			return loaded{err: err}
		case (head.Revision == 0 || head.Type == deleted) && errors.Is(failed, persist.ErrNotFound):
			return loaded{missing: true}
		case head.Revision == 0 || head.Type == deleted:
			return loaded{err: failed}
		}
		l.repair = true
		r = snapshot.Record{Life: head.Life, Revision: head.Revision, Reserved: head.Revision, Changed: head.Time}
	}
	l.record = r
	l.record.Schema, l.record.Codec = s.Version, s.codec.Name()
	l.state = s.sourcing.start(key.Name)
	if !anew {
		if err := s.takeSnapshot(ctx, store, key, &l); err != nil {
			return loaded{err: err}
		}
	}
	if err := s.takeEvents(ctx, store, key, &l); err != nil {
		return loaded{err: err}
	}
	var err error
	if l.enc, err = s.codec.Append(nil, l.state); err != nil {
		return loaded{err: fmt.Errorf("%s: %w: the state that its events make cannot be encoded: %w", key, snapshot.ErrCorrupt, err)}
	}
	return l
}

// lastChange returns the last change of an entity in the journal; one of
// revision 0 if there is none. It goes through the changes of a life by their
// revisions, and from life to life by their number, of which the journal has all.
func lastChange(ctx context.Context, store persist.PersistenceService, key persist.Key) (last persist.Change, err error) {
	for seen := 0; ; {
		page, err := store.Changes(ctx, key, 0, 0, seen+replayPage)
		if err != nil {
			return last, err
		}
		more := len(page) == seen+replayPage
		for n := len(page) - seen; n > 0; n = len(page) {
			seen += n
			last = page[len(page)-1]
			if last.Err != nil {
				return last, fmt.Errorf("%s: its last change, at position %d: %w", key, last.Position, last.Err)
			}
			if !more {
				return last, nil
			}
			if page, err = store.Changes(ctx, key, last.Life, last.Revision+1, replayPage); err != nil {
				return last, err
			}
		}
		if !more {
			return last, nil
		}
	}
}

// takeSnapshot begins with the entity's snapshot, if it has one that serves.
func (s *Spec) takeSnapshot(ctx context.Context, store persist.PersistenceService, key persist.Key, l *loaded) error {
	rows, err := store.RowsOf(ctx, key)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Kind != SnapshotRows || row.Err != nil {
			continue
		}
		r, err := snapshot.Parse(row.Value)
		if err != nil || r.Life != l.record.Life || r.Revision > l.record.Revision || !s.carries(r.Schema) {
			continue
		}
		if state, _, err := s.decode(&r); err == nil {
			l.state, l.snapshotAt, l.snapshotOf = state, r.Revision, r.Changed
		}
	}
	return nil
}

// carries says whether snapshots of a version are carried forward by an upgrade for each
// step. Of a record that has no events behind it a missing step means that nothing is to
// be done; a snapshot would keep what an event has made of the state in another way.
func (s *Spec) carries(version uint32) bool {
	for v := version; v < s.Version; v++ {
		if _, ok := s.upgrades[v]; !ok {
			return false
		}
	}
	return true
}

// takeEvents applies the events between the snapshot and the record's revision.
func (s *Spec) takeEvents(ctx context.Context, store persist.PersistenceService, key persist.Key, l *loaded) error {
	at := l.snapshotAt
	if mutant.On(mutant.ReplayRepeatsEvent) && at > 0 {
		at--
	}
	if mutant.On(mutant.ReplaySkipsEvent) && at > 0 {
		at++
	}
	for at < l.record.Revision {
		page, err := store.Changes(ctx, key, l.record.Life, at+1, replayPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("%s: %w: event %d of life %d is missing in the journal", key, snapshot.ErrCorrupt, at+1, l.record.Life)
		}
		for _, c := range page {
			if c.Revision > l.record.Revision {
				break
			}
			if c.Err == nil && c.Revision != at+1 {
				c.Err = fmt.Errorf("%w: event %d is missing in the journal", snapshot.ErrCorrupt, at+1)
			}
			if err := s.takeEvent(c, l.state); err != nil {
				return fmt.Errorf("%s: event %d of life %d: %w", key, at+1, l.record.Life, err)
			}
			at = c.Revision
		}
	}
	return nil
}

func (s *Spec) takeEvent(c persist.Change, state any) error {
	if c.Err != nil {
		return c.Err
	}
	e := s.sourcing.events[c.Type]
	if e == nil {
		return fmt.Errorf("%w: the type has no event %q", snapshot.ErrCorrupt, c.Type)
	}
	if c.Codec != s.codec.Name() {
		return fmt.Errorf("%w: it is encoded as %q and the pod's type uses %q", snapshot.ErrCorrupt, c.Codec, s.codec.Name())
	}
	data, err := e.upgrades.Apply(s.codec, c.Data, c.Schema, e.version)
	if err != nil {
		if !errors.Is(err, snapshot.ErrNewer) {
			err = fmt.Errorf("%w: %q cannot be upgraded: %w", snapshot.ErrCorrupt, c.Type, err)
		}
		return err
	}
	if err := (raised{event: e, data: data}).applyTo(s.codec, state); err != nil {
		return fmt.Errorf("%w: %q: %w", snapshot.ErrCorrupt, c.Type, err)
	}
	return nil
}

// restoreRecord puts back the record that the journal has made again.
func restoreRecord(ctx context.Context, store persist.PersistenceService, key persist.Key, r snapshot.Record) error {
	importer, ok := store.(persist.Importer)
	if !ok {
		return fmt.Errorf("%s: %w: its record is lost and the store cannot take another one", key, snapshot.ErrCorrupt)
	}
	r.State = nil
	if err := importer.Import(ctx, persist.Batch{Records: []persist.Stored{{Key: key, Record: r}}}); err != nil {
		return fmt.Errorf("%s: put back its record: %w", key, err)
	}
	return nil
}

// snapshots says when the last snapshot of an event-sourced entity was made.
type snapshots struct {
	at uint64 // revision; 0: there is none
	of time.Time
}

// noSnapshots is what a new entity has: nil, unless it is event-sourced.
func (a *activation) noSnapshots() *snapshots {
	if a.spec.sourcing == nil {
		return nil
	}
	return &snapshots{}
}

// due reports whether the next commit should take a snapshot along.
func (s *snapshots) due(a *activation, now time.Time) bool {
	src := a.spec.sourcing
	return a.head.life != 0 && (a.head.revision-s.at >= src.every || src.after > 0 && now.Sub(s.of) > src.after)
}

// behind reports whether the entity has events that its snapshot lacks.
func (s *snapshots) behind(a *activation) bool {
	return a.spec.sourcing != nil && a.phase == serving && a.head.life != 0 && s.at < a.head.revision
}

// save returns the row of a snapshot of the head.
func (s *snapshots) save(a *activation, now time.Time) persist.RowOp {
	s.at, s.of = a.head.revision, now
	r := snapshot.Record{
		Life: a.head.life, Revision: a.head.revision, Reserved: a.head.revision, Changed: now.UTC(),
		Schema: a.spec.Version, Codec: a.spec.codec.Name(), State: a.head.enc,
	}
	return persist.RowOp{Kind: SnapshotRows, ID: StateSnapshot, Value: r.Append(nil)}
}

// saveSnapshot has a snapshot committed by itself, and reply answered then.
func (a *activation) saveSnapshot(ctx *actor.Context, m *Message, reply *actor.Promise) {
	e := &entry{silent: true, reply: reply, message: m, life: a.head.life, revision: a.head.revision}
	a.keep(ctx, e, []persist.RowOp{a.snapshots.save(a, ctx.Now())})
	a.push(ctx, e)
}

// rebuild recovers an event-sourced entity from its events alone.
func (a *activation) rebuild(ctx *actor.Context, m *Message, reply *actor.Promise) {
	if a.spec.sourcing == nil {
		a.refuse(ctx, m, reply, Rejectf("pod %s is not event-sourced: the records are the truth", a.key.Pod))
		return
	}
	a.drained(ctx, m, reply, func(ctx *actor.Context) {
		a.anew = true
		a.reload(ctx, m, reply, func(ctx *actor.Context) {
			switch {
			case a.phase == quarantined: // its snapshot may be good all the same
				reason := a.reason
				a.reload(ctx, m, reply, func(ctx *actor.Context) { a.refuse(ctx, m, reply, reason) })
			case a.phase != serving:
				a.refuse(ctx, m, reply, a.reason)
			case a.head.revision == 0:
				a.refuse(ctx, m, reply, fmt.Errorf("%w: %s", ErrNotFound, a.key))
			default:
				a.saveSnapshot(ctx, m, reply)
			}
		})
	})
}

// retry reads a quarantined entity again.
func (a *activation) retry(ctx *actor.Context, m *Message, reply *actor.Promise) {
	if a.phase != quarantined {
		answer(reply, nil, nil)
		return
	}
	a.reload(ctx, m, reply, func(ctx *actor.Context) {
		if a.phase != serving {
			a.refuse(ctx, m, reply, a.reason)
			return
		}
		answer(reply, nil, nil)
	})
}

// reload reads the entity anew, and then runs f for a message. Nothing is in
// flight.
func (a *activation) reload(ctx *actor.Context, m *Message, reply *actor.Promise, f func(*actor.Context)) {
	a.barrier = &barrier{message: m, reply: reply, run: f}
	a.load(ctx)
}
