package sim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// answer is what a question was told, page by page.
type answer struct {
	question
	pages         []*page
	before, after map[persist.Key]sight
	from, to      uint64 // the store's positions then
	rest          bool   // nothing else happens
}

type page struct {
	call, ret   int
	after       *twin // the last one of the page before
	result      pod.Result
	items       []*twin
	quarantined map[persist.Key]bool
}

// last is the last one up to which there are pages, this one included.
func (p *page) last() *twin {
	if len(p.items) == 0 {
		return p.after
	}
	return p.items[len(p.items)-1]
}

// sight is one look at an entity: what it showed, or why not.
type sight struct {
	view pod.View
	err  error
}

func (s sight) same(o sight) bool {
	return s.err == nil && o.err == nil && s.view.ETag() == o.view.ETag()
}

func (s sight) none() bool { return errors.Is(s.err, entity.ErrNotFound) }

// about are the pods that a question is about.
func (q *question) about() []string {
	if q.pods == nil {
		return queried()
	}
	return q.pods
}

// survey looks at the entities that a question may be about, one by one.
func (w *process) survey(q *question) map[persist.Key]sight {
	out := map[persist.Key]sight{}
	for _, name := range q.about() {
		p, err := w.pods.Pod(name)
		if err != nil {
			continue
		}
		for i := range w.plan.names {
			v, err := p.Get(context.Background(), entityName(i))
			if w.dead {
				return out
			}
			out[persist.Key{Pod: name, Name: entityName(i)}] = sight{v, err}
		}
	}
	return out
}

// lasting says whether what a pod's entities show is durable.
func lasting(pod string) bool {
	return contains([]string{things, books, accounts, purses, papers}, pod)
}

// observe makes what the pages show of an entity that has changed meanwhile, and
// what they leave out, a part of its history. What has not changed needs none.
func (w *process) observe(a *answer, key persist.Key) {
	if a.group != nil || !contains([]string{things, books, frail, beats}, key.Pod) {
		return
	}
	for _, p := range a.pages {
		o := &op{step: step{kind: get, id: "query", to: a.String(), pod: key.Pod, name: key.Name}, process: w.number, call: p.call, ret: p.ret, outcome: done}
		var end *twin
		if p.result.Next != "" {
			end = p.last()
		}
		at := slices.IndexFunc(p.items, func(t *twin) bool { return t.pod == key.Pod && t.name == key.Name })
		switch {
		case at >= 0:
			w.viewed(o, &p.result.Items[at].View)
		case p.quarantined[key], len(a.sort) == 0 && !a.within(&twin{pod: key.Pod, name: key.Name}, p.after, end):
			continue
		case a.cond < 0 && strings.HasPrefix(key.Name, a.prefix) && (len(a.sort) == 0 || p.after == nil && end == nil):
			// it is seen absent
		case key.Pod == things || key.Pod == books:
			o.kind, o.misses = query, a.misses(key, p.after, end)
		default:
			continue
		}
		w.history = append(w.history, o)
	}
}

// within says whether an entity's place is behind one and not behind another
// one, where there are such.
func (q *question) within(t, after, end *twin) bool {
	return (after == nil || q.compare(after, t) < 0) && (end == nil || q.compare(t, end) <= 0)
}

// misses says of which states of an entity a page that goes from one to another
// one shows nothing.
func (q *question) misses(key persist.Key, after, end *twin) func(state) bool {
	return func(s state) bool {
		if !s.exists {
			return true
		}
		t := modelled(key.Pod, key.Name, s)
		return !q.fits(t) || !q.within(t, after, end) || t.unsure
	}
}

// judgeAnswer compares all pages with what every entity showed before and
// behind: one that did not change is on exactly one of them if it fits, and
// counts.
func (w *process) judgeAnswer(a *answer) {
	times := map[persist.Key]int{}
	shown := map[persist.Key]*twin{}
	for _, p := range a.pages {
		for _, t := range p.items {
			key := persist.Key{Pod: t.pod, Name: t.name}
			times[key]++
			shown[key] = t
		}
	}
	var fixed []*twin
	loose := 0
	for _, key := range slices.SortedFunc(maps.Keys(a.before), byKey) {
		before, after := a.before[key], a.after[key]
		if !before.same(after) {
			if !before.none() || !after.none() || !a.still(key.Pod) {
				loose++
				w.observe(a, key)
			} else if times[key] > 0 && a.group == nil {
				w.wrong("the query %v shows %s, which is not there", &a.question, key)
			}
			w.judgeBetween(a, key, shown[key])
			continue
		}
		t, err := read(&before.view)
		w.must(err)
		want := 0
		if a.fits(t) {
			want = 1
			fixed = append(fixed, t)
		}
		if a.group == nil && times[key] != want {
			w.wrong("G2: the query %v shows %s %d times, which has been %d-%d %v all the time", &a.question, key, times[key], t.life, t.revision, t.state)
		} else if t2 := shown[key]; t2 != nil && (t2.life != t.life || t2.revision != t.revision) {
			w.wrong("G2: the query %v shows %s as %d-%d, which has been %d-%d all the time", &a.question, key, t2.life, t2.revision, t.life, t.revision)
		}
	}
	if a.pods != nil {
		w.judgeNumbers(a, fixed, loose)
	}
}

