package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// claim is l's OnAbsent.
func (l *life) claim(name string, m actor.Message) bool {
	w := l.w
	p := parcelOf(m.Payload)
	if p == nil {
		if _, ok := m.Payload.(*reply); !ok {
			w.note("%T for %s of %v is not claimed", m.Payload, name, l)
		}
		return false
	}
	if p.id%9 == 0 {
		w.logs("ERROR OnAbsent panicked actor=%s child=%s err=%s", l.path, name, panicked("claim"))
		panic("claim")
	}
	w.note("%v claims %v for %s", l, p, name)
	if p.own && p.fresh {
		w.wrong("%v, which its child %s sent to itself, is offered to %v", p, name, l)
	}
	if c := p.to; c != nil && !p.many && !p.moved && p.timing == nil && len(c.delegates) == 0 {
		if c.parent != l || c.name() != name || !c.ref.Stopped() {
			w.wrong("%v to %v is offered to %v for %s", p, c, l, name)
		}
		c.untaken(p)
		if p.fresh {
			w.order(p, c, "claimed")
		}
	}
	if p.ask != nil {
		p.ask.claimed = true
		p.ask.done(w.now())
	}
	if m.Reply != nil {
		m.Reply.Fail(errClaimed)
	}
	p.end("claimed", p.to)
	return true
}

// stopping stops the system, perhaps with not enough time, and looks who is
// said to be late.
func (w *world) stopping(limit time.Duration) bool {
	ctx, cancel := w.sys.WithTimeout(context.Background(), limit)
	defer cancel()
	w.halted = true
	w.note("the system is stopped within %v", limit)
	began := w.now()
	err := w.sys.Stop(ctx)
	w.note("it has stopped: %v", err)
	if took := w.now().Sub(began); took > limit {
		w.wrong("Stop within %v took %v", limit, took)
	}
	if err == nil {
		return true
	}
	late, ok := errors.AsType[*actor.LateError](err)
	switch {
	case !ok || !errors.Is(err, context.DeadlineExceeded):
		w.wrong("Stop: %v", err)
		return false
	case late.System != systemName || late.Jobs != w.jobs+w.probes:
		w.wrong("Stop says that %d jobs of %s are late, and not %d", late.Jobs, late.System, w.jobs+w.probes)
	}
	want := w.late(w.sys.User())
	if w.userOver { // then what is below /system is stopped
		want = slices.DeleteFunc(slices.Clone(late.Actors), func(path string) bool { return !strings.HasPrefix(path, "/system/") })
	}
	slices.Sort(want)
	if !slices.Equal(want, late.Actors) {
		w.wrong("Stop says that %v are late, and not %v", late.Actors, want)
	}
	for _, path := range late.Actors[:min(len(late.Actors), 20)] {
		if !strings.Contains(err.Error(), path) {
			w.wrong("Stop does not say that %s is late: %v", path, err)
		}
	}
	return false
}

// late are those under r that others wait for.
func (w *world) late(r *actor.Ref) (paths []string) {
	if r != w.sys.User() && !r.Stopped() { // its children were not asked to
		return []string{r.Path()}
	}
	left := false
	all := map[*actor.Ref]bool{}
	for _, l := range w.lives {
		if !l.over && l.ref.Parent() == r {
			all[l.ref] = true
			left = true
			paths = append(paths, w.late(l.ref)...)
		}
	}
	for _, c := range r.Children() {
		if !all[c] && w.byRef[c] == nil {
			left = true
			paths = append(paths, w.late(c)...)
		}
	}
	if !left {
		paths = append(paths, r.Path())
	}
	return paths
}

// finish lets everything come to rest, and looks at what must hold then; then
// it stops the system, and looks at what must hold after that.
func (w *world) finish() {
	w.note("finish")
	for _, x := range w.timers {
		if x.every && x.p.id%2 == 0 {
			x.cancel()
		}
	}
	w.exec.RunFor(3 * time.Second)
	w.logDue()
	w.atRest()
	for !w.stopping(10 * time.Second) {
		if len(w.wrongs) > 0 {
			return
		}
	}
	w.exec.Run()
	w.over = true
	w.exec.RunFor(time.Minute)
	w.afterwards()
}

