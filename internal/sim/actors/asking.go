package actors

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// The ways to ask, beside the usual ones.
const (
	askTyped     = 3 + iota // for an answer of the right type
	askCancelled            // with a context that has ended before
	askTooLate              // with one whose deadline has passed before
	askOther                // for an answer of another type
	askPromise              // with a promise of one's own
	askWays
)

// unsent asks with a context that has ended. Nothing may be sent.
func (a *asking) unsent(to actor.Target, why error) {
	w := a.w
	ctx, cancel := w.sys.WithCancel(w.background())
	if why != context.Canceled { //nolint:errorlint // it says which of two contexts is meant
		ctx, cancel = w.sys.WithTimeout(w.background(), -time.Second)
	}
	cancel()
	_, err := actor.Ask[any](ctx, to, a.p.payload())
	late := errors.Is(err, actor.ErrTimeout)
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "not sent") || late != (why == context.DeadlineExceeded) { //nolint:errorlint // as above
		w.wrong("%v was asked by a context that had ended: %v", a.p, err)
	}
	a.p.end("not sent", a.p.to)
	a.ended = true
}

// other asks for an answer of a type that nobody gives.
func (a *asking) other(ctx context.Context, to *actor.Ref) {
	w := a.w
	_, err := actor.Ask[*world](ctx, to, a.p.payload())
	switch {
	case err == nil:
		w.wrong("%v got an answer of another type", a.p)
	case !strings.Contains(err.Error(), "the answer is a *actors.reply, not a *actors.world"):
		a.end(nil, err)
	case a.reply == nil || !strings.Contains(err.Error(), to.Path()+" "):
		w.wrong("%v to %s: %v", a.p, to, err)
	default:
		a.end(a.reply, nil)
	}
}

// byPromise asks with a promise, which says the same when it is waited for once
// more.
func (a *asking) byPromise(to *actor.Ref) {
	w := a.w
	ctx, cancel := w.sys.WithTimeout(w.background(), a.limit)
	defer cancel()
	cell := w.sys.NewPromise()
	if err := to.Post(actor.Message{Payload: a.p.payload(), Reply: cell}); err != nil {
		a.end(nil, err)
		return
	}
	v, err := cell.Wait(ctx)
	a.end(v, err)
	if !cell.Done() || cell.GivenUp() != errors.Is(err, actor.ErrTimeout) {
		w.wrong("%v ended with %v; done %v, given up %v", a.p, err, cell.Done(), cell.GivenUp())
	}
	again, same := cell.Wait(w.background())
	if again != v || (err == nil) != (same == nil) || err != nil && err.Error() != same.Error() {
		w.wrong("%v ended with %v and %v, and then with %v and %v", a.p, v, err, again, same)
	}
}

// bySelection asks whom a path leads to.
func (a *asking) bySelection(ctx context.Context, sel chosen) {
	w := a.w
	found := sel.Refs()
	w.finds(sel, found)
	for _, r := range found {
		if w.byRef[r] == nil { // it may be the runtime's own, which answers nothing
			a.unheard = true
		}
	}
	var v any
	var err error
	if a.p.id%4 < 2 {
		v, err = sel.Ask(ctx, a.p.payload())
	} else {
		v, err = actor.Ask[any](ctx, sel.Selection, a.p.payload())
	}
	nobody := errors.Is(err, actor.ErrNotFound) && strings.HasPrefix(err.Error(), sel.String()+": ")
	if len(found) == 0 && !nobody && !errors.Is(err, errClaimed) {
		w.wrong("%v to %v, who is nobody: %v", a.p, sel.Selection, err)
	}
	a.end(v, err)
}

// decline ends the ask without an answer.
func (d *deferred) decline() {
	w := d.a.w
	done := d.cell.Done()
	if !done {
		d.a.unheard = true
		d.a.done(w.now())
	}
	if took := d.cell.Fail(nil); took == done {
		w.wrong("the promise of %v, done %v, was failed: %v", d.a.p, done, took)
	}
	w.note("promise of %v is declined", d.a.p)
}
