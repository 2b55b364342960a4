package actor

import (
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// Directive is what a supervisor does about a failed child.
type Directive int

const (
	// Restart drops the failed instance for a new one, after a backoff. The
	// queued messages survive, the failing one does not; stashed messages go
	// back to the front; behaviours and timers are dropped; the child's own
	// children are stopped first.
	Restart Directive = iota
	// Resume goes on with the same instance and the next message. Where there
	// is no started instance, because New or PreStart failed, it is Restart.
	Resume
	// Stop stops the child.
	Stop
	// Escalate makes the failure the supervisor's own (see Failed): what
	// becomes of the supervisor becomes of the child. It ends at the actors
	// directly under /user: the default strategy decides about those.
	Escalate
)

// String returns the directive's name.
func (d Directive) String() string {
	switch d {
	case Restart:
		return "restart"
	case Resume:
		return "resume"
	case Stop:
		return "stop"
	case Escalate:
		return "escalate"
	}
	return fmt.Sprintf("directive(%d)", int(d))
}

// Strategy decides about the failures of an actor's children. The zero value
// is the default: one for one, restart, 5 a minute, backoff 50 ms to 1 s.
type Strategy struct {
	// AllForOne applies Restart and Stop to all children, not only to the one
	// that failed; the budget is then one for all. Restart leaves out a child
	// that has failed itself and is to stop after a delay, or whose failure was
	// escalated or is to be.
	AllForOne bool
	// Decide chooses by the failure; nil always restarts. It runs on the
	// failed child's turn, so also concurrently, and must not block. A panic
	// in it counts as Stop.
	Decide func(err error) Directive
	// Choose is Decide with more to go by and a delay to give; when it is set,
	// Decide is not used.
	Choose func(f Failure) Decision
	// MaxRestarts is how many restarts fit in Within; one more stops the
	// child. 0 means 5; negative means no limit. Beyond 64 the count is on the
	// safe side: some restarts may be counted longer than Within.
	MaxRestarts int
	// Within is the time that restarts are counted over; 0 means 1 minute.
	Within time.Duration
	// MinBackoff is the wait before the first restart within that time, and
	// doubles with each further one; 0 means 50 ms, negative no wait.
	MinBackoff time.Duration
	// MaxBackoff bounds the wait; 0 means 1 s.
	MaxBackoff time.Duration
}

// budget counts a restart at now. It returns how long to wait, and whether
// there may be one more.
func (s *Strategy) budget(past *tracker, now time.Time) (time.Duration, bool) {
	limit := s.MaxRestarts
	if limit == 0 {
		limit = 5
	}
	recent := past.count(now, s.within())
	if limit > 0 && recent >= limit && !mutant.On(mutant.BudgetNeverEnds) {
		return 0, false
	}
	past.add(now)
	return s.wait(recent), true
}

func (s *Strategy) within() time.Duration {
	if s.Within <= 0 {
		return time.Minute
	}
	return s.Within
}

func (s *Strategy) wait(restartsBefore int) time.Duration {
	lo, hi := s.MinBackoff, s.MaxBackoff
	if lo < 0 {
		return 0
	}
	if lo == 0 {
		lo = 50 * time.Millisecond
	}
	if hi <= 0 {
		hi = time.Second
	}
	for range restartsBefore {
		if lo > hi/2 {
			return hi
		}
		lo *= 2
	}
	return min(lo, hi)
}

// fail suspends r and has its supervisor decide, in r's own turn: a supervisor
// that is busy or blocked delays no decision.
func (r *Ref) fail(err error, msg any) {
	if r.phase >= phaseStopping {
		r.sys.log.Error("failure while stopping", "actor", r.Path(), "err", err)
		return
	}
	if r.parent == nil {
		r.beginStop(CauseFailure, err, nil)
		return
	}
	x := r.extras()
	x.started = r.phase == phaseRunning
	x.failure, x.failedOn = err, msg
	r.phase = phaseFailed
	r.setHold(holdPhase, 0)

	strategy := r.parent.strategy()
	chosen := strategy.decide(r, err, msg)
	d, wait := chosen.Directive, chosen.Delay
	r.sys.log.Warn("actor failed", "actor", r.Path(), "err", err, "directive", d.String())
	r.sys.events.publish(Event{Kind: ActorFailed, Ref: r, Reason: err, Directive: d})
	if d == Restart || (d == Resume && !x.started) {
		d = Restart
		backoff, ok := r.spend(strategy)
		if !ok {
			d, err, wait = Stop, fmt.Errorf("too many restarts, the last for: %w", err), 0
		} else if wait <= 0 {
			wait = backoff
		}
	}
	if wait > 0 && d != Restart {
		r.later(d, err, wait)
		return
	}
	r.decided(d, err, wait)
}

// decided applies what was decided about r, to its siblings too where all are
// for one.
func (r *Ref) decided(d Directive, err error, wait time.Duration) {
	if r.parent.strategy().AllForOne && (d == Restart || d == Stop) && !mutant.On(mutant.AllForOneOnlyOne) {
		for _, c := range r.parent.Children() {
			if c != r {
				c.signal(signal{kind: sigDirective, directive: d, err: err, payload: wait})
			}
		}
	}
	r.apply(d, err, wait)
}

// spend counts one restart of r, or of all of the family.
func (r *Ref) spend(s *Strategy) (wait time.Duration, ok bool) {
	now := r.sys.Now()
	if !s.AllForOne {
		return s.budget(&r.extras().restarts, now)
	}
	f := r.parent.family()
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.budget(&f.restarts, now)
}

func (r *Ref) strategy() *Strategy {
	if r.props.Supervisor != nil {
		return r.props.Supervisor
	}
	return &r.sys.strategy
}

// apply does what was decided about r, which has failed.
func (r *Ref) apply(d Directive, err error, wait time.Duration) {
	x := r.extras()
	switch d {
	case Resume:
		r.phase = phaseRunning
		r.setHold(0, holdPhase)
		x.failure, x.failedOn = nil, nil
		r.resumeEscalated()
		r.flushLater()
		r.hook("Resumed", func(c *Context) {
			if a, ok := r.instance.(Resumer); ok {
				a.Resumed(c, err)
			}
		})
	case Restart:
		r.restart(err, wait)
	case Escalate:
		r.parent.signal(signal{kind: sigEscalated, ref: r, err: err, payload: x.failedOn})
	default:
		r.beginStop(CauseFailure, err, nil)
	}
}

// hook calls one of the actor's optional methods and logs its panic.
func (r *Ref) hook(name string, f func(c *Context)) {
	c := r.context()
	c.begin(Message{})
	c.call.hook = true
	err := protect(func() error { f(c); return nil })
	c.end()
	if err != nil {
		r.sys.log.Error(name+" failed", "actor", r.Path(), "err", err)
	}
	if r.stopAsked {
		r.beginStop(CauseSelf, nil, nil)
	}
}

// onDirective does what was decided about r elsewhere: for a failure of a
// sibling, or for its own after it was escalated.
func (r *Ref) onDirective(s signal) {
	switch {
	case s.directive == Resume:
		if r.phase == phaseFailed {
			d, wait := Resume, time.Duration(0)
			if x := r.extras(); !x.started {
				d = Restart
				var ok bool
				if wait, ok = r.spend(r.parent.strategy()); !ok {
					d = Stop
				}
			}
			r.apply(d, r.extras().failure, wait)
		}
	case s.directive == Stop:
		r.beginStop(CauseFailure, s.err, nil)
	case s.directive == Restart && s.payload == nil: // its own, after it was escalated
		if r.phase == phaseFailed {
			wait, ok := r.spend(r.parent.strategy())
			if !ok {
				r.beginStop(CauseFailure, fmt.Errorf("too many restarts, the last for: %w", r.extras().failure), nil)
				return
			}
			r.restart(r.extras().failure, wait)
		}
	case s.directive == Restart && (r.phase == phaseRunning || r.resumesLater()):
		x := r.extras()
		if r.phase == phaseRunning {
			x.started, x.failure, x.failedOn = true, s.err, nil
		}
		r.phase = phaseFailed
		r.setHold(holdPhase, 0)
		r.restart(s.err, s.payload.(time.Duration))
	}
}

// onEscalated makes a child's failure r's own.
func (r *Ref) onEscalated(s signal) {
	if s.ref.Stopped() {
		return // it was stopped meanwhile
	}
	switch r.phase {
	case phaseRunning:
		x := r.extras()
		x.escalated = append(x.escalated, s.ref)
		f := Failed{Child: s.ref, Reason: s.err, Message: s.payload}
		if recv, ok := r.instance.(FailedReceiver); ok {
			r.receiveFailed(recv, f)
		} else {
			r.fail(f, nil)
		}
	case phaseFailed:
		x := r.extras()
		x.escalated = append(x.escalated, s.ref)
	case phaseNew, phaseStarting, phaseRestarting:
		x := r.extras()
		x.later = append(x.later, s)
	default:
		s.ref.signal(signal{kind: sigStop, err: s.err})
	}
}

func (r *Ref) resumeEscalated() {
	x := r.extras()
	for _, c := range x.escalated {
		c.signal(signal{kind: sigDirective, directive: Resume})
	}
	x.escalated = nil
}

// backoff is the wait before one restart, or before what else was decided.
type backoff struct {
	timer Timer
	over  bool
	then  Directive
}

// restart drops the instance; the new one comes when the children have stopped
// and the wait is over.
func (r *Ref) restart(reason error, wait time.Duration) {
	x := r.extras()
	if x.started {
		r.hook("PreRestart", func(c *Context) {
			if a, ok := r.instance.(PreRestarter); ok {
				a.PreRestart(c, reason, x.failedOn)
			}
		})
		if r.phase != phaseFailed {
			return // it stopped itself
		}
	}
	r.phase = phaseRestarting
	r.instance = nil
	r.cancelTimers()
	x.behaviours, x.escalated, x.failedOn = nil, nil, nil
	if mutant.On(mutant.DropStashOnRestart) {
		r.heldBack()
	}
	if mutant.On(mutant.DropQueuedOnRestart) && int(r.next) < len(r.batch) {
		r.pop()
	}
	r.putBack(r.heldBack())
	x.stopBackoff()
	x.backoff = &backoff{over: wait <= 0}
	if wait > 0 {
		b := x.backoff
		b.timer = r.sys.exec.After(wait, func() { r.signal(signal{kind: sigBackoff, payload: b}) })
	}
	r.stopChildren(false, reason)
	r.tryRestart()
}

func (r *Ref) backoffOver(b *backoff) {
	if x := r.extras(); x.backoff == b {
		b.over = true
		r.tryRestart()
	}
}

func (r *Ref) tryRestart() {
	x := r.extras()
	if r.phase != phaseRestarting || !x.backoff.over || r.childrenLeft() > 0 {
		return
	}
	x.backoff = nil
	if r.props.Held {
		r.setHold(holdUser, 0)
	} else {
		r.setHold(0, holdUser)
	}
	r.phase = phaseNew
	x.restarted = true
}

func (x *extras) stopBackoff() {
	if x.backoff != nil && x.backoff.timer != nil {
		x.backoff.timer.Stop()
	}
	x.backoff = nil
}
