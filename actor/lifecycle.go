package actor

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// drainedInline is how many messages a stopping actor hands over at once, beside
// those that waited when it began to stop.
const drainedInline = 4096

// start makes an instance and starts it.
func (r *Ref) start() {
	r.phase = phaseStarting
	c := r.context()
	c.begin(Message{})
	err := protect(func() error {
		a := r.newActor()
		if a == nil {
			return fmt.Errorf("actor %s: Props.New returned nil", r.Path())
		}
		r.instance = a
		if p, ok := a.(PreStarter); ok {
			return p.PreStart(c)
		}
		return nil
	})
	c.end()
	if err != nil {
		r.fail(err, nil)
		return
	}
	r.phase = phaseRunning
	r.setHold(0, holdPhase)
	r.tellStarted()
	r.flushLater()
	if r.stopAsked {
		r.beginStop(CauseSelf, nil, nil)
	}
}

// beginStop ends the taking of messages and asks the children to stop. Called
// again it does nothing. A reason makes a failure of every cause but CauseDieIn.
func (r *Ref) beginStop(cause StopCause, reason, parentReason error) {
	if r.phase >= phaseStopping {
		return
	}
	if reason != nil && cause != CauseDieIn {
		cause = CauseFailure
	}
	r.cause = cause
	hadInstance := r.instance != nil && r.phase != phaseStarting && (r.phase != phaseFailed || r.extras().started)
	r.phase = phaseStopping
	r.setHold(holdPhase, 0)
	if !hadInstance {
		r.instance = nil
	}
	if reason != nil || parentReason != nil {
		x := r.extras()
		x.reason, x.parentReason = reason, parentReason
	}
	r.cancelTimers()
	if x := r.extra; x != nil {
		x.stopBackoff()
		if x.scope != nil {
			x.scope.cancel(context.Canceled)
		}
	}
	r.drain()
	if r.stopChildren(true, reason) == 0 {
		r.finish()
	}
}

// drain closes the mailbox and makes dead letters of what is in it, oldest
// first, or gives it to the parent's OnAbsent. With an OnAbsent the mailbox
// goes on taking messages until it is found empty, so that a later message of
// a sender does not get there ahead of an earlier one. Where senders are faster
// than that, the actor goes on handing over in later turns, even when it is
// gone otherwise, so that a flood cannot keep it from stopping.
func (r *Ref) drain() {
	r.set(ending)
	r.draining = drainsOpen
	r.leaveLane()
	r.putBack(r.heldBack())
	for budget := r.MailboxLen() + drainedInline; r.draining != drainsNot && budget > 0; budget-- {
		r.drainOne()
	}
}

// draining is how far an actor that stops has got with its mailbox.
type draining uint8

const (
	drainsNot  draining = iota // it has not begun, or is done
	drainsOpen                 // messages may still come
	drainsRest                 // the mailbox is closed
)

// drainOne hands over one message or, when there is none, closes the mailbox and
// sees to what came meanwhile.
func (r *Ref) drainOne() {
	handsOver := r.parent != nil && r.parent.props.OnAbsent != nil
	if r.draining == drainsRest {
		r.drainRest(!handsOver)
		return
	}
	if int(r.next) < len(r.batch) {
		r.absent(r.pop())
		return
	}
	r.mu.Lock()
	if !handsOver || len(r.queue) == 0 || r.sys.stopping.Load() {
		r.closed, r.draining = true, drainsRest
	}
	r.swap()
	r.put += uint32(len(r.batch))
	r.mu.Unlock()
	if r.draining == drainsRest {
		r.drainRest(!handsOver)
	}
}

func (r *Ref) drainRest(offered bool) {
	for int(r.next) < len(r.batch) {
		r.leftOver(r.pop(), offered)
	}
	r.mu.Lock()
	r.queue, r.batch, r.next = nil, nil, 0
	r.mu.Unlock()
	r.draining = drainsNot
}

// childrenGone goes on when the children that had to stop have stopped.
func (r *Ref) childrenGone() {
	switch r.phase {
	case phaseStopping:
		if r.childrenLeft() == 0 {
			r.finish()
		}
	case phaseRestarting:
		r.tryRestart()
	}
}

// stopReason is the failure behind a stop, if there is one.
func (r *Ref) stopReason() error {
	if r.extra == nil {
		return nil
	}
	return r.extra.reason
}

// finish tells the watchers, calls PostStop and frees the name.
func (r *Ref) finish() {
	r.mu.Lock()
	r.gone = true
	var watchers []*Ref
	reason := r.stopReason()
	if reason != nil {
		r.rarely()
	}
	if k := r.rare; k != nil {
		k.reason, k.signals = reason, nil
		watchers, k.watchers = k.watchers, nil
	}
	r.plain, r.payload = sigNone, nil
	r.unset(urgent)
	r.mu.Unlock()

	hook, _ := r.instance.(PostStopper)
	worker := r.call.worker
	if hook != nil {
		worker = nil // nobody waits behind a hook that may take its time
	}
	if p := r.parent; p != nil && p.hears(r) && !p.is(ending) {
		p.hear(r, reason, worker)
	}
	if mutant.On(mutant.TerminatedLost) {
		watchers = nil
	}
	for _, w := range watchers {
		w.hear(r, reason, worker)
	}
	if hook != nil {
		r.extras().inPostStop = true
		r.context().begin(Message{})
		err := protect(func() error { hook.PostStop(r.context()); return nil })
		r.context().end()
		if err != nil {
			r.sys.log.Error("PostStop failed", "actor", r.Path(), "err", err)
		}
	}
	r.finishAfterPostStop()
}

func (r *Ref) finishAfterPostStop() {
	r.cancelTimers()
	r.phase = phaseGone
	r.instance, r.extra, r.newActor = nil, nil, nil // a watched actor may keep r for long
	r.tellStopped()
	r.free()
}

// free frees the name of an actor that has stopped, and wakes who waits for that.
func (r *Ref) free() {
	if r.parent != nil {
		r.parent.childGone(r)
	}
	r.mu.Lock()
	r.finished = true
	var awaiting []Parker
	if r.rare != nil {
		awaiting, r.rare.awaiting = r.rare.awaiting, nil
	}
	r.mu.Unlock()
	for _, p := range awaiting {
		p.Unpark()
	}
	r.sys.onFinished(r)
}
