package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Disk has a log's files.
type Disk interface {
	// Open opens a file, which it makes if it is missing.
	Open(name string) (File, error)
	// Names are those of the files that there are, in any order.
	Names() ([]string, error)
}

// File is a file of a log. Its name, and what was written, is durable once a later
// Sync has returned nil; without that any part of it may be. One goroutine at a
// time uses it.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Sync() error
}

// folder is a Disk of the operating system.
type folder struct {
	path string
	sync func(path string) error // makes the names in a folder durable
}

var _ Disk = folder{}

func (d folder) Open(name string) (File, error) {
	path := filepath.Join(d.path, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.make(); err != nil { // when the log was opened there may have been no room for it
			return nil, fmt.Errorf("make the commit log's folder: %w", err)
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, folder: d}, nil
}

func (d folder) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// make makes the folder, unless it is there. Like a file's, its name is durable
// once a file in it was synced.
func (d folder) make() error {
	if err := os.Mkdir(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there, and need not be
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type osFile struct {
	*os.File
	folder folder
	named  bool // its name is durable
}

func (f *osFile) Size() (int64, error) {
	i, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return i.Size(), nil
}

// Sync syncs the data, and of the metadata what is needed to read it. The first
// time it syncs the names of file and folder, too: whoever made them may have died
// before that, or failed.
func (f *osFile) Sync() error {
	if err := datasync(f.File); err != nil || f.named {
		return err
	}
	for _, path := range []string{f.folder.path, filepath.Dir(f.folder.path)} {
		if err := f.folder.sync(path); err != nil {
			return fmt.Errorf("sync the folder %s: %w", path, err)
		}
	}
	f.named = true
	return nil
}
