package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// moment is where in a form's history a state stands.
type moment struct{ life, rev uint64 }

func (m moment) compare(o moment) int {
	return cmp.Or(cmp.Compare(m.life, o.life), cmp.Compare(m.rev, o.rev))
}

// ended is the revision of the moment when a life is over.
const ended = ^uint64(0)

// story is one form's history: at each moment the states that explain what was
// acknowledged and read. Nil stands for a form that does not exist.
type story struct {
	*files
	name   string
	ops    []*form
	states map[moment]map[string]any // by their text
	vague  bool                      // there are more states than are followed
}

// checkForms replays each form's changes in the order of their revisions.
func (w *process) checkForms() {
	if w.files == nil {
		return
	}
	w.admitForms()
	for i := range w.plan.names {
		w.readForm(entityName(i))
	}
	w.exec.RunUntil(func() bool { return w.jobs == 0 })
	by := map[string][]*form{}
	for _, f := range w.files.forms {
		by[f.name] = append(by[f.name], f)
	}
	for _, name := range sortedKeys(by) {
		s := &story{files: w.files, name: name, ops: by[name], states: map[moment]map[string]any{{}: {"": nil}}}
		if problem := s.replay(); problem != "" {
			w.wrong("G5: %s/%s: %s", forms, name, problem)
			continue
		}
		for _, f := range s.ops {
			if f.outcome == refused && !s.vague && !s.explains(f) {
				w.wrong("G3: %v %v was refused, and nothing explains it: %v", f.step, f.change, f.err)
			}
		}
	}
}

// lives returns the lives that were seen, each with its last revision.
func (s *story) lives() map[uint64]uint64 {
	lives := map[uint64]uint64{}
	for _, f := range s.ops {
		if f.outcome == done && f.life > 0 {
			lives[f.life] = max(lives[f.life], f.rev)
		}
	}
	return lives
}

// replay finds the states of all lives, or says what has none.
func (s *story) replay() string {
	lives := s.lives()
	for _, life := range slices.Sorted(maps.Keys(lives)) {
		before := map[string]any{"": nil}
		for rev := uint64(1); rev <= lives[life]; rev++ {
			m := moment{life, rev}
			if s.endedAt(m) {
				s.states[m] = before
				break
			}
			after := s.step(m, before)
			if len(after) == 0 {
				return fmt.Sprintf("nothing explains revision %d-%d, behind %v:\n%s", life, rev, slices.Sorted(maps.Keys(before)), s.describe(m))
			}
			if len(after) > 100 {
				s.vague = true
				return ""
			}
			s.states[m], before = after, after
		}
		s.states[moment{life, ended}] = map[string]any{"": nil}
	}
	return ""
}

func (s *story) describe(m moment) string {
	var b strings.Builder
	for _, f := range s.ops {
		if f.outcome == maybe || f.outcome == done && (moment{f.life, f.rev}) == m {
			fmt.Fprintf(&b, "  [%d, %d] %v %v: outcome %d %d-%d %s\n", f.call, f.ret, f.step, f.change, f.outcome, f.life, f.rev, f.text)
		}
	}
	return b.String()
}

// endedAt says that a life ended with a revision.
func (s *story) endedAt(m moment) bool {
	return slices.ContainsFunc(s.ops, func(f *form) bool {
		return f.op == "delete" && f.outcome == done && f.life == m.life && f.rev == m.rev
	})
}

// step returns the states of a revision, each made by one operation from a state
// before, so that all others of that revision change nothing.
func (s *story) step(m moment, before map[string]any) map[string]any {
	after := map[string]any{}
	for _, was := range slices.Sorted(maps.Keys(before)) {
		for _, maker := range s.ops {
			of := maker.outcome == done && maker.op != "read" && maker.life == m.life && maker.rev == m.rev
			if maker.op == "delete" || !of && maker.outcome != maybe {
				continue
			}
			next, ok := s.does(maker, before[was], moment{m.life, m.rev - 1})
			if now := text(next); ok && now != was && s.fits(m, maker, next) {
				after[now] = next
			}
		}
	}
	return after
}

// fits says that all that is known of a moment is so in a state, which one
// operation has made.
func (s *story) fits(m moment, maker *form, state any) bool {
	for _, f := range s.ops {
		if f == maker || f.outcome != done || f.life != m.life || f.rev != m.rev {
			continue
		}
		if f.op == "read" {
			if f.text != text(state) {
				return false
			}
			continue
		}
		next, ok := s.does(f, state, m)
		if !ok || text(next) != text(state) {
			return false
		}
	}
	return true
}

// does is the state behind an operation that was accepted in another one.
func (s *story) does(f *form, state any, at moment) (next any, ok bool) {
	versions := s.possible(f.call, f.ret)
	if !f.meets(state, at) {
		return nil, false
	}
	if state == nil {
		if f.where != nil || !slices.ContainsFunc(versions, func(v int) bool { return creates(v, f.op) }) {
			return nil, false
		}
		state = map[string]any{}
	} else if f.where != nil && !f.where.in(state) {
		return nil, false
	}
	if next, _, ok = f.change.after(state); !ok {
		return nil, false
	}
	same := at.rev > 0 && text(next) == text(state)
	return next, same || slices.ContainsFunc(versions, func(v int) bool { return len(unfit(v, next)) == 0 })
}

