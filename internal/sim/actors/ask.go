package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// asking is an ask: what was done about it, and how it ended.
type asking struct {
	w       *world
	p       *parcel
	began   time.Time
	limit   time.Duration
	cancel  bool // its context is cancelled at times
	service bool
	calls   bool // the answer comes by a call, ahead of the dead letter

	// What others did. The first of them ends the ask.
	answered bool
	at       time.Time
	reply    *reply
	errs     []error // that handlers failed or answered with
	unheard  bool    // a handler gave no answer
	dead     bool
	refused  bool
	claimed  bool

	ended bool
	endAt time.Time
}

// reply is an answer: somebody gets it, or it is a dead letter.
type reply struct {
	id   int
	p    *parcel
	ends int
}

var errClaimed = errors.New("claimed by an OnAbsent")

func (w *world) reply(p *parcel) *reply {
	r := &reply{id: len(w.replies), p: p}
	w.replies = append(w.replies, r)
	return r
}

// done notes when the ask was answered first.
func (a *asking) done(now time.Time) {
	if !a.answered && !a.ended {
		a.answered, a.at = true, now
	}
}

func (w *world) newAsk(l *life, s step, how string) *asking {
	p := w.parcel(s.letter, "", nil, l)
	p.from = fmt.Sprintf("%s%d", how, p.id)
	p.ask = &asking{w: w, p: p, began: w.now(), limit: s.d}
	if p.ask.limit == 0 {
		p.ask.limit = 2 * time.Second // Config.AskTimeout
	}
	w.asks = append(w.asks, p.ask)
	w.note("%s %v of %v", how, p, l)
	return p.ask
}

func (w *world) background() context.Context { return context.Background() }

// asking asks from a job, with one of several kinds of context.
func (w *world) asking(l *life, s step) {
	a := w.newAsk(l, s, "ask")
	w.goes(func() { w.askBy(l.ref, a, s) })
}

