package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.PersistenceService = (*Store)(nil)
	_ persist.Reopener           = (*Store)(nil)
	_ persist.Importer           = (*Store)(nil)
	_ persist.TellingBackuper    = (*Store)(nil)
	_ persist.Compacter          = (*Store)(nil)
	_ persist.Folder             = (*Store)(nil)
	_ persist.Lossy              = (*Store)(nil)
)

// Store is a persist.PersistenceService in one file. Its methods are safe for
// concurrent use. Reads see only what is durable.
//
// After a commit whose outcome is unknown the store closes its file, and all
// calls fail with persist.ErrUnavailable until Reopen succeeds.
type Store struct {
	path string
	cfg  Config

	// turn holds the right to commit, reopen and close: one token.
	turn chan struct{}

	// mu guards db, file and down. Readers hold it for as long as their
	// transaction lasts, so that nobody unmaps the file under them.
	mu     sync.RWMutex
	db     *bbolt.DB
	file   *os.File
	down   error    // why the store does not serve; wraps persist.ErrUnavailable
	gone   bool     // closed by Close, for good
	walk   *walking // what is still to be checked of the file; nil: nothing
	sound  *sound   // what is read of a damaged file; nil: all
	ruined error    // the damage that was found, for good

	// wanted is how many bytes of pages a transaction could not write for want of
	// room, with nothing written since; 0: none. Only the holder of the turn
	// touches it.
	wanted int64

	// copies are the transactions that last; see confine.
	copies copies

	// leaving says that somebody waits for mu to close the file. Long readers
	// give up then.
	leaving atomic.Bool

	// durable is the newest transaction whose syncs have all succeeded. bbolt
	// shows a transaction to readers when its meta page is written, which is
	// before that page is synced.
	durable atomic.Uint64

	// marked is the mark of the newest durable transaction. Only the holder of
	// the turn stores it.
	marked atomic.Pointer[persist.Mark]

	// Only the holder of the turn touches these.
	format  uint64              // formatFirst or formatEvents: the file's, but for a log in front
	next    uint64              // the next position to give
	mapped  int64               // how much of the file is mapped at least
	trimmed uint64              // up to here a change that is missing was trimmed; behind it, lost
	kinds   map[string]struct{} // kinds of rows that the file has or had
}

// Open opens the store in the file at path, which it creates if absent; the
// folder must exist. The file stays locked until Close.
//
// It fails at once with an error that wraps ErrLocked when another Store has
// the file, ErrDamaged when what it looks at of the file is not what was
// written, ErrFormat when the file is another program's or a newer version's,
// and ErrLogged when a commit log stands in front of it; see Config.CommitLog.
//
// It looks at the pages by which everything is found, and not yet at those of
// each entity. They are checked from then on, by a goroutine. Until that has
// ended, whatever writes or copies the file waits for it, no longer than its
// ctx, and reads check first what they rest on, so that nothing which damage
// hides is taken for absent. When a damaged page is found the store goes out of
// service for good; see Verified.
func Open(path string, cfg Config) (*Store, error) {
	s := &Store{path: path, cfg: cfg.withDefaults(), turn: make(chan struct{}, 1)}
	o, err := open(path, s.cfg)
	if err != nil {
		return nil, err
	}
	if !s.cfg.ReadOnly {
		_ = os.Remove(compactPath(path)) // what a Compact that was cut off has left
	}
	s.adopt(o)
	if o.walk != nil {
		o.walk.hold = s.cfg.hold
		go s.walkOn(o.walk)
	}
	return s, nil
}

func (s *Store) adopt(o opened) {
	s.format, s.next, s.trimmed, s.kinds = o.format, o.next, o.trimmed, o.kinds
	s.wanted, s.mapped = o.wanted, o.mapped
	s.durable.Store(o.txid)
	s.marked.Store(&o.mark)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db, s.file, s.down, s.walk, s.sound = o.db, o.file, nil, o.walk, o.sound
}

// Path returns the file's path as it was given to Open.
func (s *Store) Path() string { return s.path }

