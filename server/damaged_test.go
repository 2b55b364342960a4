package server

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/snapshot"
)

// A file that is found damaged while it is served behind its log is known to be.
func TestDamageBehindTheLog(t *testing.T) {
	at := target{kind: kindBolt, at: t.TempDir()}
	store, err := at.open(t.Context(), nil, withLog)
	require.NoError(t, err)
	var b persist.Batch
	for i := range uint64(100) {
		b.Records = append(b.Records, persist.Stored{
			Key:    persist.Key{Pod: "docs", Name: fmt.Sprint(i)},
			Record: snapshot.Record{Life: i + 1, Revision: 1, Reserved: 1, Codec: "json", State: make([]byte, 1000)},
		})
	}
	logged := store.(*commitlog.Store)
	require.NoError(t, logged.Import(t.Context(), b))
	require.NoError(t, logged.Behind().Close(), "first, so that the log stays in front")
	require.NoError(t, logged.Close())
	whole, err := os.ReadFile(at.boltPath())
	require.NoError(t, err)
	size, found := os.Getpagesize(), 0
	for page := 2; page < len(whole)/size && found < 3; page++ {
		spoiled := bytes.Clone(whole)
		copy(spoiled[page*size:], bytes.Repeat([]byte("noise"), size)[:size])
		require.NoError(t, os.WriteFile(at.boltPath(), spoiled, 0o600))
		store, err := at.open(t.Context(), nil, withLog)
		if err != nil {
			continue // it was found at once
		}
		file := store.(*commitlog.Store).Behind().(*bolt.Store)
		if file.Verified(t.Context()) != nil {
			found++
			err := <-(&Server{store: store}).damaged(t.Context())
			require.ErrorIs(t, err, bolt.ErrDamaged)
			require.ErrorContains(t, err, "out of service")
		}
		require.NoError(t, file.Close())
		require.NoError(t, store.Close())
	}
	require.Positive(t, found)
}
