package jsonfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock tries to take the file's lock, which goes with its handle.
func lock(f *os.File) (held bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}
