package jsonfile

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/persist"
)

// Commit implements persist.PersistenceService. The whole call is one write to
// the journal and one sync; when every unit is refused, none. The entities'
// files follow later; see Config.Flush.
//
// Each unit without changes spends one position too. In a forced deletion,
// whose caller may not know the entity's revision, a change whose revision is
// not above the last one in the journal gets the one that follows it.
//
// A write that fails and can be taken back, as when there is no space, is
// persist.ErrUnavailable; the store goes on and the next commit may succeed.
func (s *Store) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	if err := s.serve(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if err := s.makeRoom(); err != nil {
		return nil, s.lacks(1, err)
	}
	return s.commit(units)
}

// commit does the work of Commit for the holder of the turn.
func (s *Store) commit(units []persist.Unit) ([]persist.Outcome, error) {
	c := &commit{s: s, next: s.x.last + 1, staged: map[persist.Key]*stage{}, outcomes: make([]persist.Outcome, len(units))}
	defer c.done()
	for i := range units {
		if err := c.unit(&units[i], &c.outcomes[i]); err != nil {
			if errors.Is(err, persist.ErrUnavailable) {
				return nil, err
			}
			c.outcomes[i] = persist.Outcome{Err: fmt.Errorf("%s: %w", units[i].Key, err)}
		}
	}
	if len(c.lines) == 0 {
		return c.outcomes, nil
	}
	w, err := s.append(c.lines)
	if err != nil {
		return nil, err
	}
	return c.outcomes, s.adopt(c.lines, w)
}

// adopt brings what is durable into the index.
func (s *Store) adopt(lines []*line, w written) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range lines {
		s.x.note(&l.lineHead, w.seg, w.places[i].off, w.places[i].size, false)
		if l.Op == opTrim {
			w.seg.trims = true
			s.x.drop(l.Drop)
			continue
		}
		if l.Pod == "" || !l.touches() {
			continue
		}
		e := s.x.entity(l.key())
		if l.Delete {
			s.x.hold(e, nil)
			continue
		}
		c := e.held
		switch {
		case l.New || l.Full || !e.present:
			c = newContent(e.key)
		case c == nil:
			c = l.base
		}
		if err := l.apply(c); err != nil {
			// It was read back from what was made of the caller's bytes.
			err = fmt.Errorf("%s: %w: %w", s.dir, persist.ErrUnknown, err)
			s.down = fmt.Errorf("%w until it is reopened, after: %w", persist.ErrUnavailable, err)
			return err
		}
		s.x.hold(e, c)
	}
	s.x.end = place{Segment: w.seg.name, Offset: w.seg.size, Seq: s.x.seq}
	s.arm()
	return nil
}

// commit is one call of Commit.
type commit struct {
	s        *Store
	next     uint64
	staged   map[persist.Key]*stage
	outcomes []persist.Outcome
	lines    []*line
	busy     []*entity
}

// done lets go of what the call has held.
func (c *commit) done() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, e := range c.busy {
		e.busy = false
	}
}

// stage is an entity as the earlier units of the call leave it.
type stage struct {
	exists, present bool
	life, revision  uint64
	created         uint64 // the life that began in this call; 0 if none did
	last            uint64 // revision of the newest change of this call
	err             error  // why the stored record cannot be read
	base            *content
}

// stage returns the stage of a key.
func (c *commit) stage(key persist.Key) *stage {
	st := c.staged[key]
	if st == nil {
		st = &stage{}
		c.s.mu.RLock()
		defer c.s.mu.RUnlock()
		if e := c.s.x.entities[key]; e != nil {
			st.exists, st.present, st.life, st.revision, st.err = e.exists, e.present, e.life, e.revision, e.err
		}
		c.staged[key] = st
	}
	return st
}

