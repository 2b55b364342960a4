package jsonfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/twinsrv/twinsrv/persist"
)

// maxTry bounds the room that is looked for: otherwise one large commit would
// keep all small ones out.
const maxTry = 4 << 20

// noRoom has an error say that the disk is full, if that is what it is of.
func noRoom(err error) error {
	if persist.IsNoRoom(err) && !errors.Is(err, persist.ErrNoRoom) {
		return fmt.Errorf("%w: %w", persist.ErrNoRoom, err)
	}
	return err
}

// lacks notes that a commit of so many bytes has found no room, if that is what
// err says, which it returns. The caller has the turn.
func (s *Store) lacks(bytes int, err error) error {
	if errors.Is(err, persist.ErrNoRoom) {
		s.wanted = max(1, min(bytes, maxTry))
	}
	return err
}

// tryRoom makes sure that there is room for what a commit has found none for. The
// caller has the turn and flushing.
func (s *Store) tryRoom() error {
	if s.wanted == 0 {
		return nil
	}
	s.mu.RLock()
	full := s.x.held > s.cfg.MaxHeld
	s.mu.RUnlock()
	var err error
	if full {
		err = s.flush()
	}
	if err == nil {
		err = occupy(s.files, filepath.Join(s.dir, tempPrefix+"room"), s.wanted)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: a commit has found no room, and there is none yet: %w", s.dir, persist.ErrUnavailable, noRoom(err))
	}
	s.wanted = 0
	return nil
}

// occupy writes so many bytes into a file, and takes them away again.
func occupy(files fsys, path string, size int) error {
	f, err := files.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, size), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = files.Remove(path) // it may hold the last free room
		return err
	}
	if err := files.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
