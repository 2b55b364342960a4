package actors

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// onEvent is told each event, in the turn of the actor that it is about.
func (w *world) onEvent(e actor.Event) {
	w.events = append(w.events, e)
	l := w.byRef[e.Ref]
	w.note("event: %v %v %v", e.Ref, e.Kind, e.Reason)
	if e.At != w.now() {
		w.wrong("an event says that it is %v", e.At)
	}
	if e.Ref == w.sys.User() && e.Kind == actor.ActorStopped {
		w.userOver = true
	}
	if e.Kind == actor.ActorFailed {
		w.loggedFailure(e)
	}
	if l == nil {
		return
	}
	if l.over {
		w.wrong("%v is over and there is an event: %v", l, e.Kind)
	}
	switch e.Kind {
	case actor.ActorStarted, actor.ActorRestarted:
		if l.isRouter {
			l.state, l.started = running, true
			return
		}
		first := e.Kind == actor.ActorStarted
		if l.state != running || first != (l.instances == 1) {
			w.wrong("%v has %d instances, is %v, and there is an event: %v", l, l.instances, l.state, e.Kind)
		}
	case actor.ActorFailed:
		l.fails(e)
	case actor.ActorStopped:
		l.ends(e)
	}
}

// ruleOf is what decides about l.
func (l *life) ruleOf() *rule {
	if l.parent == nil {
		return nil
	}
	return l.parent.props.rule
}

// fails is the model of a failure's consequences.
func (l *life) fails(e actor.Event) {
	w := l.w
	failed, escalated := errors.AsType[actor.Failed](e.Reason)
	switch {
	case escalated:
		if c := w.byRef[failed.Child]; c != nil && (!c.everEscalated || c.parent != l) {
			w.wrong("%v fails for %v, which has escalated nothing", l, c)
		}
		if text := failed.Error(); !strings.Contains(text, failed.Child.Path()+" ") || !strings.Contains(text, failed.Reason.Error()) {
			w.wrong("the failure of %v does not say of whom it is: %s", failed.Child, text)
		}
	case l.failing == nil:
		w.wrong("%v fails for no reason: %v", l, e.Reason)
	case !errors.Is(l.failing, errNoInstance) && !errors.Is(e.Reason, l.failing):
		w.wrong("%v fails with %v and not with %v", l, e.Reason, l.failing)
	}
	l.failing = nil
	r := l.ruleOf()
	d, delay := r.decide(e.Reason)
	if e.Directive != d {
		w.wrong("%v: %v is decided about %v, and not %v", l, e.Directive, e.Reason, d)
	}
	l.state, l.mayResume, l.mayRestart = after(d, l.started), false, false
	l.restartAt = len(w.lives)
	if d == actor.Restart || d == actor.Resume && !l.started {
		l.spend(delay)
		return
	}
	l.notBefore = w.now().Add(delay)
	switch d {
	case actor.Resume:
		l.mayResume = true
		if l.isRouter { // which says nothing of it
			l.state = running
			l.releases()
		}
	case actor.Stop:
		l.stops(delay)
	case actor.Escalate:
		l.escalated, l.everEscalated = true, true
	}
}

func after(d actor.Directive, started bool) state {
	if d == actor.Restart || d == actor.Resume && !started {
		return restarting
	}
	return failed
}

// stops notes that l must, and with it its siblings where all are for one.
func (l *life) stops(delay time.Duration) {
	l.mustStop, l.slowStop = true, delay > 0
	l.state = failed
	if r := l.ruleOf(); r == nil || !r.allForOne {
		return
	}
	if delay > 0 { // it is for those who are there when it is over
		l.parent.allStop = append(l.parent.allStop, l.w.now().Add(delay))
	}
	for _, s := range l.siblings() {
		s.mayStop = true
		if delay == 0 {
			s.mustStop = true
		}
	}
}

// siblings are the others of the family as of now.
func (l *life) siblings() (all []*life) {
	for _, s := range l.w.lives {
		if s != l && s.parent == l.parent && !s.over && !s.replaced {
			all = append(all, s)
		}
	}
	return all
}

