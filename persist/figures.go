package persist

import (
	"errors"
	"math/bits"
	"time"
)

// CommitBuckets is how many classes Figures sorts commits into, by their time.
const CommitBuckets = 24

// CommitBound is the longest time of the commits in a class: 2 to the power of
// the class, in microseconds. The last class, of 8.4 s, has those above it too.
func CommitBound(class int) time.Duration {
	return time.Microsecond << min(class, CommitBuckets-1)
}

// Figures are what a committer has done since it was made, for people and their
// dashboards.
type Figures struct {
	// Commits is how many calls of the store there were, failed ones too.
	Commits uint64
	// Units is how many units these had, and Bytes their size: of keys, states,
	// changes and rows.
	Units, Bytes uint64
	// Applied is how many units were applied. Refused are those that a conflict or
	// a refusal of the store ended, and Failed the others that were not applied, or
	// may not have been.
	Applied, Refused, Failed uint64
	// InStore is how long the store took for all commits, and Took counts these
	// by CommitBound.
	InStore time.Duration
	Took    [CommitBuckets]uint64
	// Queued is how many units wait for a commit at this moment.
	Queued int
}

// Figures returns the figures of this moment.
func (c *Committer) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.figures
	f.Queued = len(c.queue)
	return f
}

// count notes a call of the store.
func (c *Committer) count(units []Unit, took time.Duration) {
	size := 0
	for i := range units {
		size += units[i].size()
	}
	class := bits.Len64(uint64(max(0, took.Microseconds()-1)))
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.figures
	f.Commits++
	f.Units += uint64(len(units))
	f.Bytes += uint64(size)
	f.InStore += took
	f.Took[min(class, CommitBuckets-1)]++
}

// tally counts what became of a unit. The running job calls it.
func (c *Committer) tally(err error) {
	switch {
	case err == nil:
		c.applied++
	case errors.Is(err, ErrConflict), errors.Is(err, ErrInvalid):
		c.refused++
	default:
		c.failed++
	}
}
