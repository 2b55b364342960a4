package bolt

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// TestALostBucketIsDamage: a file that has this program's buckets but for one is
// damaged, whichever that is, and not another program's.
func TestALostBucketIsDamage(t *testing.T) {
	for _, lost := range buckets() {
		for _, first := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "store.db")
			s, err := Open(path, Config{})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			db, err := bbolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(lost)) }))
			require.NoError(t, db.Close())
			_, err = Open(path, Config{VerifyFirst: first})
			require.ErrorIs(t, err, ErrDamaged, lost)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "page ")
			require.ErrorContains(t, err, lost)
		}
	}
}
