package sim

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// What histories tell is judged against the chronicle. What was not acknowledged
// when they were asked may be in them or not, and so may what retention may have
// dropped by the time of the answer.

func compareTags(a, b entity.ETag) int {
	return cmp.Or(cmp.Compare(a.Life, b.Life), cmp.Compare(a.Revision, b.Revision))
}

func tagOf(r *pod.Revision) entity.ETag { return entity.ETag{Life: r.Life, Revision: r.Revision} }

// flushes reports whether a pod's entities are acknowledged before they are
// durable.
func flushes(name string) bool { return name == beats || name == tills }

// judgePast looks at a page of a history: each line is a change as it was, and
// nothing that was acknowledged is missing between them, before or behind.
func (w *process) judgePast(key persist.Key, o *pod.HistoryOptions, page *pod.HistoryPage, known entity.ETag) {
	mark, lines := w.trimmed(), page.Revisions
	has := map[entity.ETag]bool{}
	last := o.After
	for i := range lines {
		r := &lines[i]
		w.judgeLine(key, r, mark)
		if o.From > r.Revision || o.To > 0 && r.Revision > o.To || compareTags(tagOf(r), last) <= 0 || has[tagOf(r)] {
			w.wrong("the history of %s by %+v has %v behind %v", key, *o, tagOf(r), last)
		}
		last, has[tagOf(r)] = tagOf(r), true
	}
	more := page.Next != (entity.ETag{})
	if more && page.Next != last {
		w.wrong("the history of %s goes on behind %v, and ends with %v", key, page.Next, last)
	}
	ended := w.hasEnded(key, known.Life)
	for _, e := range w.chronicle.by[key] {
		t := e.tag()
		switch {
		case e.Position <= mark, compareTags(t, known) > 0, has[t], o.From > e.Revision, o.To > 0 && e.Revision > o.To:
		case compareTags(t, o.After) <= 0, more && compareTags(t, page.Next) > 0:
		case !o.Earlier && (ended || e.Life != known.Life): // it may have been another life that was read
		default:
			w.wrong("G5: the history of %s by %+v lacks %v: %v", key, *o, t, has)
			return
		}
	}
	// The end of a life that could not be read may have the revision of a change
	// that was dropped.
	begins := slices.ContainsFunc(w.chronicle.by[key], func(e *entry) bool {
		return e.tag() == page.Oldest && (e.spoiled || e.Time.Equal(page.OldestTime)) && page.Dropped == (e.Position != e.Life)
	})
	switch {
	case page.Oldest == (entity.ETag{}) && page.Dropped && mark == 0 && !flushes(key.Pod), page.Oldest != (entity.ETag{}) && !begins:
		w.wrong("the history of %s begins with %v of %v, dropped: %t", key, page.Oldest, page.OldestTime, page.Dropped)
	}
}

// judgeLine looks whether a line is a change as it was.
func (w *process) judgeLine(key persist.Key, r *pod.Revision, mark uint64) {
	e := w.chronicle.at(r.Position)
	switch {
	case e == nil:
		w.wrong("G2: the history of %s has %v at %d, and the store does not", key, tagOf(r), r.Position)
	case e.spoiled && e.tag() == tagOf(r) && r.Err != nil:
	case e.Key != key || e.tag() != tagOf(r) || e.Type != r.Type || !e.Time.Equal(r.Time) || e.deletes() != r.Deleted:
		w.wrong("the history of %s has %+v; at %d is %s %v %s", key, *r, e.Position, e.Key, e.tag(), e.Type)
	case r.Err != nil:
		if !e.Event || e.Life > mark { // events of a life that has ended go in no order
			w.wrong("the history of %s cannot tell the state at %v: %v", key, tagOf(r), r.Err)
		}
	case e.deletes():
	case !e.is(r.State), e.Event && !sameJSON(r.Data, e.json()):
		w.wrong("G3: the history of %s has %v as %s %s; it was %s", key, tagOf(r), r.State, r.Data, e.state)
	}
}

// hasEnded reports whether a life of an entity is not the one it is in.
func (r *run) hasEnded(key persist.Key, life uint64) bool {
	list := r.chronicle.by[key]
	return len(list) > 0 && (list[len(list)-1].Life != life || list[len(list)-1].deletes())
}

// judgeAt looks whether the state at a revision is what it was.
func (w *process) judgeAt(p *pod.Pod, name string, revision uint64, known entity.ETag, v *pod.View, err error) {
	key := persist.Key{Pod: p.Name(), Name: name}
	if err == nil {
		if v.Revision != revision {
			w.wrong("%s at revision %d is of %d", key, revision, v.Revision)
		}
		w.judgeView(key, v)
		return
	}
	e := w.chronicle.find(key, entity.ETag{Life: known.Life, Revision: revision})
	if w.mayLack(key, e, known, err) || e != nil && e.spoiled || w.hasEnded(key, known.Life) {
		return
	}
	w.wrong("G5: %s at revision %d of life %d is not there: %v", key, revision, known.Life, err)
}

