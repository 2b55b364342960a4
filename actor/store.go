package actor

import "sync"

// Store keeps values by key: an actor's own (Context.Store), which outlives
// restarts and ends with the actor, and a system's (System.Global). All methods
// may be called from any goroutine; what a value points to is the users' to
// protect. The zero Store is empty and ready.
type Store struct {
	mu     sync.RWMutex
	values map[any]any
}

// Get returns the value of a key.
func (s *Store) Get(key any) (v any, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok = s.values[key]
	return v, ok
}

// Set gives a key a value. The key must be comparable.
func (s *Store) Set(key, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(key, v)
}

func (s *Store) set(key, v any) {
	if s.values == nil {
		s.values = make(map[any]any)
	}
	s.values[key] = v
}

// Delete takes a key out, if it is there.
func (s *Store) Delete(key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}

// Len returns how many keys have a value.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.values)
}

// Key is the name of values of type T in a Store. Keys of one name and
// different types are different keys:
//
//	const visits = actor.Key[int]("visits")
//	visits.Update(ctx.Store(), func(n int) int { return n + 1 })
type Key[T any] string

// Get returns the value of the key; the zero T and false when it has none.
func (k Key[T]) Get(s *Store) (v T, ok bool) {
	x, ok := s.Get(k)
	if !ok {
		return v, false
	}
	v, _ = x.(T) // a nil of an interface type T is no T
	return v, true
}

// Set gives the key a value.
func (k Key[T]) Set(s *Store, v T) { s.Set(k, v) }

// Delete takes the key out, if it is there.
func (k Key[T]) Delete(s *Store) { s.Delete(k) }

// Update sets what f makes of the value, or of the zero T when there is none,
// and returns it. It is atomic; f must not use the store.
func (k Key[T]) Update(s *Store, f func(old T) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _ := s.values[k].(T)
	v := f(old)
	s.set(k, v)
	return v
}

// Store returns the actor's own store. It may be kept.
func (c *Context) Store() *Store {
	c.must()
	x := c.ref().extras()
	if x.store == nil {
		x.store = &Store{}
	}
	return x.store
}
