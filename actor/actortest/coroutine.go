package actortest

import (
	"context"
	"iter"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// coroutine runs turns, jobs and timers one after the other, and is left
// standing while one of them waits.
type coroutine struct {
	s    *Seeded
	work item
	next func() (waits bool, ok bool)
	stop func()
	wait func(waits bool) bool
	over bool
}

// coroutine returns an idle one, or a new one.
func (s *Seeded) coroutine() *coroutine {
	if n := len(s.idle); n > 0 {
		co := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return co
	}
	co := &coroutine{s: s}
	co.next, co.stop = iter.Pull(co.body)
	s.all = append(s.all, co)
	return co
}

func (co *coroutine) body(yield func(bool) bool) {
	co.wait = yield
	for {
		co.s.perform(co.work)
		co.work = item{}
		if !yield(false) {
			return
		}
	}
}

// resume runs co until it waits or its work is done. A panic in it comes out
// here, and runtime.Goexit ends the calling goroutine.
func (s *Seeded) resume(co *coroutine) {
	s.current = co
	left := true // by a panic or runtime.Goexit
	defer func() {
		s.current = nil
		if left {
			co.over = true
		}
	}()
	waits, ok := co.next()
	left = false
	if ok && !waits {
		s.idle = append(s.idle, co)
	}
}

// end unwinds co.
func (s *Seeded) end(co *coroutine) {
	if co.over {
		return
	}
	s.current = co
	defer func() { s.current = nil }()
	co.over = true
	co.stop()
}

// parker waits in a coroutine by leaving it; outside of any, by running the
// executor.
type parker struct {
	s      *Seeded
	permit bool
	co     *coroutine // waits here
}

// NewParker returns a place to wait at.
func (s *Seeded) NewParker() actor.Parker { return &parker{s: s} }

func (p *parker) Unpark() {
	p.permit = true
	p.rouse()
}

func (p *parker) Reset() { p.permit = false }

// rouse has the coroutine that waits here look again.
func (p *parker) rouse() {
	if co := p.co; co != nil {
		p.co = nil
		p.s.enqueue(item{kind: runOn, co: co})
	}
}

func (p *parker) Park(ctx context.Context, limit time.Duration) error {
	s := p.s
	timedOut := false
	over := func() (error, bool) {
		switch {
		case p.permit:
			p.permit = false
			return nil, true
		case ctx.Err() != nil:
			return ctx.Err(), true
		case timedOut:
			return context.DeadlineExceeded, true
		case s.closed:
			return ErrClosed, true
		}
		return nil, false
	}
	if err, ok := over(); ok {
		return err
	}
	if limit > 0 {
		t := s.After(limit, func() { timedOut = true; p.rouse() })
		defer t.Stop()
	}
	if ctx.Done() != nil {
		stop := s.OnDone(ctx, p.rouse)
		defer stop()
	}
	end := s.clock.now.Add(max(Horizon, 2*limit))
	for {
		if err, ok := over(); ok {
			return err
		}
		if co := s.current; co != nil {
			p.co = co
			co.wait(true)
			p.co = nil
		} else if !s.step(end) {
			return ErrStuck
		}
	}
}
