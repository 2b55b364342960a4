package patterns

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What passed longer ago than Every costs nothing, however large the Burst is.
func TestThrottleForgetsWhatCountsNoMore(t *testing.T) {
	one := throttle{rate: Rate{Every: time.Second, Burst: math.MaxInt}}
	now := time.Unix(0, 0)
	for range 10_000 {
		now = now.Add(100 * time.Millisecond)
		require.Zero(t, one.wait(now))
		one.note(now)
		require.LessOrEqual(t, len(one.passed), 10)
		require.LessOrEqual(t, cap(one.passed), 32)
	}
	for range 10_000 {
		one.note(now)
	}
	require.False(t, one.idle(now.Add(999*time.Millisecond)))
	require.True(t, one.idle(now.Add(time.Second)))
	require.Zero(t, cap(one.passed), "a burst does not keep its room")
}