// meets says that a form is at a revision for which an operation is meant.
func (f *form) meets(state any, at moment) bool {
	same := state != nil && f.cond != nil && *f.cond == (entity.ETag{Life: at.life, Revision: at.rev})
	switch f.must {
	case "exist":
		return state != nil
	case "absent":
		return state == nil
	case "another":
		return !same
	}
	return f.cond == nil || same
}

func creates(version int, op string) bool {
	by := creators(version)
	return op == "merge" || op == "set" || contains(by, op)
}

// explains says that an operation was rightly refused at some moment between its
// call and its answer.
func (s *story) explains(f *form) bool {
	if !judged(f.err) {
		return true
	}
	from, to, open := moment{}, moment{}, false
	for _, o := range s.ops {
		at := moment{o.life, o.rev}
		switch {
		case o.outcome == maybe:
			open = open || o.call < f.ret
		case o.outcome != done || o.life == 0:
		case o.ret < f.call:
			if o.op == "delete" {
				at.rev = ended
			}
			if at.compare(from) > 0 {
				from = at
			}
			fallthrough
		case o.call < f.ret:
			if o.op == "delete" {
				at.rev = ended
			}
			if at.compare(to) > 0 {
				to = at
			}
		}
	}
	for m, states := range s.states {
		if m.compare(from) < 0 || m.compare(to) > 0 && !open {
			continue
		}
		for _, state := range states {
			if s.refuses(f, state, m) {
				return true
			}
		}
	}
	return open && s.deletedMaybe() // in a life that nobody has seen all of
}

// deletedMaybe says that a life may have ended unseen.
func (s *story) deletedMaybe() bool {
	return slices.ContainsFunc(s.ops, func(f *form) bool { return f.outcome == maybe && f.op == "delete" })
}

// judged says that a refusal is one that the state decides.
func judged(err error) bool {
	var no *entity.RejectedError
	return errors.As(err, &no) || errors.Is(err, entity.ErrNotFound) || errors.Is(err, entity.ErrStale) || errors.Is(err, entity.ErrCondition)
}

// refuses says that an operation is refused in a state as it was.
func (s *story) refuses(f *form, state any, at moment) bool {
	switch {
	case errors.Is(f.err, entity.ErrStale):
		return !f.meets(state, at)
	case errors.Is(f.err, entity.ErrCondition):
		return f.where != nil && (state == nil || !f.where.in(state))
	case errors.Is(f.err, entity.ErrNotFound):
		return state == nil && (f.op == "delete" || slices.ContainsFunc(s.possible(f.call, f.ret), func(v int) bool { return !creates(v, f.op) }))
	}
	if state == nil {
		state = map[string]any{}
	}
	next, failed, ok := f.change.after(state)
	misfit := (*entity.SchemaError)(nil)
	if !errors.As(f.err, &misfit) {
		return !ok && names(f, failed)
	}
	var pointers []string
	for _, v := range misfit.Violations {
		pointers = append(pointers, v.Pointer)
	}
	slices.Sort(pointers)
	pointers = slices.Compact(pointers)
	return ok && slices.ContainsFunc(s.possible(f.call, f.ret), func(v int) bool { return slices.Equal(pointers, unfit(v, next)) })
}

// names says that a rejection names the operation or the pointer that it is
// about.
func names(f *form, failed int) bool {
	reason := f.err.Error()
	switch {
	case f.change.kind != "patch":
		return f.change.pointer == "" || strings.Contains(reason, fmt.Sprintf("%q", f.change.pointer))
	case failed == len(f.change.ops):
		return strings.Contains(reason, "leaves no object")
	}
	o := f.change.ops[failed]
	return strings.Contains(reason, fmt.Sprintf("operation %d (%s %q)", failed, o.op, o.path))
}

// admitForms looks, at rest, whether what is said of a message before it is sent
// is what comes of it.
func (w *process) admitForms() {
	p, err := w.pods.Pod(forms)
	w.must(err)
	for i := range 3 * w.plan.names {
		f := w.newForm(step{
			at: len(w.plan.steps) + i, kind: fill, pod: forms, name: entityName(i % w.plan.names), id: fmt.Sprintf("z%d", i),
			op: choose(w.rng, "merge", "set", "remove", "patch", "patch"), n: w.rng.IntN(1 << 20), tag: i%4 == 0,
		})
		msg, err := w.formMessage(f)
		if err != nil {
			w.malformed(f, err)
			continue
		}
		ctx, cancel := w.sys.WithTimeout(context.Background(), 10*time.Second)
		said := p.Admit(ctx, f.name, msg)
		cancel()
		w.files.forms = append(w.files.forms, f)
		w.postForm(f, msg, func(v any, err error) { w.formed(f, v, err) })
		w.exec.RunUntil(func() bool { return w.jobs == 0 })
		if fmt.Sprint(said) != fmt.Sprint(f.err) {
			w.wrong("the message %v to %s/%s would be refused with %v, and was with %v", f.change, forms, f.name, said, f.err)
		}
	}
}
