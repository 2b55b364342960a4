package persist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

// blotted is a store of which nothing can be read.
type blotted struct{ persist.PersistenceService }

func (b blotted) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	page, err := b.PersistenceService.List(ctx, pod, o)
	for i := range page.Items {
		page.Items[i].Err = snapshot.ErrCorrupt
	}
	return page, err
}

func (b blotted) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	rows, err := b.PersistenceService.Rows(ctx, kind, after, limit)
	for i := range rows {
		rows[i].Err = snapshot.ErrCorrupt
	}
	return rows, err
}

func (b blotted) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	changes, err := b.PersistenceService.Log(ctx, after, limit)
	for i := range changes {
		changes[i].Err = snapshot.ErrCorrupt
	}
	return changes, err
}

// However much cannot be read, all of it is counted, and so much is listed.
func TestFindUnreadableIsBounded(t *testing.T) {
	const n = 1200
	store := memory.Open(memory.Config{})
	units := make([]persist.Unit, n)
	for i := range units {
		units[i] = persist.Unit{Key: persist.Key{Pod: fmt.Sprint("pod", i%3), Name: fmt.Sprint("e", i)},
			Record:  &snapshot.Record{Revision: 1, Codec: "json", State: []byte("1")},
			Changes: []persist.Change{{Revision: 1, Type: "created", Codec: "json", Data: []byte("1")}},
			Rows:    []persist.RowOp{{Kind: "outbox", ID: "1", Value: []byte("1")}}}
	}
	_, err := store.Commit(t.Context(), units)
	require.NoError(t, err)
	for most, listed := range map[int]int{0: 1000, -1: 1000, 1: 1, n + 1: n + 1, 4 * n: 3 * n} {
		u, err := persist.FindUnreadable(t.Context(), blotted{store}, most)
		require.NoError(t, err)
		require.Len(t, u.Problems, listed)
		require.Equal(t, [3]int{n, n, n}, [3]int{u.Records, u.Rows, u.Changes})
		require.Equal(t, 3*n, u.Count())
	}
	u, err := persist.FindUnreadable(t.Context(), store, 0)
	require.NoError(t, err)
	require.Zero(t, u.Count())
	require.Empty(t, u.Problems)
	left := 2
	_, err = persist.FindUnreadable(t.Context(), flaky{store, &left}, 0)
	require.True(t, errors.Is(err, persist.ErrUnavailable), "it was not read to its end: %v", err)
}
