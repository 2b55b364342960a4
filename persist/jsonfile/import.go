package jsonfile

import (
	"context"
	"fmt"
	"math"

	"github.com/twinsrv/twinsrv/persist"
)

// Import implements persist.Importer. A batch is one write to the journal and
// one sync; after a loss of power there may be a beginning of it.
func (s *Store) Import(ctx context.Context, b persist.Batch) error {
	if err := s.checkBatch(&b); err != nil {
		return err
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	defer s.release()
	if err := s.makeRoom(); err != nil {
		return err
	}
	im := &importing{commit: commit{s: s, staged: map[persist.Key]*stage{}}, last: max(s.x.last, b.Position)}
	defer im.done()
	for i := range b.Records {
		r := &b.Records[i]
		l, err := im.line(r.Key, r)
		if err != nil {
			return err
		}
		l.setRecord(&r.Record)
		l.Life = r.Record.Life
		im.last = max(im.last, l.Life)
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		l, err := im.line(r.Key, nil)
		if err != nil {
			return err
		}
		l.Rows = []lineRow{{Kind: r.Kind, ID: r.ID, value: valueOf(r.Value, "")}}
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		l := &line{lineHead: lineHead{Op: opImport, Position: c.Position, Pod: c.Key.Pod, Name: c.Key.Name, Life: c.Life}}
		l.addChange(c)
		im.lines = append(im.lines, l)
		im.last = max(im.last, c.Position, c.Life)
	}
	// The line without an entity only tells the position.
	im.lines = append(im.lines, &line{lineHead: lineHead{Op: opImport, Position: im.last}})
	w, err := s.append(im.lines)
	if err != nil {
		return err
	}
	return s.adopt(im.lines, w)
}

type importing struct {
	commit
	last uint64
}

// line adds a line of an entity, whose record it replaces if there is one.
func (im *importing) line(key persist.Key, r *persist.Stored) (*line, error) {
	st := im.stage(key)
	u := persist.Unit{Key: key}
	if r != nil {
		u.Record = &r.Record
	}
	l := &line{lineHead: lineHead{Op: opImport, Position: im.last, Pod: key.Pod, Name: key.Name, New: !st.present, Life: st.life}}
	switch {
	case st.err != nil && r == nil:
		return nil, fmt.Errorf("%s: %w: the stored record cannot be read: import it first: %w", key, persist.ErrInvalid, st.err)
	case st.err != nil:
		l.Full = true // it takes the place of what cannot be read
	default:
		if err := im.load(&u, st); err != nil {
			if r == nil {
				return nil, err
			}
			l.Full = true
		}
	}
	if l.Full || l.New {
		st.base = newContent(key)
	}
	st.present, st.err = true, nil
	if r != nil {
		st.exists, st.life = true, r.Record.Life
	}
	l.base = st.base
	im.lines = append(im.lines, l)
	return l, nil
}

// checkBatch says why a batch must not be stored.
func (s *Store) checkBatch(b *persist.Batch) error {
	if b.Position == math.MaxUint64 {
		return fmt.Errorf("%w: no position is above %d", persist.ErrInvalid, b.Position)
	}
	for i := range b.Records {
		r := &b.Records[i]
		u := persist.Unit{Key: r.Key, Record: &r.Record}
		err := s.checkUnit(&u)
		if err == nil && (r.Record.Life == 0 || r.Record.Life == math.MaxUint64) {
			err = fmt.Errorf("%w: a record of life %d", persist.ErrInvalid, r.Record.Life)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		if err := s.checkChange(c); err != nil {
			return fmt.Errorf("%s: position %d: %w", c.Key, c.Position, err)
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		u := persist.Unit{Key: r.Key, Expect: 1, Rows: []persist.RowOp{{Kind: r.Kind, ID: r.ID, Value: r.Value}}}
		err := s.checkUnit(&u)
		if err == nil && r.Err != nil {
			err = fmt.Errorf("%w: a row that cannot be read: %w", persist.ErrInvalid, r.Err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
	}
	return nil
}

func (s *Store) checkUnit(u *persist.Unit) error {
	if err := u.Check(s.cfg.MaxRecord); err != nil {
		return err
	}
	return checkTexts(u)
}

func (s *Store) checkChange(c *persist.Change) error {
	switch {
	case c.Err != nil:
		return fmt.Errorf("%w: a change that cannot be read: %w", persist.ErrInvalid, c.Err)
	case c.Position == 0 || c.Position == math.MaxUint64 || c.Life == 0 || c.Life == math.MaxUint64:
		return fmt.Errorf("%w: a change of life %d at position %d", persist.ErrInvalid, c.Life, c.Position)
	case len(c.Data) > s.cfg.MaxRecord:
		return fmt.Errorf("%w: the change has %d bytes, at most %d are kept", persist.ErrInvalid, len(c.Data), s.cfg.MaxRecord)
	}
	if err := c.Key.Check(); err != nil {
		return err
	}
	return checkTexts(&persist.Unit{Key: c.Key, Changes: []persist.Change{*c}})
}
