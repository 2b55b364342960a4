package jsonfile

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// fakeDisk is a file system that can lose power and fail. What a program sees
// is one thing, what would be left another: of what was not synced, a loss of
// power leaves each write, name and removal or not, as it likes.
type fakeDisk struct {
	mu      sync.Mutex
	folders map[string]*fakeFolder
	locked  bool

	ops   int   // writes, truncations, syncs, renames, removals and new names so far
	stop  int   // after so many everything fails; 0 is never
	fail  int   // the one that fails; 0 is none
	cause error // with this
	stays bool  // and so does every later one
}

type fakeFolder struct {
	names   map[string]*inode   // what is seen
	durable map[string]*inode   // what was synced
	between map[string][]*inode // what was seen since then; nil for no file
	sub     map[string]bool     // folders; true when durable
}

// inode is a file's content.
type inode struct {
	data    []byte
	durable []byte
	writes  []write // since the last sync, in order
}

// write is a piece of data, or a truncation where data is nil.
type write struct {
	off  int64
	data []byte
}

var errPower = errors.New("the power is gone")

func newDisk() *fakeDisk {
	d := &fakeDisk{folders: map[string]*fakeFolder{}}
	d.folders["/"] = newFolder()
	return d
}

func newFolder() *fakeFolder {
	return &fakeFolder{names: map[string]*inode{}, durable: map[string]*inode{}, between: map[string][]*inode{}, sub: map[string]bool{}}
}

// op counts an operation. When it says false with no error the operation takes
// place in part.
func (d *fakeDisk) op() error {
	d.ops++
	switch {
	case d.stop > 0 && d.ops > d.stop:
		return errPower
	case d.fail > 0 && (d.ops == d.fail || d.stays && d.ops > d.fail):
		return d.cause
	}
	return nil
}

func (d *fakeDisk) dead() bool { return d.stop > 0 && d.ops >= d.stop }

func (d *fakeDisk) Lock(string, time.Duration) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, ErrLocked
	}
	d.locked = true
	return closer(func() { d.locked = false }), nil
}

type closer func()

func (c closer) Close() error { c(); return nil }

func (d *fakeDisk) folder(path string) (*fakeFolder, string, error) {
	f := d.folders[filepath.Dir(path)]
	if f == nil {
		return nil, "", fs.ErrNotExist
	}
	return f, filepath.Base(path), nil
}

func (d *fakeDisk) Mkdir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folders[path] != nil {
		return nil
	}
	if err := d.op(); err != nil {
		return err
	}
	parent, base, err := d.folder(path)
	if err != nil {
		return err
	}
	parent.sub[base] = false
	d.folders[path] = newFolder()
	return nil
}

func (f *fakeFolder) set(name string, i *inode) {
	if i == nil {
		delete(f.names, name)
	} else {
		f.names[name] = i
	}
	f.between[name] = append(f.between[name], i)
}

func (d *fakeDisk) Create(path string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return nil, err
	}
	f, base, err := d.folder(path)
	if err != nil {
		return nil, err
	}
	i := f.names[base]
	if i == nil {
		i = &inode{}
		f.set(base, i)
	} else {
		i.data, i.writes = nil, append(i.writes, write{})
	}
	return &fakeFile{d, i}, nil
}

func (d *fakeDisk) Open(path string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, base, err := d.folder(path)
	if err != nil || f.names[base] == nil {
		return nil, fs.ErrNotExist
	}
	return &fakeFile{d, f.names[base]}, nil
}

func (d *fakeDisk) ReadFile(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, base, err := d.folder(path)
	if err != nil || f.names[base] == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(f.names[base].data), nil
}

func (d *fakeDisk) ReadDir(path string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.folders[path]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	var out []fs.DirEntry
	for name := range f.names {
		out = append(out, entryOf{name: name})
	}
	for name := range f.sub {
		out = append(out, entryOf{name: name, dir: true})
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int {
		if a.Name() < b.Name() {
			return -1
		}
		return 1
	})
	return out, nil
}

type entryOf struct {
	fs.DirEntry
	name string
	dir  bool
}

func (e entryOf) Name() string { return e.name }
func (e entryOf) IsDir() bool  { return e.dir }

func (d *fakeDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	f, base, err := d.folder(from)
	g, name, err2 := d.folder(to)
	if err != nil || err2 != nil || f.names[base] == nil {
		return fs.ErrNotExist
	}
	i := f.names[base]
	f.set(base, nil)
	g.set(name, i)
	return nil
}