// Close waits for the commit in progress and releases the file. Later calls of
// every method fail with persist.ErrUnavailable, except Close, which returns
// nil.
func (s *Store) Close() error {
	s.stopWalk()
	s.turn <- struct{}{}
	defer s.release()
	s.leave()
	defer s.mu.Unlock()
	if s.gone {
		return nil
	}
	serving := s.down == nil
	s.gone, s.down = true, fmt.Errorf("%s: %w: it was closed", s.path, persist.ErrUnavailable)
	if !serving {
		return nil
	}
	return guard(s.path, s.db.Close)
}

// stopWalk ends the walk, if one goes on.
func (s *Store) stopWalk() {
	if w := s.current(); w != nil {
		w.end()
		<-w.done
	}
}

// Reopen opens the file anew after a failure, checks it and proves with one
// synced transaction that it takes writes: whatever is read afterwards is
// durable. It may be tried again when it fails. After a commit that has found no
// room, which leaves the store open, it fails as long as the disk has none. On
// another store that serves it does nothing.
func (s *Store) Reopen(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	s.mu.RLock()
	down, final := s.down, s.gone || s.ruined != nil
	s.mu.RUnlock()
	switch {
	case final:
		return down
	case down == nil:
		return s.tryRoom()
	}
	s.stopWalk()
	cfg := s.cfg
	cfg.VerifyFirst = !cfg.NoVerify
	o, err := open(s.path, cfg)
	if err != nil {
		return fmt.Errorf("%w: reopen: %w", persist.ErrUnavailable, err)
	}
	if err := syncDir(filepath.Dir(s.path)); err != nil { // Compact may have failed to
		release(o.db, o.file, s.path, o.stuck)
		return fmt.Errorf("%w: reopen: %w", persist.ErrUnavailable, err)
	}
	s.adopt(o)
	return s.tryRoom()
}

// take waits for the turn.
func (s *Store) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return s.notBegun(ctx.Err())
	}
}

func (s *Store) release() { <-s.turn }

// leave takes mu, which long readers let go for it.
func (s *Store) leave() {
	s.leaving.Store(true)
	s.mu.Lock()
	s.leaving.Store(false)
}

func (s *Store) notBegun(err error) error {
	return fmt.Errorf("%s: %w: nothing was begun: %w", s.path, persist.ErrUnavailable, err)
}

// fail takes the store out of service; stuck says that bbolt panicked while it
// held its own locks. What was acknowledged is durable already, so that errors
// of closing do not matter.
func (s *Store) fail(cause error, stuck bool) {
	s.leave()
	defer s.mu.Unlock()
	if s.down != nil {
		return
	}
	s.down = fmt.Errorf("%s: %w until it is reopened, after: %w", s.path, persist.ErrUnavailable, cause)
	release(s.db, s.file, s.path, stuck)
	s.db, s.file = nil, nil
}

// probe looks whether the file can still be used: bbolt panics while it holds
// its locks, and for ever after stands still, when both meta pages are gone (a
// file that was truncated or overwritten under the running program).
func probe(f *os.File, path string) error {
	if _, ok, err := readMetas(f, path); !ok {
		return err
	}
	return nil
}

// unavailable is an error of a file that bbolt cannot begin to read.
func (s *Store) unavailable(err error) error {
	return fmt.Errorf("%w: %w", persist.ErrUnavailable, err)
}

