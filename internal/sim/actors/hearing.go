package actors

import (
	"context"

	"github.com/twinsrv/twinsrv/actor"
)

// hearing is an actor's subscription to all events, or all dead letters: from
// where on, and what it got.
type hearing struct {
	events, zombies subscription
	gotEvents       []actor.Event
	gotZombies      []actor.ZombieMsg
}

// subscription says which part of a list an actor is to get.
type subscription struct {
	on       bool
	once     bool // there was one, so what was got is from several
	from, to int
}

func (s *subscription) begin(at int) {
	if s.on {
		return
	}
	s.on, s.from, s.to = true, at, -1
}

func (h *hearing) event(e actor.Event)      { h.gotEvents = append(h.gotEvents, e) }
func (h *hearing) zombie(z actor.ZombieMsg) { h.gotZombies = append(h.gotZombies, z) }

// hear subscribes l by a call.
func (l *life) hear(events bool) {
	w := l.w
	if l.heard.events.once || l.heard.zombies.once {
		return // it does by a message
	}
	if events {
		w.sys.Events().SubscribeRef(l.ref)
		l.heard.events.begin(len(w.events))
	} else {
		w.sys.DeadLetters().SubscribeRef(l.ref)
		w.overheard = true
		l.heard.zombies.begin(len(w.zombies))
	}
}

// subscribing subscribes or unsubscribes by a message, which is asked, so that
// it is known when it holds.
func (w *world) subscribing(l *life, s step) {
	path, sub, list := "/system/events", &l.heard.events, func() int { return len(w.events) }
	if s.n == 2 {
		path, sub, list = "/system/deadletters", &l.heard.zombies, func() int { return len(w.zombies) }
	}
	if l.isRouter || l.props.policy != actor.Unbounded || l.props.custom || sub.once || (s.kind == unsubscribe) != sub.on || w.halted {
		return
	}
	sub.once = true
	w.note("%s %v to %s", s.kind, l, path)
	var msg any = actor.Subscribe{Ref: l.ref}
	if s.kind == unsubscribe {
		msg = actor.Unsubscribe{Ref: l.ref}
	}
	to, err := w.sys.Lookup(path)
	if err != nil {
		w.wrong("%v", err)
		return
	}
	ended := false
	reply := w.sys.OnReply(func(_ any, err error) {
		ended = true
		switch {
		case err != nil:
			w.wrong("%T to %s: %v", msg, path, err)
		case s.kind == subscribe:
			sub.begin(list())
			w.overheard = true
		default:
			sub.on, sub.to = false, list()
		}
	})
	_ = to.Post(actor.Message{Payload: msg, Reply: reply})
	w.probes++
	w.sys.Go(func() {
		defer func() { w.probes-- }()
		_ = w.sys.Sleep(context.Background(), 1)
		if !ended {
			w.wrong("%T to %s was not answered", msg, path)
		}
	})
}

// complete looks, when all is quiet, whether a subscriber has got everything.
func (h *hearing) complete(l *life) {
	if !l.quiet() {
		return
	}
	w := l.w
	if s := h.events; s.on || s.to > 0 {
		to := s.to
		if s.on {
			to = len(w.events)
		}
		same := len(h.gotEvents) == to-s.from
		for i := range h.gotEvents {
			same = same && h.gotEvents[i] == w.events[s.from+i]
		}
		if !same {
			w.wrong("%v got %d events and not %d, or others", l, len(h.gotEvents), to-s.from)
		}
	}
	if s := h.zombies; s.on || s.to > 0 {
		to := s.to
		if s.on {
			to = len(w.zombies)
		}
		same := len(h.gotZombies) == to-s.from
		for i := range h.gotZombies {
			same = same && h.gotZombies[i].To == w.zombies[s.from+i].To && h.gotZombies[i].At.Equal(w.zombies[s.from+i].At)
		}
		if !same {
			w.wrong("%v got %d dead letters and not %d, or others", l, len(h.gotZombies), to-s.from)
		}
	}
}
