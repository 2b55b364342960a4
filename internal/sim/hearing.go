package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// hearing is what a process has been told of creations and of dead letters.
type hearing struct {
	created []pod.CreatedChild
	letters map[string]uint64 // by pod
	ears    []*ear
}

// ear is an actor that has subscribed to the creations of a pod.
type ear struct {
	ref       *actor.Ref
	pod       string
	heard     []pod.CreatedChild
	low, high int  // of how many creations of the pod it need not have heard, and did not hear
	open      bool // its subscription was answered
}

// of returns the creations of a pod.
func (h *hearing) of(name string) (all []pod.CreatedChild) {
	for _, c := range h.created {
		if c.Pod == name {
			all = append(all, c)
		}
	}
	return all
}

// listen begins to hear, before anything is sent to a pod.
func (w *process) listen() {
	w.hearing.letters = map[string]uint64{}
	w.pods.OnCreated(w.born)
	if w.seed%8 == 3 { // whoever panics harms nobody
		w.pods.OnCreated(func(pod.CreatedChild) { panic("on purpose") })
		w.pods.OnChange(func(persist.Change) { panic("on purpose") })
	}
	w.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		if pod, _, is := strings.Cut(strings.TrimPrefix(z.To, "/user/pods/"), "/"); is && !w.dead {
			w.hearing.letters[pod]++
		}
	})
}

// born looks whether a creation is told once, and is durable.
func (w *process) born(c pod.CreatedChild) {
	if w.dead {
		return
	}
	if slices.Contains(w.hearing.created, c) {
		w.wrong("G4: the creation of %s/%s in life %d is told twice", c.Pod, c.Name, c.Life)
	}
	w.hearing.created = append(w.hearing.created, c)
	first := w.chronicle.at(c.Life)
	if c.Pod != scratch && (first == nil || first.Key != persist.Key{Pod: c.Pod, Name: c.Name} || first.Life != c.Life) {
		w.wrong("G2: the creation of %s/%s in life %d is told, and the store does not have it", c.Pod, c.Name, c.Life)
	}
}

// subscribe has one more actor hear of a pod's creations, or one no longer.
func (w *process) subscribe(s step) {
	h := &w.hearing
	manager, err := w.sys.Lookup("/user/pods/" + s.pod)
	if err != nil {
		return
	}
	if len(h.ears) > 2 {
		e := h.ears[0]
		h.ears = h.ears[1:]
		if s.n%2 == 0 {
			e.ref.Stop()
		} else {
			_ = manager.TellFrom(actor.Unsubscribe{Ref: e.ref}, w.keeper) // nobody waits for it
		}
		return
	}
	e := &ear{pod: s.pod, low: len(h.of(s.pod))}
	e.ref, err = w.sys.Spawn("ear-"+s.id, actor.PropsFunc(func(_ *actor.Context, msg any) error {
		if c, is := msg.(pod.CreatedChild); is {
			e.heard = append(e.heard, c)
		}
		return nil
	}))
	w.must(err)
	h.ears = append(h.ears, e)
	w.jobs++
	w.sys.Go(func() {
		_, err := actor.Ask[any](context.Background(), manager, actor.Subscribe{Ref: e.ref})
		w.jobs--
		e.open, e.high = err == nil, len(h.of(s.pod))
	})
}

// checkHearing looks, at rest, whether everybody who has subscribed has heard the
// same, and whether as many dead letters are counted as there were.
func (w *process) checkHearing() {
	h := &w.hearing
	for _, e := range h.ears {
		all := h.of(e.pod)
		if k := len(all) - len(e.heard); e.open && (k < e.low || k > e.high || !slices.Equal(all[k:], e.heard)) {
			w.wrong("of %v a subscriber to %s, behind %d to %d, has heard %v", all, e.pod, e.low, e.high, e.heard)
		}
	}
	for _, p := range w.pods.All() {
		if was, is := h.letters[p.Name()], w.pods.DeadLetters(p.Name()); p.Name() != scratch && was != is {
			w.wrong("G7: %s is said to have %d dead letters, and had %d", p.Name(), is, was)
		}
	}
	for _, o := range w.history {
		told := pod.CreatedChild{Pod: o.pod, Name: o.name, Life: o.life}
		if o.created && o.outcome == done && o.process == w.number && o.pod != beats && !slices.Contains(h.created, told) {
			w.wrong("the creation of %s in life %d was acknowledged, and not told", o.key(), o.life)
		}
	}
}
