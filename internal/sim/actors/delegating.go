package actors

import (
	"errors"

	"github.com/twinsrv/twinsrv/actor"
)

// handback is an EndDelegation, and its payload.
type handback struct {
	by, from *life
	number   int // of the delegation that there was; 0 for none
	told     bool
}

func (t *turn) delegate(o op, to *life) {
	l := t.body.life
	if to == nil || to.number <= l.number || to.workers {
		return // a message could go round for ever
	}
	l.w.note("%v delegates to %v", l, to)
	t.ctx.DelegateTo(to.ref)
	l.delegates[to]++
	l.w.delegated = true
	l.delegating = to
	l.delegations++
	if l.hears(to) {
		if c := l.cares(to); c.told && !c.asked {
			c.told = false
		}
	}
	if o.n%3 == 0 {
		t.tell(to, &letter{ops: []op{{kind: opHandBack}}})
	}
}

func (t *turn) undelegate() {
	t.ctx.Undelegate()
	t.body.life.keepsAll()
}

// keepsAll notes that l does not delegate any more: what is sent to it from now
// on it handles itself.
func (l *life) keepsAll() {
	l.delegating = nil
	l.keptFrom = l.w.tick()
}

// handBack ends a delegation to the actor itself, or one to its parent's that
// there is perhaps not.
func (t *turn) handBack() {
	l, w := t.body.life, t.body.w
	h := &handback{by: l, from: l.parent}
	to := t.ctx.Parent()
	for _, x := range w.lives {
		if x.delegating == l && !x.over {
			h.from, h.number, to = x, x.delegations, x.ref
		}
	}
	w.note("%v ends the delegation %d of %v", l, h.number, h.from)
	w.handbacks = append(w.handbacks, h)
	t.ctx.EndDelegation(to, h)
}

// delegationEnded looks whether l may be told that.
func (l *life) delegationEnded(m actor.DelegationEnded) {
	w := l.w
	t := w.byRef[m.Delegate]
	w.note("%v hears that its delegation to %v has ended, stopped %v", l, t, m.Stopped)
	if t == nil || l.delegates[t] == 0 {
		w.wrong("%v hears that its delegation to %v has ended, and there is none", l, t)
		return
	}
	h, early := m.Payload.(*handback)
	switch {
	case m.Stopped == early || m.Stopped && (m.Payload != nil || !t.ref.Stopped()):
		w.wrong("%v hears that its delegation to %v has ended: stopped %v, payload %v", l, t, m.Stopped, m.Payload)
	case m.Stopped && t.over && !errors.Is(m.Reason, t.reason):
		w.wrong("%v hears that its delegate %v ended for %v and not for %v", l, t, m.Reason, t.reason)
	case early && (h.told || h.by != t || h.from != l || m.Reason != nil):
		w.wrong("%v hears that its delegation to %v has ended, by what %v has sent to %v (told %v, %v)", l, t, h.by, h.from, h.told, m.Reason)
	case early && l.delegating != t:
		w.wrong("%v hears that its delegation to %v has ended, and delegates to %v", l, t, l.delegating)
	}
	if early {
		h.told = true
	}
	if l.delegating == t {
		l.keepsAll()
	}
	if m.Stopped && l.hears(t) {
		l.cares(t).told = true
	}
}

// strays says that p, which has come to l, was sent to one that handles its
// messages itself since before that.
func (l *life) strays(p *parcel) bool {
	to := p.to
	return to != nil && to != l && !p.many && !to.isRouter && to.delegating == nil && p.fresh && p.timing == nil && p.seq > to.keptFrom
}

// bySeveralWays says that what was sent to r may come to l by more than one
// delegate of r, or at once and by a delegate. There is no order among those.
func (l *life) bySeveralWays(r *life) bool {
	if r == nil {
		return false
	}
	ways := 0
	for d := range r.delegates {
		if d == l || l.delegateOf(d, 0) {
			ways++
		}
	}
	return ways > 1
}

// settled looks, when all is quiet, whether the delegation has ended.
func (h *handback) settled() {
	l := h.from
	if l == nil || h.told || h.number == 0 || l.delegating != h.by || l.delegations != h.number {
		return
	}
	if l.state == running && !l.held && !l.busy && !l.ref.Stopped() && l.ref.MailboxLen() == 0 {
		l.w.wrong("%v has ended the delegation of %v, which goes on", h.by, l)
	}
}
