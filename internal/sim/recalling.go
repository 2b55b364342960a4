package sim

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// recall reads the past of an entity.
const recall kind = "recall"

// planRecall draws what is read.
func planRecall(p *plan, rng *rand.Rand) step {
	return step{
		pod: choose(rng, things, things, books, books, beats, frail, accounts, purses, papers, tills, scratch), name: p.anyName(rng),
		op: choose(rng, "pages", "pages", "at", "at", "at time", "buckets", "retention"),
		n:  rng.IntN(30), d: time.Duration(rng.IntN(60)) * time.Millisecond,
	}
}

// recall carries out a step about histories.
func (w *process) recall(s step) {
	p, err := w.pods.Pod(s.pod)
	if err != nil {
		return // it was dropped
	}
	known := w.last[persist.Key{Pod: s.pod, Name: s.name}]
	w.jobs++
	w.sys.Go(func() {
		err := w.recalled(p, s, known)
		w.jobs--
		if w.dead {
			return
		}
		w.note("%s of %s/%s: %v", s.op, s.pod, s.name, err)
		switch {
		case err == nil, errors.Is(err, entity.ErrNotFound), errors.Is(err, pod.ErrNoRevision), errors.Is(err, pod.ErrDropped):
		case errors.Is(err, snapshot.ErrCorrupt) && w.chronicle.spoiled[persist.Key{Pod: s.pod, Name: s.name}]:
		case errors.Is(err, entity.ErrQuarantined) && (s.pod == frail || w.disturbed):
		case !w.mayFail(err):
			w.wrong("%s of %s/%s: %v", s.op, s.pod, s.name, err)
		}
	})
}

func (w *process) recalled(p *pod.Pod, s step, known entity.ETag) error {
	ctx := context.Background()
	if s.pod == scratch {
		return w.recallShort(p, s.name)
	}
	switch s.op {
	case "pages":
		o := pod.HistoryOptions{From: uint64(s.n % 5), Limit: s.n % 7, Earlier: s.n%2 == 0}
		if s.n%3 == 0 {
			o.To = o.From + uint64(s.n%4)
		}
		_, err := w.pages(p, s.name, o, known)
		return err
	case "at":
		revision := uint64(s.n % 9)
		v, err := p.At(ctx, s.name, revision)
		if !w.dead {
			w.judgeAt(p, s.name, revision, known, &v, err)
		}
		return err
	case "at time":
		at := w.sys.Now().Add(-s.d)
		v, err := p.AtTime(ctx, s.name, at)
		if !w.dead {
			w.judgeAtTime(p, s.name, at, known, &v, err)
		}
		return err
	case "buckets":
		now := w.sys.Now()
		r := pod.BucketRequest{Value: textsOf, From: now.Add(-s.d), Width: []time.Duration{0, time.Millisecond, time.Second, time.Nanosecond}[s.n%4]}
		b, err := p.Buckets(ctx, s.name, r)
		switch odd := s.d == 0 || r.Width == 0 || r.Width == time.Nanosecond && s.d > 0; {
		case odd && !errors.Is(err, pod.ErrBuckets):
			w.wrong("buckets of %v since %v: %v", r.Width, s.d, err)
		case odd:
			err = nil
		case err == nil && !w.dead:
			w.judgeBuckets(persist.Key{Pod: p.Name(), Name: s.name}, &r, &b)
		}
		return err
	}
	r, err := p.Retention(ctx)
	if mark := w.trimmed(); err == nil && !w.dead && (r.Through > mark || r.Age != w.plan.keepFor || r.Volatile) {
		w.wrong("the retention of %s is %+v, and nothing behind %d was dropped", p.Name(), r, mark)
	}
	return err
}

// recallShort reads the history of a volatile entity: its revisions follow on each
// other, from the first on where nothing is too old.
func (w *process) recallShort(p *pod.Pod, name string) error {
	r, err := p.Retention(context.Background())
	if err == nil && (!r.Volatile || r.Through != 0 || r.Position != 0) {
		w.wrong("the retention of %s is %+v", p.Name(), r)
	}
	page, err := p.History(context.Background(), name, pod.HistoryOptions{})
	for i, line := range page.Revisions {
		if i == 0 && w.plan.keepFor == 0 && line.Revision != 1 || i > 0 && line.Revision != page.Revisions[i-1].Revision+1 || line.Err != nil || line.State == nil {
			w.wrong("the history of the volatile %s has %+v in place %d", name, line, i)
		}
	}
	return err
}

// pages reads a history page by page, and judges each.
func (w *process) pages(p *pod.Pod, name string, o pod.HistoryOptions, known entity.ETag) (all []pod.Revision, err error) {
	for {
		from := o.After
		page, err := p.History(context.Background(), name, o)
		if err != nil || w.dead {
			return all, err
		}
		w.judgePast(persist.Key{Pod: p.Name(), Name: name}, &o, &page, known)
		all = append(all, page.Revisions...)
		if o.After = page.Next; page.Next == from || page.Next == (entity.ETag{}) {
			return all, nil
		}
	}
}

// textsOf is what buckets are made of: how many texts a state has.
func textsOf(v *pod.View) (float64, bool) {
	state, err := v.JSON()
	if err != nil {
		return 0, false
	}
	return numberOf(state)
}

func numberOf(state []byte) (float64, bool) {
	n := texts(state)
	return float64(n), n%5 > 0
}

// checkPasts reads, at rest, the pasts of some entities as a whole.
func (w *process) checkPasts() {
	for i, key := range slices.SortedFunc(maps.Keys(w.chronicle.by), byKey) {
		p, err := w.pods.Pod(key.Pod)
		if err != nil || (uint64(i)+w.seed)%3 > 0 {
			continue
		}
		w.checkPast(p, key, i)
	}
}

func (w *process) checkPast(p *pod.Pod, key persist.Key, i int) {
	ctx, list := context.Background(), w.chronicle.by[key]
	head, err := p.Get(ctx, key.Name)
	if errors.Is(err, entity.ErrQuarantined) {
		return
	}
	known := head.ETag()
	all, err := w.pages(p, key.Name, pod.HistoryOptions{Earlier: true, Limit: 1 + i%7}, known)
	if err != nil {
		w.wrong("G5: the history of %s cannot be read: %v", key, err)
	}
	if mark := w.trimmed(); mark == 0 && len(all) != len(list) {
		w.wrong("G5: the history of %s has %d changes, and there were %d", key, len(all), len(list))
	}
	for _, e := range []*entry{list[0], list[len(list)/2], list[len(list)-1]} {
		v, err := p.At(ctx, key.Name, e.Revision)
		w.judgeAt(p, key.Name, e.Revision, known, &v, err)
		v, err = p.AtTime(ctx, key.Name, e.Time)
		w.judgeAtTime(p, key.Name, e.Time, known, &v, err)
	}
	r := pod.BucketRequest{Value: textsOf, From: list[len(list)/3].Time, Width: 20 * time.Second}
	if r.To = list[len(list)-1].Time; !r.To.After(r.From) || i%2 == 0 { // what comes at that time does not count
		r.To = r.From.Add(time.Hour)
	}
	if b, err := p.Buckets(ctx, key.Name, r); err == nil {
		w.judgeBuckets(key, &r, &b)
		w.sameBuckets(key, known, &r, &b)
	} else if !errors.Is(err, entity.ErrNotFound) {
		w.wrong("the buckets of %s cannot be made: %v", key, err)
	}
}
