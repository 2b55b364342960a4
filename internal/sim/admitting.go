package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// admit asks whether a message would be refused.
const admit kind = "admit"

// planAdmit draws what is asked about.
func planAdmit(p *plan, rng *rand.Rand) step {
	s := step{pod: choose(rng, things, books, papers, papers, scratch), name: p.anyName(rng), n: rng.IntN(60)}
	if s.pod == things || s.pod == books {
		s.op, s.tag = choose(rng, "admit", "look"), rng.IntN(4) > 0
	}
	return s
}

// admit carries out a step about admissions.
func (w *process) admit(s step) {
	if s.op != "" {
		w.wouldHandle(s)
	} else {
		w.handles(s)
	}
}

// wouldHandle asks about a message to an entity with a log. The answer is an
// observation of the entity: at some moment of the call the message's condition
// held, or did not.
func (w *process) wouldHandle(s step) {
	o := &op{step: s, process: w.number, call: w.tick()}
	if tag, known := w.last[o.key()]; known && s.tag {
		o.cond = &tag
	}
	w.history = append(w.history, o)
	p, err := w.pods.Pod(s.pod)
	w.must(err)
	var msg any = entity.Delete(entity.Condition{Exists: true})
	if s.op == "admit" || s.n%2 == 0 {
		m, err := p.Spec().Wrap(map[string]any{"admit": touch{s.id}, "look": look{}}[s.op])
		w.must(err)
		msg = m
	}
	if m := msg.(*entity.Message); o.cond != nil {
		m.If.Match = []entity.ETag{*o.cond}
	}
	w.jobs++
	w.sys.Go(func() {
		begin := w.sys.Now()
		err := p.Admit(context.Background(), s.name, msg)
		w.jobs--
		if w.dead {
			return
		}
		o.err, o.ret = err, w.tick()
		switch {
		case err != nil:
			o.outcome = refused
		case w.sys.Now().Sub(begin) < time.Second:
			o.outcome = done
		default: // it says so when it cannot know
			o.outcome, o.ret = maybe, 0
		}
		w.note("%s at %s would be handled: %v", s.op, o.key(), err)
	})
}

// refuses reports whether an error is one by which a message is refused for what
// it asks.
func refuses(err error) bool {
	var no *entity.RejectedError
	if errors.As(err, &no) {
		return true
	}
	for _, is := range []error{entity.ErrNotFound, entity.ErrStale, entity.ErrCondition, entity.ErrNoValue, entity.ErrReused, entity.ErrMalformed, entity.ErrUnknownMessage, entity.ErrName} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// handles asks about a message to a document and then sends it, with nothing in
// between. Both must say the same; behind another message, what is refused at
// least must be.
func (w *process) handles(s step) {
	p, err := w.pods.Pod(s.pod)
	if err != nil {
		return
	}
	alone := w.jobs == 0
	for o := range w.waiting {
		alone = alone && o.key() != persist.Key{Pod: s.pod, Name: s.name}
	}
	var tag entity.ETag
	if v, there := p.Resident(s.name); there {
		tag = v.ETag()
	}
	if s.n%11 == 0 {
		s.name = ".."
	}
	var says, got error
	ended, led := false, s.n%4 == 1 // by a message that waits while it is asked, and changes what is so
	if led {
		_ = p.Tell(s.name, entity.Merge{"admitted": map[string]any{}}) // the mailbox may be full
	}
	w.jobs++
	w.sys.Go(func() {
		says = p.Admit(context.Background(), s.name, request(p, s, tag))
		reply := w.sys.OnReply(func(_ any, err error) {
			ended, got = true, err
			w.jobs--
		})
		if err := p.Ref(s.name).Post(actor.Message{Payload: request(p, s, tag), Reply: reply}); err != nil {
			reply.Fail(err)
		}
	})
	begin := w.sys.Now()
	w.exec.RunUntil(func() bool { return ended || w.sys.Now().Sub(begin) > time.Second })
	w.note("admit: %v, %v", says, got)
	switch {
	case !ended || !alone:
	case says == nil && led: // it need not have waited
	case says == nil && s.n%3 == 0 && errors.As(got, new(*entity.RejectedError)): // the first answer, again
	case says == nil && refuses(got):
		w.wrong("%v was admitted, and is refused: %v", s, got)
	case refuses(says) && (got == nil || refuses(got) && got.Error() != says.Error()):
		w.wrong("%v would be refused for %q, and gets: %v", s, says, got)
	}
}

// request makes a message to a document, as often as it is called. What it sets
// nobody else does.
func request(p *pod.Pod, s step, tag entity.ETag) any {
	kinds := []any{
		entity.Merge{"admitted": s.n}, entity.Merge{"admitted": map[string]any{"a": []any{s.n}}},
		entity.Set{Pointer: "/admitted/a", Value: s.n}, entity.Set{Pointer: "/admitted/b/c", Value: map[string]any{"d": nil}},
		entity.Remove{Pointer: "/admitted/a"}, entity.Remove{Pointer: "/admitted"}, entity.Remove{Pointer: "admitted"},
		entity.Patch{{Op: "add", Path: "/admitted", Value: s.n}}, entity.Patch{{Op: "test", Path: "/admitted", Value: s.n}},
		touch{s.id},
	}
	kind := kinds[s.n%len(kinds)]
	if s.n%3 == 0 {
		return entity.WithID(fmt.Sprintf("admit-%d", s.n%2), kind)
	}
	m, err := p.Spec().Wrap(kind)
	if err != nil {
		return kind
	}
	switch s.n % 8 {
	case 1:
		m.If.Match = []entity.ETag{tag}
	case 2:
		m.If.NoneMatch = []entity.ETag{tag}
	case 3:
		m.If.Absent = true
	case 4:
		m.If.Exists = true
	case 5:
		m.NoCreate = true
	case 6:
		m.Life = 1 + uint64(s.n)
	}
	return m
}
