package actor

import (
	"errors"
	"fmt"
	"runtime/debug"
)

type phase uint8

const (
	phaseNew        phase = iota // an instance is to be made and started
	phaseStarting                // inside New or PreStart
	phaseRunning                 //
	phaseFailed                  // a decision of a supervisor above is awaited
	phaseRestarting              // waiting for children to stop and for the backoff
	phaseStopping                // waiting for children to stop
	phaseGone
)

// errExited is the failure of a handler that ended its goroutine.
var errExited = errors.New("handler called runtime.Goexit")

// turn handles signals and messages until there are none or the worker's
// budget is used up. It returns true when there may be more. When it does not
// return, because a handler ended the goroutine, exited must be called.
func (r *Ref) turn(w *call) (again bool) {
	r.call = w
	for range w.worker.Budget(r.sys.throughput) {
		if r.is(urgent) {
			if s, ok := r.nextSignal(); ok {
				r.onSignal(s)
			}
		} else if r.phase == phaseNew {
			r.start()
		} else if r.draining != drainsNot {
			r.drainOne()
		} else {
			m, took := r.take()
			switch took {
			case tookRest:
				return false
			case tookMessage:
				r.deliver(m)
			}
		}
		if r.phase == phaseGone && r.draining == drainsNot {
			r.call = nil
			return false // stays busy for ever, so nobody schedules it
		}
	}
	r.call = nil
	return true
}

// exited is called where a handler left by runtime.Goexit, on the goroutine that
// is ending. The next turn, on another, begins with what follows from that: it may
// call user code, which may leave likewise.
func (r *Ref) exited() {
	c := r.context()
	s := signal{kind: sigExited, payload: c.call.msg.Payload}
	if c.call.hook {
		s.directive = Stop
	}
	r.signalFirst(s)
	defer func() {
		r.call = nil
		r.sys.exec.Schedule(Task{r})
	}()
	if c.call.active {
		defer c.end()
		r.settle(errExited)
	}
}

// onExited goes on behind a call that has left. Whatever it was in, this takes a
// step ahead, so that not even one that always leaves goes on for ever.
func (r *Ref) onExited(s signal) {
	switch r.phase {
	case phaseGone:
		if !r.finished {
			r.free()
		}
	case phaseStopping:
		if r.extra != nil && r.extra.inPostStop {
			r.finishAfterPostStop()
			return
		}
		r.drain()
		if r.stopChildren(true, r.stopReason()) == 0 {
			r.finish()
		}
	case phaseRunning, phaseStarting:
		if s.directive == Stop {
			r.beginStop(CauseFailure, errExited, nil)
			return
		}
		r.fail(errExited, s.payload)
	default:
		r.beginStop(CauseFailure, errExited, nil)
	}
}

// deliver handles one user message.
func (r *Ref) deliver(m Message) {
	own := false
	switch p := m.Payload.(type) {
	case PoisonPill:
		if own = r.props.OwnPoison; !own {
			if m.Reply != nil {
				m.Reply.resolve(nil, nil)
			}
			r.beginStop(CausePoison, nil, nil)
			return
		}
	case Terminated:
		if !r.terminated(p) {
			return // no longer watched
		}
		own = true
	case *timer:
		if !p.take() {
			return // stopped after it had fired
		}
		m.Payload, own = p.msg, p.owner == r
	case *piped:
		m.Payload, own = p.value, p.own
	case *delegationEnd:
		if !r.delegatesTo(p.by) {
			return // it had ended otherwise
		}
		r.endDelegation()
		m.Payload, own = DelegationEnded{Delegate: p.by, Payload: p.payload}, true
	case *again:
		m.Payload, own = p.value, true
	}
	if x := r.extra; x != nil && x.delegation != nil && !own && r.delegate(m) {
		return
	}
	c := r.context()
	c.begin(m)
	c.call.own, c.call.user = own, true
	err := r.receive(m.Payload)
	if m.Reply != nil {
		r.settle(err)
	}
	c.end()
	r.afterCall(err, m.Payload)
}

func (r *Ref) receive(msg any) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = recovered(recover())
		}
	}()
	if x := r.extra; x != nil && len(x.behaviours) > 0 {
		err = x.behaviours[len(x.behaviours)-1](r.context(), msg)
	} else {
		err = r.instance.Receive(r.context(), msg)
	}
	returned = true
	return err
}

// recovered makes an error of what recover returned in a call that did not
// return. Nothing recovered means runtime.Goexit: the goroutine goes on ending
// and Ref.exited takes over.
func recovered(v any) error {
	if v == nil {
		return errExited
	}
	return &PanicError{Value: v, Stack: debug.Stack()}
}

// protect calls f and makes an error of its panic.
func protect(f func() error) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = recovered(recover())
		}
	}()
	err = f()
	returned = true
	return err
}

// afterCall draws the consequences of a handler's end.
func (r *Ref) afterCall(err error, msg any) {
	switch {
	case r.stopAsked && r.phase < phaseStopping: // else it has had its effect
		r.beginStop(CauseSelf, err, nil)
	case err != nil:
		r.fail(err, msg)
	}
}

// settle sees to it that the ask in progress is answered, now or by whoever
// took it over.
func (r *Ref) settle(err error) {
	c := r.context()
	p := c.call.msg.Reply
	if p == nil {
		return
	}
	switch {
	case err != nil && c.call.did&(didForward|didStash) == 0:
		p.resolve(nil, err)
	case c.call.did&(didAnswer|didDefer|didForward|didStash) == 0:
		p.resolve(nil, fmt.Errorf("%s on %T: %w", r.Path(), c.call.msg.Payload, ErrNoReply))
	}
}
