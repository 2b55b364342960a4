package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// body is an instance of an actor.
type body struct {
	w       *world
	life    *life // nil until a worker of a router has started
	parent  *life
	props   *props
	number  int
	started bool
}

// judge is a body that decides about its children.
type judge struct{ *body }

// urging is a message of TellSystem.
type urging struct {
	seq    int
	resume *body
	fails  *failure
}

// actorProps are l's props as the runtime is given them.
func (w *world) actorProps(l *life, p *props) actor.Props {
	out := actor.Props{
		Supervisor:     p.rule.strategy(),
		IgnoreChildren: p.ignores,
		Held:           p.held > 0,
		OwnPoison:      p.ownPoison,
		Mailbox:        actor.Mailbox{Capacity: p.capacity, Policy: p.policy},
	}
	if p.custom {
		out.Mailbox = actor.Mailbox{New: func() actor.Queue { return &lanes{limit: p.capacity} }}
	}
	if p.claims {
		out.OnAbsent = func(name string, m actor.Message) bool { return l.claim(name, m) }
	}
	out.New = func() actor.Actor { return w.instance(l, p) }
	return out
}

var errNoInstance = errors.New("no instance")

func (w *world) instance(l *life, p *props) actor.Actor {
	b := &body{w: w, life: l, props: p}
	if l.isRouter { // it is a worker, whose life is known when it starts
		b.life, b.parent = nil, l
	} else {
		l.makes++
		b.begin()
		if l.makes <= p.failNew {
			l.failing = errNoInstance
			if l.makes%2 == 0 {
				return nil
			}
			f := &failure{number: l.makes * 3, directive: actor.Resume}
			l.failing = f
			panic(f)
		}
	}
	if p.verdict != nil {
		return judge{b}
	}
	return b
}

// begin looks whether there may be an instance now.
func (b *body) begin() {
	l, w := b.life, b.w
	l.enter("New")
	defer l.leave()
	l.instances++
	b.number = l.instances
	w.note("%v has instance %d", l, l.instances)
	switch {
	case l.ref.Stopped():
		w.wrong("%v gets an instance though it stops", l)
	case l.instances == 1 && l.state == fresh:
	case l.state == failed && l.owed > 0: // with a sibling, before it had started
		l.owed--
	case l.state != restarting || !l.mayRestart:
		w.wrong("%v gets instance %d though it is %v", l, l.instances, l.state)
	case w.now().Before(l.notBefore) && l.owed > 0: // with a sibling, by whose wait it goes
		l.owed--
	case w.now().Before(l.notBefore):
		w.wrong("%v restarts %v too early", l, l.notBefore.Sub(w.now()))
	}
	for _, c := range l.children() {
		if l.instances > 1 && !c.over && c.number < l.restartAt {
			w.wrong("%v gets instance %d before its child %v has ended", l, l.instances, c)
		}
	}
	if l.slowStop { // a sibling's failure came in between, and had all restarted
		l.mustStop, l.slowStop = false, false
	}
	l.state, l.started, l.mayRestart, l.mayResume, l.escalated = fresh, false, false, false, false
	l.undecided = false
	l.body, l.stack, l.dies, l.promises = b, nil, time.Time{}, nil
	l.keepsAll()
	l.held = b.props.held > 0
	l.front = append(append([]*parcel{}, l.stash...), l.front...)
	l.stash = nil
	for _, p := range l.front {
		p.front = l
	}
}

// PreStart does what the props say.
func (b *body) PreStart(ctx *actor.Context) error {
	if b.life == nil {
		b.life = b.w.byRef[ctx.Self()]
		if b.life == nil {
			b.life = b.w.live(b.parent, b.props)
			b.life.born(ctx.Self())
		}
		b.begin()
	}
	l := b.life
	l.enter("PreStart")
	defer l.leave()
	if b.number <= b.props.failStart {
		l.failing = &failure{directive: actor.Resume, number: b.number}
		return l.failing
	}
	l.state, l.started, b.started = running, true, true
	if b.props.held > 0 {
		b.resumeAfter(b.props.held)
	}
	if h := b.props.hears; h > 0 && b.number == 1 && !b.props.custom && (b.props.policy == actor.Unbounded || b.props.policy == actor.Fail) {
		l.hear(h == 1)
	}
	t := &turn{body: b, ctx: ctx}
	for _, o := range b.props.begin {
		t.perform(o)
	}
	return nil
}

