package actors

import (
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// timing is a timer of an actor.
type timing struct {
	owner     *life
	instance  int
	to        *life
	p         *parcel
	every     bool
	set       time.Time
	d         time.Duration
	timer     actor.Timer
	cancelled bool
	count     int
	lastAt    time.Time
}

func (t *turn) schedule(o op, to *life) {
	l, w := t.body.life, t.body.w
	if o.kind == opEvery {
		o.d *= 4
	}
	if to == nil || o.n%3 == 0 {
		to = l
	}
	x := &timing{owner: l, instance: l.instances, to: to, every: o.kind == opEvery, set: w.now(), d: o.d}
	x.p = w.parcel(o.letter, l.key(), l, to)
	x.p.timing, x.p.own = x, to == l
	if x.every {
		x.p.letter = &letter{}
		x.timer = t.ctx.ScheduleEvery(o.d, to.ref, x.p.payload())
	} else {
		x.timer = t.ctx.ScheduleOnce(o.d, to.ref, x.p.payload())
	}
	w.note("%v has a timer of %v (every %v) for %v", l, o.d, x.every, to)
	l.timers = append(l.timers, x)
	w.timers = append(w.timers, x)
}

// valid says that the timer may still send.
func (x *timing) valid() bool {
	l := x.owner
	return !x.cancelled && l.instances == x.instance && l.state != restarting && !l.over && (!l.ref.Stopped() || l.busy)
}

// delivered looks whether the timer may have sent now.
func (x *timing) delivered(at *life) {
	w := x.owner.w
	x.count++
	x.lastAt = w.now()
	age := w.now().Sub(x.set)
	switch {
	case !x.valid() && len(x.to.delegates) == 0: // a delegate may have had it before that, and given it back
		w.wrong("%v of a timer of %v that is over comes to %v", x.p, x.owner, at)
	case age < time.Duration(x.count)*x.d && !x.to.workers:
		w.wrong("%v of a timer comes for the %dth time after %v of %v", x.p, x.count, age, x.d)
	}
}

// cancel stops the timer, from anywhere.
func (x *timing) cancel() {
	w := x.owner.w
	could := x.valid() && (x.every || x.p.ends == 0 && x.p.fresh && !x.p.moved)
	did := x.timer.Stop()
	w.note("timer of %v is cancelled: %v", x.p, did)
	if did != could && !x.owner.busy && !x.to.isRouter { // whose workers may not have it yet
		w.wrong("a timer of %v with %v was stopped: %v", x.owner, x.p, did)
	}
	if did || x.every {
		x.cancelled = true
	}
	if x.timer.Stop() {
		w.wrong("a timer of %v was stopped twice", x.owner)
	}
}

// settled looks, when all is quiet, whether the timer did what it had to.
func (x *timing) settled() {
	w, now := x.owner.w, x.owner.w.now()
	if !x.valid() || x.owner.ref.Stopped() {
		return
	}
	switch due := x.set.Add(x.d); {
	case x.every && !x.to.isRouter && x.to.quiet() && now.Sub(due) > 0 && (x.count == 0 || now.Sub(x.lastAt) > x.d) && x.p.ends == 0:
		w.wrong("%v of a timer of %v was to come each %v, and came %d times, last %v ago", x.p, x.owner, x.d, x.count, now.Sub(x.lastAt))
	case !x.every && now.After(due) && x.p.ends == 0 && x.p.fresh && !x.to.isRouter && x.to.quiet():
		w.wrong("%v of a timer of %v was due and did not come", x.p, x.owner)
	}
}

// quiet says that l is there and has nothing to do.
func (l *life) quiet() bool {
	return l.state == running && !l.held && !l.busy && !l.ref.Stopped() && l.ref.MailboxLen() == 0 && len(l.delegates) == 0
}

// dieIn sets the dead-man's handle, or lets go of it.
func (t *turn) dieIn(o op) {
	l := t.body.life
	if o.n%4 == 1 {
		t.ctx.DieIn(0)
		l.dies = time.Time{}
		return
	}
	t.ctx.DieIn(o.d)
	l.dies = t.body.w.now().Add(o.d)
}
