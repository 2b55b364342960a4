package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// A file's mark is in the meta bucket. While its log stands in front, the file
// is of formatLogged, and says beside it which format it has without the log.

// attached says whether a log stands in front of a file with this mark.
func attached(m persist.Mark) bool { return m.Log != 0 && !m.Detached }

// Mark implements persist.Folder.
func (s *Store) Mark(ctx context.Context) (persist.Mark, error) {
	if err := ctx.Err(); err != nil {
		return persist.Mark{}, s.notBegun(err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.down != nil {
		return persist.Mark{}, s.down
	}
	return s.mark(), nil
}

// mark is that of the newest durable transaction.
func (s *Store) mark() persist.Mark { return *s.marked.Load() }

// Detach removes the mark of a commit log, so that the file can be opened
// without one again and nothing tells of the log. What that holds and was not
// folded is lost: it is for a file whose log is. Without a mark it does nothing.
func (s *Store) Detach(ctx context.Context) error {
	return s.write(ctx, func(c *commit, tx *bbolt.Tx) error {
		c.mark = persist.Mark{}
		if s.mark() == c.mark {
			return errNothing
		}
		c.open(tx)
		return c.putNumbers()
	})
}

// putFormat writes the file's format and its mark. Older programs know no log,
// and would overlook what is in one: so they get a format that they refuse, until
// the log has let the file go.
func putFormat(b *bbolt.Bucket, format uint64, m persist.Mark) error {
	numbers := map[string]uint64{formatKey: format}
	if m.Log != 0 {
		numbers[logKey], numbers[foldedKey] = m.Log, m.Through
	}
	if attached(m) {
		numbers[formatKey], numbers[plainKey] = formatLogged, format
		if m.Reached > 0 {
			numbers[reachedKey] = m.Reached
		}
	}
	for _, key := range []string{formatKey, plainKey, logKey, foldedKey, reachedKey} {
		var err error
		if n, ok := numbers[key]; ok {
			err = putNumber(b, key, n)
		} else {
			err = b.Delete([]byte(key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMark is loadMark in any transaction.
func readMark(tx *bbolt.Tx) (plain uint64, m persist.Mark, err error) {
	b := tx.Bucket([]byte(metaBucket))
	format, _, err := getNumber(b, formatKey)
	if err != nil {
		return 0, m, err
	}
	return loadMark(b, format)
}

// loadMark reads a file's mark, and the format that it has without a log.
func loadMark(b *bbolt.Bucket, format uint64) (plain uint64, m persist.Mark, err error) {
	numbers := map[string]uint64{}
	for _, key := range []string{plainKey, logKey, foldedKey, reachedKey} {
		n, ok, err := getNumber(b, key)
		if err != nil {
			return 0, m, err
		}
		if ok {
			numbers[key] = n
		}
	}
	m = persist.Mark{Log: numbers[logKey], Through: numbers[foldedKey]}
	if format < formatLogged {
		m.Detached = m.Log != 0
		return format, m, nil
	}
	m.Reached = numbers[reachedKey]
	if plain = numbers[plainKey]; plain == 0 || m.Log == 0 {
		return 0, m, fmt.Errorf("%w: it does not say which log stands in front of it", ErrDamaged)
	}
	return plain, m, nil
}
