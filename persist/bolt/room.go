package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// maxTry bounds the room that is looked for: otherwise one large commit would
// keep all small ones out.
const maxTry = 4 << 20

// noRoom says whether a commit failed because its pages found no room. bbolt
// writes them before it syncs anything, except where the file has to grow: then
// it sets the file's size first, and hides the cause in a text. A sync that fails
// for want of room does not count: whether the disk has what it was to have is
// not known then.
func noRoom(err error) bool {
	var p *os.PathError
	if errors.As(err, &p) && p.Op == "write" {
		return persist.IsNoRoom(p.Err)
	}
	return strings.HasPrefix(err.Error(), "file resize error: ")
}

// pagesOf is the size of the pages that a transaction has asked for.
func pagesOf(tx *bbolt.Tx) int64 {
	stats := tx.Stats()
	return max(stats.GetPageAlloc(), int64(os.Getpagesize()))
}

// tryRoom makes sure that the disk has room for what a commit found none for. It
// writes that into a file of its own: a transaction would have to leave it in the
// store's. The caller has the turn.
func (s *Store) tryRoom() error {
	if s.wanted == 0 {
		return nil
	}
	if err := occupy(s.path, min(s.wanted, maxTry)); err != nil {
		return fmt.Errorf("%s: %w: a commit has found no room, and there is none yet: %w: %w", s.path, persist.ErrUnavailable, persist.ErrNoRoom, err)
	}
	s.wanted = 0
	return nil
}

// occupy writes so many bytes beside a file, and takes them away again.
func occupy(path string, size int64) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, size))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