// view runs fn in a read transaction. fn must be short and must not keep what
// it is given: the memory belongs to the file. It may be run only once.
func (s *Store) view(ctx context.Context, fn func(tx *bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	done, err := s.read(fn)
	if done {
		return s.judge(err)
	}
	// The newest transaction is being synced. Once we have the turn, none is.
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	if done, err = s.read(fn); !done {
		err = s.foreign()
	}
	return s.judge(err)
}

// foreign is the error of who has the turn and reads what may not be durable.
func (s *Store) foreign() error {
	return fmt.Errorf("%s: %w: its newest transaction is not this program's", s.path, persist.ErrUnavailable)
}

// judge takes the store out of service when a reader has found the file damaged.
func (s *Store) judge(err error) error {
	var d *doubt
	if !errors.As(err, &d) {
		return err
	}
	if err := s.ruin(d.of, d.cause); errors.Is(err, persist.ErrUnavailable) {
		return err
	}
	return s.unavailable(d.cause)
}

// read runs fn unless the newest transaction may not be durable yet, which
// done tells.
func (s *Store) read(fn func(tx *bbolt.Tx) error) (done bool, err error) {
	s.mu.RLock()
	if s.down != nil {
		defer s.mu.RUnlock()
		return true, s.down
	}
	tx, stuck, err := s.start(s.db, s.file, false)
	if err != nil {
		s.mu.RUnlock()
		s.fail(err, stuck)
		return true, s.unavailable(err)
	}
	defer s.mu.RUnlock()
	defer func() { _ = tx.Rollback() }()
	if uint64(tx.ID()) > s.durable.Load() {
		return false, nil
	}
	return true, guard(s.path, func() error { return fn(tx) })
}

// start begins a transaction; stuck says that bbolt panicked over it.
func (s *Store) start(db *bbolt.DB, f *os.File, writable bool) (tx *bbolt.Tx, stuck bool, err error) {
	if err := probe(f, s.path); err != nil {
		return nil, false, err
	}
	err = guard(s.path, func() (err error) {
		tx, err = db.Begin(writable)
		return err
	})
	return tx, isFault(err), err
}

// errNothing is returned inside update when there is nothing to write.
var errNothing = errors.New("nothing to write")

// update runs fn in a write transaction and commits it. The caller has the
// turn. When fn fails nothing is applied, and its error is returned as it is;
// for errNothing that is nil. So is a commit that meets a damaged page before it
// has written the meta page, by which everything else it has written counts. A
// commit that finds no room for its pages is persist.ErrUnavailable, and the
// store serves on; so it does after one that has to wait until a backup is copied,
// which is a persist.BusyError. Any other failure of the commit, above all of a sync,
// is persist.ErrUnknown and closes the store.
func (s *Store) update(fn func(tx *bbolt.Tx) error) error {
	s.mu.RLock()
	db, f, down, w := s.db, s.file, s.down, s.walk
	s.mu.RUnlock()
	if down != nil {
		return down
	}
	if s.cfg.ReadOnly {
		return fmt.Errorf("%s: %w: it was opened for reading alone", s.path, persist.ErrUnavailable)
	}
	if w != nil && !w.passed() { // callers have waited for it
		return fmt.Errorf("%s: %w: the file has not been checked yet", s.path, persist.ErrUnavailable)
	}
	tx, stuck, err := s.start(db, f, true)
	if err != nil {
		s.fail(err, stuck)
		return s.unavailable(err)
	}
	s.confine(db, tx)
	if err := guard(s.path, func() error { return fn(tx) }); err != nil {
		if rerr := guard(s.path, tx.Rollback); rerr != nil {
			s.fail(rerr, isFault(rerr))
		}
		if errors.Is(err, errNothing) {
			return nil
		}
		return err
	}
	id := uint64(tx.ID())
	if err := guard(s.path, tx.Commit); err != nil {
		// A panic leaves the transaction open, and bbolt locked.
		stuck := isFault(guard(s.path, tx.Rollback))
		if !stuck && s.untouched(f) {
			switch {
			case isFault(err):
				return err
			case confined(err):
				return s.busy()
			case noRoom(err):
				s.wanted = pagesOf(tx)
				return fmt.Errorf("%s: %w: nothing was done: %w: %w", s.path, persist.ErrUnavailable, persist.ErrNoRoom, err)
			}
		}
		s.fail(err, stuck)
		return fmt.Errorf("%s: %w: %w", s.path, persist.ErrUnknown, err)
	}
	s.durable.Store(id)
	s.wanted = 0
	return nil
}

// untouched says whether the file's newest transaction is the last one that
// succeeded, and both meta pages are whole.
func (s *Store) untouched(f *os.File) bool {
	m, ok, err := readMetas(f, s.path)
	return ok && err == nil && m.txid == s.durable.Load()
}
