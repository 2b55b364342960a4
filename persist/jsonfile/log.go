package jsonfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
)

// Changes implements persist.PersistenceService.
func (s *Store) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	return s.changes(ctx, func(x *index) (out []entry) {
		h := x.past[key]
		if h == nil {
			return nil
		}
		for _, position := range h.positions {
			e := x.at(position)
			if (life == 0 || e.life == life) && e.revision >= from {
				if out = append(out, *e); len(out) == limitOr(limit) {
					break
				}
			}
		}
		return out
	})
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	return s.changes(ctx, func(x *index) []entry {
		if after == ^uint64(0) {
			return nil
		}
		i := x.find(after + 1)
		return append([]entry(nil), x.log[i:min(len(x.log), i+limitOr(limit))]...)
	})
}

// errMoved says that a segment was written anew while its changes were looked
// up.
var errMoved = errors.New("the segment has moved")

// changes reads the changes that pick selects.
func (s *Store) changes(ctx context.Context, pick func(x *index) []entry) ([]persist.Change, error) {
	for {
		var entries []entry
		if err := s.view(ctx, func(x *index) error { entries = pick(x); return nil }); err != nil {
			return nil, err
		}
		out, err := s.readChanges(entries)
		if !errors.Is(err, errMoved) {
			return out, err
		}
	}
}

func (s *Store) readChanges(entries []entry) ([]persist.Change, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	out := make([]persist.Change, 0, len(entries))
	var l *line
	var lerr error
	for i := range entries {
		e := &entries[i]
		if e.seg.gone {
			return nil, errMoved
		}
		if i == 0 || e.seg != entries[i-1].seg || e.off != entries[i-1].off {
			l, lerr = s.readEntry(e)
		}
		var c persist.Change
		err := lerr
		if err == nil {
			c, err = l.change(int(e.index))
		}
		if err == nil && c.Position != e.position {
			err = errLine
		}
		if err != nil {
			c = s.damagedChange(e, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

func (s *Store) readEntry(e *entry) (*line, error) {
	text := make([]byte, e.size)
	if _, err := e.seg.f.ReadAt(text, e.off); err != nil {
		return nil, err
	}
	return readLine(text)
}

// damagedChange is what the index knows of a change that cannot be read.
func (s *Store) damagedChange(e *entry, cause error) persist.Change {
	c := persist.Change{Position: e.position, Life: e.life, Revision: e.revision, Event: e.event}
	what := "a change"
	if e.past != nil {
		c.Key = e.past.key
		what = c.Key.String()
	}
	c.Err = fmt.Errorf("%s: position %d: %s at byte %d: %w", what, e.position, s.segmentPath(e.seg.name), e.off, damaged("%v", cause))
	return c
}

// Trim implements persist.PersistenceService. What is dropped is noted in the
// journal; the room comes back when most of a file of the journal is not needed
// any more, or by Compact.
func (s *Store) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	if err := s.serve(ctx); err != nil {
		return persist.Trimmed{}, err
	}
	defer s.release()
	l, t := s.trim(after, through, limitOr(limit))
	if t.Dropped == 0 {
		return t, nil
	}
	w, err := s.append([]*line{l})
	if err != nil {
		return persist.Trimmed{}, err
	}
	return t, s.adopt([]*line{l}, w)
}

// trim says what a Trim does.
func (s *Store) trim(after, through uint64, limit int) (*line, persist.Trimmed) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x := s.x
	l := &line{lineHead: lineHead{Op: opTrim, Position: x.last}}
	through = min(through, x.last)
	t := persist.Trimmed{Through: max(after, through)}
	if after >= through {
		return l, t
	}
	looked := 0
	for i := x.find(after + 1); i < len(x.log) && x.log[i].position <= through; i++ {
		e := &x.log[i]
		if !x.keeps(e) {
			t.Dropped++
			l.dropping(e.position)
		}
		if looked++; looked == limit {
			t.Through = e.position
			break
		}
	}
	return l, t
}

// keeps says whether Trim must leave a change: an event of a life that has its
// record, which an unreadable record may be.
func (x *index) keeps(e *entry) bool {
	if !e.event || e.past == nil {
		return false
	}
	owner := x.entities[e.past.key]
	return owner != nil && owner.exists && (owner.life == e.life || owner.err != nil)
}

// dropping adds a position to those that the line drops.
func (l *line) dropping(position uint64) {
	if n := len(l.Drop); n > 0 && l.Drop[n-1][1] == position-1 {
		l.Drop[n-1][1] = position
		return
	}
	l.Drop = append(l.Drop, [2]uint64{position, position})
}
