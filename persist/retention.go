package persist

import "errors"

// trimChunk bounds how long one round of trimming keeps the store's writer
// busy.
const trimChunk = 1024

// trim drops changes that have left the journal's window, a bounded number
// after each commit: more than a commit of ordinary size adds, so that the
// journal shrinks back to its window and commits stay short.
func (c *Committer) trim() {
	if c.last <= c.cfg.KeepChanges {
		return
	}
	through := c.last - c.cfg.KeepChanges
	if through < c.trimmed+trimChunk {
		return
	}
	t, err := c.store.Trim(c.ctx, c.trimmed, through, 4*trimChunk)
	if err != nil {
		c.sys.Logger().Warn("the journal could not be trimmed; it grows until this succeeds", "through", through, "error", err)
		if !errors.Is(err, ErrUnavailable) {
			c.fault(err)
		}
		c.trimmed = through // try again a chunk later, not after every commit
		return
	}
	c.trimmed = t.Through
}
