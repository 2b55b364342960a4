package pod

import (
	"context"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

// await waits until the entity of a change shows it to reads, so that whoever
// hears of it also sees it; not for long, since an entity that is busy must not
// hold up what others are told, and once only for each that is.
func (h *hub) await(ctx context.Context, c *persist.Change) {
	if pod, err := h.pods.Pod(c.Key.Pod); err != nil || pod.spec.Load() == nil || pod.spec.Load().Durability.IsAsync() {
		return
	}
	h.hurries(c.Key)
	var wait context.Context
	for {
		h.mu.Lock()
		_, shown := h.shown[c.Position]
		_, slow := h.slow[c.Key]
		if shown || slow || mutant.On(mutant.WatchAheadOfReads) || c.Position <= h.tracked || h.ended != nil || h.tails == 0 {
			h.mu.Unlock()
			return
		}
		w := h.pods.sys.NewWaiter()
		h.holding = w
		h.mu.Unlock()
		if wait == nil {
			var cancel context.CancelFunc
			wait, cancel = h.pods.sys.WithTimeout(ctx, showWithin)
			defer cancel()
		}
		if w.Wait(wait) != nil {
			read := h.pods.reads(c.Key, lateIn(c))
			h.mu.Lock()
			defer h.mu.Unlock()
			h.holding = nil
			if read {
				return
			}
			if len(h.slow) >= maxSlow {
				clear(h.slow)
			}
			h.slow[c.Key] = lateIn(c)
			return
		}
	}
}

// hurries no longer takes an entity for slow that has caught up.
func (h *hub) hurries(key persist.Key) {
	h.mu.Lock()
	l, slow := h.slow[key]
	h.mu.Unlock()
	if slow && h.pods.reads(key, l) {
		h.mu.Lock()
		delete(h.slow, key)
		h.mu.Unlock()
	}
}

// late is a change of an entity that was waited for.
type late struct {
	life, revision uint64
	ends           bool // the life
}

func lateIn(c *persist.Change) late { return late{c.Life, c.Revision, deletes(c)} }

// reads reports whether reads show a change. An entity that found it when it was
// read anew, after an unknown outcome, has told nobody.
func (p *Pods) reads(key persist.Key, l late) bool {
	pod, err := p.Pod(key.Pod)
	if err != nil {
		return true
	}
	switch r := pod.acknowledged(key.Name); {
	case r == nil: // they go to the store
		return true
	case r.Revision == 0:
		return l.ends || r.Life >= l.life
	case r.Life == l.life:
		return r.Revision >= l.revision && !l.ends
	default:
		return r.Life > l.life
	}
}

// release has the job look again. mu is held.
func (h *hub) release() {
	if h.holding != nil {
		h.holding.Wake()
		h.holding = nil
	}
}

// shows notes that an entity shows a change to reads. It is called on the
// entity's turn.
func (h *hub) shows(c *persist.Change) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.slow, c.Key)
	if c.Position > h.through {
		h.shown[c.Position] = struct{}{}
		h.release()
	}
}
