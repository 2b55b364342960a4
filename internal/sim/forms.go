package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// fill is a step about a document with a schema.
const fill kind = "fill"

// forms is the pod of documents whose schema changes at times.
const forms = "forms"

// planForm is one step about forms, behind a few others.
func planForm(p *plan, rng *rand.Rand) step {
	if !p.forms {
		return step{}
	}
	name := p.anyName(rng)
	do := func(ops ...string) step {
		return step{kind: fill, op: choose(rng, ops...), pod: forms, name: name, n: rng.IntN(1 << 20), who: rng.IntN(senders), tag: rng.IntN(10) == 0}
	}
	change := func() step {
		return do("merge", "merge", "set", "set", "set", "remove", "patch", "patch", "patch", "patch", "delete", "read")
	}
	if rng.IntN(8) == 0 {
		p.add(change())
		return do("declare")
	}
	for range rng.IntN(7) {
		p.add(change())
	}
	return do("merge", "set", "patch", "read", "passivate")
}

// form is one operation on a document with a schema, and what came of it.
type form struct {
	step
	change    change
	where     *holds // it is done in such a state alone
	cond      *entity.ETag
	must      string // exist, be absent, or be at another revision than cond
	call, ret int    // events; ret 0: no answer
	outcome   outcome
	err       error
	life, rev uint64
	exists    bool // of a read
	text      string
}

// declared is a definition of the pod that may hold, between two events.
type declared struct {
	version  int
	from, to int // to 0: it may hold still
	answered bool
}

// files is what is known of the forms in a run.
type files struct {
	forms    []*form
	versions []*declared
	last     map[string]entity.ETag // the last revision that was seen
}

// openForms declares the pod, unless the store has it.
func (w *process) openForms() {
	if !w.plan.forms {
		return
	}
	if w.files == nil {
		w.files = &files{last: map[string]entity.ETag{}}
	}
	if _, err := w.pods.Pod(forms); err != nil {
		w.must(w.declareForms(0))
	}
}

// declareForms changes the schema, and what creates a form.
func (w *process) declareForms(version int) error {
	d := &declared{version: version, from: w.tick()}
	w.files.versions = append(w.files.versions, d)
	begin := w.sys.Now()
	p, _, _, err := w.pods.Declare(context.Background(), forms, pod.Definition{
		Type: entity.KindDocument, Schema: json.RawMessage(formSchemas()[version]), Create: pod.CreateDefinition{By: creators(version)},
	})
	if w.dead {
		return err
	}
	d.answered = true
	w.note("forms are declared as of version %d: %v", version, err)
	// Entities in memory that cannot leave it in time keep what held before.
	if err == nil && w.sys.Now().Sub(begin) < time.Second {
		now := w.tick()
		for _, other := range w.files.versions {
			if other.to == 0 && other.from < d.from && other.answered {
				other.to = now
			}
		}
		if text := string(p.Spec().Schema()); text != canonical(formSchemas()[version]) {
			w.wrong("the schema of %s is %s", forms, text)
		}
	}
	return err
}

// creators are the messages that create a form.
func creators(version int) []string {
	if version == 0 {
		return nil // as documents have it: merge and set
	}
	return []string{"merge", "set", "patch"}
}

// possible are the versions that may hold at some moment between two events.
func (f *files) possible(from, to int) (versions []int) {
	for _, d := range f.versions {
		if (d.to == 0 || d.to > from) && (to == 0 || d.from < to) && !slices.Contains(versions, d.version) {
			versions = append(versions, d.version)
		}
	}
	return versions
}

// fillForm carries out a step about forms.
func (w *process) fillForm(s step) {
	switch s.op {
	case "declare":
		w.jobs++
		w.sys.Go(func() {
			w.refuseSchema(s.n)
			_ = w.declareForms(s.n % len(formSchemas()))
			w.jobs--
		})
		return
	case "read":
		w.readForm(s.name)
		return
	}
	f := w.newForm(s)
	msg, err := w.formMessage(f)
	if err != nil {
		w.malformed(f, err)
		return
	}
	if s.op != "passivate" {
		w.files.forms = append(w.files.forms, f)
	}
	w.postForm(f, msg, func(v any, err error) { w.formed(f, v, err) })
}

// newForm is what a step is to do.
func (w *process) newForm(s step) *form {
	f := &form{step: s, call: w.tick()}
	rng := rand.New(rand.NewPCG(uint64(s.n), uint64(s.at)))
	f.change = newChange(rng, s.op)
	if s.tag && s.op != "passivate" {
		tag, seen := w.files.last[s.name]
		switch {
		case seen && s.n%2 == 0:
			f.cond = &tag
			f.must = choose(rng, "", "", "another")
		case s.n%5 == 0:
			f.must = choose(rng, "exist", "absent")
		default:
			f.where = &holds{pointer: choose(rng, "/n", "/kind", "/sub/x", "/tags/0"), text: choose(rng, "1", `"a"`, "3", `"x"`)}
		}
	}
	return f
}