func (w *world) askBy(to actor.Target, a *asking, s step) {
	ref, _ := to.(*actor.Ref)
	sel, selected := to.(chosen)
	switch {
	case s.n == askCancelled:
		a.unsent(to, context.Canceled)
		return
	case s.n == askTooLate:
		a.unsent(to, context.DeadlineExceeded)
		return
	case s.n == askPromise && ref != nil && a.p.to.props.policy != actor.Block:
		a.began, a.p.seq = w.now(), w.tick()
		a.byPromise(ref)
		return
	}
	ctx, cancel := w.background(), func() {}
	switch {
	case s.d > 0:
		ctx, cancel = w.sys.WithTimeout(ctx, s.d)
	case s.n == 1:
		ctx, cancel = w.sys.WithCancel(ctx)
	case s.n == 2:
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	if s.n > 0 && s.n <= askTyped && s.d == 0 {
		a.cancel = true
		w.sys.After(15*time.Millisecond, cancel)
	}
	a.began = w.now()
	a.p.seq = w.tick()
	if selected {
		a.bySelection(ctx, sel)
		return
	}
	if s.n == askOther && !a.p.many {
		a.other(ctx, ref)
		return
	}
	if s.n == askTyped {
		r, err := actor.Ask[*reply](ctx, to, a.p.payload())
		if err == nil {
			a.end(r, nil)
		} else {
			a.end(nil, err)
		}
		return
	}
	v, err := ref.Ask(ctx, a.p.payload())
	a.end(v, err)
}

// promising posts an ask whose answer calls back.
func (w *world) promising(l *life, s step) {
	if l.props.policy == actor.Block {
		return // the sender would have to wait
	}
	s.d = time.Hour
	a := w.newAsk(l, s, "promise")
	a.calls = true
	cell := w.sys.OnReply(func(v any, err error) { a.end(v, err) })
	m := actor.Message{Payload: a.p.payload(), Reply: cell}
	var err error
	if a.p.id%3 == 0 {
		if err = l.ref.TryPost(m); errors.Is(err, actor.ErrStopped) {
			if !l.ref.Stopped() {
				w.wrong("TryPost to %v says that it has stopped", l)
			}
			a.p.end("not posted", l)
			a.dead = true
			cell.Fail(err)
			return
		}
	} else {
		err = l.ref.Post(m)
	}
	a.p.posted(err)
	if err != nil {
		cell.Fail(err)
	}
}

// futuring asks by the completion service.
func (w *world) futuring(l *life, s step) {
	if l.props.policy == actor.Block {
		return
	}
	if s.d == 0 {
		s.d = time.Second
	}
	open := w.service.Open()
	a := w.newAsk(l, s, "future")
	a.service = true
	f, err := w.service.Start(w.background(), l.ref, a.p.payload(), s.d)
	switch {
	case err == nil:
		a.p.posted(nil)
	case errors.Is(err, actor.ErrMailboxFull):
		a.p.posted(err)
		a.end(nil, err)
		return
	default:
		a.p.end("not sent", l)
		a.ended = true
		closed := w.shut && errors.Is(err, actor.ErrStopped)
		if full := open >= 5 && errors.Is(err, patterns.ErrOverloaded); !closed && !full {
			w.wrong("a future was not started: %v (%d are open)", err, open)
		}
		return
	}
	if a.p.id%4 == 0 {
		w.sys.After(5*time.Millisecond, func() { a.cancel = true; f.Cancel() })
	}
	w.goes(func() {
		v, err := f.Wait(w.background())
		a.end(v, err)
	})
}

// end looks whether the ask may end so.
func (a *asking) end(v any, err error) {
	w := a.w
	w.note("%v ended: %v", a.p, err)
	if a.ended {
		w.wrong("%v ended twice", a.p)
	}
	a.ended, a.endAt = true, w.now()
	if a.answered && !a.at.Equal(a.endAt) && !a.service && !a.p.many {
		w.wrong("%v was answered %v ago and ends only now", a.p, a.endAt.Sub(a.at))
	}
	if err == nil {
		r, ok := v.(*reply)
		switch {
		case !ok:
			w.wrong("%v got %T", a.p, v)
		case r.p != a.p || (a.reply != r && !a.p.many):
			w.wrong("%v got the answer %d, which is another's", a.p, r.id)
		}
		if ok {
			r.ends++
		}
		return
	}
	if !a.may(err) {
		w.wrong("%v ended with an error that nobody gave: %v", a.p, err)
	}
}

func (a *asking) may(err error) bool {
	over := a.w.now().Sub(a.began) >= a.limit
	var f *failure
	switch {
	case errors.Is(err, actor.ErrMailboxFull):
		// It may have waited for room until its end, too.
		if a.p.ends == 0 && !a.calls {
			a.refused = true
			a.p.end("refused", a.p.to)
		}
		return true
	case errors.Is(err, errClaimed):
		return a.claimed
	case errors.Is(err, actor.ErrNoReply):
		return a.unheard
	case errors.As(err, &f):
		for _, x := range a.errs {
			if errors.Is(err, x) {
				return true
			}
		}
		return false
	case errors.Is(err, actor.ErrTimeout):
		return over
	case errors.Is(err, context.Canceled), errors.Is(err, patterns.ErrCancelled):
		return a.cancel
	case errors.Is(err, actor.ErrNotFound):
		return a.dead || a.calls || a.p.many
	case errors.Is(err, actor.ErrStopped):
		return a.dead || a.service && a.w.shut || a.calls
	}
	return a.dead || a.calls
}

// askPill asks with a PoisonPill: it is answered when that is reached.
func (w *world) askPill(l *life) {
	if l.props.ownPoison || l.props.policy == actor.Block {
		return
	}
	from := fmt.Sprintf("pill%d", w.tick())
	ended := &waiting{of: l, until: w.now().Add(3 * time.Second)}
	w.waits = append(w.waits, ended)
	l.pilled(from, nil)
	w.goes(func() {
		_, err := l.ref.Ask(w.background(), actor.PoisonPill{})
		ended.ended = true
		switch {
		case err == nil, errors.Is(err, actor.ErrTimeout):
		case errors.Is(err, actor.ErrStopped) && l.ref.Stopped():
		default:
			w.wrong("a PoisonPill that was asked of %v: %v", l, err)
		}
	})
}

// deferred is a promise that is to be answered later.
type deferred struct {
	a    *asking
	cell *actor.Promise
}

// complete answers it.
func (d *deferred) complete(f *failure) {
	w := d.a.w
	done, gone := d.cell.Done(), d.cell.GivenUp()
	if gone && (!done || d.a.answered && !d.a.p.many) { // of several, one may be dead and the others asked
		w.wrong("the promise of %v says that it was given up", d.a.p)
	}
	var took bool
	if f != nil {
		if !done {
			d.a.errs = append(d.a.errs, f)
			d.a.done(w.now())
		}
		took = d.cell.Fail(f)
	} else {
		r := w.reply(d.a.p)
		if !done {
			d.a.reply = r
			d.a.done(w.now())
		}
		took = d.cell.Complete(r)
	}
	if took == done {
		w.wrong("the promise of %v, done %v, took an answer: %v", d.a.p, done, took)
	}
	w.note("promise of %v is answered: %v", d.a.p, took)
}
