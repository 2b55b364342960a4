//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package jsonfile

import (
	"errors"
	"os"
	"syscall"
)

// lock tries to take the file's lock, which goes with its descriptor.
func lock(f *os.File) (held bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true, nil
		}
		return false, err
	}
}