func (c *commit) unit(u *persist.Unit, o *persist.Outcome) error {
	if err := c.s.checkUnit(u); err != nil {
		return err
	}
	st := c.stage(u.Key)
	if err := judge(u, st); err != nil {
		return err
	}
	if u.Delete && !st.present {
		return nil // by force: nothing is there to change
	}
	if !u.Delete {
		if err := c.load(u, st); err != nil {
			return err
		}
	}
	l := &line{lineHead: lineHead{Op: opUnit, Position: c.next, Pod: u.Key.Pod, Name: u.Key.Name, Life: st.life, New: !st.present}}
	last := st.last
	switch {
	case u.Delete && u.Force:
		l.Life, last = c.ending(u, st)
	case !st.exists:
		l.Life = c.next
		st.created = c.next
	}
	changes := u.Changes
	if u.Force {
		changes = append([]persist.Change(nil), changes...)
		for i := range changes {
			changes[i].Revision = max(changes[i].Revision, last+1)
			last = changes[i].Revision
		}
	}
	l.setUnit(u, changes)
	*o = persist.Outcome{Life: l.Life, Position: l.last()}
	c.next = o.Position + 1
	l.base = st.base
	c.lines = append(c.lines, l)
	if n := len(changes); n > 0 {
		st.last = changes[n-1].Revision
	}
	if u.Delete {
		*st = stage{}
		return nil
	}
	st.exists, st.present, st.life, st.err = true, true, l.Life, nil
	if u.Record != nil {
		st.revision = u.Record.Revision
	}
	if l.New {
		st.base = newContent(u.Key)
	}
	return nil
}

// checkTexts refuses texts that JSON cannot hold.
func checkTexts(u *persist.Unit) error {
	texts := []string{u.Key.Pod, u.Key.Name}
	if u.Record != nil {
		texts = append(texts, u.Record.Codec)
	}
	for i := range u.Changes {
		texts = append(texts, u.Changes[i].Type, u.Changes[i].Codec)
	}
	for i := range u.Rows {
		texts = append(texts, u.Rows[i].ID)
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return fmt.Errorf("%w: the text %q is not UTF-8, which a store of JSON files needs", persist.ErrInvalid, t)
		}
	}
	return nil
}

// judge decides whether a unit is applied.
func judge(u *persist.Unit, st *stage) error {
	life := u.Life
	if life == 0 {
		life = st.created
	}
	switch {
	case u.Force, u.Expect == 0 && !st.exists:
		return nil
	case u.Expect == 0:
		return fmt.Errorf("%w: it exists already", persist.ErrConflict)
	case !st.exists:
		return fmt.Errorf("%w: it does not exist", persist.ErrConflict)
	case st.err != nil:
		return fmt.Errorf("%w: the stored record cannot be read: %w", persist.ErrConflict, st.err)
	case life == 0:
		return fmt.Errorf("%w: no earlier unit of the call created it, and no life is given", persist.ErrConflict)
	case st.life != life || st.revision != u.Expect:
		return fmt.Errorf("%w: life %d revision %d is stored, the unit expects %d and %d",
			persist.ErrConflict, st.life, st.revision, life, u.Expect)
	}
	return nil
}

// load reads what the unit leaves as it is, unless that is in memory already.
func (c *commit) load(u *persist.Unit, st *stage) error {
	if !st.present || st.base != nil {
		return nil
	}
	c.s.mu.Lock()
	e := c.s.x.entities[u.Key]
	held, kinds := e.held != nil, len(e.kinds)
	if held {
		e.busy = true
		c.busy = append(c.busy, e)
	}
	c.s.mu.Unlock()
	if held || u.Record != nil && kinds == 0 {
		st.base = newContent(u.Key) // the record is all there is, or what is held is built upon
		return nil
	}
	base, err := c.s.readFile(u.Key)
	switch {
	case errors.Is(err, persist.ErrUnavailable):
		return err
	case err == nil && base.record != nil && (base.record.Life != e.life || base.record.Revision != e.revision):
		err = damaged("%s: it was changed while the store has it open", c.s.file(u.Key))
	}
	if err != nil {
		return fmt.Errorf("%w: the stored record cannot be read: %w", persist.ErrConflict, err)
	}
	st.base = base
	return nil
}

// ending returns the life that a forced deletion ends and its last revision. An
// unreadable record's life is the unit's, or else the journal's, or else a new
// one.
func (c *commit) ending(u *persist.Unit, st *stage) (life, revision uint64) {
	life = st.life
	if st.err != nil && life == 0 {
		life = u.Life
	}
	life, revision = c.s.x.lastChange(u.Key, life)
	if life == 0 {
		life = c.next
	}
	return life, max(revision, st.last)
}
