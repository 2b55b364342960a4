package actor

import (
	"math"
	"sync/atomic"
	"time"
)

// askClock ends the waits of one pooled reply cell at a limit without arming a
// timer for each: while asks go on it ticks sixteen times a limit, and an ask
// that was there at sixteen ticks in a row is over. So an ask waits for the
// limit, or at most a sixteenth longer.
type askClock struct {
	period time.Duration
	wake   func()

	turn  atomic.Uint64 // odd while someone waits
	over  atomic.Uint64 // the turn that has waited for too long
	armed atomic.Bool
	timer *time.Timer // the last four are the tick's, or of who has set armed
	seen  uint64
	ticks int
}

const ticksPerLimit = 16

// begin starts a wait and returns its turn. A clock has one limit for ever.
func (c *askClock) begin(limit time.Duration) uint64 {
	turn := c.turn.Add(1)
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		c.arm(turn, limit)
	}
	return turn
}

func (c *askClock) end() { c.turn.Add(1) }

func (c *askClock) expired(turn uint64) bool { return c.over.Load() == turn }

func (c *askClock) arm(turn uint64, limit time.Duration) {
	c.seen, c.ticks = turn, 0
	if c.timer == nil {
		c.period = max(limit/ticksPerLimit, 1)
		c.timer = time.AfterFunc(math.MaxInt64, c.tick) // so that no tick is there before the timer is known
	}
	c.timer.Reset(c.period)
}

func (c *askClock) tick() {
	turn := c.turn.Load()
	switch {
	case turn%2 == 0:
		c.armed.Store(false)
		turn = c.turn.Load()
		if turn%2 == 0 || !c.armed.CompareAndSwap(false, true) {
			return // the next begin arms it
		}
		c.seen, c.ticks = turn, 0
	case turn != c.seen:
		c.seen, c.ticks = turn, 0
	default:
		if c.ticks++; c.ticks >= ticksPerLimit {
			c.over.Store(turn)
			c.wake()
		}
	}
	c.timer.Reset(c.period)
}
