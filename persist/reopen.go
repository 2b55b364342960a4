package persist

// fault takes a store that must be reopened out of service until that
// succeeds: from now on units are refused at once, and a job tries to reopen
// the store with growing pauses. Stores that heal themselves stay in service.
func (c *Committer) fault(cause error) {
	r, ok := c.store.(Reopener)
	if !ok {
		return
	}
	c.mu.Lock()
	first := c.down == nil
	c.down = cause
	c.mu.Unlock()
	if first {
		c.sys.Logger().Error("the store failed and is being reopened; writes are refused meanwhile", "error", cause)
		c.sys.Go(func() { c.reopen(r) })
	}
}

func (c *Committer) reopen(r Reopener) {
	for pause := c.cfg.MinBackoff; ; pause = min(2*pause, c.cfg.MaxBackoff) {
		if c.sys.Sleep(c.ctx, pause) != nil {
			return // closed, or the system has stopped
		}
		err := r.Reopen(c.ctx)
		if err == nil {
			break
		}
		c.sys.Logger().Warn("the store could not be reopened yet", "error", err, "next_try_in", min(2*pause, c.cfg.MaxBackoff))
	}
	c.mu.Lock()
	c.down = nil
	c.mu.Unlock()
	c.sys.Logger().Info("the store is open again")
}
