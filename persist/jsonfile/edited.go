package jsonfile

import (
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// takeEdited makes a change of what was edited in entities' files while the
// store was closed, so that the journal and whoever reads it know of it.
func (s *Store) takeEdited() error {
	s.turn <- struct{}{}
	defer s.release()
	for _, p := range s.x.sortedPods() {
		for _, e := range s.x.pods[p].list {
			if errors.Is(e.err, errEdited) {
				if err := s.takeEdit(e); err != nil {
					return fmt.Errorf("%s: it was edited: %w", s.file(e.key), err)
				}
			}
		}
	}
	return nil
}

func (s *Store) takeEdit(e *entity) error {
	c, err := s.readFile(e.key)
	switch {
	case !errors.Is(err, errEdited):
		return fmt.Errorf("%w: somebody writes it now: %w", ErrDamaged, err)
	case c.record == nil:
		return fmt.Errorf("%w: it must have a record", ErrDamaged)
	}
	r := *c.record
	u := persist.Unit{Key: e.key, Life: r.Life, Expect: r.Revision, Record: &r}
	r.Revision = max(r.Revision, r.Reserved) + 1
	r.Reserved, r.Changed = r.Revision, time.Now()
	u.Changes = []persist.Change{{Revision: r.Revision, Time: r.Changed, Type: edited, Schema: r.Schema, Codec: r.Codec, Data: r.State}}
	for _, id := range c.sorted() {
		if c.rows[id].damaged {
			return fmt.Errorf("%w: the row %s %q is damaged: mend it or take it out", ErrDamaged, id.kind, id.id)
		}
		u.Rows = append(u.Rows, persist.RowOp{Kind: id.kind, ID: id.id, Value: c.rows[id].value})
	}
	if err := u.Check(s.cfg.MaxRecord); err != nil {
		return err
	}
	l := &line{lineHead: lineHead{Op: opUnit, Position: s.x.last + 1, Pod: u.Key.Pod, Name: u.Key.Name, Life: r.Life}}
	l.setUnit(&u, u.Changes)
	l.Full = true // the file is not to be looked at again
	w, err := s.append([]*line{l})
	if err != nil {
		return err
	}
	return s.adopt([]*line{l}, w)
}
