package actor

import "time"

// DieIn is a dead-man's handle: unless it is called again within d, the actor
// stops, for the reason ErrDieIn, ahead of messages that wait. Zero or less
// lets go of the handle. A restart does too, so it is best set in PreStart or
// with each message.
func (c *Context) DieIn(d time.Duration) {
	c.must()
	x := c.ref().extras()
	if x.dying != nil {
		x.dying.Stop()
		x.dying = nil
	}
	if d <= 0 || c.ref().phase >= phaseStopping {
		return
	}
	r, handle := c.ref(), new(deadMan)
	handle.Timer = r.sys.exec.After(d, func() { r.signal(signal{kind: sigDie, payload: handle}) })
	x.dying = handle
}

// deadMan tells one handle from the next, whose timer may have fired already.
type deadMan struct{ Timer }

func (r *Ref) onDie(s signal) {
	if x := r.extra; x != nil && x.dying == s.payload {
		r.beginStop(CauseDieIn, ErrDieIn, nil)
	}
}
