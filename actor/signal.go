package actor

type sigKind uint8

const (
	sigNone      sigKind = iota
	sigUser              // payload, for SystemReceiver
	sigStop              // err: the failure behind it
	sigParent            // the parent stops or restarts; err: its failure
	sigSystem            // the system stops
	sigChildren          // the children that had to stop have stopped
	sigBackoff           // the wait before a restart is over
	sigDirective         // a supervisor's decision
	sigEscalated         // a child escalated its failure
	sigDie               // payload: the timer of Context.DieIn
	sigLater             // a directive whose delay is over; payload: the backoff
	sigExited            // a call left by runtime.Goexit; payload: its message; directive: Stop for a hook
)

// signal is a message of the system mailbox.
type signal struct {
	kind      sigKind
	directive Directive
	ref       *Ref
	payload   any
	err       error
}

// isPlain says that the kind and the payload are all there is to it. Most actors
// never have another signal waiting, or two, and so need nothing to queue them in.
func (s *signal) isPlain() bool {
	switch s.kind {
	case sigUser:
		return true
	case sigStop, sigParent, sigSystem, sigChildren:
		return s.err == nil
	}
	return false
}

// signal queues s; false says that the actor is gone.
func (r *Ref) signal(s signal) bool { return r.signalBy(s, nil) }

// signalBy is signal. w is the worker whose turn gives the signal, or nil.
func (r *Ref) signalBy(s signal, w Worker) bool {
	r.mu.Lock()
	if r.gone {
		r.mu.Unlock()
		return false
	}
	if s.isPlain() && !r.is(urgent) {
		r.plain, r.payload = s.kind, s.payload
	} else {
		k := r.rarely()
		k.signals = append(k.signals, s)
	}
	wake := r.raise(urgent, 0)
	r.mu.Unlock()
	if wake {
		r.wake(w)
	}
	return true
}

// nextSignal takes the next signal. For the turn, when urgent is set.
func (r *Ref) nextSignal() (s signal, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uncounted { // the signal goes ahead of that message, which waits now
		r.uncounted = false
		r.put++
	}
	switch {
	case r.plain != sigNone:
		s = signal{kind: r.plain, payload: r.payload}
		r.plain, r.payload = sigNone, nil
	case r.rare != nil && len(r.rare.signals) > 0:
		s, r.rare.signals[0] = r.rare.signals[0], signal{}
		r.rare.signals = r.rare.signals[1:]
		if len(r.rare.signals) == 0 {
			r.rare.signals = nil // actors that rest keep no room for what seldom comes
		}
	default:
		return s, false
	}
	if r.rare == nil || len(r.rare.signals) == 0 {
		r.unset(urgent)
	}
	return s, true
}

func (r *Ref) onSignal(s signal) {
	switch s.kind {
	case sigUser:
		r.onSystemMessage(s)
	case sigStop:
		r.beginStop(CauseStop, s.err, nil)
	case sigParent:
		r.beginStop(CauseParent, nil, s.err)
	case sigSystem:
		r.beginStop(CauseSystem, nil, nil)
	case sigChildren:
		r.childrenGone()
	case sigBackoff:
		r.backoffOver(s.payload.(*backoff))
	case sigDirective:
		r.onDirective(s)
	case sigEscalated:
		r.onEscalated(s)
	case sigDie:
		r.onDie(s)
	case sigLater:
		r.onLater(s)
	case sigExited:
		r.onExited(s)
	}
}

// onSystemMessage hands a message of TellSystem to the actor. Between a
// failure and the restarted instance, and before the start, it waits.
func (r *Ref) onSystemMessage(s signal) {
	switch r.phase {
	case phaseRunning, phaseStopping:
	default:
		x := r.extras()
		x.later = append(x.later, s)
		return
	}
	recv, ok := r.instance.(SystemReceiver)
	if !ok {
		r.sys.log.Debug("system message dropped: the actor is no SystemReceiver", "actor", r.Name())
		return
	}
	c := r.context()
	c.begin(Message{Payload: s.payload})
	err := r.receiveSystem(recv, s.payload)
	c.end()
	r.afterCall(err, s.payload)
}

// flushLater makes what waited for a running instance the next signals.
func (r *Ref) flushLater() {
	x := r.extra
	if x == nil || len(x.later) == 0 {
		return
	}
	first := x.later
	x.later = nil
	r.signalFirst(first...)
}

// signalFirst puts signals ahead of all that wait. For the turn.
func (r *Ref) signalFirst(first ...signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plain != sigNone {
		first = append(first, signal{kind: r.plain, payload: r.payload})
		r.plain, r.payload = sigNone, nil
	}
	k := r.rarely()
	k.signals = append(first, k.signals...)
	r.set(urgent)
}

func (r *Ref) receiveSystem(recv SystemReceiver, msg any) (err error) {
	returned := false
	defer func() {
		if !returned {
			err = recovered(recover())
		}
	}()
	err = recv.ReceiveSystem(r.context(), msg)
	returned = true
	return err
}