// atRest looks at everybody when nothing has happened for long.
func (w *world) atRest() {
	for _, l := range w.lives {
		if l.isRouter || l.over {
			continue
		}
		switch {
		case l.state == restarting && (!w.now().After(l.notBefore) || !w.now().After(l.restartBy)), l.state == restarting && l.instances > 20: // it restarts without a limit
		case l.state != running:
			w.wrong("%v is %v for ever", l, l.state)
		case l.busy && w.now().Before(l.wakes): // it sleeps in a handler
		case l.busy:
			w.wrong("%v handles a message for ever", l)
		case l.ref.Stopped():
			w.wrong("%v stops for ever", l)
		case l.failing != nil:
			w.wrong("%v failed with %v, and nothing became of it", l, l.failing)
		case l.mustStop:
			w.wrong("%v was to be stopped and goes on", l)
		case l.restartOwe > 0 && l.instances <= l.restartOwe:
			w.wrong("%v was to be restarted with all its siblings and was not", l)
		case !l.dies.IsZero() && w.now().After(l.dies):
			w.wrong("%v was to die %v ago", l, w.now().Sub(l.dies))
		case l.asked > 0:
			w.wrong("%v was stopped and goes on", l)
		case !l.held && l.ref.MailboxLen() > 0:
			w.wrong("%v has nothing to do and %d messages", l, l.ref.MailboxLen())
		case l.delegating != nil && l.delegating.over && !l.held:
			w.wrong("%v delegates to %v, which has ended", l, l.delegating)
		}
		l.informed()
		l.heard.complete(l)
	}
	for _, x := range w.timers {
		x.settled()
	}
	for _, h := range w.handbacks {
		h.settled()
	}
	if w.misheard != 0 && !w.halted {
		w.wrong("%d subscriptions to nothing have not ended", w.misheard)
	}
	for n, told := range w.relayed {
		if !told && !w.halted {
			w.wrong("dead letter %d was not relayed", n)
		}
	}
	for _, a := range w.asks {
		if !a.ended && !a.service && !a.calls && w.now().Sub(a.began) > a.limit {
			w.wrong("%v of %v has not ended", a.p, a.p.to)
		}
	}
	for _, x := range w.waits {
		if !x.ended && (x.of.over || w.now().After(x.until)) {
			w.wrong("a wait for %v has not ended", x.of)
		}
	}
}

// afterwards looks at what was left when the system has stopped.
func (w *world) afterwards() {
	for _, l := range w.lives {
		if !l.over {
			w.wrong("%v has not ended with the system", l)
		}
	}
	for _, p := range w.parcels {
		switch t := p.timing; {
		case p.ends > 0 || t != nil && (t.every || !t.p.fresh && p.front == nil):
		case t != nil && t.valid():
			w.wrong("%v of a timer is lost", p)
		case t == nil:
			w.wrong("%v to %v is lost", p, p.to)
		}
	}
	for _, a := range w.asks {
		if !a.ended && (!a.calls || a.answered) {
			w.wrong("%v of %v never ended", a.p, a.p.to)
		}
	}
	for _, r := range w.replies {
		if r.ends != 1 && !r.p.ask.service && !r.p.many {
			w.wrong("the answer %d to %v came %d times", r.id, r.p, r.ends)
		}
	}
	for _, x := range w.waits {
		if !x.ended {
			w.wrong("a wait for %v never ended", x.of)
		}
	}
	if w.lastFailed != "" {
		w.wrong("there is no event for %q", w.lastFailed)
	}
	if w.jobs > 0 {
		w.wrong("%d jobs still run", w.jobs)
	}
	w.afterStop()
}

// afterStop looks whether a stopped system takes anything.
func (w *world) afterStop() {
	before := w.letters
	if _, err := w.sys.Spawn("late", actor.PropsFunc(func(*actor.Context, any) error { return nil })); !errors.Is(err, actor.ErrStopped) {
		w.wrong("a stopped system spawns: %v", err)
	}
	if err := w.sys.User().Tell("late"); err != nil || w.letters != before+1 {
		w.wrong("a stopped system takes messages: %v", err)
	}
	if _, err := w.sys.User().Ask(context.Background(), "late"); !errors.Is(err, actor.ErrStopped) {
		w.wrong("a stopped system answers: %v", err)
	}
	if err := w.sys.Stop(context.Background()); err != nil {
		w.wrong("a stopped system stops again: %v", err)
	}
}