// formMessage makes the message of an operation, in one of the ways there are.
func (w *process) formMessage(f *form) (any, error) {
	p, err := w.pods.Pod(forms)
	w.must(err)
	var m *entity.Message
	switch spec, c := p.Spec(), f.change; {
	case f.op == "passivate":
		return entity.Passivate(), nil
	case f.op == "delete":
		m = entity.Delete(entity.Condition{})
	case f.n%3 == 0:
		m, err = spec.Wrap(c.message())
	case f.n%3 == 1 && c.kind == "set" && c.pointer == "" && !c.merge:
		m, err = spec.Replace([]byte(text(c.value)))
	case f.n%3 == 1 && c.kind == "set" && c.merge:
		m, err = spec.MergeAt(c.pointer, []byte(text(c.value)))
	case f.n%3 == 1 && c.kind == "set":
		m, err = spec.SetAt(c.pointer, []byte(text(c.value)))
	case f.n%3 == 1 && c.kind == "remove":
		m, err = spec.RemoveAt(c.pointer)
	default:
		m, err = spec.Parse(c.kind, []byte(c.body()))
	}
	if err != nil {
		return nil, err
	}
	switch {
	case f.must == "another":
		m.If.NoneMatch = []entity.ETag{*f.cond}
	case f.cond != nil:
		m.If.Match = []entity.ETag{*f.cond}
	}
	m.If.Exists, m.If.Absent = f.must == "exist", f.must == "absent"
	if f.where != nil {
		m.If.Where = f.where
	}
	return m, nil
}

// malformed judges what is refused before it is sent.
func (w *process) malformed(f *form, err error) {
	w.note("%v: %v", f.change, err)
	if !f.change.malformed() || !errors.Is(err, entity.ErrMalformed) {
		w.wrong("the message %v is refused before it is sent: %v", f.change, err)
	}
}

// postForm sends a message to a form.
func (w *process) postForm(f *form, msg any, answered func(v any, err error)) {
	w.jobs++
	reply := w.sys.OnReply(func(v any, err error) {
		w.jobs--
		if !w.dead {
			answered(v, err)
		}
	})
	if err := w.ref(forms, f.name).Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// formed notes what came of an operation.
func (w *process) formed(f *form, v any, err error) {
	f.ret, f.err = w.tick(), err
	switch a, _ := v.(entity.Ack); {
	case err == nil:
		f.outcome, f.life, f.rev = done, a.Life, a.Revision
		w.files.last[f.name] = entity.ETag{Life: a.Life, Revision: a.Revision}
	case errors.Is(err, persist.ErrUnknown), errors.Is(err, actor.ErrTimeout):
		f.ret = 0
	default:
		f.outcome = refused
	}
	w.note("%s of %s [%s/%s] %v: %d-%d %v", f.op, f.id, forms, f.name, f.change, f.life, f.rev, err)
}

// readForm looks at a form's acknowledged state.
func (w *process) readForm(name string) {
	f := &form{step: step{kind: fill, op: "read", pod: forms, name: name}, call: w.tick()}
	w.files.forms = append(w.files.forms, f)
	w.jobs++
	w.sys.Go(func() {
		p, err := w.pods.Pod(forms)
		w.must(err)
		v, err := p.Get(context.Background(), name)
		w.jobs--
		if w.dead {
			return
		}
		f.ret, f.err = w.tick(), err
		switch {
		case err == nil:
			f.outcome, f.exists, f.life, f.rev = done, true, v.Life, v.Revision
			w.viewedForm(f, &v)
		case errors.Is(err, entity.ErrNotFound):
			f.outcome = done
		default:
			f.outcome = refused
		}
		w.note("%s/%s is %d-%d %s %v", forms, name, f.life, f.rev, f.text, err)
	})
}

// viewedForm notes a form's text, and reads parts of it by pointers.
func (w *process) viewedForm(f *form, v *pod.View) {
	state, err := v.JSON()
	if err != nil {
		w.wrong("G5: %s/%s is shown and cannot be decoded: %v", forms, f.name, err)
		return
	}
	f.text = canonical(string(state))
	whole := parsed(f.text)
	object, _ := whole.(map[string]any)
	for _, pointer := range formPointers() {
		path, is := tokensOf(pointer)
		want, there := find(whole, path)
		got, err := entity.ValueAt(state, pointer)
		same, errAt := entity.Object(object).At(pointer)
		switch {
		case !is && errors.Is(err, entity.ErrMalformed) && errors.Is(errAt, entity.ErrMalformed):
		case is && !there && errors.Is(err, entity.ErrNoValue) && errors.Is(errAt, entity.ErrNoValue):
		case is && there && err == nil && errAt == nil && string(got) == text(want) && text(same) == text(want):
		default:
			w.wrong("at %q of %s there is %s, and %s is read: %v, %v", pointer, f.text, text(want), got, err, errAt)
		}
	}
}

// holds is a condition on a form: that at a pointer there is this.
type holds struct{ pointer, text string }

func (h *holds) String() string { return fmt.Sprintf("%s == %s", h.pointer, h.text) }

// Holds implements entity.Predicate.
func (h *holds) Holds(_, _ uint64, _ time.Time, _, _ string, state []byte) (bool, error) {
	v, err := entity.ValueAt(state, h.pointer)
	if errors.Is(err, entity.ErrNoValue) {
		return false, nil
	}
	return string(v) == h.text, err
}

// in says whether the condition holds in the model.
func (h *holds) in(state any) bool {
	path, _ := tokensOf(h.pointer)
	v, there := find(state, path)
	return there && text(v) == h.text
}
