package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// TestBackupByWayOfACopy backs up a store as a kill leaves it, some of it in the
// log alone: everything is in the backup, and nothing of the store is changed.
func TestBackupByWayOfACopy(t *testing.T) {
	ctx := t.Context()
	used := target{kind: kindBolt, at: filepath.Join(t.TempDir(), "data")}
	store, err := used.open(ctx, nil, withLog)
	require.NoError(t, err)
	keyOf := func(i int) persist.Key { return persist.Key{Pod: "docs", Name: fmt.Sprint(i)} }
	for i := range 20 {
		_, err := store.Commit(ctx, []persist.Unit{{Key: keyOf(i), Record: &snapshot.Record{Revision: 1, Codec: "json", State: []byte(`{}`)}}})
		require.NoError(t, err)
	}
	killed := target{kind: kindBolt, at: filepath.Join(t.TempDir(), "data")}
	require.NoError(t, os.CopyFS(killed.at, os.DirFS(used.at)))
	require.NoError(t, store.Close())
	pending, err := os.ReadFile(filepath.Join(killed.logPath(), "segment-1"))
	require.NoError(t, err)

	var backup bytes.Buffer
	other := t.TempDir()
	require.NoError(t, killed.backupCopy(ctx, &backup, other))
	left, err := os.ReadDir(other)
	require.NoError(t, err)
	require.Empty(t, left)
	after, err := os.ReadFile(filepath.Join(killed.logPath(), "segment-1"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(pending, after), "the log is as it was")

	file := filepath.Join(other, "backup")
	require.NoError(t, os.WriteFile(file, backup.Bytes(), 0o600))
	restored := target{kind: kindBolt, at: filepath.Join(t.TempDir(), "data")}
	f, err := os.Open(file)
	require.NoError(t, err)
	require.NoError(t, restored.restore(f))
	require.NoError(t, f.Close())
	for _, where := range []target{killed, restored} {
		for _, use := range []logUse{withLog, withoutLog} {
			store, err := where.open(ctx, nil, use)
			require.NoError(t, err)
			for i := range 20 {
				_, err := store.Load(ctx, keyOf(i))
				require.NoError(t, err)
			}
			require.NoError(t, store.Close())
		}
	}
}
