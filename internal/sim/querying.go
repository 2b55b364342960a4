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

// query is the kind of the steps that look for entities.
const query kind = "query"

// indexing is which paths the pods of a run index.
type indexing struct {
	changed uint64 // how often the documents' indexes were changed
}

// paths are those that a pod indexes: in half of the runs none, in a quarter
// others in each process.
func (x indexing) paths(r *run, pod string) (paths []string) {
	mode, salt := r.seed>>1%4, x.changed
	if mode > 1 && salt == 0 {
		return nil
	}
	if mode == 1 {
		salt += uint64(r.number) << 8
	}
	rng := rand.New(rand.NewPCG(r.seed, salt))
	all := []string{"revision", "state.log[0]", "state.last[0]", "name"}
	switch pod {
	case accounts, purses, tills:
		all = []string{"state.balance", "revision", "state.got[0].from"}
	case papers, scratch:
		all = []string{"state.mark", "revision", "state.list[0]"}
	}
	for _, p := range all {
		if rng.IntN(3) > 0 {
			paths = append(paths, p)
		}
	}
	return paths
}

// planQuery is a step about queries.
func planQuery(p *plan, rng *rand.Rand) step {
	s := step{pod: choose(rng, things, books), name: p.anyName(rng), n: rng.IntN(1 << 30), who: rng.IntN(senders)}
	switch r := rng.IntN(40); {
	case r < 24:
		s.op = "find"
	case r < 27:
		s.op = "follow"
	case r < 28:
		s.op = "reborn"
	case r < 31:
		s.op = "resident"
	case r < 32:
		s.op = "stay"
	case r < 38:
		s.op = "mark"
	default:
		s.op = "reindex"
	}
	return s
}

// query carries out such a step.
func (w *process) query(s step) {
	rng := rand.New(rand.NewPCG(uint64(s.n), 0x7175657279))
	switch s.op {
	case "find":
		w.find(newQuestion(rng), rng)
	case "follow": // an entity changes, leaves memory, and is looked for
		w.change(s)
		for range rng.IntN(12) {
			w.exec.Step()
		}
		if rng.IntN(2) == 0 {
			w.passivate(s)
		}
		for range rng.IntN(8) {
			w.exec.Step()
		}
		q := newQuestion(rng)
		q.pods, q.many = []string{s.pod}, false
		w.find(q, rng)
	case "reborn": // what was acknowledged just before a crash is found behind it
		for range rng.IntN(40) {
			w.exec.Step()
		}
		w.crash()
		w.active = w.start()
		w.active.change(s) // while indexes are made
		w.active.find(newQuestion(rng), rng)
	case "resident":
		w.resident(s)
	case "stay":
		w.stay(s)
	case "mark":
		w.mark(s, rng)
	case "reindex":
		w.indexing.changed++
		w.write(step{kind: write, op: "declare", n: 2})
	}
}

// change adds to an entity with a log.
func (w *process) change(s step) {
	s.kind, s.op, s.n = send, "add", 0
	w.command(s)
}

// resident reads an entity if it is in memory.
func (w *process) resident(s step) {
	p, err := w.pods.Pod(s.pod)
	w.must(err)
	if v, is := p.Resident(s.name); is {
		o := &op{step: s, process: w.number, call: w.tick()}
		o.kind, o.ret = get, w.tick()
		w.viewed(o, &v)
		w.history = append(w.history, o)
		w.durable(o)
	}
}

