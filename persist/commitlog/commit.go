package commitlog

import (
	"context"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// Commit implements persist.PersistenceService. The whole call is one group and
// one sync; when every unit is refused, none. A call with a forced deletion, or
// one that fits no segment, goes to the store behind, once all that was before
// it is folded.
func (s *Store) Commit(ctx context.Context, units []persist.Unit) (outcomes []persist.Outcome, err error) {
	err = persist.WhenFree(ctx, func() error {
		outcomes, err = s.commit(ctx, units)
		return err
	})
	return outcomes, err
}

func (s *Store) commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer release(s.turn)
	for i := range units {
		if units[i].Force {
			return s.commitBehind(ctx, units)
		}
	}
	d, err := s.decide(ctx, units)
	if err != nil {
		return nil, err
	}
	if len(d.effects) == 0 {
		return d.outcomes, nil
	}
	frame := s.encode(d.effects)
	room := int64(len(frame)) + 2*frameAlign // its padding, and what place adds
	if headerSize+room > s.cfg.SegmentSize {
		return s.commitBehind(ctx, units)
	}
	if err := s.prepare(ctx, room); err != nil {
		return nil, err
	}
	if err := s.append(frame); err != nil {
		return nil, err
	}
	s.adopt(d)
	// A fold that comes behind what the store behind is told here must know of
	// this group: otherwise it would take that back.
	s.goneOn(context.WithoutCancel(ctx), s.newest)
	return d.outcomes, nil
}

// encode makes a group of effects. Their states, data and values are then the
// group's, which nobody changes.
func (s *Store) encode(effects []effect) []byte {
	s.frame = append(s.frame[:0], make([]byte, frameSize)...)
	b := s.frame
	for i := range effects {
		b = appendEffect(b, &effects[i])
	}
	s.frame = b
	return b
}

// append makes a group durable. The caller has the turn and has made room.
func (s *Store) append(frame []byte) error {
	g := s.current
	frame = g.seal(frame, s.group+1)
	s.frame = frame
	_, err := g.file.WriteAt(frame, g.end)
	if err == nil && !mutant.On(mutant.LogAckUnsynced) {
		err = g.file.Sync()
	}
	if err != nil {
		s.fail(err)
		return fmt.Errorf("%s: %w: append to %s: %w", s.dir, persist.ErrUnknown, g.name, err)
	}
	g.end = int64(g.place(int(g.end) + len(frame)))
	s.group++
	s.newest = g
	return nil
}

// adopt shows what has become durable. The caller has the turn.
func (s *Store) adopt(d *decision) {
	own(d.effects)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active.empty() {
		s.since = time.Now()
		s.nudge()
	}
	for i := range d.effects {
		s.active.apply(&d.effects[i])
	}
	s.active.last = s.group
	s.next = d.next
}

// own copies what effects share with the caller's units, into one piece of
// memory.
func own(effects []effect) {
	size := 0
	each(effects, func(b *[]byte) { size += len(*b) })
	room := make([]byte, 0, size)
	each(effects, func(b *[]byte) {
		if len(*b) == 0 {
			*b = nil
			return
		}
		from := len(room)
		room = append(room, *b...)
		*b = room[from:len(room):len(room)]
	})
}

// each calls fn for the bytes of effects; those of a change that are its
// record's become the record's own.
func each(effects []effect, fn func(*[]byte)) {
	for i := range effects {
		e := &effects[i]
		if e.record != nil {
			fn(&e.record.State)
		}
		for j := range e.changes {
			c := &e.changes[j]
			if e.record != nil && len(c.Data) > 0 && len(c.Data) == len(e.record.State) && string(c.Data) == string(e.record.State) {
				c.Data = e.record.State
				continue
			}
			fn(&c.Data)
		}
		for j := range e.rows {
			fn(&e.rows[j].Value)
		}
	}
}
