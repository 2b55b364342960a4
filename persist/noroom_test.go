package persist_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

func TestWhatSaysThatTheDiskIsFull(t *testing.T) {
	for _, full := range []error{persist.ErrNoRoom, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		require.True(t, persist.IsNoRoom(full), full)
		require.True(t, persist.IsNoRoom(fmt.Errorf("commit: %w", &os.PathError{Op: "write", Path: "f", Err: full})), full)
	}
	for _, other := range []error{nil, syscall.EIO, syscall.EROFS, os.ErrPermission, persist.ErrUnavailable} {
		require.False(t, persist.IsNoRoom(other), other)
	}
}
