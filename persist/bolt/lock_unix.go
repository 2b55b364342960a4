//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is the pause between two tries to take a lock that is held.
const lockPoll = 10 * time.Millisecond

// lock takes the file's lock before anything is read. bbolt asks for the same
// lock on the same descriptor later, which then succeeds at once, and gives it
// back when it closes.
func lock(f *os.File, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case !time.Now().Before(deadline):
			return fmt.Errorf("%s: %w: stop that process first, or use another file", f.Name(), ErrLocked)
		}
		time.Sleep(lockPoll)
	}
}

// unlock gives the lock back where closing the file does not: a map of the file
// that is left behind keeps it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// sameOwner gives a file the owner of another, where that is allowed.
func sameOwner(f *os.File, of os.FileInfo) {
	if st, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // only root may; others are the owner
	}
}
