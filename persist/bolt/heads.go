package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// Heads implements persist.Folder. Damage that a commit of an entity would meet
// is the error of its head.
func (s *Store) Heads(ctx context.Context, keys []persist.Key) ([]persist.Head, error) {
	h := heading{store: s, keys: keys, heads: make([]persist.Head, len(keys))}
	for h.done < len(keys) {
		if err := s.view(ctx, h.chunk); err != nil {
			return nil, s.unheaded(err)
		}
	}
	if len(h.tails) == 0 {
		return h.heads, nil
	}
	if err := h.judgeTails(ctx); err != nil {
		return nil, s.unheaded(err)
	}
	return h.heads, nil
}

// unheaded is the error of a call of Heads. A page that is damaged and is not
// that of some entity alone is one that every commit needs: see Commit.
func (s *Store) unheaded(err error) error {
	if !isFault(err) || errors.Is(err, persist.ErrUnavailable) {
		return err
	}
	s.fail(err, false)
	return s.unavailable(err)
}

// heading is one call of Heads.
type heading struct {
	store *Store
	keys  []persist.Key
	heads []persist.Head
	done  int
	tails []int // the keys whose tail is damaged
}

// chunk reads the heads of some keys.
func (h *heading) chunk(tx *bbolt.Tx) error {
	size := 0
	for end := min(h.done+chunkItems, len(h.keys)); h.done < end && size <= chunkBytes; h.done++ {
		k := recordKey(h.keys[h.done])
		for _, bucket := range []string{recordsBucket, tailsBucket} {
			if err := h.store.believe(tx, bucket, span{from: k, most: 1}); err != nil {
				return err
			}
		}
		n, err := h.read(tx, k)
		if err != nil {
			h.heads[h.done].Err = h.invalid(h.done, err)
		}
		size += n
	}
	return nil
}

// read reads the head of the next key. Its error is of a page of that key alone,
// but for those of the buckets themselves, which it panics about.
func (h *heading) read(tx *bbolt.Tx, k []byte) (size int, err error) {
	records, tails, changes := tx.Bucket([]byte(recordsBucket)), tx.Bucket([]byte(tailsBucket)), tx.Bucket([]byte(changesBucket))
	head := &h.heads[h.done]
	err = guard(h.store.path, func() error {
		if v := records.Get(k); v != nil {
			size = len(v)
			e, _, _ := readEntry(k, v)
			_, err := readRecord(k, v)
			*head = persist.Head{Exists: true, Life: e.life, Revision: e.revision, Err: err}
		}
		t, err := readTail(k, tails.Get(k))
		switch {
		case err != nil:
			h.tails = append(h.tails, h.done)
		case len(t.entries) >= h.store.cfg.tail: // the next change moves them to these pages
			changes.Cursor().Seek(changeKey(changesPrefix(h.keys[h.done]), t.life, t.entries[0].revision))
		}
		return nil
	})
	return size, err
}

func (h *heading) invalid(i int, err error) error {
	return fmt.Errorf("%s: %w: %w", h.keys[i], persist.ErrInvalid, err)
}

// judgeTails looks whether damaged tails can be made anew, as commit.refile would
// do it: one look at the whole log for all of them. An entity that cannot be
// read is not judged: it cannot go on anyway.
func (h *heading) judgeTails(ctx context.Context) error {
	lack, err := h.store.lacking(ctx)
	if isFault(err) && !errors.Is(err, persist.ErrUnavailable) {
		lack, err = err, nil
	}
	if err != nil || lack == nil {
		return err
	}
	for _, i := range h.tails {
		if head := &h.heads[i]; head.Err == nil {
			head.Err = h.invalid(i, lackOf(lack))
		}
	}
	return nil
}

// lacking returns the damage of a change that may be an event of any entity, or
// nil when there is none.
func (s *Store) lacking(ctx context.Context) (lack, err error) {
	format, err := s.plainFormat(ctx)
	if err != nil {
		return nil, err
	}
	err = s.scan(ctx, logBucket, nil, func(_ *bbolt.Tx, p, v []byte) (bool, error) {
		if change := readChange(p, v); format >= formatEvents && isLacking(p, v, &change) {
			lack = change.Err
		}
		return lack == nil, nil
	}, nil)
	return lack, err
}

// isLacking says of an entry of the log in a file that may have events whether
// it may be one of any entity.
func isLacking(p, v []byte, c *persist.Change) bool {
	kind, _ := changeKind(p, v)
	return c.Key.Name == "" && kind != stateKind
}

func lackOf(lack error) error {
	return fmt.Errorf("%w, and so is an event that may be its own: %w", errTail, lack)
}

// plainFormat reads the format that the file has without a log.
func (s *Store) plainFormat(ctx context.Context) (format uint64, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		format, _, err = readMark(tx)
		return err
	})
	return format, err
}
