package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	defaultLimit = 100 // of a page whose limit is not given

	// A read transaction keeps pages from being reused and the file from being
	// mapped anew, so a long read is made of several, each of at most so many
	// items and so many bytes.
	chunkItems = 256
	chunkBytes = 1 << 20
)

func limitOr(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return limit
}

// scan calls fn for the entries of a bucket from the key seek on, in order,
// until it returns false, and then, unless it is nil, last. It runs in several
// transactions: what is committed meanwhile may be seen or not. last runs in
// the transaction in which the walk ended.
func (s *Store) scan(ctx context.Context, bucket string, seek []byte,
	fn func(tx *bbolt.Tx, k, v []byte) (bool, error), last func(tx *bbolt.Tx) error) error {
	for more := true; more; {
		err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
			c := tx.Bucket([]byte(bucket)).Cursor()
			size := 0
			k, v := c.Seek(seek)
			for n := 0; k != nil; n++ {
				if n == chunkItems || size > chunkBytes {
					seek = bytes.Clone(k)
					return nil
				}
				if more, err = fn(tx, k, v); err != nil {
					return err
				}
				if !more {
					break
				}
				size += len(k) + len(v)
				k, v = c.Next()
			}
			more = false
			if last != nil {
				return last(tx)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unreadable turns a fault of the file's pages into the damage of what was
// asked for.
func unreadable(what string, err error) error {
	if isFault(err) && !errors.Is(err, persist.ErrUnavailable) && !errors.Is(err, persist.ErrUnknown) {
		return fmt.Errorf("%s: %w: %w", what, snapshot.ErrCorrupt, err)
	}
	if errors.Is(err, persist.ErrUnavailable) {
		return err // names the file
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Load implements persist.PersistenceService.
func (s *Store) Load(ctx context.Context, key persist.Key) (r snapshot.Record, err error) {
	k := recordKey(key)
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		v := tx.Bucket([]byte(recordsBucket)).Get(k)
		if v == nil || key.Check() != nil {
			return persist.ErrNotFound
		}
		r, err = readRecord(k, v)
		return err
	})
	if err != nil {
		return snapshot.Record{}, unreadable(key.String(), err)
	}
	return r, nil
}

// List implements persist.PersistenceService.
func (s *Store) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	o = o.WithDefaults()
	start := recordKey(persist.Key{Pod: pod})
	prefix := recordKey(persist.Key{Pod: pod, Name: o.Prefix})
	seek := prefix
	if o.After >= o.Prefix {
		seek = recordKey(persist.Key{Pod: pod, Name: o.After})
	}
	var page persist.Page
	size := 0
	err := s.scan(ctx, recordsBucket, seek, func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		if !bytes.HasPrefix(k, prefix) {
			return false, nil
		}
		item := persist.Item{Name: string(k[len(start):])}
		if o.After != "" && item.Name <= o.After {
			return true, nil
		}
		if page.More = len(page.Items) == o.Limit || size >= o.MaxBytes; page.More {
			return false, nil
		}
		r, err := readRecord(k, v)
		if err != nil {
			item.Err = fmt.Errorf("%s/%s: %w", pod, item.Name, err)
		}
		item.Record = r
		size += len(r.State)
		page.Items = append(page.Items, item)
		return true, nil
	}, nil)
	if err != nil {
		return persist.Page{}, unreadable("list of "+pod, err)
	}
	return page, nil
}

// Changes implements persist.PersistenceService.
func (s *Store) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	limit = limitOr(limit)
	if key.Check() != nil {
		limit = 0
	}
	prefix := changesPrefix(key)
	var changes []persist.Change
	add := func(tx *bbolt.Tx, position uint64) error {
		c, ok, err := changeAt(tx, position)
		if ok {
			changes = append(changes, c)
		}
		return err
	}
	filed := func(tx *bbolt.Tx, k, v []byte) (bool, error) {
		if !bytes.HasPrefix(k, prefix) || len(changes) >= limit {
			return false, nil
		}
		l, revision, err := parseChangeKey(prefix, k)
		if err != nil || life != 0 && l != life {
			return false, err
		}
		if revision < from {
			return true, nil
		}
		head, _, err := unseal(changesBucket, k, v)
		if err != nil {
			return false, err
		}
		err = add(tx, binary.BigEndian.Uint64(head))
		return len(changes) < limit, err
	}
	newest := func(tx *bbolt.Tx) error {
		k := recordKey(key)
		t, err := readTail(k, tx.Bucket([]byte(tailsBucket)).Get(k))
		if err != nil || life != 0 && t.life != life {
			return err
		}
		for _, e := range t.entries {
			if e.revision < from || len(changes) >= limit {
				continue
			}
			if err := add(tx, e.position); err != nil {
				return err
			}
		}
		return nil
	}
	seek := prefix
	if life != 0 {
		seek = changeKey(prefix, life, from)
	}
	if err := s.scan(ctx, changesBucket, seek, filed, newest); err != nil {
		return nil, unreadable(fmt.Sprintf("changes of %s", key), err)
	}
	return changes, nil
}

// changeAt returns the change at a position that is filed under an entity. It
// is not ok when it was trimmed from the log.
func changeAt(tx *bbolt.Tx, position uint64) (c persist.Change, ok bool, err error) {
	log := tx.Bucket([]byte(logBucket))
	k := positionKey(position)
	value := log.Get(k)
	if value == nil {
		if first, _ := log.Cursor().First(); first == nil || bytes.Compare(k, first) < 0 {
			return c, false, nil
		}
		return c, false, fmt.Errorf("the change at position %d is missing: %w", position, snapshot.ErrCorrupt)
	}
	if c, err = readChange(k, value); err != nil {
		return c, false, fmt.Errorf("position %d: %w", position, err)
	}
	return c, true, nil
}

// Log implements persist.PersistenceService.
func (s *Store) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	limit = limitOr(limit)
	if after == ^uint64(0) {
		return nil, ctx.Err()
	}
	var changes []persist.Change
	err := s.scan(ctx, logBucket, positionKey(after+1), func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		c, err := readChange(k, v)
		if err != nil {
			return false, fmt.Errorf("position %d: %w", binary.BigEndian.Uint64(k), err)
		}
		changes = append(changes, c)
		return len(changes) < limit, nil
	}, nil)
	if err != nil {
		return nil, unreadable("log", err)
	}
	return changes, nil
}

// Rows implements persist.PersistenceService.
func (s *Store) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if strings.IndexByte(kind, 0) >= 0 {
		return nil, ctx.Err() // it would be read as a kind and a pod
	}
	limit = limitOr(limit)
	prefix := kindStart(kind)
	seek := prefix
	if after != nil {
		seek = rowKey(kind, after.Key, after.ID)
	}
	var rows []persist.Row
	err := s.scan(ctx, rowsBucket, seek, func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		if !bytes.HasPrefix(k, prefix) {
			return false, nil
		}
		if after != nil && bytes.Equal(k, seek) {
			return true, nil
		}
		row, err := readRow(k, v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", k, err)
		}
		rows = append(rows, row)
		return len(rows) < limit, nil
	}, nil)
	if err != nil {
		return nil, unreadable("rows of kind "+kind, err)
	}
	return rows, nil
}
