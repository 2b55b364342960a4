package postgres

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// allocated returns the bytes that f allocates, also what it lets go again. No
// other test runs meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestALargeFirstValueIsNoRule: the room for a column is not that of its first
// value for each.
func TestALargeFirstValueIsNoRule(t *testing.T) {
	large := fmt.Appendf(nil, `{"a":%q}`, bytes.Repeat([]byte("x"), 512<<10))
	var records []persist.Stored
	var changes []persist.Change
	var rows []persist.Row
	for i := range 1024 {
		state := []byte(`{"a":1}`)
		if i == 0 {
			state = large
		}
		key := persist.Key{Pod: "p", Name: fmt.Sprint(i)}
		records = append(records, persist.Stored{Key: key, Record: snapshot.Record{Life: 1, Revision: 1, Changed: time.Unix(1, 0), Codec: "json", State: state}})
		changes = append(changes, persist.Change{Position: uint64(i + 1), Key: key, Life: 1, Revision: 1, Time: time.Unix(1, 0), Codec: "json", Data: state})
		rows = append(rows, persist.Row{Kind: "k", Key: key, ID: "i", Value: state})
	}
	const most = 64 << 20
	require.Less(t, allocated(func() {
		groups(len(records), recordSize(records), func(from, to int) { _ = recordColumns(records[from:to]) })
	}), uint64(most))
	require.Less(t, allocated(func() { _ = changeGroups(nil, changeStatement, changes) }), uint64(most))
	require.Less(t, allocated(func() { _ = rowGroups(nil, rows) }), uint64(most))
}

// TestRenderedFloatsAreShort: a state's text is not many times its size.
func TestRenderedFloatsAreShort(t *testing.T) {
	for _, f := range []float64{5e-324, -1e300, 1e-7} {
		values := make([]float64, 1000)
		for i := range values {
			values[i] = f
		}
		state, err := snapshot.Msgpack().Append(nil, map[string]any{"v": values})
		require.NoError(t, err)
		text, ok := rendered(state)
		require.True(t, ok)
		require.Less(t, len(text), 2*len(state))
		want, err := snapshot.Msgpack().ToJSON(state)
		require.NoError(t, err)
		requireSameJSON(t, want, text)
	}
}