func (b *body) resumeAfter(d time.Duration) {
	b.w.sys.After(d, func() { b.life.urge(&urging{resume: b}) })
}

// urge sends a message of TellSystem.
func (l *life) urge(u *urging) {
	w := l.w
	u.seq, w.dropped = w.tick(), ""
	l.ref.TellSystem(u)
	if dropped := w.dropped == l.ref.Name(); l.over && !dropped || dropped && !l.over && !l.posted {
		w.wrong("a system message to %v, whose end is %v, was dropped: %v", l, l.over, dropped)
	}
}

// ReceiveSystem looks at the order, and resumes.
func (b *body) ReceiveSystem(ctx *actor.Context, msg any) error {
	l := b.life
	l.enter("ReceiveSystem")
	defer l.leave()
	u := msg.(*urging)
	b.w.note("%v is urged", l)
	switch {
	case l.body != b || (l.state != running && !l.ref.Stopped()):
		b.w.wrong("%v is %v and gets a system message", l, l.state)
	case u.seq < l.urged:
		b.w.wrong("%v gets system messages out of order", l)
	}
	l.urged = u.seq
	if u.resume == b {
		ctx.Resume()
		l.held = false
	}
	switch {
	case u.fails == nil:
		return nil
	case l.ref.Stopped():
		b.w.logs("ERROR failure while stopping actor=%s err=%v", l.path, u.fails)
	default:
		l.failing, l.failedOn = u.fails, u
	}
	return u.fails
}

// Receive is the handler at the bottom.
func (b *body) Receive(ctx *actor.Context, msg any) error { return b.handle(ctx, msg, 0) }

// handle is each handler; level says which one.
func (b *body) handle(ctx *actor.Context, msg any, level int) (err error) {
	l := b.life
	l.enter("Receive")
	defer l.leave()
	b.handles(level)
	switch m := msg.(type) {
	case actor.Terminated:
		l.terminated(m)
		return nil
	case actor.DelegationEnded:
		l.delegationEnded(m)
		return nil
	case actor.PipeFailed:
		if p := parcelOf(m); p == nil || !strings.Contains(m.Error(), p.String()) {
			b.w.wrong("%v gets the failure of something piped: %v", l, m)
		}
	case actor.Event:
		l.heard.event(m)
		return nil
	case actor.ZombieMsg:
		l.heard.zombie(m)
		return nil
	case actor.PoisonPill:
		if !b.props.ownPoison {
			b.w.wrong("%v handles a PoisonPill", l)
		}
		return nil
	}
	p := parcelOf(msg)
	if p == nil {
		b.w.wrong("%v gets %T", l, msg)
		return nil
	}
	return b.open(ctx, p)
}

// handles looks whether the instance may handle a user message with this
// handler.
func (b *body) handles(level int) {
	l, top := b.life, 0
	if n := len(l.stack); n > 0 {
		top = l.stack[n-1]
	}
	switch {
	case l.body != b:
		b.w.wrong("an old instance of %v handles a message", l)
	case l.state != running:
		b.w.wrong("%v is %v and handles a message", l, l.state)
	case l.ref.Stopped():
		b.w.wrong("%v stops and handles a message", l)
	case l.held:
		b.w.wrong("%v is held and handles a message", l)
	case level != top:
		b.w.wrong("handler %d of %v handles a message, not %d", level, l, top)
	}
}

