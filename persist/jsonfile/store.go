package jsonfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.PersistenceService = (*Store)(nil)
	_ persist.Reopener           = (*Store)(nil)
	_ persist.Importer           = (*Store)(nil)
	_ persist.Backuper           = (*Store)(nil)
	_ persist.Compacter          = (*Store)(nil)
)

// Store is a persist.PersistenceService in a folder of JSON files. Its methods
// are safe for concurrent use. Reads see only what is durable.
//
// After a commit whose outcome is unknown all calls fail with
// persist.ErrUnavailable until Reopen succeeds.
type Store struct {
	dir   string
	cfg   Config
	files fsys
	lock  io.Closer

	// turn holds the right to write the journal, to reopen and to close: one
	// token. Whoever needs several of these takes turn, flushing, noting, using
	// and mu, in this order.
	turn   chan struct{}
	wanted int // bytes that a commit found no room for, which Reopen tries; 0: none. The holder of turn has it

	// flushing is held while entities' files are written. It guards pins, made and
	// failing.
	flushing sync.Mutex
	pins     int             // backups that need the journal's files as they are
	made     map[string]bool // pods' folders that are there, durably
	failing  bool            // the last flush that was due failed

	// noting guards note, which is what store.json says, and its writing.
	noting sync.Mutex
	note   *manifest

	// using is held by those who read the journal's files, and by who removes
	// one of them.
	using sync.RWMutex

	// mu guards the index and what follows.
	mu    sync.RWMutex
	x     *index
	segs  []*segment  // the last one grows
	down  error       // why the store does not serve; wraps persist.ErrUnavailable
	gone  bool        // closed by Close, for good
	timer *time.Timer // runs the next flush; nil when none is due
	read  *readAhead
}

// Open opens the store in the folder dir, which it makes if absent; the folder
// that it is in must exist. The folder stays locked until Close.
//
// It fails with an error that wraps ErrLocked when another Store has the
// folder, ErrDamaged when store.json or the journal is not what was written, and
// ErrFormat when the folder is another program's or a newer version's. A damaged
// file of an entity does not keep the store from opening.
func Open(dir string, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	s := &Store{dir: dir, cfg: cfg, files: cfg.files, turn: make(chan struct{}, 1)}
	if err := s.files.Mkdir(dir); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = s.files.Lock(filepath.Join(dir, lockName), cfg.LockTimeout); err != nil {
		if errors.Is(err, ErrLocked) {
			err = fmt.Errorf("%s: %w: stop that process first, or use another folder", dir, ErrLocked)
		}
		return nil, err
	}
	if err = s.load(); err == nil {
		err = s.takeEdited()
	}
	if err != nil {
		s.drop()
		return nil, errors.Join(err, s.lock.Close())
	}
	s.mu.Lock()
	s.arm()
	s.mu.Unlock()
	return s, nil
}

// Path returns the folder's path as it was given to Open.
func (s *Store) Path() string { return s.dir }

// drop closes the journal's files.
func (s *Store) drop() {
	s.using.Lock()
	defer s.using.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segs {
		seg.gone = true
		_ = seg.f.Close() // what matters was synced
	}
	s.segs = nil
}

// Close waits for the commit in progress, brings the entities' files up to date
// and releases the folder. Later calls of every method fail with
// persist.ErrUnavailable, except Close, which returns nil. An error says why
// files could not be written; the journal has what they lack.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer s.release()
	s.mu.Lock()
	gone, serving := s.gone, s.down == nil
	s.gone = true
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.mu.Unlock()
	if gone {
		return nil
	}
	s.flushing.Lock()
	defer s.flushing.Unlock()
	var err error
	if serving {
		err = s.flush()
	}
	s.mu.Lock()
	s.down = fmt.Errorf("%s: %w: it was closed", s.dir, persist.ErrUnavailable)
	s.mu.Unlock()
	s.drop()
	return errors.Join(err, s.lock.Close())
}

// Reopen reads the folder anew after a failure and proves with synced writes
// that it can be written to: whatever is read afterwards is durable. It may be
// tried again when it fails. On a store that serves it makes sure that there is
// room when a commit has found none, and fails as long as there is not; otherwise
// it does nothing.
func (s *Store) Reopen(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.mu.RLock()
	down, gone := s.down, s.gone
	s.mu.RUnlock()
	switch {
	case gone:
		return fmt.Errorf("%s: %w: it was closed", s.dir, persist.ErrUnavailable)
	case down == nil:
		return s.tryRoom()
	}
	s.drop()
	if err := s.load(); err != nil {
		s.drop()
		return fmt.Errorf("%w: reopen: %w", persist.ErrUnavailable, noRoom(err))
	}
	s.mu.Lock()
	s.down = nil
	s.arm()
	s.mu.Unlock()
	return nil
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

// serve waits for the turn of a store that serves.
func (s *Store) serve(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	s.mu.RLock()
	err := s.down
	s.mu.RUnlock()
	if err != nil {
		s.release()
	}
	return err
}

func (s *Store) notBegun(err error) error {
	return fmt.Errorf("%s: %w: nothing was begun: %w", s.dir, persist.ErrUnavailable, err)
}

// fail takes the store out of service until it is reopened.
func (s *Store) fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		s.down = fmt.Errorf("%s: %w until it is reopened, after: %w", s.dir, persist.ErrUnavailable, cause)
	}
}

// view runs fn on the index of a store that serves. fn must not write it.
func (s *Store) view(ctx context.Context, fn func(x *index) error) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.down != nil {
		return s.down
	}
	return fn(s.x)
}

// folder returns the folder of a pod's files.
func (s *Store) folder(pod string) string { return filepath.Join(s.dir, podsName, stem(pod)) }

// file returns the path of an entity's file.
func (s *Store) file(key persist.Key) string {
	return filepath.Join(s.folder(key.Pod), stem(key.Name)+fileEnd)
}

const (
	fileEnd = ".json"
	nameEnd = ".name" // beside a file or folder whose name is a hash
)
