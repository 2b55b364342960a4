package postgres

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// stored is what the database has of an entity; the zero value is none.
type stored struct {
	life, revision uint64
	// last is the highest revision of the life in the journal. It is read only
	// for keys that a unit deletes by force.
	last uint64
}

func (b stored) exists() bool { return b.life != 0 }

// plan is what a call of Commit comes to: its units are judged one after the
// other, here, against what is stored or is assumed to be, and their sum is
// written in one go that proves the assumptions.
type plan struct {
	maxRecord int
	known     map[persist.Key]stored // what was read; nil assumes what each key's first unit expects
	next      uint64

	outcomes []persist.Outcome
	entities map[persist.Key]*entity
	changes  []persist.Change
}

// entity is what a plan does with one key.
type entity struct {
	key      persist.Key
	was, now stored
	created  uint64           // the newest life that began in the call, until it ends
	record   *snapshot.Record // to be written; nil leaves what is stored
	cleared  bool             // rows that are stored go
	rows     map[rowID]*persist.RowOp
	touched  bool // some unit was applied
}

type rowID struct{ kind, id string }

// needsRead says whether units cannot be judged by assumptions: a forced
// deletion expects nothing.
func needsRead(units []persist.Unit) bool {
	return slices.ContainsFunc(units, func(u persist.Unit) bool { return u.Force })
}

func newPlan(units []persist.Unit, known map[persist.Key]stored, next uint64, maxRecord int) *plan {
	p := &plan{
		maxRecord: maxRecord, known: known, next: next,
		outcomes: make([]persist.Outcome, len(units)),
		entities: make(map[persist.Key]*entity, len(units)),
	}
	for i := range units {
		u := &units[i]
		e, err := p.judge(u)
		if err != nil {
			p.outcomes[i].Err = fmt.Errorf("%s: %w", u.Key, err)
			continue
		}
		p.outcomes[i] = p.apply(u, e)
	}
	return p
}

// checkUnit says why the store may not take the unit.
func checkUnit(u *persist.Unit, maxRecord int) error {
	if err := u.Check(maxRecord); err != nil {
		return err
	}
	if err := checkText(u.Key); err != nil {
		return err
	}
	if u.Record != nil && u.Record.Revision > math.MaxInt64 {
		return fmt.Errorf("%w: the record's revision %d is over %d", persist.ErrInvalid, u.Record.Revision, math.MaxInt64)
	}
	for i := range u.Changes {
		if r := u.Changes[i].Revision; r > math.MaxInt64 {
			return fmt.Errorf("%w: change %d has revision %d, at most %d are kept", persist.ErrInvalid, i, r, math.MaxInt64)
		}
	}
	return nil
}

// checkText refuses names that are no text for the server.
func checkText(k persist.Key) error {
	if !utf8.ValidString(k.Pod) || !utf8.ValidString(k.Name) {
		return fmt.Errorf("%w: the name %q is not valid UTF-8", persist.ErrInvalid, k.String())
	}
	return nil
}

// judge decides whether a unit is applied.
func (p *plan) judge(u *persist.Unit) (*entity, error) {
	if err := checkUnit(u, p.maxRecord); err != nil {
		return nil, err
	}
	e := p.entities[u.Key]
	life := u.Life
	if life == 0 && e != nil {
		life = e.created
	}
	if e == nil {
		if u.Expect > 0 && life == 0 && !u.Force {
			return nil, fmt.Errorf("%w: no earlier unit of the call created it, and no life is given", persist.ErrConflict)
		}
		e = &entity{key: u.Key}
		if p.known != nil {
			e.was = p.known[u.Key]
		} else if u.Expect > 0 {
			e.was = stored{life: u.Life, revision: u.Expect}
		}
		e.now = e.was
		p.entities[u.Key] = e
	}
	switch {
	case u.Force:
		return e, nil
	case u.Expect == 0 && !e.now.exists():
		return e, nil
	case u.Expect == 0:
		return nil, fmt.Errorf("%w: it exists already", persist.ErrConflict)
	case !e.now.exists():
		return nil, fmt.Errorf("%w: it does not exist", persist.ErrConflict)
	case life == 0:
		return nil, fmt.Errorf("%w: no earlier unit of the call created it, and no life is given", persist.ErrConflict)
	case e.now.life != life || e.now.revision != u.Expect:
		return nil, fmt.Errorf("%w: life %d revision %d is stored, the unit expects %d and %d",
			persist.ErrConflict, e.now.life, e.now.revision, life, u.Expect)
	}
	return e, nil
}

// apply does what a unit says, which was judged.
func (p *plan) apply(u *persist.Unit, e *entity) persist.Outcome {
	if u.Delete && !e.now.exists() {
		return persist.Outcome{} // by force: nothing is there to change
	}
	e.touched = true
	if !e.now.exists() {
		e.now = stored{life: p.next}
		e.created = p.next
	}
	o := persist.Outcome{Life: e.now.life, Position: p.next}
	if len(u.Changes) == 0 {
		p.next++
	}
	for i := range u.Changes {
		c := u.Changes[i]
		c.Key, c.Life, c.Position, c.Err = u.Key, e.now.life, p.next, nil
		if u.Force {
			c.Revision = max(c.Revision, e.now.last+1)
		}
		e.now.last = max(e.now.last, c.Revision)
		p.changes = append(p.changes, c)
		o.Position = p.next
		p.next++
	}
	if u.Delete {
		e.now, e.created, e.record, e.cleared, e.rows = stored{}, 0, nil, true, nil
		return o
	}
	if u.Record != nil {
		r := *u.Record
		r.Life = e.now.life
		e.record = &r
		e.now.revision = r.Revision
	}
	for i := range u.Rows {
		if e.rows == nil {
			e.rows = make(map[rowID]*persist.RowOp, len(u.Rows))
		}
		e.rows[rowID{u.Rows[i].Kind, u.Rows[i].ID}] = &u.Rows[i]
	}
	return o
}

// touched returns what the plan does, sorted by key. It is empty when every unit
// was refused.
func (p *plan) touched() []*entity {
	all := make([]*entity, 0, len(p.entities))
	for _, e := range p.entities {
		if e.touched {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entity) int {
		return cmp.Or(cmp.Compare(a.key.Pod, b.key.Pod), cmp.Compare(a.key.Name, b.key.Name))
	})
	return all
}

// keysOf returns the keys of the units that can be stored, sorted and each once.
func keysOf(units []persist.Unit) []persist.Key {
	keys := make([]persist.Key, 0, len(units))
	for i := range units {
		if k := units[i].Key; k.Check() == nil && checkText(k) == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b persist.Key) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(keys)
}
