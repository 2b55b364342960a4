package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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
	if s.sound != nil {
		return s.scanSound(ctx, bucket, seek, fn, last)
	}
	var before []byte
	for more := true; more; {
		err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
			// Of each chunk two keys more than it has are looked at.
			if err := s.believe(tx, bucket, span{from: seek, most: chunkItems + 2}); err != nil {
				return err
			}
			c := tx.Bucket([]byte(bucket)).Cursor()
			size := 0
			k, v := c.Seek(seek)
			for n := 0; k != nil; n++ {
				if n == chunkItems || size > chunkBytes {
					seek = bytes.Clone(k)
					return nil
				}
				// In a file that was not verified a damaged key may stand where it
				// does not belong; paging by it would go round.
				if bytes.Compare(k, before) > 0 {
					if more, err = fn(tx, k, v); err != nil {
						return err
					}
					if !more {
						break
					}
					before = append(before[:0], k...)
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
	if s.sound != nil {
		return s.loadSound(ctx, key, k)
	}
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		if err := s.believe(tx, recordsBucket, span{from: k, most: 1}); err != nil {
			return err
		}
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
