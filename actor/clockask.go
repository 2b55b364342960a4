package actor

import (
	"math"
	"sync/atomic"
	"time"
)

// askClock ends the asks of one pooled reply cell at a limit without arming a
// timer for each: while asks go on it ticks sixteen times a limit, and an ask
// that was there at sixteen ticks in a row is over. So an ask waits for the
// limit, or at most a sixteenth longer.
type askClock struct {
	p      *Promise
	period time.Duration
	armed  atomic.Bool
	timer  *time.Timer // the last three are the tick's, or of who has set armed
	seen   uint64
	ticks  int
}

const ticksPerLimit = 16

func (c *askClock) init(p *Promise, limit time.Duration) {
	c.p, c.period = p, max(limit/ticksPerLimit, 1)
}

// start sees to it that the clock ticks.
func (c *askClock) start() {
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		c.arm(c.p.word.Load())
	}
}

func (c *askClock) arm(word uint64) {
	c.seen, c.ticks = word, 0
	if c.timer == nil {
		c.timer = time.AfterFunc(math.MaxInt64, c.tick) // so that no tick is there before the timer is known
	}
	c.timer.Reset(c.period)
}

// watched says that an ask waits whose end is the clock's.
func watched(word uint64) bool { return word&(promiseState|promiseQuick) == promiseOpen|promiseQuick }

func (c *askClock) tick() {
	word := c.p.word.Load()
	switch {
	case !watched(word):
		c.armed.Store(false)
		word = c.p.word.Load()
		if !watched(word) || !c.armed.CompareAndSwap(false, true) {
			return // the next start arms it
		}
		c.seen, c.ticks = word, 0
	case word&^promiseSpins != c.seen&^promiseSpins:
		c.seen, c.ticks = word, 0
	default:
		c.ticks++
	}
	if c.ticks >= ticksPerLimit && c.p.word.CompareAndSwap(word, word|promiseGivenUp) {
		if word&promiseSpins == 0 {
			c.p.parker.Unpark()
		}
		return // a cell that was given up is not used again
	}
	c.timer.Reset(c.period)
}
