package actor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cell that has served an earlier ask ends the next one at its own limit, not
// at what was left of the earlier one's.
func TestAnAskClockCountsFromTheAskInProgress(t *testing.T) {
	const limit = time.Hour // the ticks are the test's
	woken := 0
	c := askClock{wake: func() { woken++ }}
	first := c.begin(limit)
	defer c.timer.Stop()
	for range ticksPerLimit - 1 {
		c.tick()
	}
	require.False(t, c.expired(first))
	c.end()
	second := c.begin(limit)
	for range ticksPerLimit {
		require.Zero(t, woken)
		c.tick()
	}
	require.False(t, c.expired(second), "a full limit after the first tick that saw it")
	c.tick()
	require.True(t, c.expired(second))
	require.Equal(t, 1, woken)
	c.end()
	c.tick()
	require.False(t, c.armed.Load(), "nobody waits")
}
