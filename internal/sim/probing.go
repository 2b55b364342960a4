package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// probe is about what else pods can be asked for.
const probe kind = "probe"

// planProbe draws what is asked for.
func planProbe(p *plan, rng *rand.Rand) step {
	s := step{pod: choose(rng, things, books), name: p.anyName(rng), n: rng.IntN(20)}
	s.op = choose(rng, "read", "delete", "ask", "note", "note", "child", "child", "subscribe", "subscribe", "stay", "stay", "other", "other")
	return s
}

// probe carries out a step about what else there is.
func (w *process) probe(s step) {
	p, err := w.pods.Pod(s.pod)
	w.must(err)
	switch s.op {
	case "subscribe":
		w.subscribe(s)
	case "stay":
		w.stays(p, s)
	case "other":
		w.describe(p)
	default:
		w.byHandle(pod.Handle[journalled]{Pod: p}, s)
	}
}

// byHandle does by a typed handle, or by the pod, what commands do by messages.
func (w *process) byHandle(h pod.Handle[journalled], s step) {
	o := &op{step: s, process: w.number, call: w.tick()}
	o.kind = ask // who waits hears of it later
	if s.op == "read" {
		o.kind = get
	}
	w.history = append(w.history, o)
	w.jobs++
	w.sys.Go(func() {
		ctx, cancel := w.sys.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var v any
		var err error
		switch s.op {
		case "read":
			w.readTyped(ctx, h, o)
		case "delete":
			err = h.Delete(ctx, s.name)
		case "ask":
			o.op = "look"
			v, err = h.Ask(ctx, s.name, look{})
		case "note":
			v, err = w.byBytes(ctx, h.Pod, s)
		case "child":
			o.op = "note"
			v, err = w.byManager(ctx, s)
		}
		w.jobs--
		if !w.dead && s.op != "read" {
			w.answered(o, v, err)
		}
	})
}

func (w *process) readTyped(ctx context.Context, h pod.Handle[journalled], o *op) {
	v, err := h.Get(ctx, o.name)
	if w.dead {
		return
	}
	o.err, o.ret, o.outcome = err, w.tick(), refused
	switch {
	case err == nil:
		o.outcome, o.exists, o.life, o.revision, o.log, o.hasLog = done, true, v.Life, v.Revision, v.State.Log, true
	case errors.Is(err, entity.ErrNotFound):
		o.outcome = done
	}
	w.durable(o)
}

// byBytes sends a note as its bytes.
func (w *process) byBytes(ctx context.Context, p *pod.Pod, s step) (any, error) {
	what, body, err := p.Encode(s.pod, note{s.id})
	w.must(err)
	m, err := p.Decode(s.pod, what, body)
	w.must(err)
	return p.Ask(ctx, s.name, m)
}

// byManager has the pod's manager send a note. It also gets one for a name that
// there cannot be, which is a dead letter.
func (w *process) byManager(ctx context.Context, s step) (any, error) {
	manager, err := w.sys.Lookup("/user/pods/" + s.pod)
	if err != nil {
		return nil, err
	}
	_ = manager.TellFrom(pod.CreateChild{Name: "..", Message: note{s.id}}, w.keeper)
	return actor.Ask[any](ctx, manager, pod.CreateChild{Name: s.name, Message: note{s.id}})
}

// stays looks whether an entity whose passivation is paused stays in memory, where
// nothing else is done to it.
func (w *process) stays(p *pod.Pod, s step) {
	key := persist.Key{Pod: s.pod, Name: s.name}
	calm := !w.disturbed && w.jobs == 0 && len(w.waiting) == 0 && !w.halted[key]
	if _, there := p.Resident(s.name); !there || !calm || w.plan.idle < 0 || w.plan.idle > 50*time.Millisecond {
		p.ResumePassivation(s.name)
		return
	}
	p.PausePassivation(s.name)
	w.exec.RunFor(4 * w.plan.idle)
	if _, there := p.Resident(s.name); !there {
		w.wrong("%s has left memory, and was to stay", key)
	}
	if s.n%2 == 0 {
		p.ResumePassivation(s.name)
	}
}

// describe asks what there is, and for what there cannot be.
func (w *process) describe(p *pod.Pod) {
	for _, q := range w.pods.Quarantined() {
		if key := (persist.Key{Pod: q.Pod, Name: q.Name}); q.Reason == nil || !w.damaged[key] && !w.disturbed {
			w.wrong("G5: %s is said to be quarantined: %v", key, q.Reason)
		}
	}
	s := w.pods.Slots()
	w.note("%d slots are taken", s.Activating+s.Active+s.Removing+s.Passivating)
	w.jobs++
	w.sys.Go(func() {
		ctx := context.Background()
		declare := func(name, durability string) error {
			_, _, _, err := w.pods.Declare(ctx, name, pod.Definition{Type: entity.KindDocument, Durability: durability})
			return err
		}
		_, started := pod.Start(w.pods, w.logs(things, entity.Sync()))
		_, unknown := w.pods.Pod("nowhere")
		odd := []struct{ got, want error }{
			{started, pod.ErrExists}, {unknown, pod.ErrNoPod},
			{declare(p.Name(), "sync"), pod.ErrExists}, {declare(papers, "volatile"), pod.ErrExists}, {declare(papers, "sometimes"), entity.ErrDefinition},
			{w.pods.Drop(ctx, p.Name(), true), pod.ErrReadOnly}, {w.pods.Drop(ctx, "nowhere", true), pod.ErrNoPod},
			{p.Post(persist.Key{Pod: "nowhere", Name: "e0"}, actor.Message{Payload: look{}}), pod.ErrNoPod},
			{p.Tell("..", look{}), entity.ErrName}, {p.Tell("e0", struct{}{}), entity.ErrUnknownMessage},
		}
		w.jobs--
		for i, o := range odd {
			if !w.dead && !errors.Is(o.got, o.want) && !w.ending {
				w.wrong("oddity %d of %s gives %v, and not: %v", i, p.Name(), o.got, o.want)
			}
		}
	})
}
