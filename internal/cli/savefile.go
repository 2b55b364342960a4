package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// SaveFile makes a file of what write gives, and returns its size in bytes: the
// name appears when all of it is on disk. Whatever fails leaves nothing, and a
// file of that name as it was. Only force replaces one.
func SaveFile(path string, force bool, write func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // once it has its name this fails
	err = write(f)
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if err := giveName(f.Name(), path, force); err != nil {
		return 0, err
	}
	return size, SyncFolder(filepath.Dir(path))
}

// Refuse fails with a UsageError if a file is there that is not to be replaced:
// devices, folders, symbolic links and the like never are.
func Refuse(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil // it is not there, or what makes it will say so
	case !info.Mode().IsRegular():
		return Usagef("%s is there already, and is no ordinary file; choose another name", path)
	case !force:
		return Usagef("%s is there already; choose another name, or replace it with --force", path)
	}
	return nil
}

// giveName gives a file its name.
func giveName(from, to string, force bool) error {
	if force {
		if err := Refuse(to, true); err != nil {
			return err // it has come meanwhile
		}
		return os.Rename(from, to)
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil { // there are file systems without links
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	return os.Rename(from, to)
}

// SyncFolder makes names in a folder durable.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // it knows no such thing
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
