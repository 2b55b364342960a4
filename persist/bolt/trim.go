package bolt

import (
	"bytes"
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// Trim implements persist.PersistenceService.
//
// A change that cannot be read is dropped like the others; an event that cannot
// be read stays if its life, or whose it is, cannot be told.
func (s *Store) Trim(ctx context.Context, after, through uint64, limit int) (trimmed persist.Trimmed, err error) {
	err = s.whenFree(ctx, func() error {
		trimmed, err = s.trim(after, through, limit)
		return err
	})
	return trimmed, err
}

// trim is Trim for who has the turn.
func (s *Store) trim(after, through uint64, limit int) (persist.Trimmed, error) {
	t := trimming{
		Trimmed: persist.Trimmed{Through: max(after, min(through, s.next-1))},
		after:   after, through: min(through, s.next-1), limit: limitOr(limit), format: s.format, trimmed: s.trimmed,
	}
	if err := s.update(t.run); err != nil {
		return persist.Trimmed{}, unreadable("trim the log", err)
	}
	s.trimmed = t.trimmed
	return t.Trimmed, nil
}

// trimming is one call of Trim.
type trimming struct {
	persist.Trimmed
	after, through uint64
	limit          int
	format         uint64
	trimmed        uint64 // see Store.trimmed

	log, changes, tails, records *bbolt.Bucket

	positions [][]byte // of what is dropped
	entries   [][]byte // in the changes bucket
	keys      map[persist.Key]struct{}
}

func (t *trimming) run(tx *bbolt.Tx) error {
	t.log, t.changes = tx.Bucket([]byte(logBucket)), tx.Bucket([]byte(changesBucket))
	t.tails, t.records = tx.Bucket([]byte(tailsBucket)), tx.Bucket([]byte(recordsBucket))
	t.keys = map[persist.Key]struct{}{}
	t.look()
	if len(t.positions) == 0 {
		return errNothing
	}
	for _, k := range t.entries {
		if err := t.changes.Delete(k); err != nil {
			return err
		}
	}
	for _, k := range t.positions {
		if err := t.log.Delete(k); err != nil {
			return err
		}
	}
	t.Dropped = len(t.positions)
	if err := t.dropTails(); err != nil {
		return err
	}
	if t.Through <= t.trimmed {
		return nil
	}
	t.trimmed = t.Through
	return putNumber(tx.Bucket([]byte(metaBucket)), trimmedKey, t.trimmed)
}

// look chooses what is dropped.
func (t *trimming) look() {
	if t.after >= t.through {
		return
	}
	cursor := t.log.Cursor()
	looked := 0
	for k, v := cursor.Seek(positionKey(t.after + 1)); k != nil && binary.BigEndian.Uint64(k) <= t.through; k, v = cursor.Next() {
		if looked == t.limit {
			return
		}
		looked++
		if looked == t.limit {
			t.Through = binary.BigEndian.Uint64(k)
		}
		kind, _ := changeKind(k, v)
		if kind == unknownKind && t.format >= formatEvents {
			continue // it may be an event
		}
		change := readChange(k, v)
		if kind == eventKind && t.lives(&change) {
			continue
		}
		t.positions = append(t.positions, bytes.Clone(k))
		// The entry of a change that cannot be read stays behind; Changes passes
		// over entries of what was trimmed.
		if change.Key.Name != "" {
			t.entries = append(t.entries, changeKey(changesPrefix(change.Key), change.Life, change.Revision))
			t.keys[change.Key] = struct{}{}
		}
	}
}

// lives says whether an event's life may not be over.
func (t *trimming) lives(c *persist.Change) bool {
	if c.Key.Name == "" {
		return true // it cannot be told whose it is
	}
	k := recordKey(c.Key)
	v := t.records.Get(k)
	if v == nil {
		return false
	}
	e, _, err := readEntry(k, v)
	return err != nil || e.life == c.Life
}

// dropTails removes the tails of entities of which no change is left.
func (t *trimming) dropTails() error {
	for key := range t.keys {
		k := recordKey(key)
		tail, err := readTail(k, t.tails.Get(k))
		n := len(tail.entries)
		if err != nil || n == 0 || tail.entries[n-1].position > t.Through || t.anyLeft(tail) {
			continue
		}
		if err := t.tails.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (t *trimming) anyLeft(tail tail) bool {
	for _, e := range tail.entries {
		if t.log.Get(positionKey(e.position)) != nil {
			return true
		}
	}
	return false
}