// spend is the model of the budget.
func (l *life) spend(delay time.Duration) {
	w, r := l.w, l.ruleOf()
	of := &l.past
	if r != nil && r.allForOne {
		of = &l.parent.family
	}
	wait, ok := r.spend(of, w.now())
	if l.parent != nil && l.parent.fuzzy && r != nil && r.allForOne {
		ok, wait = true, 0
		l.mayStop, l.undecided = true, true
		for _, s := range l.siblings() {
			s.mayStop = true
		}
	}
	if !ok {
		l.stops(0)
		return
	}
	if delay > 0 {
		wait = delay
	}
	l.noLater(wait)
	l.restarts(wait)
	if r == nil || !r.allForOne {
		return
	}
	for _, s := range l.siblings() {
		if s.isRouter {
			continue
		}
		if s.state == running || s.state == failed {
			s.restartOwe = max(s.restartOwe, s.instances)
			s.owed++
			s.noLater(wait)
		}
	}
}

// noLater says that a restart of l may take as long as wait.
func (l *life) noLater(wait time.Duration) {
	if at := l.w.now().Add(wait); at.After(l.restartBy) {
		l.restartBy = at
	}
}

func (l *life) restarts(wait time.Duration) {
	l.state = restarting
	l.mayRestart, l.notBefore = true, l.w.now().Add(wait)
	if l.started {
		return // PreRestart comes
	}
	for _, c := range l.children() {
		if !c.over {
			l.cares(c).unsure = true
		}
	}
}

// PreRestart is called on the failed instance.
func (b *body) PreRestart(ctx *actor.Context, reason error, msg any) {
	l, w := b.life, b.w
	l.enter("PreRestart")
	defer l.leave()
	w.note("%v: PreRestart, %v", l, reason)
	switch {
	case l.body != b || !b.started:
		w.wrong("PreRestart of an instance of %v that had not started", l)
	case !l.mayRestart && l.owed == 0:
		w.wrong("%v restarts, and nobody said so: %v", l, reason)
	case msg != nil && l.failedOn != nil && msg != l.failedOn:
		w.wrong("%v failed on %v and not on %v", l, l.failedOn, msg)
	}
	if !l.mayRestart {
		l.owed--
		l.mayRestart, l.notBefore = true, w.now()
	}
	l.state, l.restartAt, l.undecided = restarting, len(w.lives), false
	for _, c := range l.children() {
		if !c.over {
			l.cares(c).leaving = true
		}
	}
	if b.props.leaves { // so there is no restart
		ctx.StopSelf()
		l.quits, l.undecided = true, true
	}
	if b.props.restless {
		w.logs("ERROR PreRestart failed actor=%s err=%s", l.path, panicked("PreRestart"))
		panic("PreRestart")
	}
}

// Resumed is called when the instance goes on.
func (b *body) Resumed(ctx *actor.Context, reason error) {
	l, w := b.life, b.w
	l.enter("Resumed")
	defer l.leave()
	w.note("%v: Resumed, %v", l, reason)
	switch {
	case l.body != b || !b.started:
		w.wrong("an instance of %v is resumed that had not started", l)
	case l.state != failed || !l.mayResume:
		w.wrong("%v is %v and is resumed, and nobody said so", l, l.state)
	case w.now().Before(l.notBefore):
		w.wrong("%v is resumed %v too early", l, l.notBefore.Sub(w.now()))
	}
	l.state, l.mayResume, l.escalated = running, false, false
	l.releases()
	if b.props.leaves {
		ctx.StopSelf()
		l.quits = true
	}
	if b.props.restless {
		w.logs("ERROR Resumed failed actor=%s err=%s", l.path, panicked("Resumed"))
		panic("Resumed")
	}
}

// releases lets the children go on whose failures were escalated to l.
func (l *life) releases() {
	for _, c := range l.children() {
		if c.escalated {
			c.permit()
		}
	}
}

