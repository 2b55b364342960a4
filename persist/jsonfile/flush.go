package jsonfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// flushers is how many files are written and synced at the same time: the file
// system makes one write of its own journal of it.
const flushers = 16

// Flush brings the entities' files up to date with everything acknowledged
// before the call. An error says why a file could not be written; the journal
// has what the files lack, and the next flush tries again.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.view(ctx, func(*index) error { return nil }); err != nil {
		return err
	}
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if err := s.view(ctx, func(*index) error { return nil }); err != nil {
		return err
	}
	return s.flush()
}

// arm sees to it that a flush comes, if there is anything to flush. The caller
// holds mu.
func (s *Store) arm() {
	if s.timer != nil || s.gone || s.cfg.Flush < 0 || len(s.x.dirty) == 0 {
		return
	}
	s.timer = time.AfterFunc(s.cfg.Flush, s.flushDue)
}

func (s *Store) flushDue() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.mu.Lock()
	s.timer = nil
	serving := s.down == nil && !s.gone
	s.mu.Unlock()
	if !serving {
		return
	}
	s.tellFlush(s.flush()) // what could not be written is still held, and tried again
	s.mu.Lock()
	s.arm()
	s.mu.Unlock()
}

// tellFlush logs that flushes begin to fail, which nobody else hears of as long as
// commits need no room, and that they no longer do. The caller holds flushing.
func (s *Store) tellFlush(err error) {
	switch {
	case err != nil && !s.failing:
		s.cfg.Logger.Warn("entities' files cannot be written; the journal has what they lack, and it is tried again", "store", s.dir, "error", err)
	case err == nil && s.failing:
		s.cfg.Logger.Info("entities' files are written again", "store", s.dir)
	}
	s.failing = err != nil
}

// makeRoom flushes when too much waits in memory. The caller has the turn.
func (s *Store) makeRoom() error {
	s.mu.RLock()
	full := s.x.held > s.cfg.MaxHeld
	s.mu.RUnlock()
	if !full {
		return nil
	}
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if err := s.flush(); err != nil {
		return fmt.Errorf("%s: %w: nothing was begun: too much waits for the entities' files: %w", s.dir, persist.ErrUnavailable, noRoom(err))
	}
	return nil
}

// job is a file to write or remove.
type job struct {
	e       *entity
	version uint64
}

// flush writes the files of all entities that have changed, makes them durable,
// notes in store.json from where on the journal is still needed for that, and
// removes the parts of the journal that nobody needs. Commits may go on
// meanwhile: a file may show more than the noted place, which does no harm, as
// doing a line again changes nothing.
//
// The caller holds flushing.
func (s *Store) flush() error {
	s.mu.RLock()
	m := manifest{Format: format, Position: s.x.last, Flushed: s.x.end, Records: map[string]int{}}
	for name, p := range s.x.pods {
		m.Records[name] = len(p.list)
	}
	jobs := make([]job, 0, len(s.x.dirty))
	for e := range s.x.dirty {
		jobs = append(jobs, job{e: e, version: e.version})
	}
	s.mu.RUnlock()
	slices.SortFunc(jobs, func(a, b job) int { return compareKeys(a.e.key, b.e.key) })
	if err := s.writeFiles(jobs); err != nil {
		return err
	}
	if err := s.noteFlushed(m); err != nil {
		return err
	}
	s.mu.Lock()
	for i := range jobs {
		if e := jobs[i].e; e.version == jobs[i].version && !e.busy {
			s.x.flushed(e)
		}
	}
	s.mu.Unlock()
	return s.clean()
}

// noteFlushed makes store.json say what m does, unless it does already.
func (s *Store) noteFlushed(m manifest) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	if m.Flushed == s.note.Flushed {
		return nil
	}
	m.Segments = s.note.Segments
	if err := m.write(s.files, s.dir); err != nil {
		return err
	}
	s.note = &m
	return nil
}

// writeFiles writes and removes files; they and their names are durable then.
func (s *Store) writeFiles(jobs []job) error {
	folders, err := s.makeFolders(jobs)
	if err != nil {
		return err
	}
	workers := min(flushers, len(jobs))
	if s.cfg.single {
		workers = min(1, workers)
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		work := func() {
			for i := w; i < len(jobs) && errs[w] == nil; i += workers {
				errs[w] = s.writeFile(&jobs[i], fmt.Sprint(tempPrefix, w))
			}
		}
		if workers == 1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := s.files.SyncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// makeFolders makes the folders of new pods and returns those of all.
func (s *Store) makeFolders(jobs []job) (folders []string, err error) {
	fresh := false
	for i := range jobs {
		key := jobs[i].e.key
		folder := s.folder(key.Pod)
		if len(folders) == 0 || folders[len(folders)-1] != folder {
			folders = append(folders, folder)
		}
		if s.made[key.Pod] {
			continue
		}
		if err := s.writeName(folder, key.Pod, tempPrefix+"name"); err != nil {
			return nil, err
		}
		if err := s.files.Mkdir(folder); err != nil {
			return nil, err
		}
		s.made[key.Pod], fresh = true, true
	}
	if fresh {
		if err := s.files.SyncDir(filepath.Join(s.dir, podsName)); err != nil {
			clear(s.made) // they are to be made durable the next time
			return nil, err
		}
	}
	return folders, nil
}

// writeName writes the name beside a file or folder whose own name is a hash.
func (s *Store) writeName(path, name, temp string) error {
	if !hashed(filepath.Base(path)) {
		return nil
	}
	if b, err := s.files.ReadFile(path + nameEnd); err == nil && string(b) == name {
		return nil
	}
	return replace(s.files, filepath.Join(filepath.Dir(path), temp), path+nameEnd, []byte(name))
}

func (s *Store) writeFile(j *job, temp string) error {
	key := j.e.key
	path := s.file(key)
	base := path[:len(path)-len(fileEnd)]
	s.mu.RLock()
	j.version = j.e.version
	var text []byte
	var err error
	remove := j.e.held == nil
	if !remove {
		text, err = encode(j.e.held)
	}
	s.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if !remove {
		if err := s.writeName(base, key.Name, temp); err != nil {
			return err
		}
		return replace(s.files, filepath.Join(filepath.Dir(path), temp), path, text)
	}
	for _, p := range []string{path, base + nameEnd} {
		if p != path && !hashed(filepath.Base(base)) {
			break
		}
		if err := s.files.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
