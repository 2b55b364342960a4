package sim

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// What watches show is judged when it comes, against what is durable and what
// reads show; and in the end against all that ever was in the journal.

// ruled is a question about a state, which the texts in it decide. It is asked
// by watches and, of what the chronicle has, by those who judge them.
func ruled(rule int, state []byte) (bool, error) {
	n := texts(state)
	if rule == 3 && n%7 == 0 {
		return false, fmt.Errorf("on purpose: %w", filter.ErrTooCostly)
	}
	return n%(1+rule) > 0, nil
}

// texts is how many texts there are in a state, with the names of its members.
func texts(state []byte) int { return bytes.Count(state, []byte{'"'}) / 2 }

// wants reports whether the change of a key is for a follower.
func (f *follower) wants(key persist.Key) bool {
	if f.pods == nil {
		return key.Pod[0] != '$'
	}
	return slices.Contains(f.pods, key.Pod) && (f.name == "" || f.name == key.Name)
}

// take judges an event.
func (w *process) take(f *follower, e *pod.Event) {
	w.tick()
	w.note("%v sees %s %d: %s", f, e.Kind, e.ID, e.JSON())
	if e.ID < f.at {
		w.wrong("%v sees %d behind %d", f, e.ID, f.at)
	}
	if short := f.pods == nil || slices.Contains(f.pods, scratch); short && f.resumed && !f.told && e.Reason != pod.GapVolatile {
		w.wrong("%v is not told that it may have missed what is volatile", f)
	}
	f.told = true
	switch {
	case e.Kind == pod.EventGap && e.To == 0:
		known := e.Reason == pod.GapTooCostly && f.rule == 3 || e.Reason == pod.GapVolatile && (f.resumed || w.plan.held > 0)
		if !known || f.pods != nil && !slices.Contains(f.pods, scratch) {
			w.wrong("%v is told of a gap of what is volatile: %s", f, e.Reason)
		}
		clear(f.short)
		f.at = e.ID
		return
	case e.Pod == scratch:
		w.takeShort(f, e)
		f.at = e.ID
		return
	case e.Kind == pod.EventGap:
		w.takeGap(f, e)
	default:
		w.takeChange(f, e)
	}
	at := e.Position
	if e.Kind == pod.EventGap {
		at = e.To
	}
	if e.ID != at || at <= f.at && at > 0 && (f.at > f.from || f.from > 0) {
		w.wrong("%v sees position %d as %d, behind %d", f, at, e.ID, f.at)
	}
	f.at = e.ID
	f.shown = append(f.shown, showing{at, e.From, e.Kind, e.Reason, e.Unsure})
}

func (w *process) takeGap(f *follower, e *pod.Event) {
	mark := w.trimmed()
	switch {
	case e.From < f.at || e.To <= e.From:
		w.wrong("%v is told of a gap from %d to %d, behind %d", f, e.From, e.To, f.at)
	case e.Reason == pod.GapTrimmed && e.To > mark && !w.unmakeable(f, e):
		w.wrong("%v is told of a gap from %d to %d, and nothing behind %d was dropped", f, e.From, e.To, mark)
	case e.Reason == pod.GapTooCostly && (f.rule != 3 || e.From != e.To-1), e.Reason == pod.GapDamaged && !w.isSpoiled(e.From, e.To):
		w.wrong("%v is told of a gap from %d to %d without a reason: %s", f, e.From, e.To, e.Reason)
	}
}

// isSpoiled reports whether a gap is of a change that the store cannot read.
func (r *run) isSpoiled(from, to uint64) bool {
	e := r.chronicle.at(to)
	return e != nil && e.spoiled && from == to-1
}

// unmakeable reports whether a gap is of an event alone, whose state may not be
// known any more since its life has ended.
func (w *process) unmakeable(f *follower, e *pod.Event) bool {
	was := w.chronicle.at(e.To)
	return f.rule > 0 && e.From == e.To-1 && was != nil && was.Event && was.Life <= w.trimmed()
}

// takeChange looks whether a change is what the journal says, durable, and not
// shown before reads show it.
func (w *process) takeChange(f *follower, e *pod.Event) {
	key := persist.Key{Pod: e.Pod, Name: e.Name}
	was := w.chronicle.at(e.Position)
	if was == nil {
		w.wrong("G2: %v sees %s %d-%d at %d; the store does not have it", f, key, e.Life, e.Revision, e.Position)
		return
	}
	if !f.wants(key) || was.Key != key || was.Life != e.Life || was.Revision != e.Revision || was.Type != e.Type || !was.Time.Equal(e.Time) {
		w.wrong("G3: %v sees %s %d-%d %s at %d, which is %s %d-%d %s", f, key, e.Life, e.Revision, e.Type, e.Position, was.Key, was.Life, was.Revision, was.Type)
	}
	switch {
	case was.deletes() != (e.Kind == pod.EventDeleted) || was.deletes() && (e.State != nil || e.Data != nil):
		w.wrong("%v sees the end of %s at %d as %s", f, key, e.Position, e.Kind)
	case was.Event && e.State == nil && !was.deletes() && f.rule > 0 && !e.Unsure,
		!was.deletes() && e.State != nil && !was.is(e.State), !was.Event && !was.deletes() && e.State == nil:
		w.wrong("G3: %v sees %s %d-%d as %s; it was %s", f, key, e.Life, e.Revision, e.State, was.state)
	case was.Event && !was.deletes() && !sameJSON(e.Data, was.json()):
		w.wrong("G3: %v sees an event of %s %d-%d as %s; it was %s", f, key, e.Life, e.Revision, e.Data, was.json())
	}
	if e.Unsure && !w.forgettable(was) {
		w.wrong("%v is unsure about %s at %d, and all that is before it is known", f, key, e.Position)
	}
	w.notEarly(f, was)
}

