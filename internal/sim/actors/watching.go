package actors

import (
	"errors"

	"github.com/twinsrv/twinsrv/actor"
)

// watching is whose ends an actor is to be told.
type watching struct {
	others   map[*life]bool // watched, and not told yet
	order    []*life        // in the order of the first watch
	children map[*life]*caring
	visits   int
}

// caring is how a parent that hears of its children stands to one of them.
type caring struct {
	asked   bool // it called Watch
	silent  bool // it called Unwatch
	leaving bool // its own restart ended the child
	unsure  bool // perhaps
	told    bool
}

func newWatching() watching {
	return watching{others: map[*life]bool{}, children: map[*life]*caring{}}
}

// hears says that l is told of t's end without watching.
func (l *life) hears(t *life) bool { return t.parent == l && !l.props.ignores }

func (l *life) cares(t *life) *caring {
	c := l.watch.children[t]
	if c == nil {
		c = &caring{}
		l.watch.children[t] = c
	}
	return c
}

func (t *turn) watch(of *life, begin bool) {
	l := t.body.life
	l.w.note("%v watches %v: %v", l, of, begin)
	if begin {
		t.ctx.Watch(of.ref)
	} else {
		t.ctx.Unwatch(of.ref)
	}
	switch {
	case of == l:
	case l.hears(of):
		c := l.cares(of)
		c.asked, c.silent = begin, !begin
		if begin {
			c.told = false
		}
	case begin:
		l.watch.others[of] = true
		l.watch.order = append(l.watch.order, of)
	default:
		delete(l.watch.others, of)
	}
}

// terminated looks whether l may be told of an end.
func (l *life) terminated(m actor.Terminated) {
	w := l.w
	t := w.byRef[m.Ref]
	w.note("%v hears that %v has ended: %v %v", l, t, m.Cause, m.Reason)
	if t == nil {
		return // a worker that had not started
	}
	if !t.ref.Stopped() {
		w.wrong("%v hears of the end of %v, which goes on", l, t)
	}
	for _, c := range t.children() {
		if !c.over {
			w.wrong("%v hears of the end of %v before that of its child %v", l, t, c)
		}
	}
	if t.over && (t.cause != m.Cause || !errors.Is(m.Reason, t.reason)) {
		w.wrong("%v hears that %v ended for %v (%v), and it was %v (%v)", l, t, m.Cause, m.Reason, t.cause, t.reason)
	}
	if last, ok := l.unheardOf(t); ok {
		w.wrong("%v hears of the end of %v before %v", l, t, last)
	}
	if !l.hears(t) {
		if !l.watch.others[t] {
			w.wrong("%v hears of the end of %v, which it does not watch", l, t)
		}
		delete(l.watch.others, t)
		return
	}
	c := l.cares(t)
	switch {
	case c.told && !c.asked:
		w.wrong("%v hears twice of the end of its child %v", l, t)
	case c.silent:
		w.wrong("%v hears of the end of its child %v after Unwatch", l, t)
	case c.leaving && !c.asked:
		w.wrong("%v hears of the end of its child %v, which its own restart ended", l, t)
	case c.told && len(l.delegates) == 0:
		w.wrong("%v hears again of the end of its child %v", l, t)
	}
	c.told = true
}

// unheardOf returns a parcel that t sent to l from a handler and that is still
// on its way, in order.
func (l *life) unheardOf(t *life) (*parcel, bool) {
	if l.props.custom || len(l.delegates) > 0 {
		return nil, false
	}
	for _, p := range l.w.parcels {
		if p.sender == t && p.to == l && p.fresh && !p.moved && p.ends == 0 && p.timing == nil && p.piped == nil && !p.many {
			return p, true
		}
	}
	return nil, false
}

// informed looks, when all is quiet, whether l has heard what it was to hear.
func (l *life) informed() {
	if !l.quiet() {
		return
	}
	w := l.w
	for _, t := range l.watch.order {
		if l.watch.others[t] && t.over {
			w.wrong("%v watches %v and has not heard of its end", l, t)
		}
	}
	if l.props.ignores {
		return
	}
	for _, t := range w.lives {
		if t.parent != l || !t.over {
			continue
		}
		c := l.cares(t)
		if !c.told && !c.silent && !c.unsure && (c.asked || !c.leaving) {
			w.wrong("%v has not heard of the end of its child %v", l, t)
		}
	}
}
