package actor

import (
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// timer is a message that is sent later. In a mailbox it stands for its
// message, so that one which is stopped after it fired is not delivered, and
// ticks that a slow actor has not handled do not pile up.
type timer struct {
	owner, to *Ref
	msg       any
	every     bool
	state     atomic.Int32
	clock     Timer
}

const (
	timerArmed int32 = iota
	timerQueued
	timerDone
)

// ScheduleOnce sends msg to an actor, from this one, after d. The timer is
// stopped when this actor stops or restarts. Like all timers' messages it is
// taken also by a full mailbox.
func (c *Context) ScheduleOnce(d time.Duration, to *Ref, msg any) Timer {
	return c.schedule(d, to, msg, false)
}

// ScheduleEvery sends msg to an actor each d, which must be above zero, until
// the timer is stopped; that happens also when this actor stops or restarts.
// While a tick waits in the mailbox no further one is queued.
func (c *Context) ScheduleEvery(d time.Duration, to *Ref, msg any) Timer {
	if d <= 0 {
		panic("actor: ScheduleEvery needs a period above zero, not " + d.String())
	}
	return c.schedule(d, to, msg, true)
}

func (c *Context) schedule(d time.Duration, to *Ref, msg any, every bool) Timer {
	c.must()
	if to == nil {
		panic("actor: a timer needs an actor to send to")
	}
	t := &timer{owner: c.ref(), to: to, msg: msg, every: every}
	if c.ref().phase >= phaseStopping {
		t.state.Store(timerDone)
		return t
	}
	if every {
		t.clock = c.ref().sys.exec.Every(d, t.fire)
	} else {
		t.clock = c.ref().sys.exec.After(d, t.fire)
	}
	c.ref().keepTimer(t)
	return t
}

func (t *timer) fire() {
	if t.state.CompareAndSwap(timerArmed, timerQueued) {
		m := Message{Payload: t, Sender: t.owner}
		if t.to.enqueue(m, nil) != nil {
			t.to.absent(m)
		}
	}
}

// take says, when the message is reached, whether it is to be delivered.
func (t *timer) take() bool {
	if t.every {
		return t.state.CompareAndSwap(timerQueued, timerArmed)
	}
	return t.state.CompareAndSwap(timerQueued, timerDone)
}

// Stop says whether the message had not been delivered, and will not be. It
// may be called from any goroutine.
func (t *timer) Stop() bool {
	if t.state.Swap(timerDone) == timerDone {
		return false
	}
	t.clock.Stop()
	return true
}

// keepTimer remembers t for the actor's end, and forgets those that are done
// whenever their number may have doubled.
func (r *Ref) keepTimer(t *timer) {
	x := r.extras()
	if n := len(x.timers); n >= 16 && n == cap(x.timers) {
		live := make([]*timer, 0, n)
		for _, t := range x.timers {
			if t.state.Load() != timerDone {
				live = append(live, t)
			}
		}
		if len(live) > n/2 {
			live = append(make([]*timer, 0, 2*n), live...)
		}
		x.timers = live
	}
	x.timers = append(x.timers, t)
}

func (r *Ref) cancelTimers() {
	if x := r.extra; x != nil && !mutant.On(mutant.TimersOutliveStop) {
		for _, t := range x.timers {
			t.Stop()
		}
		x.timers = nil
		if x.dying != nil {
			x.dying.Stop()
			x.dying = nil
		}
	}
}
