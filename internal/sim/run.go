package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// Result is what a run came to.
type Result struct {
	Trace    uint64   // a digest of everything that happened
	Steps    int      // how many steps the plan has
	Events   uint64   // things that the executor ran
	Wrong    []string // broken promises; none if all is well
	Unproven int      // histories that were too long to be explained in time
}

// run is one seed's.
type run struct {
	seed    uint64
	plan    plan
	disk    *disk
	log     io.Writer
	number  int // of the process
	now     int // the last event
	digest  uint64
	steps   uint64
	problem []string
	gap     bool // the projection was told of one

	history   []*op // of entities with a log
	orders    []*order
	last      map[persist.Key]entity.ETag // the last revision that was seen
	orderly   []int                       // processes that ended in good order
	kept      kept
	papers    map[string]paper // by entity and member
	book      *book            // of the durable queues
	files     *files           // of the documents with a schema
	shelves   map[string]*shelf
	brought   map[string]*brought // parcels
	dismissed map[string]bool     // couriers that were discarded
	tallies   map[string]*tallying
	lost      bool // records of event-sourced entities were
	damaged   map[persist.Key]bool
	disturbed bool // commits or reads may have failed
	indexing  indexing
	active    *process
	chronicle chronicle
	following following
}

// Run carries out the plan of a seed, but for the steps that keep, if not nil,
// says no to. A log, if not nil, gets a line for everything that happens.
func Run(seed uint64, keep func(step int) bool, log io.Writer) Result {
	r := &run{
		seed: seed, plan: newPlan(seed), log: log, digest: 14695981039346656037,
		last: map[persist.Key]entity.ETag{}, papers: map[string]paper{}, damaged: map[persist.Key]bool{},
	}
	r.disturbed = r.plan.errRate > 0
	r.disk = &disk{
		base: inMemory{persisttest.NewMemory()}, rng: rand.New(rand.NewPCG(seed, 2)), note: r.note, seen: r.witness, guilty: map[persist.Key]bool{},
		slow: r.plan.slow, errRate: r.plan.errRate, healing: r.plan.healing,
	}
	if r.plan.file {
		var err error
		if r.disk.base, err = newFile(); err != nil {
			panic(err) // there is no disk to run it on
		}
	}
	if r.plan.logged {
		var err error
		if r.disk.base, err = newWithLog(r.disk.base, r.disk.rng); err != nil {
			panic(err) // nothing fails it
		}
	}
	defer func() { r.disk.base.discard() }()
	r.note("%+v", r.plan.settings)
	r.active = r.start()
	for _, s := range r.plan.steps {
		if keep == nil || keep(s.at) {
			r.do(s)
		}
	}
	r.finish()
	r.checkStore()
	res := Result{Trace: r.digest, Steps: len(r.plan.steps), Events: r.steps}
	res.Unproven = r.check()
	res.Wrong = r.problem
	return res
}

// tick counts events.
func (r *run) tick() int {
	r.now++
	return r.now
}

func (r *run) mix(x uint64) { r.digest = (r.digest ^ x) * 1099511628211 }

// note writes into the trace.
func (r *run) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for i := range len(line) {
		r.mix(uint64(line[i]))
	}
	if r.log == nil {
		return
	}
	at := time.Duration(0)
	if r.active != nil {
		at = r.active.exec.Now().Sub(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	_, _ = fmt.Fprintf(r.log, "%4d %12v %s\n", r.now, at, line)
}

func (r *run) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.problem = append(r.problem, text)
	r.note("WRONG: %s", text)
}