func (d *fakeDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, base, err := d.folder(path)
	if err != nil || f.names[base] == nil {
		return fs.ErrNotExist
	}
	if err := d.op(); err != nil {
		return err
	}
	f.set(base, nil)
	return nil
}

func (d *fakeDisk) SyncDir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.folders[path]
	if f == nil {
		return fs.ErrNotExist
	}
	if err := d.op(); err != nil {
		if !errors.Is(err, errPower) {
			// As Linux does: what could not be written counts as written.
			for name, seen := range f.between {
				f.between[name] = seen[:len(seen):len(seen)]
			}
		}
		return err
	}
	for name := range f.between {
		if i := f.names[name]; i != nil {
			f.durable[name] = i
		} else {
			delete(f.durable, name)
		}
	}
	clear(f.between)
	for name := range f.sub {
		f.sub[name] = true
	}
	return nil
}

type fakeFile struct {
	d *fakeDisk
	i *inode
}

func (f *fakeFile) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.i.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.i.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *fakeFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	err := f.d.op()
	if errors.Is(err, errPower) {
		return 0, err
	}
	if err != nil {
		b = b[:len(b)/2] // as when the space ends
	}
	w := write{off, slices.Clone(b)}
	f.i.writes = append(f.i.writes, w)
	f.i.data = w.onto(f.i.data)
	return len(b), err
}

func (f *fakeFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	w := write{off: size}
	f.i.writes = append(f.i.writes, w)
	f.i.data = w.onto(f.i.data)
	return nil
}

// onto applies a write to a file's data.
func (w write) onto(data []byte) []byte {
	data = slices.Clone(data)
	end := w.off + int64(len(w.data))
	if w.data == nil && int64(len(data)) > w.off {
		return data[:w.off]
	}
	for int64(len(data)) < end {
		data = append(data, 0)
	}
	copy(data[w.off:], w.data)
	return data
}

func (f *fakeFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		if !errors.Is(err, errPower) {
			// The pages count as clean from now on, but what is on the disk is the
			// old: only what is written again gets there.
			f.i.writes = nil
		}
		return err
	}
	data := f.i.durable
	for _, w := range f.i.writes {
		data = w.onto(data)
	}
	f.i.durable, f.i.writes = data, nil
	return nil
}

func (f *fakeFile) Close() error { return nil }

// lose cuts the power: it returns a disk with what is left.
func (d *fakeDisk) lose(rng *rand.Rand) *fakeDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := &fakeDisk{folders: map[string]*fakeFolder{}}
	copies := map[*inode]*inode{}
	lost := func(i *inode) *inode {
		if copies[i] == nil {
			data := i.left(rng)
			copies[i] = &inode{data: data, durable: data}
		}
		return copies[i]
	}
	for _, path := range slices.Sorted(maps.Keys(d.folders)) {
		f := d.folders[path]
		if left.folders[filepath.Dir(path)] == nil && path != "/" {
			continue
		}
		parent := d.folders[filepath.Dir(path)]
		if path != "/" && !parent.sub[filepath.Base(path)] && rng.IntN(2) == 0 {
			continue // the folder itself was never synced
		}
		g := newFolder()
		for _, name := range slices.Sorted(maps.Keys(f.durable)) {
			if len(f.between[name]) == 0 {
				g.names[name] = lost(f.durable[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.between)) {
			choices := append([]*inode{f.durable[name]}, f.between[name]...)
			if i := choices[rng.IntN(len(choices))]; i != nil {
				g.names[name] = lost(i)
			}
		}
		for name, i := range g.names {
			g.durable[name] = i
		}
		left.folders[path] = g
	}
	for path := range left.folders {
		if g := left.folders[filepath.Dir(path)]; path != "/" && g != nil {
			g.sub[filepath.Base(path)] = true
		}
	}
	return left
}

// left is what a loss of power leaves of a file: of each write since the last
// sync all, a beginning, zeros, or nothing.
func (i *inode) left(rng *rand.Rand) []byte {
	data := i.durable
	for _, w := range i.writes {
		switch rng.IntN(4) {
		case 0:
			continue
		case 1:
			if w.data != nil {
				w.data = w.data[:rng.IntN(len(w.data)+1)]
			}
		case 2:
			if w.data != nil {
				// Room that is new may hold nothing; what was there holds the old.
				grown := write{w.off, make([]byte, len(w.data))}.onto(data)
				copy(grown, data)
				data = grown
				continue
			}
		}
		data = w.onto(data)
	}
	return data
}
