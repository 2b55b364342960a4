package jsonfile

import (
	"context"
	"fmt"

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
	if err := b.Check(s.cfg.MaxRecord); err != nil {
		return err
	}
	var units []persist.Unit
	for i := range b.Records {
		units = append(units, persist.Unit{Key: b.Records[i].Key, Record: &b.Records[i].Record})
	}
	for i := range b.Changes {
		units = append(units, persist.Unit{Key: b.Changes[i].Key, Changes: b.Changes[i : i+1]})
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		units = append(units, persist.Unit{Key: r.Key, Rows: []persist.RowOp{{Kind: r.Kind, ID: r.ID, Value: r.Value}}})
	}
	for i := range units {
		if err := checkTexts(&units[i]); err != nil {
			return fmt.Errorf("%s: %w", units[i].Key, err)
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
