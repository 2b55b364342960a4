package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Changes implements persist.PersistenceService. When the list of the entity's
// newest changes cannot be read, the whole journal is read for them, until the
// entity's next change makes that list anew.
func (s *Store) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	h := history{store: s, key: key, life: life, from: from, limit: limitOr(limit), prefix: changesPrefix(key)}
	if key.Check() != nil {
		h.limit = 0
	}
	seek := h.prefix
	if life != 0 {
		seek = changeKey(h.prefix, life, from)
	}
	if err := h.read(ctx, seek); err != nil {
		return nil, unreadable(fmt.Sprintf("changes of %s", key), err)
	}
	return h.changes, nil
}

// NextLife implements persist.LifeFinder.
func (s *Store) NextLife(ctx context.Context, key persist.Key, after uint64) (uint64, error) {
	h := history{store: s, key: key, above: after, limit: 1, prefix: changesPrefix(key)}
	if key.Check() != nil || after == ^uint64(0) {
		return 0, nil
	}
	if err := h.read(ctx, changeKey(h.prefix, after+1, 0)); err != nil {
		return 0, unreadable(fmt.Sprintf("lives of %s", key), err)
	}
	if len(h.changes) == 0 {
		return 0, nil
	}
	return h.changes[0].Life, nil
}

// history is one call of Changes.
type history struct {
	store      *Store
	key        persist.Key
	life, from uint64
	above      uint64 // lives up to here are left out
	limit      int
	prefix     []byte
	changes    []persist.Change
}

// read reads the entity's changes, whose entries stand from the key seek on. In a
// damaged file, where bbolt may go round for ever, the journal alone is read.
func (h *history) read(ctx context.Context, seek []byte) error {
	if h.store.sound != nil {
		return h.search(ctx)
	}
	err := h.store.scan(ctx, changesBucket, seek, h.filed, h.newest)
	if errors.Is(err, errTail) {
		err = h.search(ctx)
	}
	return err
}

// filed takes an entry of the changes bucket.
func (h *history) filed(tx *bbolt.Tx, k, v []byte) (more bool, err error) {
	if !bytes.HasPrefix(k, h.prefix) || len(h.changes) >= h.limit {
		return false, nil
	}
	life, revision, err := parseChangeKey(h.prefix, k)
	if err != nil || h.life != 0 && life != h.life {
		return false, err
	}
	if revision < h.from {
		return true, nil
	}
	head, _, err := unseal(changesBucket, k, v)
	if err != nil {
		return false, err
	}
	err = h.add(tx, life, entryOf{revision, binary.BigEndian.Uint64(head)})
	return len(h.changes) < h.limit, err
}

// newest takes the entries of the entity's tail.
func (h *history) newest(tx *bbolt.Tx) error {
	k := recordKey(h.key)
	if err := h.store.believe(tx, tailsBucket, span{from: k, most: 1}); err != nil {
		return err
	}
	t, err := readTail(k, tx.Bucket([]byte(tailsBucket)).Get(k))
	if err != nil {
		return fmt.Errorf("%w: %w", errTail, err)
	}
	if h.life != 0 && t.life != h.life || t.life <= h.above {
		return nil
	}
	for _, e := range t.entries {
		if e.revision < h.from || len(h.changes) >= h.limit {
			continue
		}
		if err := h.add(tx, t.life, e); err != nil {
			return err
		}
	}
	return nil
}

// add takes the change of an entry, unless it was trimmed.
func (h *history) add(tx *bbolt.Tx, life uint64, e entryOf) error {
	k := positionKey(e.position)
	if err := h.store.believe(tx, logBucket, span{from: k, most: 1}); err != nil {
		return err
	}
	v := tx.Bucket([]byte(logBucket)).Get(k)
	if v == nil {
		if err := h.store.believe(tx, logBucket, span{most: 1}); err != nil {
			return err
		}
		trimmed, err := trimmedThrough(tx)
		if err != nil || e.position <= trimmed {
			return err
		}
		h.changes = append(h.changes, persist.Change{Position: e.position, Key: h.key, Life: life, Revision: e.revision,
			Err: fmt.Errorf("%s: revision %d: the change at position %d is missing: %w", h.key, e.revision, e.position, snapshot.ErrCorrupt)})
		return nil
	}
	c := readChange(k, v)
	switch {
	case c.Err != nil:
		c.Key, c.Life, c.Revision = h.key, life, e.revision
		c.Err = fmt.Errorf("%s: revision %d: %w", h.key, e.revision, c.Err)
	case c.Key != h.key || c.Life != life || c.Revision != e.revision:
		c = persist.Change{Position: e.position, Key: h.key, Life: life, Revision: e.revision,
			Err: fmt.Errorf("%s: revision %d: position %d has a change of %s: %w", h.key, e.revision, e.position, c.Key, snapshot.ErrCorrupt)}
	}
	h.changes = append(h.changes, c)
	return nil
}

// errTail says that an entity's tail cannot be read.
var errTail = errors.New("the list of its newest changes is damaged")

// search looks for the entity's changes in the whole journal.
func (h *history) search(ctx context.Context) error {
	h.changes = nil
	if s := h.store.sound; s != nil {
		for _, p := range s.lost {
			if p.bucket == logBucket {
				return fmt.Errorf("it may lack some: %w: %w", snapshot.ErrCorrupt, p.why)
			}
		}
	}
	err := h.store.scan(ctx, logBucket, positionKey(max(h.life, 1)), func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		c := readChange(k, v)
		if c.Err != nil && c.Key.Name == "" {
			return false, fmt.Errorf("%w, and it may lack one that is unreadable: %w", errTail, c.Err)
		}
		if c.Key == h.key && (h.life == 0 || c.Life == h.life) && c.Life > h.above && c.Revision >= h.from {
			h.changes = append(h.changes, c)
		}
		return true, nil
	}, nil)
	slices.SortStableFunc(h.changes, func(a, b persist.Change) int {
		return cmp.Or(cmp.Compare(a.Life, b.Life), cmp.Compare(a.Revision, b.Revision))
	})
	h.changes = h.changes[:min(len(h.changes), h.limit)]
	return err
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	limit = limitOr(limit)
	if after == ^uint64(0) {
		after-- // no position is behind it
	}
	var changes []persist.Change
	err := s.scan(ctx, logBucket, positionKey(after+1), func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		changes = append(changes, readChange(k, v))
		return len(changes) < limit, nil
	}, nil)
	if err != nil {
		return nil, unreadable("log", err)
	}
	return changes, nil
}
