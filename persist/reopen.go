package persist

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// fault takes a store that must be reopened out of service until that
// succeeds: from now on units are refused at once, and a job tries to reopen
// the store with growing pauses. They go on growing when what comes after a
// reopening fails, too; see proven. Stores that heal themselves stay in service.
func (c *Committer) fault(cause error) {
	r, ok := c.store.(Reopener)
	if !ok {
		return
	}
	c.mu.Lock()
	first := c.down == nil
	if first || !errors.Is(cause, ErrUnavailable) {
		c.down = cause
	}
	c.mu.Unlock()
	if first {
		pause := c.nextPause()
		c.sys.Logger().Error("the store failed and is being reopened; writes are refused meanwhile", "error", cause, "next_try_in", pause)
		c.sys.Go(func() { c.reopen(r, pause) })
	}
}

// undone is the kind of a unit's failure when the store's has kept it from being
// done.
func undone(store error) error {
	if errors.Is(store, ErrNoRoom) {
		return fmt.Errorf("%w: %w", ErrUnavailable, ErrNoRoom)
	}
	return ErrUnavailable
}

// nextPause returns how long to wait for the next try to reopen the store.
func (c *Committer) nextPause() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause = min(max(2*c.pause, c.cfg.MinBackoff), c.cfg.MaxBackoff)
	return c.pause
}

// proven has the pauses begin anew once the store has taken something: that it
// could be reopened does not show that it takes anything.
func (c *Committer) proven(outcomes []Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pause > 0 && slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Err == nil }) {
		c.pause = 0
	}
}

func (c *Committer) reopen(r Reopener, pause time.Duration) {
	for {
		if c.sys.Sleep(c.ctx, pause) != nil {
			return // closed, or the system has stopped
		}
		err := r.Reopen(c.ctx)
		if err == nil {
			break
		}
		pause = c.nextPause()
		c.sys.Logger().Warn("the store could not be reopened yet", "error", err, "next_try_in", pause)
	}
	c.mu.Lock()
	c.down = nil
	c.mu.Unlock()
	c.sys.Logger().Info("the store is open again")
}
