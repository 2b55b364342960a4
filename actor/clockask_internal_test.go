package actor

import (
	"context"
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

// An ask that has less time left, having waited for room, leaves the clock of
// the cell alone: it would end later asks too early.
func TestAnAskClockKnowsOneLimit(t *testing.T) {
	s := NewSystem("test", Config{AskTimeout: time.Hour})
	defer stop(t, s)
	p := s.borrow()
	_, err := p.await(context.Background(), time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Nil(t, p.clock.timer)
}

// A tick may wake a cell's next asker, who then goes on waiting.
func TestALatePermitEndsNoAsk(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, ctx := range []context.Context{ctx, context.Background()} {
		p := s.borrow()
		p.parker.Unpark()
		answer := make(chan any, 1)
		go func() {
			v, _ := p.await(ctx, s.askLimit(ctx))
			answer <- v
		}()
		require.Eventually(t, func() bool { return len(p.quick.permit) == 0 }, waitTest, tickTest)
		p.resolve("v", nil)
		require.Equal(t, "v", <-answer)
	}
}