// permit says that l may be resumed, or restarted if it had not started.
func (l *life) permit() {
	l.notBefore = l.w.now()
	l.mayResume = true
	if !l.started {
		permitted := l.state == restarting && l.mayRestart
		l.mayStop = true
		l.restarts(0)
		if !permitted { // of what was escalated once, one restart is counted
			l.loosen()
		}
	}
}

// loosen says that the budgets of l and its family are not known any more.
func (l *life) loosen() {
	l.past = append(l.past, l.w.now())
	if l.parent != nil {
		l.parent.fuzzy = true
	}
}

// ReceiveFailed decides about a child.
func (j judge) ReceiveFailed(_ *actor.Context, f actor.Failed) (actor.Directive, error) {
	l, w := j.life, j.w
	l.enter("ReceiveFailed")
	defer l.leave()
	c := w.byRef[f.Child]
	w.note("%v judges %v: %v", l, c, j.props.verdict)
	if c == nil {
		return actor.Stop, nil
	}
	if l.body != j.body || l.state != running {
		w.wrong("%v is %v and judges %v", l, l.state, c)
	}
	if c.parent != l || !c.everEscalated || f.Reason == nil {
		w.wrong("%v judges %v, which has escalated nothing", l, c)
	}
	v := j.props.verdict
	if v.fails {
		l.failing, l.failedOn = &failure{directive: actor.Restart, above: actor.Restart}, nil
		return v.directive, l.failing
	}
	switch v.directive {
	case actor.Resume:
		c.permit()
		if c.isRouter { // which says nothing of it
			c.releases()
		}
	case actor.Restart:
		c.mayStop = true // when the budget is used up
		c.mayRestart, c.notBefore = true, w.now()
		c.noLater(longestBackoff)
		if !c.started {
			c.restarts(0)
		}
		c.loosen()
	case actor.Stop:
		c.mustStop = true
	}
	return v.directive, nil
}

// ends is the model of an end.
func (l *life) ends(e actor.Event) {
	w := l.w
	l.over = true
	if !l.posted {
		l.cause, l.reason = e.Cause, e.Reason
	}
	failed := e.Cause == actor.CauseFailure
	switch {
	case l.cause != e.Cause || !errors.Is(e.Reason, l.reason):
		w.wrong("%v ended for %v (%v), and PostStop was told %v (%v)", l, e.Cause, e.Reason, l.cause, l.reason)
	case failed != (e.Reason != nil) && e.Cause != actor.CauseDieIn:
		w.wrong("%v ended for %v with the reason %v", l, e.Cause, e.Reason)
	}
	if !l.mayEnd(e.Cause) {
		w.wrong("%v ended for %v (%v), and nothing made it", l, e.Cause, e.Reason)
	}
	instance := l.started && (l.state != restarting || l.undecided) && l.state != fresh
	if !l.isRouter && l.posted != instance {
		w.wrong("%v, which was %v, ended; PostStop was called: %v", l, l.state, l.posted)
	}
	for _, c := range l.children() {
		if !c.over {
			w.wrong("%v ended before its child %v", l, c)
		}
	}
	if e.Cause == actor.CausePoison {
		l.poisoned()
	}
}

// joinedStop says that l was born while its family waited to be stopped, and
// that the wait is over.
func (l *life) joinedStop() bool {
	return l.parent != nil && slices.ContainsFunc(l.parent.allStop, func(due time.Time) bool {
		return !l.bornAt.After(due) && !l.w.now().Before(due)
	})
}

// mayEnd says that there was something to end l for that cause.
func (l *life) mayEnd(c actor.StopCause) bool {
	switch c {
	case actor.CauseStop:
		return l.asked > 0
	case actor.CauseSelf:
		return l.quits
	case actor.CausePoison:
		return len(l.pills) > 0 || l.resized()
	case actor.CauseFailure:
		return l.mustStop || l.mayStop || l.joinedStop() || l.quits && l.failing != nil || l.escalated || l.isRouter
	case actor.CauseDieIn:
		return !l.dies.IsZero() && !l.w.now().Before(l.dies)
	case actor.CauseParent:
		return l.parent != nil && (l.parent.ref.Stopped() || l.parent.restartAt > 0 || l.parent.isRouter)
	}
	return l.w.halted
}