// do carries out a step.
func (r *run) do(s step) {
	w := r.active
	r.tick()
	r.note("step %d: %v", s.at, s)
	switch s.kind {
	case send, ask:
		w.command(s)
	case get:
		w.read(s)
	case list:
		w.listing(s)
	case goOn:
		w.visit()
		w.exec.RunFor(s.d)
	case steps:
		for range s.n {
			w.exec.Step()
		}
	case die:
		for range s.n {
			w.exec.Step()
		}
		w.crash()
		r.active = r.start()
	case restart:
		w.end(s.d)
		r.active = r.start()
	case faulty:
		r.disturbed = true
		r.disk.next = append(r.disk.next, fate(s.n))
	case leave:
		r.disturbed = true
		r.disk.away = w.sys.Now().Add(s.d)
	case crawl:
		r.disk.slow = s.d
	case halt:
		w.halt(s)
	case keep:
		w.keep(s.n)
	case project:
		w.project(s.n)
	case write:
		w.write(s)
	case damage:
		key := persist.Key{Pod: s.pod, Name: s.name}
		r.damaged[key] = r.disk.damage(key) || r.damaged[key]
		r.kept.unsure = r.kept.unsure || s.pod == keepers
	default:
		w.inArea(s)
	}
}

// halt stops an entity's actor, as an operator or a supervisor may.
func (w *process) halt(s step) {
	w.halted[persist.Key{Pod: s.pod, Name: s.name}] = true
	ref, err := w.sys.Lookup("/user/pods/" + s.pod + "/" + s.name)
	if err != nil {
		return // it is not in memory
	}
	switch {
	case s.n == 0 && s.pod != beats && s.pod != tills: // what is not flushed may end with an actor
		ref.Stop()
	case s.n == 1:
		_ = w.sys.Select(ref.Path()).Tell(actor.PoisonPill{})
	default:
		_ = ref.TellFrom(struct{ Unknown bool }{}, w.keeper) // no message of an entity
	}
}

