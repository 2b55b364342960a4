package memory

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
)

// Commit implements persist.PersistenceService.
func (s *Store) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	c := commit{data: s.data, most: s.cfg.MaxRecord, created: map[persist.Key]uint64{}}
	outcomes := make([]persist.Outcome, len(units))
	for i := range units {
		u := &units[i]
		before, exists, err := c.judge(u)
		if err != nil {
			outcomes[i].Err = fmt.Errorf("%s: %w", u.Key, err)
			continue
		}
		outcomes[i] = c.apply(u, before, exists)
	}
	return outcomes, nil
}

// commit is one call of Commit.
type commit struct {
	*data
	most    int
	created map[persist.Key]uint64 // lives that began in this call
}

// judge decides whether a unit is applied.
func (c *commit) judge(u *persist.Unit) (before stored, exists bool, err error) {
	if err := u.Check(c.most); err != nil {
		return stored{}, false, err
	}
	before, exists = c.records.Get(stored{Key: u.Key})
	h := headOf(before, exists)
	return before, exists, h.Admits(u, c.created[u.Key])
}

func (c *commit) apply(u *persist.Unit, before stored, exists bool) persist.Outcome {
	if u.Delete && !exists {
		return persist.Outcome{} // by force: nothing is there to change
	}
	life := before.life
	if !exists {
		life = c.next
		c.created[u.Key] = life
	}
	o := persist.Outcome{Life: life, Position: c.next}
	if len(u.Changes) == 0 {
		c.next++
	}
	var last uint64
	if u.Force {
		last = c.lastRevision(u.Key, life)
	}
	for i := range u.Changes {
		change := u.Changes[i]
		change.Key, change.Life, change.Position, change.Err = u.Key, life, c.next, nil
		change.Data = cloneBytes(change.Data)
		if u.Force {
			// Whoever forces may not know the revision: it is behind the last one.
			change.Revision = max(change.Revision, last+1)
			last = change.Revision
		}
		c.putChange(&change)
		o.Position = c.next
		c.next++
	}
	c.put(u, life)
	return o
}

// put writes or removes the record and the rows of a unit.
func (c *commit) put(u *persist.Unit, life uint64) {
	if u.Delete {
		delete(c.created, u.Key)
		c.records.Delete(stored{Key: u.Key})
		c.deleteRows(u.Key)
		return
	}
	if u.Record != nil {
		r := *u.Record
		r.Life = life
		c.putRecord(u.Key, &r)
	}
	for i := range u.Rows {
		op := &u.Rows[i]
		r := row{kind: op.Kind, Key: u.Key, id: op.ID}
		if op.Delete {
			c.rows.Delete(r)
			continue
		}
		r.value = cloneValue(op.Value)
		c.rows.ReplaceOrInsert(r)
	}
}

// Trim implements persist.PersistenceService.
func (s *Store) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	if err := s.begin(ctx); err != nil {
		return persist.Trimmed{}, err
	}
	defer s.mu.Unlock()
	d := s.data
	through = min(through, d.next-1)
	t := persist.Trimmed{Through: max(after, through)}
	if after >= through {
		return t, nil
	}
	var drop []uint64
	looked := 0
	d.log.AscendGreaterOrEqual(&persist.Change{Position: after + 1}, func(c *persist.Change) bool {
		if c.Position > through {
			return false
		}
		if looked++; looked == limitOr(limit) {
			t.Through = c.Position
		}
		if r, ok := d.records.Get(stored{Key: c.Key}); !c.Event || !ok || r.life != c.Life {
			drop = append(drop, c.Position)
		}
		return looked < limitOr(limit)
	})
	for _, position := range drop {
		d.dropChange(position)
	}
	t.Dropped = len(drop)
	return t, nil
}
