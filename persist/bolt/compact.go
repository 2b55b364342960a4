package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

const (
	// compactFill is how full pages are made: room for the next changes, so that
	// they do not split every page.
	compactFill = 0.9
	// compactChunk is how many bytes are written in one transaction.
	compactChunk = 16 << 20
)

func compactPath(path string) string { return path + ".compact" }

// Compact implements persist.Compacter. It writes what is needed into a new file
// beside the old one, compares the two, and gives the new one the old one's
// name. Until then the old file is not touched: whatever fails or is cut off
// leaves it as it was. The new file needs room beside it.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.release()
	s.mu.RLock()
	down := s.down
	s.mu.RUnlock()
	if down != nil {
		return down
	}
	tmp := compactPath(s.path)
	_ = os.Remove(tmp)
	o, err := open(tmp, s.cfg)
	if err != nil {
		return fmt.Errorf("compact %s: %w", s.path, err)
	}
	if err := s.fillCompact(ctx, &o); err != nil {
		release(o.db, o.file, tmp, o.stuck)
		_ = os.Remove(tmp)
		return fmt.Errorf("compact %s: %w", s.path, err)
	}
	return s.replace(o, tmp)
}

// fillCompact copies everything into a new file and makes sure that it is there.
func (s *Store) fillCompact(ctx context.Context, o *opened) error {
	o.db.NoSync = true // it is synced once, at the end
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		for _, bucket := range buckets() {
			if err := copyBucket(ctx, o.db, tx, bucket); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.db.NoSync = false
	if err := o.db.Update(func(*bbolt.Tx) error { return nil }); err != nil {
		return err
	}
	if err := o.file.Sync(); err != nil {
		return err
	}
	info, err := o.file.Stat()
	if err != nil {
		return err
	}
	if _, err := check(o.file, info.Size(), compactPath(s.path), true); err != nil {
		return err
	}
	return s.view(ctx, func(old *bbolt.Tx) error {
		return o.db.View(func(tx *bbolt.Tx) error {
			o.txid = uint64(tx.ID())
			return sameContents(ctx, old, tx)
		})
	})
}

// copyBucket copies a bucket into a file in transactions of bounded size.
func copyBucket(ctx context.Context, to *bbolt.DB, from *bbolt.Tx, bucket string) error {
	cursor := from.Bucket([]byte(bucket)).Cursor()
	k, v := cursor.First()
	for k != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := to.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucket))
			b.FillPercent = compactFill
			for size := 0; k != nil && size < compactChunk; k, v = cursor.Next() {
				if err := b.Put(k, v); err != nil {
					return err
				}
				size += len(k) + len(v)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sameContents compares two files, key by key.
func sameContents(ctx context.Context, a, b *bbolt.Tx) error {
	for _, bucket := range buckets() {
		ca, cb := a.Bucket([]byte(bucket)).Cursor(), b.Bucket([]byte(bucket)).Cursor()
		ka, va := ca.First()
		kb, vb := cb.First()
		for n := 0; ka != nil || kb != nil; n++ {
			if !bytes.Equal(ka, kb) || !bytes.Equal(va, vb) {
				return fmt.Errorf("the new file differs from the old one in the bucket %q at %q: the old one is kept", bucket, ka)
			}
			if n%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			ka, va = ca.Next()
			kb, vb = cb.Next()
		}
	}
	return nil
}

// replace puts the new file in the place of the old one. The caller has the
// turn.
func (s *Store) replace(o opened, tmp string) error {
	s.leave()
	if s.down != nil { // a reader met damage meanwhile
		defer s.mu.Unlock()
		release(o.db, o.file, tmp, o.stuck)
		return errors.Join(s.down, os.Remove(tmp))
	}
	if info, err := s.file.Stat(); err == nil {
		_ = o.file.Chmod(info.Mode().Perm())
		sameOwner(o.file, info)
	}
	if err := os.Rename(tmp, s.path); err != nil {
		defer s.mu.Unlock()
		release(o.db, o.file, tmp, o.stuck)
		return errors.Join(fmt.Errorf("compact: %w", err), os.Remove(tmp))
	}
	old, oldFile := s.db, s.file
	s.db, s.file, s.mapped = o.db, o.file, o.mapped
	s.durable.Store(o.txid)
	s.mu.Unlock()
	release(old, oldFile, s.path, false)
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		// A power loss may bring the old file back, without what is committed to
		// the new one from now on.
		s.fail(err, false)
		return s.unavailable(err)
	}
	return nil
}