// command sends a message to an entity.
func (w *process) command(s step) {
	if s.pod == accounts || s.pod == purses || s.pod == tills {
		w.bankCommand(s)
		return
	}
	o := &op{step: s, process: w.number, call: w.tick()}
	if s.op != "passivate" && s.op != "retry" {
		w.history = append(w.history, o)
		w.children(o)
	}
	if tag, seen := w.last[o.key()]; seen && s.tag {
		o.cond = &tag
	}
	msg := w.message(o)
	if s.kind == ask {
		w.asking(o, msg)
		return
	}
	w.waiting[o] = true
	reply := w.sys.OnReply(func(v any, err error) {
		delete(w.waiting, o)
		w.answered(o, v, err)
	})
	if err := w.ref(s.pod, s.name).Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// children notes what an operation may lead to.
func (w *process) children(o *op) {
	child := *o
	child.outcome, child.kind, child.op = maybe, send, "note"
	switch o.op {
	case "tell":
		child.id, child.name, child.to = o.id+"-told", o.to, ""
	case "later":
		child.id = o.id + "-due"
	case "remind":
		child.id = o.id + "-rung"
	case "pipe":
		child.id, child.to = o.id+"-piped", ""
	default:
		return
	}
	w.history = append(w.history, &child)
}

func (w *process) message(o *op) any {
	var msg any
	switch o.op {
	case "add":
		msg = add{o.id}
	case "note":
		msg = note{o.id}
	case "touch":
		msg = touch{o.id}
	case "reject":
		msg = reject{o.id}
	case "fail":
		msg = fail{o.id}
	case "crash":
		msg = crash{o.id}
	case "look":
		msg = look{}
	case "tell":
		msg = tell{o.id, o.to}
	case "later":
		msg = later{o.id}
	case "remind":
		msg = remind{o.id}
	case "pipe":
		msg = pipe{o.id, o.to}
	case "block":
		msg = block{o.id}
	case "pin":
		msg = pin{o.id}
	case "retry":
		o.cond = nil
		return entity.Retry()
	case "discard":
		o.cond = nil
		return entity.Discard()
	case "passivate":
		return entity.Passivate()
	case "rebuild":
		o.cond = nil
		return entity.Rebuild()
	case "delete":
		var c entity.Condition
		if o.cond != nil {
			c.Match = []entity.ETag{*o.cond}
		}
		return entity.Delete(c)
	}
	if o.cond == nil {
		return msg
	}
	p, err := w.pods.Pod(o.pod)
	w.must(err)
	m, err := p.Wrap(o.pod, msg)
	w.must(err)
	m.If.Match = []entity.ETag{*o.cond}
	return m
}

// asking sends a message and gives it a deadline.
func (w *process) asking(o *op, msg any) {
	w.jobs++
	w.sys.Go(func() {
		ctx, cancel := w.sys.WithTimeout(context.Background(), o.d)
		defer cancel()
		v, err := entity.Ask[any](ctx, w.ref(o.pod, o.name), msg)
		w.jobs--
		w.answered(o, v, err)
	})
}

// answered notes what came of an operation.
func (w *process) answered(o *op, v any, err error) {
	if w.dead {
		return
	}
	o.settle(v, err)
	w.judge(o, v)
	o.ret = w.tick()
	if o.outcome == maybe {
		o.ret = 0
	}
	w.note("%s of %s: %v %v %d-%d %v", o.op, o.id, o.key(), o.outcome, o.life, o.revision, err)
	if o.outcome == done && o.revision > 0 && o.life > 0 && !o.deletes() {
		w.last[o.key()] = entity.ETag{Life: o.life, Revision: o.revision}
	}
	w.durable(o)
}

// read looks at an entity's acknowledged state.
func (w *process) read(s step) {
	o := &op{step: s, process: w.number, call: w.tick()}
	w.history = append(w.history, o)
	w.jobs++
	w.sys.Go(func() {
		p, err := w.pods.Pod(s.pod)
		w.must(err)
		v, err := p.Get(context.Background(), s.name)
		w.jobs--
		if w.dead {
			return
		}
		o.ret, o.err = w.tick(), err
		switch {
		case err == nil:
			w.viewed(o, &v)
		case errors.Is(err, entity.ErrNotFound):
			o.outcome = done
		default:
			o.outcome = refused
		}
		w.note("get %s: %v %d-%d %v", o.key(), o.outcome, o.life, o.revision, err)
		w.durable(o)
	})
}

// viewed notes what a view shows.
func (w *process) viewed(o *op, v *pod.View) {
	s, err := decoded[journalled](v)
	if err != nil {
		w.wrong("G5: %s is shown and cannot be decoded: %v", o.key(), err)
		return
	}
	if !s.Made {
		w.wrong("G4: %s is there, and was never initialised", o.key())
	}
	o.outcome, o.exists, o.life, o.revision, o.log, o.hasLog = done, true, v.Life, v.Revision, s.Log, true
	w.last[o.key()] = v.ETag()
	if tag, err := entity.ParseETag(v.ETag().String()); err != nil || tag != v.ETag() {
		w.wrong("the tag of %s, %v, is read as %v (%v)", o.key(), v.ETag(), tag, err)
	}
}

func decoded[S any](v *pod.View) (s S, err error) {
	text, err := v.JSON()
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// listing looks at all entities of a pod.
func (w *process) listing(s step) {
	call := w.tick()
	w.jobs++
	w.sys.Go(func() {
		p, err := w.pods.Pod(s.pod)
		w.must(err)
		page, err := p.List(context.Background(), persist.ListOptions{})
		w.jobs--
		if w.dead || err != nil {
			return
		}
		ret := w.tick()
		there := map[string]bool{}
		for _, i := range page.Items {
			there[i.Name] = true
			if i.Err != nil {
				continue
			}
			o := &op{step: s, process: w.number, call: call, ret: ret}
			o.kind, o.name = get, i.View.Name
			w.viewed(o, &i.View)
			w.history = append(w.history, o)
		}
		for i := range w.plan.names {
			if name := entityName(i); !there[name] {
				o := &op{step: s, process: w.number, call: call, ret: ret, outcome: done}
				o.kind, o.name = get, name
				w.history = append(w.history, o)
			}
		}
		h := pod.Handle[journalled]{Pod: p}
		if views, _, err := h.List(context.Background(), persist.ListOptions{Prefix: "e"}); err == nil && !w.dead {
			w.note("%d can be decoded", len(views))
			_ = h.Tell(context.Background(), entityName(0), look{}) // nobody hears the answer
		}
		w.note("list %s: %s", s.pod, strings.Join(slices.Sorted(maps.Keys(there)), " "))
	})
}
