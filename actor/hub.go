package actor

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Subscribe is a message to /system/deadletters or /system/events: it has an
// actor told what happens there (ZombieMsg, Event) until it stops or
// Unsubscribe comes. An ask is answered with nil when the subscription holds.
type Subscribe struct{ Ref *Ref } // nil: the sender

// Unsubscribe undoes Subscribe.
type Unsubscribe struct{ Ref *Ref } // nil: the sender

// hub hands what is published to functions and to actors. Publishing to nobody
// costs a load.
type hub[T any] struct {
	mu   sync.Mutex
	subs atomic.Pointer[[]*subscription[T]] // replaced, never changed
}

// subscription has one of the two.
type subscription[T any] struct {
	f   func(T)
	ref *Ref
}

func (h *hub[T]) heard() bool {
	subs := h.subs.Load()
	return subs != nil && len(*subs) > 0
}

func (h *hub[T]) add(sub *subscription[T]) (cancel func()) {
	h.change(func(list []*subscription[T]) []*subscription[T] { return append(list, sub) })
	return func() { h.remove(func(s *subscription[T]) bool { return s == sub }) }
}

// addRef adds an actor that is not subscribed yet.
func (h *hub[T]) addRef(r *Ref) (cancel func()) {
	h.change(func(list []*subscription[T]) []*subscription[T] {
		if slices.ContainsFunc(list, func(s *subscription[T]) bool { return s.ref == r }) {
			return list
		}
		return append(list, &subscription[T]{ref: r})
	})
	return func() { h.removeRef(r) }
}

func (h *hub[T]) remove(which func(*subscription[T]) bool) {
	h.change(func(list []*subscription[T]) []*subscription[T] { return slices.DeleteFunc(list, which) })
}

func (h *hub[T]) removeRef(r *Ref) {
	h.remove(func(s *subscription[T]) bool { return s.ref == r })
}

// change replaces the list by what f makes of a copy of it.
func (h *hub[T]) change(f func([]*subscription[T]) []*subscription[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*subscription[T]
	if old := h.subs.Load(); old != nil {
		list = append(list, *old...)
	}
	list = f(list)
	h.subs.Store(&list)
}

// publish never blocks for an actor, and does not tell but, if that is one. One
// that has stopped is unsubscribed, and makes no dead letter, so that dead letters
// about dead letters cannot come up.
func (h *hub[T]) publish(s *System, v T, but *Ref) {
	subs := h.subs.Load()
	if subs == nil {
		return
	}
	for _, sub := range *subs {
		if sub.ref == nil {
			if err := protect(func() error { sub.f(v); return nil }); err != nil {
				s.log.Error("a subscriber panicked", "of", v, "err", err)
			}
			continue
		}
		if sub.ref == but {
			continue
		}
		switch err := sub.ref.enqueue(Message{Payload: v}, nil); {
		case err == nil:
		case errors.Is(err, ErrStopped):
			h.removeRef(sub.ref)
		default:
			s.log.Debug("a subscriber was not told", "subscriber", sub.ref.Name(), "err", err)
		}
	}
}

// subscribe says whether at is an actor that one can subscribe to.
func (s *System) subscribe(at, r *Ref) bool {
	switch {
	case r == nil || at.parent != s.system:
		return false
	case at.name == "events":
		s.events.hub.addRef(r)
	default:
		s.letters.hub.addRef(r)
	}
	return true
}

func (s *System) unsubscribe(at, r *Ref) bool {
	if r == nil || at.parent != s.system {
		return false
	}
	if at.name == "events" {
		s.events.hub.removeRef(r)
	} else {
		s.letters.hub.removeRef(r)
	}
	return true
}
