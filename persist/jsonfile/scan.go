package jsonfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/twinsrv/twinsrv/persist"
)

// found is an entity's file as a scan finds it.
type found struct {
	key persist.Key
	c   *content
	err error
}

// scan reads every entity's file, several at a time.
func (r *loading) scan() error {
	keys, err := r.keys()
	if err != nil {
		return err
	}
	files := make([]found, len(keys))
	workers := min(2*runtime.GOMAXPROCS(0), len(keys))
	if r.s.cfg.single {
		workers = min(1, workers)
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(keys); i += workers {
				files[i] = r.s.inspect(keys[i])
			}
		})
	}
	wg.Wait()
	r.files = map[string]int{}
	for i := range files {
		if err := r.take(&files[i]); err != nil {
			return err
		}
	}
	return nil
}

// inspect reads a file and keeps of it what the index needs.
func (s *Store) inspect(key persist.Key) found {
	c, err := s.readFile(key)
	if c != nil {
		if c.record != nil && !errors.Is(err, errEdited) {
			c.record.State = nil
		}
		c.rows = make(map[rowID]row, len(c.rows)) // only whether there are any
		if len(c.kinds) > 0 {
			c.rows[rowID{}] = row{}
		}
	}
	return found{key, c, err}
}

func (r *loading) take(f *found) error {
	e := r.x.entity(f.key)
	r.files[f.key.Pod]++
	switch {
	case errors.Is(f.err, persist.ErrUnavailable):
		return f.err
	case f.c == nil:
		if of, ok := errors.AsType[misplaced](f.err); ok {
			r.strays = append(r.strays, stray{f.key, of.key})
		}
		e.err = f.err
		r.x.show(e, true, true)
		return nil
	}
	r.x.describe(e, f.c)
	r.x.show(e, e.exists, true)
	if errors.Is(f.err, errEdited) {
		e.err = errEdited // until takeEdited
	}
	if f.c.position > r.after {
		r.after, r.where = f.c.position, r.s.file(f.key)
	}
	return nil
}

// readFile reads an entity's file. It fails with persist.ErrUnavailable where
// that says nothing about the file; any other error is the file's.
func (s *Store) readFile(key persist.Key) (*content, error) {
	path := s.file(key)
	b, err := s.files.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged("%s is missing", path)
	case errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrPermission):
		return nil, damaged("%v", err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", persist.ErrUnavailable, err)
	}
	c, err := decode(key, b)
	if err != nil && !errors.Is(err, errEdited) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}

// keys lists the entities that have files.
func (r *loading) keys() ([]persist.Key, error) {
	root := filepath.Join(r.s.dir, podsName)
	folders, err := r.names(root, "")
	if err != nil {
		return nil, err
	}
	var keys []persist.Key
	for _, pod := range folders {
		r.s.made[pod] = true
		names, err := r.names(r.s.folder(pod), fileEnd)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			keys = append(keys, persist.Key{Pod: pod, Name: name})
		}
	}
	return keys, nil
}

// names returns the names that a folder's files with the given end stand for,
// or its folders, where end is empty. What was left half written is garbage;
// what is nobody's, such as an editor's, is passed over.
func (r *loading) names(folder, end string) ([]string, error) {
	entries, err := r.s.files.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: restore the folder from a backup", ErrDamaged, err)
	}
	var names []string
	stems := map[string]bool{}
	for _, e := range entries {
		base := e.Name()
		path := filepath.Join(folder, base)
		if strings.HasPrefix(base, tempPrefix) {
			r.garbage = append(r.garbage, path)
			continue
		}
		text, ok := strings.CutSuffix(base, end)
		if !ok || text == "" || base[0] == '.' || e.IsDir() != (end == "") {
			continue
		}
		name, ok := unstem(text)
		if !ok {
			name, ok = r.s.hashedName(folder, text, end)
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w: it is not named as this store names files: move it out of the folder", path, ErrDamaged)
		}
		stems[text] = true
		names = append(names, name)
	}
	for _, e := range entries {
		if text, ok := strings.CutSuffix(e.Name(), nameEnd); ok && hashed(text) && !stems[text] {
			r.garbage = append(r.garbage, filepath.Join(folder, e.Name()))
		}
	}
	return names, nil
}

// hashedName finds the name behind a hash: in the file beside, or, where that
// is gone, in the entity's own.
func (s *Store) hashedName(folder, text, end string) (string, bool) {
	if !hashed(text) {
		return "", false
	}
	if b, err := s.files.ReadFile(filepath.Join(folder, text+nameEnd)); err == nil && stem(string(b)) == text {
		return string(b), true
	}
	if b, err := s.files.ReadFile(filepath.Join(folder, text+end)); err == nil {
		var v struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(b, &v) == nil && stem(v.Name) == text {
			return v.Name, true
		}
	}
	return "", false
}
