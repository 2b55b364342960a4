package actors

import (
	"context"
	"errors"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
)

// hearing is an actor's subscription to all events, or all dead letters: from
// where on, and what it got.
type hearing struct {
	events, zombies subscription
	missed          int // as its mailbox was full
	gotEvents       []actor.Event
	gotZombies      []actor.ZombieMsg
}

// subscription says which part of a list an actor is to get.
type subscription struct {
	on       bool
	asked    bool // a message about it is on its way
	undone   bool // it was, and so there is no other
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
	for _, sub := range []*subscription{&l.heard.events, &l.heard.zombies} {
		if sub.asked || sub.on || sub.undone {
			return // it does by a message
		}
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
	if l.isRouter || l.props.policy != actor.Unbounded || l.props.custom || sub.asked || sub.undone || s.kind == unsubscribe && !sub.on || w.halted {
		return
	}
	sub.asked = true
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
		ended, sub.asked = true, false
		switch {
		case w.halted && errors.Is(err, actor.ErrStopped):
		case err != nil:
			w.wrong("%T to %s: %v", msg, path, err)
		case s.kind == subscribe:
			sub.begin(list())
			w.overheard = true
		default:
			sub.on, sub.undone, sub.to = false, true, list()
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
	w := l.w
	if !l.quiet() {
		return
	}
	for _, x := range w.lives {
		if x.delegates[l] > 0 {
			return // what x has heard may have come here, too
		}
	}
	if s := h.events; s.on || s.to > 0 {
		to := s.to
		if s.on {
			to = len(w.events)
		}
		same := len(h.gotEvents) == to-s.from-h.missed
		for i, at := 0, s.from; same && i < len(h.gotEvents); i, at = i+1, at+1 {
			for h.missed > 0 && at < to && h.gotEvents[i] != w.events[at] {
				at++
			}
			same = at < to && h.gotEvents[i] == w.events[at]
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
		var all []actor.ZombieMsg // but what it has sent itself
		for _, z := range w.zombies[s.from:to] {
			if z.Message.Sender != l.ref {
				all = append(all, z)
			}
		}
		same := len(h.gotZombies) == len(all)-h.missed
		as := func(x, y actor.ZombieMsg) bool { return x.To == y.To && x.At.Equal(y.At) }
		for i, at := 0, 0; same && i < len(h.gotZombies); i, at = i+1, at+1 {
			for h.missed > 0 && at < len(all) && !as(h.gotZombies[i], all[at]) {
				at++
			}
			same = at < len(all) && as(h.gotZombies[i], all[at])
		}
		if !same {
			w.wrong("%v got %d dead letters and not %d, or others", l, len(h.gotZombies), len(all))
		}
	}
}

// mishearing subscribes where there is nothing to hear, or nobody to tell. Such
// a message reaches nobody, and is a dead letter.
func (w *world) mishearing(s step) {
	if w.halted {
		return
	}
	path := []string{"/user", "/system/events", "/system/deadletters"}[s.n%3]
	var who *actor.Ref
	if path == "/user" {
		who = w.sys.User()
	}
	var msg any = actor.Subscribe{Ref: who}
	if s.n%2 == 0 {
		msg = actor.Unsubscribe{Ref: who}
	}
	to, err := w.sys.Lookup(path)
	if err != nil {
		w.wrong("%v", err)
		return
	}
	reply := w.sys.OnReply(func(_ any, err error) {
		w.misheard--
		if w.halted {
			return
		}
		dead := len(w.zombies) > 0 && w.zombies[len(w.zombies)-1].Message.Payload == msg
		if err == nil || !dead || !strings.Contains(err.Error(), path) {
			w.wrong("%T of nobody to %s: %v, a dead letter: %v", msg, path, err, dead)
		}
	})
	w.misheard++
	if err := to.Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		w.wrong("%T to %s: %v", msg, path, err)
	}
}
