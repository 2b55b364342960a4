package persist

import "slices"

// watcher is somebody who wants to know of changes.
type watcher struct{ f func(position uint64) }

// Notify has f called when changes have become durable, with a position that
// none of them is behind, from now on until cancel is called. f is called on
// the committer's job, after the outcomes of a group have been handed out; it
// must not block. Several groups may come as one call, and a call may come for
// changes that were told already.
func (c *Committer) Notify(f func(position uint64)) (cancel func()) {
	w := &watcher{f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(slices.Clone(c.watchers), w)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watchers = slices.DeleteFunc(slices.Clone(c.watchers), func(o *watcher) bool { return o == w })
	}
}