// mark puts a number into a document.
func (w *process) mark(s step, rng *rand.Rand) {
	p, err := w.pods.Pod(choose(rng, papers, papers, scratch))
	if err != nil {
		return // it was dropped
	}
	key := &op{step: s}
	key.pod = p.Name()
	w.waiting[key] = true
	reply := w.sys.OnReply(func(_ any, err error) {
		delete(w.waiting, key)
		if !w.dead {
			w.note("mark of %s: %v", s.id, err)
		}
	})
	if err := p.Ref(s.name).Post(actor.Message{Payload: entity.Merge{"mark": rng.IntN(6)}, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// find asks a question, once or some times over, so that what is kept from one
// time to the next is used.
func (w *process) find(q question, rng *rand.Rand) {
	w.jobs++
	times, wakes := choose(rng, 1, 1, 2, 4), rng.IntN(4) == 0
	w.sys.Go(func() {
		if wakes {
			w.wake(q.pods)
		}
		for range times {
			w.examine(q, rng)
			if w.dead {
				return
			}
			_ = w.sys.Sleep(context.Background(), time.Duration(rng.IntN(6000))*time.Microsecond)
		}
		w.jobs--
	})
}

// wake brings the entities of pods into memory, those that there are.
func (w *process) wake(pods []string) {
	for _, name := range pods {
		p, err := w.pods.Pod(name)
		if err != nil {
			continue
		}
		var msg any = look{}
		switch name {
		case accounts, purses, tills:
			msg = balance{}
		case papers, scratch:
			msg = entity.Remove{Pointer: "/nothing"}
		}
		for i := range w.plan.names {
			_ = p.Tell(entityName(i), msg) // nobody hears the answer
		}
	}
}

// asked asks for a page.
func (w *process) asked(q *question, cursor string) (pod.Result, error) {
	if q.many {
		return w.pods.QueryAll(context.Background(), q.pods, q.query(cursor))
	}
	p, err := w.pods.Pod(q.pods[0])
	if err != nil {
		return pod.Result{}, err
	}
	return p.Query(context.Background(), q.query(cursor))
}

// examine asks a question, page by page, between two looks at every entity that
// it may be about, and judges what it was told.
func (w *process) examine(q question, rng *rand.Rand) {
	a := &answer{question: q}
	a.from, _ = w.disk.base.Position(context.Background())
	if a.before = w.survey(&q); w.dead {
		return
	}
	for cursor := ""; ; {
		p := &page{call: w.tick()}
		if len(a.pages) > 0 {
			p.after = a.pages[len(a.pages)-1].last()
		}
		result, err := w.asked(&q, cursor)
		if w.dead {
			return
		}
		p.ret, p.result = w.tick(), result
		if err != nil {
			w.note("query %v: %v", &q, err)
			w.judgeRefusal(&q, err)
			return
		}
		w.note("query %v: %d, %d groups, more: %t, count %d", &q, len(result.Items), len(result.Groups), result.Next != "", result.Count)
		a.pages = append(a.pages, p)
		w.judgePage(a, p)
		if cursor = result.Next; cursor == "" {
			break
		}
		if rng.IntN(8) == 0 {
			w.misuse(q, cursor)
		}
		if rng.IntN(2) == 0 {
			_ = w.sys.Sleep(context.Background(), time.Duration(rng.IntN(4000))*time.Microsecond)
		}
	}
	if a.after = w.survey(&q); w.dead {
		return
	}
	a.to, _ = w.disk.base.Position(context.Background())
	w.judgeAnswer(a)
}

// misuse gives a cursor to another question.
func (w *process) misuse(q question, cursor string) {
	if _, err := w.pods.QueryAll(context.Background(), []string{things, "nowhere"}, pod.Query{}); !errors.Is(err, pod.ErrNoPod) {
		w.wrong("a query of a pod that is nowhere says: %v", err)
	}
	q.sort = append([]ordering{{"changed", true}}, q.sort...)
	if _, err := w.asked(&q, cursor); !w.dead && !errors.Is(err, pod.ErrCursor) && !errors.Is(err, pod.ErrNoPod) {
		w.wrong("a cursor was given to another query, which says: %v", err)
	}
}

// judgeRefusal looks whether a question may have had no answer.
func (w *process) judgeRefusal(q *question, err error) {
	switch {
	case w.ending, w.disturbed && errors.Is(err, persist.ErrUnavailable):
	case errors.Is(err, pod.ErrNoPod) && (len(q.pods) == 0 || contains(q.pods, scratch)):
	default:
		w.wrong("G7: the query %v has failed: %v", q, err)
	}
}
