package persist

import (
	"errors"
	"syscall"
)

// IsNoRoom says that an error is ErrNoRoom, or comes of what a system says when a
// disk or a quota is full or a file as long as it may be. It is for stores, which
// make an ErrNoRoom of that where nothing was done.
func IsNoRoom(err error) bool {
	for _, full := range []error{ErrNoRoom, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}
