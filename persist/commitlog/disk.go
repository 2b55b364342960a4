package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk has a log's files.
type Disk interface {
	// Open opens a file, which it makes, durably, if it is missing.
	Open(name string) (File, error)
	// Names are those of the files that there are, in any order.
	Names() ([]string, error)
}

// File is a file of a log. What was written is durable once a later Sync has
// returned nil; without that any part of it may be. One goroutine at a time
// uses it.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Sync() error
}

// folder is a Disk of the operating system.
type folder string

var _ Disk = folder("")

func (d folder) Open(name string) (File, error) {
	path := filepath.Join(string(d), name)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		return osFile{f}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := d.make(); err != nil { // when Open was called there may have been no room for it
		return nil, fmt.Errorf("make the commit log's folder: %w", err)
	}
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := syncFolder(string(d)); err != nil {
		return nil, errors.Join(fmt.Errorf("sync the folder of %s: %w", path, err), f.Close())
	}
	return osFile{f}, nil
}

func (d folder) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// make makes the folder and the names in it durable. They may be there without
// being that: a process that died behind making one has not synced it.
func (d folder) make() error {
	err := os.Mkdir(string(d), 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(syncFolder(filepath.Dir(string(d))), syncFolder(string(d)))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	i, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return i.Size(), nil
}

// Sync syncs the data, and of the metadata what is needed to read it.
func (f osFile) Sync() error { return datasync(f.File) }