// mayLack reports whether the state behind a change may not be known, or not have
// been when it was asked for.
func (w *process) mayLack(key persist.Key, e *entry, known entity.ETag, err error) bool {
	lacks := errors.Is(err, pod.ErrNoRevision) || errors.Is(err, pod.ErrDropped) || errors.Is(err, entity.ErrNotFound)
	return !lacks || e == nil || e.deletes() || compareTags(e.tag(), known) > 0 || e.Position <= w.trimmed() ||
		e.Event && e.Life <= w.trimmed() || key.Pod == frail
}

// judgeView looks whether a view of the past is what was at its revision.
func (w *process) judgeView(key persist.Key, v *pod.View) {
	state, err := v.JSON()
	if err != nil {
		w.wrong("the state of %s at %v cannot be read: %v", key, v.ETag(), err)
		return
	}
	e := w.chronicle.find(key, v.ETag())
	if e == nil && !flushes(key.Pod) || e != nil && !e.is(state) {
		w.wrong("G3: %s at %v is %s, and was not", key, v.ETag(), state)
	}
}

// judgeAtTime looks whether a state is that of a time: of a change that was
// before it, whose successor was not. Where times rise it is the last of them.
func (w *process) judgeAtTime(p *pod.Pod, name string, at time.Time, known entity.ETag, v *pod.View, err error) {
	key, mark := persist.Key{Pod: p.Name(), Name: name}, w.trimmed()
	var last, next *entry
	open := false // what comes behind the last may have been acknowledged, too
	for _, e := range w.chronicle.by[key] {
		if !e.Time.After(at) && compareTags(e.tag(), known) <= 0 && e.Position > mark {
			last = e
		}
		open = open || !e.Time.After(at) && compareTags(e.tag(), known) > 0
		if e.before != nil && err == nil && e.before.tag() == v.ETag() {
			next = e
		}
	}
	rises := !w.chronicle.jumps[key]
	switch {
	case w.chronicle.spoiled[key]: // its time is not known either
	case err != nil && rises && !open && !w.mayLack(key, last, known, err):
		w.wrong("G5: the state of %s at %v, of %v, is not there: %v", key, at, last.tag(), err)
	case err != nil:
	case v.Changed.After(at), rises && last != nil && compareTags(v.ETag(), last.tag()) < 0,
		next != nil && !next.Time.After(at) && compareTags(next.tag(), known) <= 0 && next.Position > mark:
		w.wrong("the state of %s at %v is that of %v, of %v", key, at, v.ETag(), v.Changed)
	default:
		w.judgeView(key, v)
	}
}

// judgeBuckets looks whether buckets can be at all.
func (w *process) judgeBuckets(key persist.Key, r *pod.BucketRequest, b *pod.Buckets) {
	counted, last := 0, r.From.Add(-1)
	for _, k := range b.Buckets {
		if !k.Start.After(last) || k.Start.Sub(r.From)%r.Width != 0 || k.Count < 1 || k.Min > k.Avg+1e-9 || k.Avg > k.Max+1e-9 || k.Last < k.Min || k.Last > k.Max {
			w.wrong("the buckets of %s have %+v behind %v", key, k, last)
		}
		last = k.Start
		counted += k.Count
	}
	if all := len(w.chronicle.by[key]); counted > all {
		w.wrong("the buckets of %s count %d changes, and there were %d", key, counted, all)
	}
	if !b.Since.IsZero() && w.trimmed() == 0 {
		w.wrong("the buckets of %s begin at %v, and nothing was dropped", key, b.Since)
	}
}

// sameBuckets compares buckets with a plain computation, where nothing was
// dropped and times rise.
func (w *process) sameBuckets(key persist.Key, head entity.ETag, r *pod.BucketRequest, b *pod.Buckets) {
	if w.trimmed() > 0 || w.chronicle.jumps[key] || w.chronicle.spoiled[key] {
		return
	}
	by := map[int64][]float64{}
	filled := 0
	for _, e := range w.chronicle.by[key] {
		if e.Life == head.Life && e.Revision > head.Revision {
			return // it came while the buckets were made: they may have it or not
		}
		if e.Life != head.Life || e.Time.Before(r.From) || !e.Time.Before(r.To) {
			continue
		}
		if n, is := numberOf(e.state); is {
			at := int64(e.Time.Sub(r.From) / r.Width)
			if by[at] == nil {
				filled++
			}
			by[at] = append(by[at], n)
		}
	}
	if filled != len(b.Buckets) {
		w.wrong("%s has %d buckets, and not %d", key, len(b.Buckets), filled)
		return
	}
	for _, k := range b.Buckets {
		all := by[int64(k.Start.Sub(r.From)/r.Width)]
		least, most, sum := math.Inf(1), math.Inf(-1), 0.0
		for _, n := range all {
			least, most, sum = min(least, n), max(most, n), sum+n
		}
		if len(all) != k.Count || least != k.Min || most != k.Max || all[len(all)-1] != k.Last || math.Abs(sum/float64(len(all))-k.Avg) > 1e-9 {
			w.wrong("%s has the bucket %+v of %v", key, k, all)
		}
	}
}
