package actor

import (
	"context"
	"slices"
)

// heed is how far a parent wants to hear of a child's end.
type heed uint8

const (
	heedUnasked heed = iota // of each end but what its own restart brings
	heedAsked               // it has called Watch
	heedNot                 // it has called Unwatch
)

// A child's end is told to its parent once, without the parent being among the
// watchers: there is nothing to keep for each child. What the parent wants to
// hear is looked at when the message comes. So as long as heard is not set, one
// Terminated is on its way or to come.

// hears says that t's end is told to r without its being among t's watchers.
func (r *Ref) hears(t *Ref) bool { return t.parent == r && !r.props.IgnoreChildren }

// heeds takes note that Terminated of t has come to its parent, and says
// whether that is to be delivered. For r's turn.
func (r *Ref) heeds(t *Ref) bool {
	if !r.hears(t) || t.heard {
		return false
	}
	t.heard = true
	return t.heed == heedAsked || t.heed == heedUnasked && !t.leaving
}

// hear queues Terminated of t, which is gone. w is the worker whose turn says so.
func (r *Ref) hear(t *Ref, reason error, w Worker) {
	_ = r.enqueue(Message{Payload: Terminated{Ref: t, Cause: t.cause, Reason: reason}, Sender: t}, w)
}

// watch registers r with t. For r's turn.
func (r *Ref) watch(t *Ref) {
	switch {
	case t == r || t == nil:
		return
	case r.hears(t):
		t.heed = heedAsked
		if t.heard {
			t.heard = false
			r.hear(t, t.ended(), r.call.worker)
		}
		return
	}
	x := r.extras()
	if _, ok := x.watching[t]; ok {
		return
	}
	if x.watching == nil {
		x.watching = make(map[*Ref]struct{})
	}
	x.watching[t] = struct{}{}
	t.mu.Lock()
	if !t.gone {
		t.rarely().addWatcher(r)
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	r.hear(t, t.ended(), r.call.worker)
}

// ended returns the failure that ended r, which is gone; nil for none.
func (r *Ref) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rare == nil {
		return nil
	}
	return r.rare.reason
}

// unwatch also makes a Terminated that is queued already be dropped.
func (r *Ref) unwatch(t *Ref) {
	switch {
	case t == nil:
	case r.hears(t):
		t.heed = heedNot
	case r.forget(t):
		t.removeWatcher(r)
	}
}

// unhear has Terminated of t, which is gone and was watched, come once more.
func (r *Ref) unhear(t *Ref) {
	if r.hears(t) {
		t.heard = false
		return
	}
	r.extra.watching[t] = struct{}{}
}

// forget says whether t was watched, and is no more.
func (r *Ref) forget(t *Ref) bool {
	x := r.extra
	if x == nil {
		return false
	}
	if _, ok := x.watching[t]; !ok {
		return false
	}
	delete(x.watching, t)
	return true
}

func (r *Ref) removeWatcher(w *Ref) {
	r.mu.Lock()
	if k := r.rare; k != nil {
		if i := slices.Index(k.watchers, w); i >= 0 {
			k.watchers = slices.Delete(k.watchers, i, i+1)
		}
	}
	r.mu.Unlock()
}

// addWatcher drops those that have stopped before it takes more room, so that at
// least half of a long list are there. To look for each where it stops itself would
// cost many watchers of one actor the square of their number.
func (k *rare) addWatcher(r *Ref) {
	if len(k.watchers) == cap(k.watchers) {
		k.watchers = slices.DeleteFunc(k.watchers, func(w *Ref) bool { return w.is(ending) })
		if len(k.watchers) > cap(k.watchers)/2 {
			k.watchers = slices.Grow(k.watchers, len(k.watchers))
		}
	}
	k.watchers = append(k.watchers, r)
}

// AwaitStop waits until r has stopped wholly: its children have, PostStop has
// returned, the name is free. The error wraps ctx's and names r. A handler
// that waits for itself waits until ctx ends.
func (s *System) AwaitStop(ctx context.Context, r *Ref) error {
	p := s.exec.NewParker()
	r.mu.Lock()
	if r.finished {
		r.mu.Unlock()
		return nil
	}
	k := r.rarely()
	k.awaiting = append(k.awaiting, p)
	r.mu.Unlock()

	err := p.Park(ctx, 0)
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return nil
	}
	if i := slices.Index(r.rare.awaiting, p); i >= 0 {
		r.rare.awaiting = slices.Delete(r.rare.awaiting, i, i+1)
	}
	return stopLate(r, err)
}
