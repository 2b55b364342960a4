package commitlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file's first sync makes its name durable, and that of its folder, whoever made
// them: another process that died, or this one, whose sync of them failed.
func TestNamesAreSyncedWithTheFirstSyncOfAFile(t *testing.T) {
	for _, there := range []bool{false, true} {
		path, failed := filepath.Join(t.TempDir(), "log"), errors.New("a fault of the test")
		var fails error
		var synced []string
		d := folder{path, func(path string) error {
			if fails == nil {
				synced = append(synced, path)
			}
			return fails
		}}
		if there {
			require.NoError(t, os.Mkdir(path, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(path, "segment-1"), nil, 0o600))
		}
		f, err := d.Open("segment-1")
		require.NoError(t, err)
		fails = failed
		for range 2 {
			require.ErrorIs(t, f.Sync(), failed)
		}
		require.NoError(t, f.Close())
		f, err = d.Open("segment-1")
		require.NoError(t, err)
		require.ErrorIs(t, f.Sync(), failed)
		fails = nil
		require.NoError(t, f.Sync())
		require.ElementsMatch(t, []string{path, filepath.Dir(path)}, synced)
		require.NoError(t, f.Sync())
		require.Len(t, synced, 2, "once is enough")
		require.NoError(t, f.Close())
	}
}