// open handles a parcel.
func (b *body) open(ctx *actor.Context, p *parcel) error {
	l := b.life
	b.w.note("%v handles %v", l, p)
	b.arrives(p)
	t := &turn{body: b, ctx: ctx, p: p}
	p.opened++
	for _, o := range p.letter.ops {
		if p.opened > 4 && (o.kind == opForward || o.kind == opStash || o.kind == opUnstash) {
			continue // or it would go round for ever
		}
		t.perform(o)
		if t.exit != nil || t.forwarded || t.stashed {
			break
		}
	}
	return t.close()
}

// arrives looks whether p may be handled here and now.
func (b *body) arrives(p *parcel) {
	l, w := b.life, b.w
	if !p.many && p.to != l && !l.delegateOf(p.to, 0) && (p.to == nil || !p.to.isRouter || l.parent != p.to) {
		w.wrong("%v was sent to %v and came to %v", p, p.to, l)
	}
	if l.strays(p) {
		w.wrong("%v was sent to %v, which delegates to nobody, and comes to %v", p, p.to, l)
	}
	if l.delegating != nil && !p.own && !p.letter.direct {
		w.wrong("%v handles %v, though it delegates to %v", l, p, l.delegating)
	}
	if t := p.timing; t != nil && p.fresh && !p.moved && t.to == l {
		t.delivered(l)
	}
	if seq, ok := l.pills[p.from]; ok && p.fresh && p.to == l && p.seq > seq && !p.moved && !l.props.ownPoison && !l.props.custom && p.timing == nil {
		w.wrong("%v was sent to %v after a PoisonPill and is handled", p, l)
	}
	if !p.many {
		l.untaken(p)
		if p.fresh {
			w.order(p, l, "handled")
		}
		l.fromFront(p)
	}
	p.fresh = p.timing != nil && p.timing.every
}

// delegateOf says that what was sent to r may come to l by delegation.
func (l *life) delegateOf(r *life, depth int) bool {
	if r == nil || depth > 20 {
		return false
	}
	passes := func(d *life) bool { return d == l || l.delegateOf(d, depth+1) }
	for d := range r.delegates {
		if passes(d) {
			return true
		}
	}
	return r.isRouter && slices.ContainsFunc(r.children(), passes)
}

// fromFront looks whether what was put back in front comes first, in order.
func (l *life) fromFront(p *parcel) {
	plain := len(l.delegates) == 0
	switch {
	case p.front == l && len(l.front) > 0 && l.front[0] == p:
		l.front = l.front[1:]
		p.front = nil
		return
	case p.front == l && plain:
		l.w.wrong("%v comes to %v out of the order in which it was put back", p, l)
	case p.front == nil && len(l.front) > 0 && plain:
		l.w.wrong("%v comes to %v ahead of what was put back in front", p, l)
	case p.front != nil && p.front != l && len(p.front.delegates) == 0:
		l.w.wrong("%v comes to %v, though %v has it", p, l, p.front)
	}
	p.leaveFront()
}

// PostStop notes the end.
func (b *body) PostStop(ctx *actor.Context) {
	l, w := b.life, b.w
	l.enter("PostStop")
	defer l.leave()
	w.note("%v: PostStop, %v %v", l, ctx.StopCause(), ctx.IsException())
	if l.posted || !b.started || l.body != b {
		w.wrong("%v: PostStop of an instance that has not started, or a second one", l)
	}
	l.posted, l.cause, l.reason = true, ctx.StopCause(), ctx.IsException()
	if ctx.Stopping() != w.halted {
		w.wrong("%v is told that the system stops: %v", l, ctx.Stopping())
	}
	if pe := ctx.ParentException(); pe != nil && l.cause != actor.CauseParent {
		w.wrong("%v ends for %v and has a parent's exception: %v", l, l.cause, pe)
	}
	for _, c := range l.children() {
		if !c.over {
			w.wrong("PostStop of %v before the end of its child %v", l, c)
		}
	}
	b.lastThings(ctx)
	if b.props.badEnd {
		why := fmt.Sprintf("PostStop of %v", l)
		w.logs("ERROR PostStop failed actor=%s err=%s", l.path, panicked(why))
		panic(why)
	}
}
