package actor

import (
	"fmt"
	"iter"
	"slices"
	"sync"
)

// family is an actor's children. Its lock may be held while a child's is
// taken, never the other way round.
type family struct {
	mu       sync.Mutex
	kids     kids
	replaced map[*Ref]struct{} // still stopping; their name is free or another's
	closed   bool              // the actor stops: no more children
	waited   int               // children with leaving set
	named    uint64            // generated names so far
	restarts tracker           // of an all-for-one strategy
	shared   *spec             // what the latest child was made with
}

func (r *Ref) family() *family {
	if f := r.kin.Load(); f != nil {
		return f
	}
	r.kin.CompareAndSwap(nil, &family{})
	return r.kin.Load()
}

// Spawn makes a child; it starts on a turn of its own, so Spawn does not wait
// for PreStart. An empty name makes one up. The errors are ErrAlreadyExists
// while a child of that name has not wholly stopped, ErrStopped when r is
// stopping, and ErrInvalid for props or a name that cannot be.
func (r *Ref) Spawn(name string, p Props) (*Ref, error) { return r.spawnBy(name, p, nil) }

// spawnBy is Spawn. w is the worker whose handler spawns, or nil.
func (r *Ref) spawnBy(name string, p Props, w Worker) (*Ref, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("spawn %q under %s: %w", name, r.Path(), err)
	}
	if name != "" {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("spawn under %s: %w", r.Path(), err)
		}
	}
	f, l := r.family(), newLane(p.Mailbox)
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, fmt.Errorf("spawn %q under %s: %w", name, r.Path(), ErrStopped)
	}
	number := numberOf(name)
	if name == "" {
		name, number = f.nextName()
	} else if f.kids.get(name) != nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("spawn %q under %s: %w", name, r.Path(), ErrAlreadyExists)
	}
	child := newRef(r.sys, r, name, number, &p, l, f)
	f.kids.put(child)
	f.mu.Unlock()
	child.wake(w)
	return child, nil
}

// EnsureChild returns the live child of that name, or spawns it from props();
// created says which. It is atomic: of many callers one creates. A child that
// no longer takes messages is replaced at once, and ends on its own; then
// messages that reach the new one directly may be handled before those that
// the old one had left and OnAbsent hands over. props and Mailbox.New may be
// called without their results being used. The errors are those of Spawn but ErrAlreadyExists.
func (r *Ref) EnsureChild(name string, props func() Props) (child *Ref, created bool, err error) {
	f := r.family()
	f.mu.Lock()
	child, err = f.live(name)
	f.mu.Unlock()
	if child != nil {
		return child, false, nil
	}
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return nil, false, fmt.Errorf("child %q of %s: %w", name, r.Path(), err)
	}
	p := props()
	if err := p.Check(); err != nil {
		return nil, false, fmt.Errorf("child %q of %s: %w", name, r.Path(), err)
	}
	l := newLane(p.Mailbox)
	f.mu.Lock()
	if child, err = f.live(name); child != nil || err != nil {
		f.mu.Unlock()
		if err != nil {
			err = fmt.Errorf("child %q of %s: %w", name, r.Path(), err)
		}
		return child, false, err
	}
	if old := f.kids.get(name); old != nil {
		f.kids.drop(old)
		f.replace(old)
	}
	child = newRef(r.sys, r, name, numberOf(name), &p, l, f)
	f.kids.put(child)
	f.mu.Unlock()
	r.sys.exec.Schedule(Task{child})
	return child, true, nil
}

// replace notes a child whose name is no longer its own.
func (f *family) replace(c *Ref) {
	if f.replaced == nil {
		f.replaced = make(map[*Ref]struct{})
	}
	f.replaced[c] = struct{}{}
}

// live returns the child that takes messages under that name, or nil; an error
// when there can be none any more.
func (f *family) live(name string) (*Ref, error) {
	if c := f.kids.get(name); c != nil && !c.Stopped() {
		return c, nil
	}
	if f.closed {
		return nil, ErrStopped
	}
	return nil, nil
}

// Child returns the child of that name, which may be stopping.
func (r *Ref) Child(name string) (*Ref, bool) {
	f := r.kin.Load()
	if f == nil {
		return nil, false
	}
	f.mu.Lock()
	c := f.kids.get(name)
	f.mu.Unlock()
	return c, c != nil
}

// Children returns the children sorted by name, those included that are
// stopping and whose name has not been given away.
func (r *Ref) Children() []*Ref {
	f := r.kin.Load()
	if f == nil {
		return nil
	}
	f.mu.Lock()
	all := f.kids.all()
	f.mu.Unlock()
	slices.SortFunc(all, byName)
	return all
}

// StopChild asks the child of that name to stop. False says that there is none;
// then nothing happens.
func (r *Ref) StopChild(name string) bool {
	c, ok := r.Child(name)
	if ok {
		c.Stop()
	}
	return ok
}

// Tree returns r and everything under it, parents before their children and
// those by name. What is spawned or stops meanwhile may be missing.
func (r *Ref) Tree() iter.Seq[*Ref] {
	return func(yield func(*Ref) bool) { r.visit(yield) }
}

func (r *Ref) visit(yield func(*Ref) bool) bool {
	if !yield(r) {
		return false
	}
	for _, c := range r.Children() {
		if !c.visit(yield) {
			return false
		}
	}
	return true
}

// stopChildren asks all children to stop and returns how many it has to wait
// for; sigChildren comes when they are gone. final also ends spawning.
func (r *Ref) stopChildren(final bool, reason error) int {
	f := r.kin.Load()
	if f == nil {
		if !final || r.kin.CompareAndSwap(nil, &r.sys.childless) {
			return 0
		}
		f = r.kin.Load()
	}
	f.mu.Lock()
	f.closed = f.closed || final
	all := f.kids.all()
	f.waited = len(all) + len(f.replaced)
	for _, c := range all {
		c.leaving = true
	}
	for c := range f.replaced {
		c.leaving = true // it is stopping already
	}
	n := f.waited
	f.mu.Unlock()
	kind := sigParent
	if r.cause == CauseSystem && reason == nil {
		kind = sigSystem
	}
	slices.SortFunc(all, byName)
	for _, c := range all {
		c.signalBy(signal{kind: kind, err: reason}, r.call.worker)
	}
	return n
}

// childrenLeft returns how many children are waited for.
func (r *Ref) childrenLeft() int {
	f := r.kin.Load()
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waited
}

// freeName frees the name of a child that has stopped but is waited for. On the
// child's turn.
func (r *Ref) freeName(c *Ref) {
	f := r.kin.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kids.drop(c) {
		f.replace(c)
	}
}

// childGone frees a stopped child's name, if it is not free, and ends waiting for
// the child. On the child's turn.
func (r *Ref) childGone(c *Ref) {
	f := r.kin.Load()
	f.mu.Lock()
	if !f.kids.drop(c) {
		delete(f.replaced, c)
	}
	last := false
	if c.leaving {
		f.waited--
		last = f.waited == 0
	}
	f.mu.Unlock()
	if last {
		r.signalBy(signal{kind: sigChildren}, c.call.worker)
	}
}
