package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// logFill is how full the log's pages are made: positions only grow, so no key
// comes between two others later.
const logFill = 0.95

// Commit implements persist.PersistenceService. The whole call is one
// transaction and two syncs; when every unit is refused, none.
//
// Each unit without changes spends one position too. In a forced deletion,
// whose caller may not know the entity's revision, a change whose revision is
// not above the last one in the journal gets the one that follows it.
func (s *Store) Commit(ctx context.Context, units []persist.Unit) (outcomes []persist.Outcome, err error) {
	err = s.write(ctx, func(c *commit, tx *bbolt.Tx) error {
		outcomes = make([]persist.Outcome, len(units))
		c.outcomes = outcomes
		return c.run(tx, units)
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// write runs fn as one transaction.
func (s *Store) write(ctx context.Context, fn func(c *commit, tx *bbolt.Tx) error) error {
	return s.whenFree(ctx, func() error {
		c := s.newCommit()
		if err := s.update(func(tx *bbolt.Tx) error { return fn(&c, tx) }); err != nil {
			return s.notCommitted(&c, err)
		}
		s.adoptCommit(&c)
		return nil
	})
}

// newCommit begins a transaction's worth of writing. The caller has the turn.
func (s *Store) newCommit() commit {
	return commit{s: s, next: s.next, mark: s.mark()}
}

// notCommitted is the error of a commit that update has failed with.
func (s *Store) notCommitted(c *commit, err error) error {
	switch {
	case metDamage(err) && c.shared:
		// Every commit needs this page. The store goes out of service, and Reopen
		// says which page it is.
		s.fail(err, false)
		return s.unavailable(err)
	case metDamage(err):
		// A damaged page was met before anything was written, and it is one that
		// only some entities need. Halving the group leaves the entity whose page
		// this is alone with its failure.
		return fmt.Errorf("%w: %w", persist.ErrInvalid, err)
	}
	return err
}

// adoptCommit takes over what a durable commit has changed. The caller has the
// turn.
func (s *Store) adoptCommit(c *commit) {
	s.next, s.format = c.next, max(s.format, c.format)
	s.marked.Store(&c.mark)
	for kind := range c.kinds {
		s.kinds[kind] = struct{}{}
	}
}

// commit is one call of Commit inside its transaction.
type commit struct {
	s        *Store
	next     uint64
	outcomes []persist.Outcome
	format   uint64 // what the file has to be of, for what was written; see Store.format
	mark     persist.Mark
	created  map[persist.Key]uint64 // lives that began in this call
	kinds    map[string]struct{}    // kinds of rows that are new to the file
	shared   bool                   // what is being touched is touched by every commit

	records, log, tails, changes, rows, meta *bbolt.Bucket
}

// metDamage says whether an error is of a damaged page that was met before
// anything was written.
func metDamage(err error) bool {
	return isFault(err) && !errors.Is(err, persist.ErrUnknown) && !errors.Is(err, persist.ErrUnavailable)
}

// open finds the buckets.
func (c *commit) open(tx *bbolt.Tx) {
	c.shared = true
	c.records = tx.Bucket([]byte(recordsBucket))
	c.log = tx.Bucket([]byte(logBucket))
	c.log.FillPercent = logFill
	c.tails = tx.Bucket([]byte(tailsBucket))
	c.changes = tx.Bucket([]byte(changesBucket))
	c.rows = tx.Bucket([]byte(rowsBucket))
	c.meta = tx.Bucket([]byte(metaBucket))
	c.shared = false
}

func (c *commit) run(tx *bbolt.Tx, units []persist.Unit) error {
	c.open(tx)
	c.created = map[persist.Key]uint64{}
	applied := 0
	for i := range units {
		u := &units[i]
		before, err := c.check(u)
		if err != nil {
			c.outcomes[i] = persist.Outcome{Err: fmt.Errorf("%s: %w", u.Key, err)}
			continue
		}
		if c.outcomes[i], err = c.apply(u, before); err != nil {
			// The unit may be half written: the whole transaction is given up.
			return fmt.Errorf("%s: %w: %w", u.Key, persist.ErrInvalid, err)
		}
		applied++
	}
	if applied == 0 {
		return errNothing
	}
	return c.putNumbers()
}

// putNumbers writes the store's own numbers.
func (c *commit) putNumbers() error {
	c.shared = true
	if c.format > c.s.format || c.mark != c.s.mark() {
		if err := putFormat(c.meta, max(c.format, c.s.format), c.mark); err != nil {
			return err
		}
	}
	if err := putNumber(c.meta, nextKey, c.next); err != nil {
		return err
	}
	c.shared = false
	return nil
}

// stored is what the file has of a unit's entity before the unit.
type stored struct {
	exists   bool
	readable bool
	entry
}

// check decides whether a unit is applied. It writes nothing.
func (c *commit) check(u *persist.Unit) (stored, error) {
	if err := u.Check(c.s.cfg.MaxRecord); err != nil {
		return stored{}, err
	}
	k := recordKey(u.Key)
	var b stored
	h := persist.Head{}
	if err := guard(c.s.path, func() error {
		v := c.records.Get(k)
		if v == nil {
			return nil
		}
		b.exists = true
		b.entry, _, h.Err = readEntry(k, v)
		b.readable = h.Err == nil
		return nil
	}); err != nil {
		return b, fmt.Errorf("%w: %w", persist.ErrInvalid, err)
	}
	h.Exists, h.Life, h.Revision = b.exists, b.life, b.revision
	return b, h.Admits(u, c.created[u.Key])
}

// apply writes a unit that was checked.
func (c *commit) apply(u *persist.Unit, b stored) (persist.Outcome, error) {
	if u.Delete && !b.exists {
		return persist.Outcome{}, nil // by force: nothing is there to change
	}
	life, revision := b.life, uint64(0)
	switch {
	case !b.exists:
		life = c.next
		c.created[u.Key] = life
	case u.Force:
		var err error
		if life, revision, err = c.lastChange(u, b); err != nil {
			return persist.Outcome{}, err
		}
	}
	o := persist.Outcome{Life: life, Position: c.next}
	if len(u.Changes) == 0 {
		c.next++
	}
	for i := range u.Changes {
		change := u.Changes[i]
		change.Key, change.Life, change.Position = u.Key, life, c.next
		if u.Force {
			change.Revision = max(change.Revision, revision+1)
			revision = change.Revision
		}
		if err := c.putChange(&change); err != nil {
			return persist.Outcome{}, err
		}
		o.Position = c.next
		c.next++
	}
	return o, c.putState(u, life)
}

// putState writes or removes the record and the rows of a unit.
func (c *commit) putState(u *persist.Unit, life uint64) error {
	k := recordKey(u.Key)
	if u.Delete {
		delete(c.created, u.Key)
		if err := c.records.Delete(k); err != nil {
			return err
		}
		return c.deleteRows(u.Key)
	}
	if u.Record != nil {
		r := *u.Record
		r.Life = life
		if err := c.records.Put(k, sealRecord(k, &r)); err != nil {
			return err
		}
	}
	for i := range u.Rows {
		if err := c.putRow(u.Key, &u.Rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) putChange(change *persist.Change) error {
	if err := c.note(change); err != nil {
		return err
	}
	return c.logChange(change)
}

// logChange writes a change into the log alone.
func (c *commit) logChange(change *persist.Change) error {
	if change.Event {
		c.format = formatEvents
	}
	p := positionKey(change.Position)
	c.shared = true
	if err := c.log.Put(p, sealChange(p, change)); err != nil {
		return err
	}
	c.shared = false
	return nil
}

func (c *commit) putRow(key persist.Key, r *persist.RowOp) error {
	k := rowKey(r.Kind, key, r.ID)
	if r.Delete {
		return c.rows.Delete(k)
	}
	if err := c.noteKind(r.Kind); err != nil {
		return err
	}
	return c.rows.Put(k, sealRow(k, r.Value))
}

// noteKind keeps the list of the kinds of rows, by which the rows of an entity
// are found. There are few kinds, and so no second index is kept.
func (c *commit) noteKind(kind string) error {
	if _, ok := c.s.kinds[kind]; ok {
		return nil
	}
	if _, ok := c.kinds[kind]; ok {
		return nil
	}
	if c.kinds == nil {
		c.kinds = map[string]struct{}{}
	}
	c.kinds[kind] = struct{}{}
	return putNumber(c.meta, kindPrefix+kind, 0)
}

func (c *commit) deleteRows(key persist.Key) error {
	for _, kinds := range []map[string]struct{}{c.s.kinds, c.kinds} {
		for kind := range kinds {
			prefix := rowsPrefix(kind, key)
			var found [][]byte
			cursor := c.rows.Cursor()
			for k, _ := cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = cursor.Next() {
				found = append(found, bytes.Clone(k))
			}
			for _, k := range found {
				if err := c.rows.Delete(k); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
