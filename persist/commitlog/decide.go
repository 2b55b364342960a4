package commitlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// decision is what becomes of the units of a commit.
type decision struct {
	s        *Store
	next     uint64
	heads    map[persist.Key]*persist.Head
	created  map[persist.Key]uint64 // lives that began in this call
	outcomes []persist.Outcome
	effects  []effect
}

// decide judges units against the log and the store behind. It writes nothing.
// The caller has the turn.
func (s *Store) decide(ctx context.Context, units []persist.Unit) (*decision, error) {
	d := &decision{s: s, next: s.next, heads: make(map[persist.Key]*persist.Head, len(units)),
		created: map[persist.Key]uint64{}, outcomes: make([]persist.Outcome, len(units)), effects: make([]effect, 0, len(units))}
	invalid := make([]error, len(units))
	for i := range units {
		invalid[i] = units[i].Check(s.cfg.MaxRecord)
	}
	if err := d.load(ctx, units, invalid); err != nil {
		return nil, err
	}
	for i := range units {
		u := &units[i]
		err := invalid[i]
		if err == nil {
			err = d.heads[u.Key].Admits(u, d.created[u.Key])
		}
		if err != nil {
			d.outcomes[i].Err = fmt.Errorf("%s: %w", u.Key, err)
			continue
		}
		d.apply(i, u)
	}
	return d, nil
}

// load finds the heads of the units' keys.
func (d *decision) load(ctx context.Context, units []persist.Unit, invalid []error) error {
	var ask []persist.Key
	d.s.mu.RLock()
	for i := range units {
		k := units[i].Key
		if invalid[i] != nil || d.heads[k] != nil {
			continue
		}
		h := &persist.Head{}
		d.heads[k] = h
		if !d.s.headOf(k, h) {
			ask = append(ask, k)
		}
	}
	d.s.mu.RUnlock()
	if len(ask) == 0 {
		return nil
	}
	got, err := d.s.behind.Heads(ctx, ask)
	if err != nil {
		return err
	}
	for i, k := range ask {
		*d.heads[k] = got[i]
	}
	return nil
}

// headOf tells what the log knows of a key, if it does. mu is held.
func (s *Store) headOf(k persist.Key, h *persist.Head) bool {
	for _, g := range [...]*generation{s.active, s.frozen} {
		if g == nil {
			continue
		}
		if e := g.entities[k]; e != nil && e.known() && (g != s.active || !mutant.On(mutant.LogHeadsStale)) {
			if e.record != nil {
				*h = persist.Head{Exists: true, Life: e.record.Life, Revision: e.record.Revision}
			}
			return true
		}
	}
	return false
}

// apply gives a unit that was admitted its life and positions.
func (d *decision) apply(i int, u *persist.Unit) {
	h := d.heads[u.Key]
	e := effect{key: u.Key, life: h.Life, deleted: u.Delete, rows: slices.Clone(u.Rows)}
	if !h.Exists {
		e.life = d.next
		d.created[u.Key] = e.life
	}
	e.last = d.next
	if len(u.Changes) == 0 {
		d.next++
	} else {
		e.changes = make([]persist.Change, len(u.Changes))
	}
	for j := range u.Changes {
		e.last = d.next
		c := &e.changes[j]
		*c = u.Changes[j]
		c.Key, c.Life, c.Position, c.Err = u.Key, e.life, d.next, nil
		c.Time = plain(c.Time)
		d.next++
	}
	switch {
	case u.Delete:
		*h = persist.Head{}
		delete(d.created, u.Key)
	case u.Record != nil:
		r := *u.Record
		r.Life, r.Changed = e.life, plain(r.Changed)
		e.record = &r
		*h = persist.Head{Exists: true, Life: e.life, Revision: r.Revision}
	}
	d.outcomes[i] = persist.Outcome{Life: e.life, Position: e.last}
	d.effects = append(d.effects, e)
}

// plain is a time as every store hands it out: in UTC, without a clock's reading.
func plain(t time.Time) time.Time { return t.Round(0).UTC() }
