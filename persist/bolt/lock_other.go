//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import (
	"os"
	"time"
)

// lock leaves the locking to bbolt, which does it a little later here.
func lock(*os.File, time.Duration) error { return nil }

func unlock(*os.File) {}

func sameOwner(*os.File, os.FileInfo) {}
