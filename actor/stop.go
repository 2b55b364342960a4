package actor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// namedLate is how many late actors an error of Stop names.
const namedLate = 20

// SignalStop begins to stop all actors, children first, and returns at once.
// The system's goroutines end when the last actor has.
func (s *System) SignalStop() {
	s.stopping.Store(true)
	s.user.signal(signal{kind: sigSystem})
}

// LateError is the report of a System.Stop whose deadline passed.
type LateError struct {
	System string
	Actors []string // the paths of those that others wait for, sorted
	Jobs   int      // functions of System.Go and PipeTo that still run
	cause  error
}

// Error names who is late, at most 20 of them.
func (e *LateError) Error() string {
	late := listed(e.Actors)
	if e.Jobs > 0 {
		if late != "" {
			late += ", and "
		}
		late += fmt.Sprintf("%d background jobs", e.Jobs)
	}
	if late == "" {
		late = "workers"
	}
	return fmt.Sprintf("stopping system %s: still running: %s: %v", e.System, late, e.cause)
}

// Unwrap returns the error of the context that ended.
func (e *LateError) Unwrap() error { return e.cause }

// Stop is SignalStop, and waits for actors, then for jobs of System.Go, and
// for the end of the system's goroutines. It is bounded by ctx alone: at its
// end the error is a *LateError. What was late goes on ending by itself. Stop
// may be called again to wait longer. An actor that calls it waits for itself.
func (s *System) Stop(ctx context.Context) error {
	s.SignalStop()
	for _, r := range []*Ref{s.user, s.root} {
		r.signal(signal{kind: sigSystem})
		if err := s.AwaitStop(ctx, r); err != nil {
			return &LateError{System: s.name, Actors: s.late(), Jobs: s.jobs.running(), cause: unwrapOnce(err)}
		}
	}
	if n, err := s.jobs.wait(ctx); err != nil {
		return &LateError{System: s.name, Jobs: n, cause: err}
	}
	if s.own != nil {
		if err := s.own.wait(ctx); err != nil {
			return &LateError{System: s.name, cause: err}
		}
	}
	return nil
}

// onFinished goes on stopping the system from actor to actor, so that it ends
// also when Stop has given up waiting.
func (s *System) onFinished(r *Ref) {
	switch {
	case r == s.user && s.stopping.Load():
		s.root.signal(signal{kind: sigSystem})
	case r == s.root && s.own != nil:
		s.own.close()
	}
}

// stopLate is the error of waiting for r in vain.
func stopLate(r *Ref, err error) error { return fmt.Errorf("%s has not stopped: %w", r.Path(), err) }

func unwrapOnce(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return err
}

// late returns the paths of the actors that others wait for, sorted: of those that
// have not begun to stop, whose children were not asked to, and of those that have and
// have no children left. /, /user and /system have no handlers that keep them from it.
func (s *System) late() []string {
	var paths []string
	var visit func(r *Ref)
	visit = func(r *Ref) {
		var kids []*Ref
		if r.Stopped() || r == s.root || r == s.user || r == s.system {
			kids = r.unfinished()
		}
		for _, c := range kids {
			visit(c)
		}
		if len(kids) == 0 && r.parent != nil && r != s.system && !r.hasFinished() {
			paths = append(paths, r.Path())
		}
	}
	if s.user.hasFinished() {
		visit(s.root)
	} else {
		visit(s.user)
	}
	slices.Sort(paths)
	return paths
}

func (r *Ref) hasFinished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished
}

// unfinished returns all children, those included whose name was given away.
func (r *Ref) unfinished() []*Ref {
	all := r.Children()
	if f := r.kin.Load(); f != nil {
		f.mu.Lock()
		for c := range f.replaced {
			all = append(all, c)
		}
		f.mu.Unlock()
	}
	return all
}

func listed(paths []string) string {
	if n := len(paths); n > namedLate {
		return strings.Join(paths[:namedLate], ", ") + fmt.Sprintf(" and %d more", n-namedLate)
	}
	return strings.Join(paths, ", ")
}

// jobs counts what System.Go runs.
type jobs struct {
	sys     *System
	mu      sync.Mutex
	n       int
	waiting []Parker
}

func (j *jobs) add() {
	j.mu.Lock()
	j.n++
	j.mu.Unlock()
}

func (j *jobs) done() {
	j.mu.Lock()
	j.n--
	var wake []Parker
	if j.n == 0 {
		wake, j.waiting = j.waiting, nil
	}
	j.mu.Unlock()
	for _, p := range wake {
		p.Unpark()
	}
}

func (j *jobs) running() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.n
}

// wait returns when no job runs; an error with their number when ctx ends.
func (j *jobs) wait(ctx context.Context) (int, error) {
	p := j.sys.exec.NewParker()
	j.mu.Lock()
	if j.n == 0 {
		j.mu.Unlock()
		return 0, nil
	}
	j.waiting = append(j.waiting, p)
	j.mu.Unlock()
	err := p.Park(ctx, 0)
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.n, err
}