// forgettable reports whether the journal may lack what is needed to know the
// state before a change, or behind it.
func (r *run) forgettable(e *entry) bool {
	mark := r.trimmed()
	if e.before == nil {
		return false
	}
	return e.before.Position <= mark || e.before.spoiled || e.Event && e.Life <= mark || e.Key.Pod == keepers
}

// shownWithin is how long what is durable waits for its entity to show it.
const shownWithin = 100 * time.Millisecond

// notEarly looks whether reads show an entity as it was before a change, though
// what they do not show has not been durable for long.
func (w *process) notEarly(f *follower, e *entry) {
	p, err := w.pods.Pod(e.Key.Pod)
	if err != nil || e.Key.Pod == beats || e.Key.Pod == tills || e.Key.Pod == frail {
		return
	}
	v, there := p.Resident(e.Key.Name)
	if !there || v.Life > e.Life || v.Life == e.Life && v.Revision >= e.Revision && !e.deletes() {
		return
	}
	for _, first := range w.chronicle.by[e.Key] {
		if first.Life < v.Life || first.Life == v.Life && first.Revision <= v.Revision && !first.deletes() {
			continue
		}
		if first.process == w.number && w.sys.Now().Sub(first.at) < shownWithin {
			w.wrong("G2: %v sees %s %d-%d at %d, and a read shows %d-%d", f, e.Key, e.Life, e.Revision, e.Position, v.Life, v.Revision)
		}
		return
	}
}

// takeShort judges the change of a volatile pod, which has no position: each
// follows on the one before it.
func (w *process) takeShort(f *follower, e *pod.Event) {
	last, known := f.short[e.Name]
	switch {
	case e.Position != 0 || !f.wants(persist.Key{Pod: e.Pod, Name: e.Name}):
		w.wrong("%v sees the volatile %s at position %d", f, e.Name, e.Position)
	case !known || f.rule > 0:
	case e.Life == last.Life && e.Revision != last.Revision+1, e.Life > last.Life && e.Revision != 1, e.Life < last.Life:
		w.wrong("%v sees the volatile %s %d-%d behind %v", f, e.Name, e.Life, e.Revision, last)
	}
	f.short[e.Name] = entity.ETag{Life: e.Life, Revision: e.Revision}
}

// expected is what a follower is to be told of a change: nothing, or the kind of
// the event.
func (f *follower) expected(e *entry) pod.EventKind {
	switch {
	case f.rule == 0 && e.deletes():
		return pod.EventDeleted
	case f.rule == 0:
		return pod.EventChanged
	}
	if !e.deletes() {
		if is, err := ruled(f.rule, e.state); err != nil {
			return pod.EventGap
		} else if is {
			return pod.EventChanged
		}
	}
	if e.before == nil {
		return ""
	}
	switch was, err := ruled(f.rule, e.before.state); {
	case err != nil:
		return pod.EventGap
	case !was:
		return ""
	case e.deletes():
		return pod.EventDeleted
	}
	return pod.EventLeft
}

// checkSights compares all that a follower was shown with all that there was. It
// has seen everything that is in the store.
func (w *process) checkSights(f *follower) {
	shown := f.shown
	for _, e := range w.chronicle.all {
		if e.Position <= f.from || !f.wants(e.Key) {
			continue
		}
		for len(shown) > 0 && shown[0].reason == pod.GapTrimmed && shown[0].at < e.Position {
			shown = shown[1:]
		}
		if len(shown) > 0 && shown[0].reason == pod.GapTrimmed && shown[0].from < e.Position {
			continue
		}
		kind := f.expected(e)
		is := len(shown) > 0 && shown[0].at == e.Position
		switch {
		case is && (shown[0].unsure || e.spoiled && shown[0].reason == pod.GapDamaged):
		case !is && e.Position > f.through:
		case !is && kind != "":
			w.wrong("G7: %v was not shown %s %d-%d at %d as %s", f, e.Key, e.Life, e.Revision, e.Position, kind)
			return
		case is && shown[0].kind != kind:
			w.wrong("%v was shown %s %d-%d at %d as %s, not as %q", f, e.Key, e.Life, e.Revision, e.Position, shown[0].kind, kind)
			return
		}
		if is {
			shown = shown[1:]
		}
	}
	shown = slices.DeleteFunc(slices.Clone(shown), func(s showing) bool { return s.reason == pod.GapTrimmed })
	if len(shown) > 0 {
		w.wrong("%v was shown %s at %d, which is not for it, or not any more", f, shown[0].kind, shown[0].at)
	}
}
