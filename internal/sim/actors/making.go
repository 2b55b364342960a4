package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/router"
)

// making is a step that spawns something.
func (w *world) making(s step) {
	path := "/user/" + slots[s.slot]
	cut := strings.LastIndexByte(path, '/')
	parent, name := w.at[path[:cut]], path[cut+1:]
	under := w.sys.User()
	if parent != nil {
		under = parent.ref
	} else if strings.Count(path, "/") > 2 {
		return // it has no parent
	}
	switch s.kind {
	case spawn:
		w.bear(parent, name, s.props, under.Spawn)
	case ensure:
		w.ensure(parent, under, name, s)
	case rate:
		w.router(parent, under, name, s)
	case brood:
		if parent = w.at[path]; parent != nil && !parent.isRouter {
			for range s.n {
				w.bear(parent, "", s.props, parent.ref.Spawn)
			}
		}
	default:
		w.misnaming(under, s.n)
	}
}

// bear spawns an actor and looks whether that was to succeed.
func (w *world) bear(parent *life, name string, p *props, spawn func(string, actor.Props) (*actor.Ref, error)) {
	l := w.live(parent, p)
	l.called = name
	holder, stopped := w.holder(parent, name)
	r, err := spawn(name, w.actorProps(l, p))
	w.judgeBirth(parent, name, holder, stopped, err)
	if err == nil {
		l.born(r)
	}
}

// holder is who has a name, and whether its parent takes no more children.
func (w *world) holder(parent *life, name string) (holder *life, stopped bool) {
	path := "/user/" + escaped(name)
	stopped = w.sys.User().Stopped()
	if parent != nil {
		path, stopped = parent.path+"/"+escaped(name), parent.ref.Stopped()
	}
	holder = w.at[path]
	if holder != nil && (holder.over || holder.parent != parent || name == "") {
		holder = nil
	}
	return holder, stopped
}

func (w *world) judgeBirth(parent *life, name string, holder *life, stopped bool, err error) {
	busy := parent != nil && parent.busy // it may have retired in this very call
	switch {
	case err == nil && (holder != nil || stopped && !busy):
		w.wrong("%q was spawned under %v, which stops: %v, though %v has the name", name, parent, stopped, holder)
	case errors.Is(err, actor.ErrAlreadyExists) && holder == nil:
		w.wrong("%q under %v is said to be taken and is not", name, parent)
	case errors.Is(err, actor.ErrStopped) && !stopped:
		w.wrong("%v is said to have stopped and has not", parent)
	case err != nil && !errors.Is(err, actor.ErrAlreadyExists) && !errors.Is(err, actor.ErrStopped):
		w.wrong("%q under %v: %v", name, parent, err)
	}
	if err != nil {
		w.note("%q under %v is not spawned: %v", name, parent, err)
	}
}

func (w *world) ensure(parent *life, under *actor.Ref, name string, s step) {
	p := s.props
	l := w.live(parent, p)
	holder, stopped := w.holder(parent, name)
	r, created, err := under.EnsureChild(name, func() actor.Props {
		w.meanwhile(parent, under, name, s)
		holder, stopped = w.holder(parent, name)
		return w.actorProps(l, p)
	})
	if holder != nil && holder.ref.Stopped() {
		if created {
			holder.replaced = true
		}
		holder = nil
	}
	switch {
	case err != nil:
		w.judgeBirth(parent, name, nil, stopped, err)
	case created:
		w.judgeBirth(parent, name, holder, stopped, nil)
		l.born(r)
	case holder == nil || r != holder.ref:
		w.wrong("EnsureChild %q under %v returns %v, and not %v", name, parent, r, holder)
	}
}

// meanwhile is what others do between EnsureChild's look for the child and its
// spawn: they make that child, or stop the parent.
func (w *world) meanwhile(parent *life, under *actor.Ref, name string, s step) {
	switch {
	case s.n == 1:
		w.bear(parent, name, s.props, under.Spawn)
	case s.n == 2 && parent != nil:
		w.note("stop %v", parent)
		parent.asked++
		parent.ref.Stop()
		for range 20 {
			w.exec.Step()
		}
	}
}

// router spawns one.
func (w *world) router(parent *life, under *actor.Ref, name string, s step) {
	p := *s.props
	p.failNew, p.claims, p.custom, p.hears = 0, false, false, 0
	p.leaves = false
	p.begin = slices.DeleteFunc(slices.Clone(p.begin), func(o op) bool {
		// Or each new worker would end, or have another ended, and the router go
		// on making new ones.
		return o.kind == opQuit || o.kind == opTell && o.slot >= routers
	})
	if p.policy != actor.Unbounded {
		p.policy = actor.Fail
	} else {
		p.capacity = 0 // it was that of a Queue of one's own
	}
	l := w.live(parent, &props{rule: p.rule, ignores: true})
	l.isRouter = true
	holder, stopped := w.holder(parent, name)
	r, err := router.Spawn(under, name, router.Config{
		Workers: 1 + s.n, Worker: w.actorProps(l, &p), Route: router.Route(s.n), Supervisor: p.rule.strategy(),
	})
	w.judgeBirth(parent, name, holder, stopped, err)
	if err == nil {
		l.born(r)
		l.workers = router.Route(s.n) == router.Broadcast
	}
}

// routing sends what only routers understand.
func (w *world) routing(l *life, s step) {
	if !l.isRouter {
		return
	}
	if s.kind == resize {
		w.note("%v is resized to %d", l, s.n)
		_ = l.ref.Tell(router.Resize{Workers: s.n})
		l.misfits = append(l.misfits, -s.n)
		_ = l.ref.Tell(router.Resize{Workers: -s.n})
		return
	}
	p := w.parcel(s.letter, "out", nil, l)
	p.many = true
	w.note("%v to all of %v", p, l)
	p.posted(l.ref.Tell(router.ToAll{Message: p.payload()}))
}

const misnomers = 12

// misnaming spawns what cannot be.
func (w *world) misnaming(under *actor.Ref, n int) {
	good := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	p, name := good, "fine"
	switch n {
	case 0:
		p.New = nil
	case 1:
		p.Mailbox = actor.Mailbox{Policy: actor.Fail}
	case 2:
		p.Mailbox = actor.Mailbox{Policy: actor.DropOldest + 1, Capacity: 1}
	case 3:
		p.Mailbox = actor.Mailbox{Capacity: 1, New: func() actor.Queue { return &lanes{} }}
	case 4:
		name = "."
	case 5:
		name = "null\x00"
	case 6:
		name = "\xff"
	case 7:
		name = strings.Repeat("x", 257)
	case 8, 9:
		name = ".."
	default:
		name = ""
	}
	_, created, err := under.EnsureChild(name, func() actor.Props { return p })
	if err == nil || created || !errors.Is(err, actor.ErrInvalid) && !errors.Is(err, actor.ErrStopped) {
		w.wrong("what has no sense was spawned (%d): %v", n, err)
	}
	if name == "" {
		return // Spawn makes one up
	}
	if _, err = under.Spawn(name, p); !errors.Is(err, actor.ErrInvalid) {
		w.wrong("what has no sense was spawned (%d): %v", n, err)
	}
	w.note("%s", fmt.Sprint(err))
}
