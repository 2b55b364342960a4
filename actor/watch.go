package actor

import (
	"context"
	"slices"
)

// watch registers r with t. For r's turn.
func (r *Ref) watch(t *Ref) {
	if t == r || t == nil || r.watchesChild(t) {
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
		k := t.rarely()
		k.watchers = append(k.watchers, r)
		t.mu.Unlock()
		return
	}
	var reason error
	if t.rare != nil {
		reason = t.rare.reason
	}
	t.mu.Unlock()
	_ = r.enqueue(Message{Payload: Terminated{Ref: t, Reason: reason}, Sender: t}, nil)
}

// unwatch also makes a Terminated that is queued already be dropped.
func (r *Ref) unwatch(t *Ref) {
	if r.forget(t) || r.watchesChild(t) {
		t.removeWatcher(r)
	}
}

// watchesChild says that t is watched without having been asked for.
func (r *Ref) watchesChild(t *Ref) bool { return r.props.WatchChildren && t.parent == r }

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

// unwatchAll lets go of all that r watches. The map's order shows nowhere.
func (r *Ref) unwatchAll() {
	if x := r.extra; x != nil {
		for t := range x.watching {
			t.removeWatcher(r)
		}
		x.watching = nil
	}
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