// still says whether nothing can have come and gone in a pod.
func (a *answer) still(pod string) bool { return a.rest || a.from == a.to && lasting(pod) }

// judgeBetween looks at an entity that has changed meanwhile: what is shown is
// not older than what was seen before, and not newer than what was seen behind.
func (w *process) judgeBetween(a *answer, key persist.Key, t *twin) {
	if t == nil {
		return
	}
	tag := entity.ETag{Life: t.life, Revision: t.revision}
	older := func(a, b entity.ETag) bool { return a.Life < b.Life || a.Life == b.Life && a.Revision < b.Revision }
	if s := a.before[key]; s.err == nil && older(tag, s.view.ETag()) {
		w.wrong("G2: the query %v shows %s as %v, which was %v before", &a.question, key, tag, s.view.ETag())
	}
	if s := a.after[key]; s.err == nil && older(s.view.ETag(), tag) {
		w.wrong("G2: the query %v shows %s as %v, which is %v behind it", &a.question, key, tag, s.view.ETag())
	}
}

// judgeNumbers compares counts and groups with those of the entities that have
// not changed. So many may have beside those.
func (w *process) judgeNumbers(a *answer, fixed []*twin, loose int) {
	for _, p := range a.pages {
		if n := p.result.Count; a.count && (n < len(fixed) || n > len(fixed)+loose) {
			w.wrong("the query %v counts %d; %d fit, and %d may", &a.question, n, len(fixed), loose)
		}
		if a.group == nil {
			continue
		}
		got, sum := rowsOf(p.result.Groups)
		if a.count && sum != p.result.Count || sum < len(fixed) || sum > len(fixed)+loose {
			w.wrong("the query %v has groups of %d, and counts %d; %d fit, and %d may", &a.question, sum, p.result.Count, len(fixed), loose)
		}
		if want := a.group.groups(fixed); loose == 0 && !reflect.DeepEqual(got, want) {
			w.wrong("the query %v has the groups %v; they are %v", &a.question, got, want)
		}
	}
}

// rowsOf makes the values of groups plain.
func rowsOf(groups []pod.GroupRow) (rows []groupRow, sum int) {
	plain := func(values []filter.Value) (out []any) {
		for _, v := range values {
			var p any = absent{}
			if v.Kind() != filter.Missing {
				if err := json.Unmarshal(v.AppendJSON(nil), &p); err != nil {
					p = err
				}
			}
			out = append(out, p)
		}
		return out
	}
	for _, g := range groups {
		rows = append(rows, groupRow{plain(g.By), g.Count, plain(g.Values)})
		sum += g.Count
	}
	return rows, sum
}

// checkQueries compares answers at rest with what the entities show one by one:
// from memory, from the store, through indexes and tables.
func (w *process) checkQueries() {
	w.checkStaying()
	rng := rand.New(rand.NewPCG(w.seed, 0x726573746564))
	if rng.IntN(2) == 0 {
		w.wake(queried())
		w.exec.RunFor(5 * time.Millisecond)
	}
	all := w.survey(&question{many: true})
	for range 4 {
		q := newQuestion(rng)
		for range choose(rng, 1, 1, 2, 3) {
			w.checkAnswer(q, all)
		}
	}
}

// checkAnswer asks a question at rest. It wakes nobody.
func (w *process) checkAnswer(q question, all map[persist.Key]sight) {
	a := &answer{question: q, before: map[persist.Key]sight{}, rest: true}
	unreadable := 0
	for key, s := range all {
		if contains(q.about(), key.Pod) {
			a.before[key] = s
			if s.err != nil && !s.none() && strings.HasPrefix(key.Name, q.prefix) {
				unreadable++
			}
		}
	}
	a.after = a.before
	active, met := w.pods.Active(), 0
	for cursor := ""; ; {
		p := &page{}
		if len(a.pages) > 0 {
			p.after = a.pages[len(a.pages)-1].last()
		}
		result, err := w.asked(&q, cursor)
		if errors.Is(err, pod.ErrNoPod) {
			return
		}
		w.must(err)
		p.result = result
		a.pages = append(a.pages, p)
		w.judgePage(a, p)
		met += result.Unreadable
		if cursor = result.Next; cursor == "" {
			break
		}
	}
	w.judgeAnswer(a)
	if met < unreadable && q.cond < 0 {
		w.wrong("G5: the query %v met %d entities that cannot be read; there are %d", &q, met, unreadable)
	}
	if now := w.pods.Active(); now > active && !w.plan.couriers { // else bells may have rung
		w.wrong("the query %v has woken entities: %d were in memory, and now %d", &q, active, now)
	}
}
