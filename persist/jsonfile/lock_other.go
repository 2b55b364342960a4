//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package jsonfile

import (
	"errors"
	"os"
)

// lock refuses: without a lock two processes would spoil each other's files.
func lock(*os.File) (held bool, err error) {
	return false, errors.New("this system has no file locks that this program knows: use another store")
}
