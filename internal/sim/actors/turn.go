package actors

import (
	"context"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// turn is a handler's call for one parcel; of PreStart when that is nil.
type turn struct {
	body      *body
	ctx       *actor.Context
	p         *parcel
	answered  bool
	deferred  bool
	forwarded bool
	stashed   bool
	exit      *failure
	panics    bool
}

// close says what became of the parcel, and ends the handler.
func (t *turn) close() error {
	p, l := t.p, t.body.life
	if !t.stashed && !t.forwarded {
		p.end("handled", l)
	}
	if a := p.ask; a != nil && !t.stashed && !t.forwarded {
		switch {
		case t.exit != nil && (!t.answered || t.deferred):
			a.errs = append(a.errs, t.exit)
			a.done(t.body.w.now())
		case t.exit == nil && !t.answered && !t.deferred:
			a.unheard = true
			a.done(t.body.w.now())
		}
	}
	if t.exit == nil {
		return nil
	}
	l.failing, l.failedOn = t.exit, p.payload()
	if p.timing != nil || p.piped != nil {
		l.failedOn = nil // the runtime may have it in another form
	}
	if t.panics {
		t.body.w.note("%v panics: %v", l, t.exit)
		l.leave()
		panic(t.exit)
	}
	t.body.w.note("%v fails: %v", l, t.exit)
	return t.exit
}

// perform does one thing.
func (t *turn) perform(o op) {
	l, w := t.body.life, t.body.w
	to := w.lifeAt(o.slot)
	switch o.kind {
	case opTell:
		t.tell(to, o.letter)
	case opBecome, opStack:
		t.become(o.kind == opStack)
	case opUnbecome:
		t.ctx.Unbecome()
		if n := len(l.stack); n > 0 {
			l.stack = l.stack[:n-1]
		}
	case opDelegate:
		t.delegate(o, to)
	case opUndo:
		t.undelegate()
	case opHandBack:
		t.handBack()
	case opWatch, opUnwatch:
		if to != nil {
			t.watch(to, o.kind == opWatch)
		}
	case opOnce, opEvery:
		t.schedule(o, to)
	case opCancel:
		if n := len(l.timers); n > 0 {
			l.timers[o.n%n].cancel()
		}
	case opDieIn:
		t.dieIn(o)
	case opHold:
		t.ctx.Hold()
		l.held = true
		t.body.resumeAfter(o.d)
	case opStop, opPill, opDisown:
		t.end(o, to)
	case opBear:
		name := []string{"x", "k", "y", ""}[o.n%4]
		w.bear(l, name, o.props, t.ctx.Spawn)
	case opBlock:
		w.note("%v sleeps %v", l, o.d)
		l.wakes = w.now().Add(o.d)
		_ = w.sys.Sleep(context.Background(), o.d)
		w.note("%v wakes", l)
	case opStore:
		t.said()
		t.visit()
		t.keep(o.n)
		t.visitLog(o.n)
	case opMisuse:
		t.misuse(o)
	case opQuit:
		t.ctx.StopSelf()
		l.quits = true
	default:
		t.performWith(o, to)
	}
}

// performWith does what needs a message in progress.
func (t *turn) performWith(o op, to *life) {
	l, w := t.body.life, t.body.w
	switch o.kind {
	case opRespond:
		t.respond(o)
	case opRefuse:
		t.refuse(o)
	case opDefer:
		t.postpone(o)
	case opForward:
		t.forward(to)
	case opPipe:
		t.pipe(o, to)
	case opStash:
		t.stash()
	case opUnstash:
		t.ctx.UnstashAll()
		l.front = append(append([]*parcel{}, l.stash...), l.front...)
		l.stash = nil
	case opRetire:
		t.retire()
	case opSelect:
		path := []string{"../*", "*", "x", "..", "/user/c"}[o.n%5]
		w.selected(chosen{t.ctx.Select(path), path, l}, o.letter, l)
	case opError, opPanic:
		t.exit, t.panics = &failure{}, o.kind == opPanic
		*t.exit = *o.fails
	}
}

func (t *turn) tell(to *life, text *letter) {
	if to == nil {
		return
	}
	l := t.body.life
	p := t.body.w.parcel(text, l.key(), l, to)
	t.body.w.note("%v to %v", p, to)
	p.posted(t.ctx.Tell(to.ref, p.payload()))
}

func (t *turn) become(stacked bool) {
	l, b := t.body.life, t.body
	l.behaviour++
	level := l.behaviour
	f := func(ctx *actor.Context, msg any) error { return b.handle(ctx, msg, level) }
	if stacked {
		t.ctx.BecomeStacked(f)
		l.stack = append(l.stack, level)
		return
	}
	t.ctx.Become(f)
	if n := len(l.stack); n > 0 {
		l.stack[n-1] = level
	} else {
		l.stack = []int{level}
	}
}

// respond answers the ask, or tells the sender.
func (t *turn) respond(o op) {
	w, l, p := t.body.w, t.body.life, t.p
	if p.ask != nil {
		r := w.reply(p)
		if !p.ask.answered && !p.ask.ended || p.many {
			p.ask.reply = r
			p.ask.done(w.now())
		}
		t.answered = true
		t.ctx.Respond(r)
		return
	}
	answer := w.parcel(o.letter, l.key(), l, p.sender)
	w.note("%v answers %v by %v", l, p, answer)
	before := w.letters
	t.ctx.Respond(answer.payload())
	switch {
	case answer.ends > 0:
	case p.sender != nil:
		answer.posted(nil)
	case w.letters == before:
		w.wrong("an answer to nobody is no dead letter")
	}
}

func (t *turn) refuse(o op) {
	p := t.p
	if p.ask != nil {
		p.ask.errs = append(p.ask.errs, o.fails)
		if !t.answered {
			p.ask.done(t.body.w.now())
		}
		t.answered = true
	} else {
		t.body.w.logs("DEBUG failed a message that was no ask actor=%s err=%v", t.body.life.name(), o.fails)
	}
	t.ctx.Fail(o.fails)
	t.body.w.logDue()
}

// postpone takes the ask over and answers it later: by a timer, or never.
func (t *turn) postpone(o op) {
	w, p := t.body.w, t.p
	cell := t.ctx.Defer()
	if (cell == nil) != (p.ask == nil) && !t.answered {
		w.wrong("Defer of %v gives a promise: %v", p, cell != nil)
	}
	if cell == nil || t.answered {
		return
	}
	t.deferred = true
	d := &deferred{p.ask, cell}
	if o.n == 3 {
		return // it will end by its time
	}
	w.sys.After(o.d, func() {
		switch o.n {
		case 1:
			d.decline()
		case 2:
			d.complete(&failure{number: o.n})
		default:
			d.complete(nil)
		}
	})
}

func (t *turn) forward(to *life) {
	p := t.p
	if to == nil || p.many || t.answered || t.deferred {
		return
	}
	w, l := t.body.w, t.body.life
	was := *p
	p.to, p.from, p.seq, p.fresh, p.moved = to, l.key(), w.tick(), true, true
	p.own = false
	p.many = to.workers
	w.note("%v forwards %v to %v", l, p, to)
	var err error
	switch p.id % 3 {
	case 0:
		err = t.ctx.Forward(to.ref)
	case 1:
		if err = t.ctx.TryForward(to.ref); errors.Is(err, actor.ErrStopped) && !to.ref.Stopped() {
			w.wrong("TryForward to %v says that it has stopped", to)
		}
	default:
		err = t.ctx.Forward(w.sys.Select(to.path))
		p.many = p.many || w.at[to.path] != to // a successor may have it
	}
	if err != nil {
		if !errors.Is(err, actor.ErrMailboxFull) && p.id%3 != 1 {
			w.wrong("%v: forwarded with %v", p, err)
		}
		ends, last := p.ends, p.last
		*p = was
		p.ends, p.last = ends, last
		return
	}
	t.forwarded = true
}

// pipe works elsewhere: it sleeps, asks, fails or panics, and sends the result.
func (t *turn) pipe(o op, to *life) {
	w, l := t.body.w, t.body.life
	if to == nil || o.n%3 == 0 {
		to = l
	}
	var asked *life
	if o.n%2 == 0 {
		asked = w.lifeAt(o.n % routers)
	}
	w.jobs++
	p := w.parcel(o.letter, l.key(), l, to)
	p.piped, p.own = l, to == l
	t.ctx.PipeTo(to.ref, func(ctx context.Context) (any, error) {
		defer func() { w.jobs-- }()
		err := w.sys.Sleep(ctx, o.d)
		if err == nil && asked != nil {
			a := w.newAsk(asked, step{letter: &letter{}, d: 30 * time.Millisecond}, "piped ask")
			a.cancel = true // when the actor stops
			w.askPiped(ctx, a, asked)
		}
		p.seq = w.tick()
		w.note("%v: piped to %v", p, to)
		if ctx.Err() != nil && !l.ref.Stopped() {
			w.wrong("the context of %v has ended and it has not", l)
		}
		switch {
		case err != nil || o.n%5 == 1:
			return nil, &piping{p}
		case o.n%5 == 2:
			panic(&piping{p})
		}
		return p.payload(), nil
	})
}

func (w *world) askPiped(ctx context.Context, a *asking, to *life) {
	ctx, cancel := w.sys.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	if err := ctx.Err(); err != nil {
		a.p.end("not sent", nil)
	}
	a.p.seq = w.tick()
	v, err := to.ref.Ask(ctx, a.p.payload())
	a.end(v, err)
}

func (t *turn) stash() {
	w, l, p := t.body.w, t.body.life, t.p
	if p.many {
		return
	}
	err := t.ctx.Stash()
	limit := l.ref.MailboxCap()
	switch {
	case err == nil && limit > 0 && len(l.stash) >= limit && len(l.delegates) == 0:
		w.wrong("%v stashed %d messages, though %d fit", l, len(l.stash)+1, limit)
	case err != nil && (!errors.Is(err, actor.ErrMailboxFull) || limit == 0 || len(l.stash) < limit):
		w.wrong("%v cannot stash: %v", l, err)
	}
	if err != nil {
		return
	}
	if t.ctx.Stash() == nil {
		w.wrong("%v stashed a message twice", l)
	}
	t.stashed = true
	p.front = l
	l.stash = append(l.stash, p)
	w.note("%v stashes %v", l, p)
}

func (t *turn) retire() {
	w, l := t.body.w, t.body.life
	waits := l.ref.MailboxLen()
	gone := t.ctx.Retire()
	w.note("%v retires: %v", l, gone)
	if gone && (waits > 0 || len(l.stash) > 0 || len(l.front) > 0 && len(l.delegates) == 0) { // a delegate takes what is unstashed
		w.wrong("%v retires with %d messages and %d stashed", l, waits, len(l.stash))
	}
	if gone {
		if !l.ref.Stopped() {
			w.wrong("%v has retired and takes messages", l)
		}
		l.quits = true
	}
}

func (t *turn) end(o op, to *life) {
	l := t.body.life
	switch {
	case o.kind == opDisown:
		if k, ok := l.ref.Child("x"); ok {
			if c := l.w.byRef[k]; c != nil {
				c.asked++
			}
			t.ctx.StopChild("x")
		}
	case to == nil:
	case o.kind == opStop:
		to.asked++
		t.ctx.Stop(to.ref)
	default:
		to.pilled(l.key(), t.ctx.Tell(to.ref, actor.PoisonPill{}))
	}
}

// said looks at what a Context says.
func (t *turn) said() {
	w, l := t.body.w, t.body.life
	parent := w.byRef[t.ctx.Parent()]
	if t.ctx.Self() != l.ref || parent != l.parent || !t.ctx.Now().Equal(w.now()) || t.ctx.System() != w.sys || t.ctx.Stopping() != w.halted {
		w.wrong("the context of %v is another's", l)
	}
	if l.parent != nil && w.byRef[t.ctx.Grandparent()] != l.parent.parent {
		w.wrong("%v has another grandparent", l)
	}
	if t.p != nil && !t.answered {
		if m := t.ctx.Message(); (m.Reply != nil) != (t.p.ask != nil) || (!t.p.many && !t.p.moved && m.Sender != t.ctx.Sender()) {
			w.wrong("%v has another message in hand than %v", l, t.p)
		}
	}
	if err, above := t.ctx.IsException(), t.ctx.ParentException(); err != nil || above != nil {
		w.wrong("%v runs and has ended for %v and %v", l, err, above)
	}
}
