package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// panics returns what f panics with; nothing when it does not.
func panics(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// misuse does what has no sense. The call panics and says why, and nothing else
// comes of it.
func (t *turn) misuse(o op) {
	l, w, ctx := t.body.life, t.body.w, t.ctx
	lost := &haunting{l}
	var f func()
	var why string
	switch o.n % 6 {
	case 0:
		f, why = func() { ctx.DelegateTo(ctx.Self()) }, "another actor"
	case 1:
		f, why = func() { ctx.DelegateTo(nil) }, "another actor"
	case 2:
		f, why = func() { ctx.PipeTo(nil, func(context.Context) (any, error) { return lost, nil }) }, "needs an actor"
	case 3:
		f, why = func() { ctx.ScheduleEvery(0, l.ref, lost) }, "above zero"
	case 4:
		f, why = func() { ctx.ScheduleOnce(o.d, nil, lost) }, "needs an actor"
	default:
		w.sys.After(o.d, func() { l.outside(ctx) })
		return
	}
	if text := panics(f); !strings.Contains(text, why) {
		w.wrong("%v does what has no sense (%d): %q", l, o.n%6, text)
	}
}

// outside uses a Context when its call is over.
func (l *life) outside(ctx *actor.Context) {
	if l.busy {
		return // it sleeps in a handler
	}
	if text := panics(func() { _ = ctx.Tell(l.ref, &haunting{l}) }); !strings.Contains(text, l.path+" ") {
		l.w.wrong("a Context of %v was used outside its call: %q", l, text)
	}
}

// haunting is what must reach nobody.
type haunting struct{ by *life }

// lastThings does, in PostStop, what can have no consequences any more.
func (b *body) lastThings(ctx *actor.Context) {
	l, w := b.life, b.w
	if timer := ctx.ScheduleOnce(time.Millisecond, w.sys.User(), &haunting{l}); timer.Stop() {
		w.wrong("%v, which has stopped, has set a timer", l)
	}
	if to := l.parent; to != nil {
		ctx.DelegateTo(to.ref)
		ctx.Watch(to.ref)
	}
	if err := ctx.Context().Err(); !errors.Is(err, context.Canceled) {
		w.wrong("%v has stopped, and its context says %v", l, err)
	}
	if err := ctx.Stash(); err == nil || errors.Is(err, actor.ErrMailboxFull) || !strings.Contains(err.Error(), l.path) {
		w.wrong("%v stashes without a message: %v", l, err)
	}
}

// odd names: what a path must not have as it is, and what looks like the names
// that the runtime makes up.
func oddName(n int) string {
	return []string{"50%", "a/b", "*", "%2F", "$A1", "$zzzzzzz", "$1", "$0"}[n%8]
}

// escaped is a name as paths have it.
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c == '%' || c == '/' || c == '*' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// naming spawns a child with an odd name, which is then found by it.
func (w *world) naming(l *life, s step) {
	if l.isRouter {
		return
	}
	name := oddName(s.n)
	w.bear(l, name, s.props, l.ref.Spawn)
	k := w.at[l.path+"/"+escaped(name)]
	if k == nil {
		return
	}
	for x := k; x != nil; x = x.parent {
		if x.over || x.replaced {
			return // the path leads to another
		}
	}
	child, ok := l.ref.Child(name)
	found, err := w.sys.Lookup(l.path + "/" + escaped(name))
	all := l.ref.Select("./" + escaped(name)).Refs()
	if !ok || child != k.ref || err != nil || found != k.ref || len(all) != 1 || all[0] != k.ref || k.ref.Name() != name {
		w.wrong("%q under %v is %v, %v (%v) and %v, and not %v", name, l, child, found, err, all, k)
	}
}
