package jsonfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// fsys is what the store asks of a file system. A write is durable after the
// file's Sync; a name (a new file, a rename, a removal) after the SyncDir of its
// folder.
type fsys interface {
	// Lock takes the folder for this store alone, waiting so long for another.
	Lock(path string, timeout time.Duration) (io.Closer, error)
	Mkdir(path string) error // nil when it is there
	// Create opens an empty file, emptying one that is there.
	Create(path string) (file, error)
	// Open opens a file for reading and writing.
	Open(path string) (file, error)
	ReadFile(path string) ([]byte, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(path string) error
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// disk is the real file system.
type disk struct{}

func (disk) Lock(path string, timeout time.Duration) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(timeout)
	for {
		held, err := lock(f)
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case !held:
			return f, nil
		case !time.Now().Before(deadline):
			return nil, errors.Join(ErrLocked, f.Close())
		}
		time.Sleep(lockPoll)
	}
}

// lockPoll is the pause between two tries to take a lock that is held.
const lockPoll = 10 * time.Millisecond

func (disk) Mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (disk) Create(path string) (file, error) {
	return opened(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600))
}

func (disk) Open(path string) (file, error) { return opened(os.OpenFile(path, os.O_RDWR, 0)) }

// opened keeps a nil *os.File from becoming a file that is not nil.
func opened(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (disk) ReadFile(path string) ([]byte, error)       { return os.ReadFile(path) }
func (disk) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (disk) Rename(from, to string) error               { return os.Rename(from, to) }
func (disk) Remove(path string) error                   { return os.Remove(path) }

func (disk) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there, and need not be
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync the folder %s: %w", path, err), d.Close())
	}
	return d.Close()
}

// replace writes a file as a whole: afterwards, also after a loss of power, it
// is the old one or the new one. The name is durable after SyncDir.
func replace(files fsys, temp, path string, content []byte) error {
	// What a loss of power left under this name may be the other file as well.
	if err := files.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := files.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = files.Rename(temp, path)
	}
	if err != nil {
		_ = files.Remove(temp) // it may hold the last free room; what is left goes at Open
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
