package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.PersistenceService = (*Store)(nil)
	_ persist.Importer           = (*Store)(nil)
	_ persist.Folder             = (*Store)(nil)
)

// Config tunes a Store. The zero value works.
type Config struct {
	// FirstPosition is a position above which the store gives all of its own: 0
	// for a store that stands alone, and the last position of another store
	// whose lives and positions must not be met again.
	FirstPosition uint64
	// MaxRecord is the most bytes that the state of one record, the data of one
	// change and the value of one row may have; a unit with more is refused.
	// 0 means 16 MiB.
	MaxRecord int
}

// Store is a persist.PersistenceService in memory. Its methods are safe for
// concurrent use; readers share, writers take turns.
type Store struct {
	cfg Config

	mu     sync.RWMutex
	data   *data
	closed bool
}

// Open returns an empty store.
func Open(cfg Config) *Store {
	if cfg.MaxRecord <= 0 {
		cfg.MaxRecord = 16 << 20
	}
	return &Store{cfg: cfg, data: newData(cfg.FirstPosition)}
}

// Fork returns a store of its own with what s holds at this moment, open even
// when s is closed. It costs the same however much that is: what neither of
// them changes afterwards is shared.
func (s *Store) Fork() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Store{cfg: s.cfg, data: s.data.fork()}
}

// Close implements persist.PersistenceService. What the store holds is
// forgotten once nobody has a fork of it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// begin takes the lock for writing, unless there is an error.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return notBegun(err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed()
	}
	return nil
}

// look takes the lock for reading, unless there is an error.
func (s *Store) look(ctx context.Context) (*data, error) {
	if err := ctx.Err(); err != nil {
		return nil, notBegun(err)
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, errClosed()
	}
	return s.data, nil
}

func notBegun(err error) error {
	return fmt.Errorf("the store in memory: %w: nothing was begun: %w", persist.ErrUnavailable, err)
}

func errClosed() error {
	return fmt.Errorf("the store in memory: %w: it was closed", persist.ErrUnavailable)
}
