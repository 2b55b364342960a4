package actor

import (
	"errors"
	"time"
)

// Failure is what a Strategy's Choose decides about.
type Failure struct {
	Child    *Ref
	Err      error
	Message  any // that it failed on; nil when there was none
	Restarts int // within Strategy.Within, of all children where all are for one
}

// Decision is what a supervisor does about a failure.
type Decision struct {
	Directive Directive
	// Delay is how long the child waits, with its mailbox held, until the
	// directive is done; for Restart it stands for the backoff. 0: none, or
	// the backoff.
	Delay time.Duration
}

// Rule is one case of ByError.
type Rule struct {
	Match    func(err error) bool
	Decision Decision
}

// When is the rule for errors that are target (errors.Is).
func When(target error, d Directive) Rule {
	return Rule{func(err error) bool { return errors.Is(err, target) }, Decision{Directive: d}}
}

// WhenType is the rule for errors that are an E (errors.As).
func WhenType[E error](d Directive) Rule {
	return Rule{func(err error) bool { _, ok := errors.AsType[E](err); return ok }, Decision{Directive: d}}
}

// ByError returns a Choose for Strategy: the decision of the first rule that
// matches, or otherwise.
func ByError(otherwise Directive, rules ...Rule) func(f Failure) Decision {
	return func(f Failure) Decision {
		for _, r := range rules {
			if r.Match(f.Err) {
				return r.Decision
			}
		}
		return Decision{Directive: otherwise}
	}
}

// decide asks the strategy about r; a panic in it counts as Stop.
func (s *Strategy) decide(r *Ref, err error, msg any) (d Decision) {
	if s.Choose == nil && s.Decide == nil {
		return Decision{Directive: Restart}
	}
	failed := protect(func() error {
		if s.Choose != nil {
			d = s.Choose(Failure{Child: r, Err: err, Message: msg, Restarts: r.recentRestarts(s)})
		} else {
			d.Directive = s.Decide(err)
		}
		return nil
	})
	if failed != nil {
		r.sys.log.Error("the strategy panicked: stopping the child", "actor", r.Path(), "err", failed)
		return Decision{Directive: Stop}
	}
	return d
}

func (r *Ref) recentRestarts(s *Strategy) int {
	now := r.sys.Now()
	if !s.AllForOne {
		return r.extras().restarts.count(now, s.within())
	}
	f := r.parent.family()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restarts.count(now, s.within())
}

// later has r, which has failed, wait for what was decided.
func (r *Ref) later(d Directive, err error, delay time.Duration) {
	x := r.extras()
	x.stopBackoff()
	b := &backoff{then: d}
	x.backoff = b
	b.timer = r.sys.exec.After(delay, func() {
		r.signal(signal{kind: sigLater, directive: d, err: err, payload: b})
	})
}

func (r *Ref) onLater(s signal) {
	if x := r.extra; x != nil && x.backoff == s.payload && r.phase == phaseFailed {
		x.backoff = nil
		r.decided(s.directive, s.err, 0)
	}
}

// resumesLater says that r has failed and waits to be resumed.
func (r *Ref) resumesLater() bool {
	x := r.extra
	return r.phase == phaseFailed && x.backoff != nil && x.backoff.then == Resume
}

// FailedReceiver is an actor that its children's escalated failures are
// delivered to, ahead of user messages. It returns what becomes of the child:
// Resume, Restart (within the child's budget) or Stop. With Escalate, and with
// an error or a panic, the failure becomes its own, as that of an actor that is
// no FailedReceiver.
type FailedReceiver interface {
	ReceiveFailed(ctx *Context, f Failed) (Directive, error)
}

// receiveFailed has recv decide about f.Child, which is in extras.escalated:
// should the handler end its goroutine, it fails with the child in its care.
func (r *Ref) receiveFailed(recv FailedReceiver, f Failed) {
	c := r.context()
	c.begin(Message{Payload: f})
	d := Escalate
	err := protect(func() (err error) { d, err = recv.ReceiveFailed(c, f); return err })
	c.end()
	switch {
	case err != nil && !r.stopAsked:
		r.fail(err, f)
		return
	case d == Escalate && !r.stopAsked:
		r.fail(f, nil)
		return
	}
	x := r.extras()
	if n := len(x.escalated); n > 0 && x.escalated[n-1] == f.Child {
		x.escalated = x.escalated[:n-1]
	}
	if d == Stop {
		f.Child.signal(signal{kind: sigStop, err: f.Reason})
	} else {
		f.Child.signal(signal{kind: sigDirective, directive: d})
	}
	r.afterCall(err, f)
}
