package bolt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/twinsrv/twinsrv/persist"
)

// bbolt maps its file into memory, and anew when a commit takes pages behind the
// map. For that it waits until nobody reads, and whoever begins to read waits for
// it, whatever their contexts say. Behind a read transaction that lasts, as that of
// a backup does, all reads would stand still.
//
// So a file is mapped with room ahead, which costs addresses alone; and while it is
// copied no commit may take pages behind the map. One that has to fails without
// having done anything, and is done again when the copy is there.

const (
	// mapAhead is how much more than a file has is mapped.
	mapAhead = 64 << 30
	// maxGrowth is by how much a file is made longer than it has to be.
	maxGrowth = 16 << 20
)

// mapsAhead returns how much of a file is to be mapped; 0 leaves it to bbolt.
func (c Config) mapsAhead(path string) int64 {
	// On Windows the file is made as long as what is mapped.
	if c.ReadOnly || c.mapTight || math.MaxInt <= math.MaxInt32 || runtime.GOOS == "windows" {
		return 0
	}
	size := int64(0)
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	return size + mapAhead
}

// mapSize is how much bbolt maps at least when so much is needed.
func mapSize(n int64) int64 {
	const least, step = 32 << 10, 1 << 30
	for size := int64(least); size <= step; size *= 2 {
		if n <= size {
			return size
		}
	}
	return (n + step - 1) / step * step
}

// pace has bbolt make a file longer by as much as it has, at most maxGrowth. By
// itself bbolt goes by what is mapped.
func pace(db *bbolt.DB, tx *bbolt.Tx) { db.AllocSize = int(min(tx.Size(), maxGrowth)) }

// confine keeps a transaction from taking pages behind the map, if the file is
// being copied. The caller has the turn, so that no copy begins meanwhile.
//
// bbolt maps anew when a page would not end before the last one of the map. It
// refuses before that, with ErrMaxSizeReached, what would make the file, with
// AllocSize added, longer than MaxSize. That is the same page, as AllocSize is not
// above the size of the file. Windows does not add it, and looks at what would be
// mapped: there whatever makes the file longer has to wait.
func (s *Store) confine(db *bbolt.DB, tx *bbolt.Tx) {
	pace(db, tx)
	db.MaxSize = 0
	if !s.copies.going() {
		return
	}
	mapped := max(s.mapped, mapSize(tx.Size())) // at least
	if runtime.GOOS != "windows" {
		mapped += int64(db.AllocSize)
	}
	db.MaxSize = int(min(mapped-1, math.MaxInt))
}

// confined says whether a commit was kept from taking pages behind the map.
func confined(err error) bool { return errors.Is(err, bbolterrors.ErrMaxSizeReached) }

// busy is the error of what has to wait until no copy is being made.
func (s *Store) busy() error {
	return &persist.BusyError{
		Err:  fmt.Errorf("%s: %w: nothing was done: it has to wait until the file is copied for a backup", s.path, persist.ErrUnavailable),
		Over: s.copies.wait(),
	}
}

// whenFree runs a call that writes, with the turn, and again when a copy is there
// that it had to wait for.
func (s *Store) whenFree(ctx context.Context, fn func() error) error {
	return s.patiently(ctx, func() error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		defer s.release()
		return fn()
	})
}

// patiently is persist.WhenFree, but that a log in front is told to wait: it has
// other things to do meanwhile.
func (s *Store) patiently(ctx context.Context, fn func() error) error {
	if s.cfg.CommitLog {
		return fn()
	}
	return persist.WhenFree(ctx, fn)
}

// viewLong is view for a fn that may take its time. The caller does not have the
// turn.
func (s *Store) viewLong(ctx context.Context, fn func(tx *bbolt.Tx) error) error {
	if err := s.patiently(ctx, func() error { return s.takeToCopy(ctx) }); err != nil {
		return err
	}
	release := sync.OnceFunc(s.release)
	defer release()
	defer s.copies.end() // when bbolt's transaction has ended
	done, err := s.read(func(tx *bbolt.Tx) error {
		release()
		return fn(tx)
	})
	if !done {
		err = s.foreign()
	}
	return s.judge(err)
}

// takeToCopy takes the turn and begins a copy.
func (s *Store) takeToCopy(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	if !s.copies.begin() {
		s.release()
		return s.busy()
	}
	return nil
}

// copies counts the copies that are being made of a file. Who holds the turn begins
// them.
type copies struct {
	mu     sync.Mutex
	n      int
	over   chan struct{} // closed when n is 0
	wanted bool          // somebody waits for that
}

// begin counts a copy, unless somebody waits for others to end, so that they do.
func (c *copies) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n > 0 && c.wanted {
		return false
	}
	if c.n == 0 {
		c.over, c.wanted = make(chan struct{}), false
	}
	c.n++
	return true
}

func (c *copies) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 {
		close(c.over)
	}
}

// going returns whether copies are being made.
func (c *copies) going() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > 0
}

// wait returns what is closed when no copy is being made, of which there was one,
// and lets no other begin before.
func (c *copies) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	return c.over
}
