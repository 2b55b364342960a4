package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// process is one life of the program: from a start to a crash or an orderly end.
type process struct {
	*run
	number   int
	exec     *actortest.Seeded
	sys      *actor.System
	rng      *rand.Rand
	pods     *pod.Pods
	folds    *persist.Running
	unruly   bool
	stranger *stranger
	keeper   *actor.Ref
	dead     bool
	ending   bool
	halted   map[persist.Key]bool // whose actors were stopped by hand
	waiting  map[*op]bool         // operations whose promise is not settled
	jobs     int                  // reads and asks under way
	hearing  hearing
}

// start opens the pods on what the last process left. The disk works meanwhile:
// a program whose store does not open does not start.
func (r *run) start() *process {
	r.number++
	seed := r.seed*64 + uint64(r.number)
	w := &process{run: r, number: r.number, exec: actortest.NewSeeded(seed), rng: rand.New(rand.NewPCG(seed, 1)), halted: map[persist.Key]bool{}, waiting: map[*op]bool{}}
	w.sys = actor.NewSystem("sim", actor.Config{Executor: w.exec, Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})).With("process", r.number)})
	r.disk.sys = w.sys
	calm, next := r.disk.errRate, r.disk.next
	r.disk.errRate, r.disk.next, r.disk.away, r.disk.down = 0, nil, time.Time{}, false
	w.open()
	r.disk.errRate, r.disk.next = calm, next
	if r.plan.two {
		w.stranger = w.newStranger()
	}
	w.unruly = r.plan.unruly
	r.note("process %d runs", w.number)
	return w
}

func (w *process) open() {
	var store persist.PersistenceService = reopens{w.disk}
	if w.disk.healing {
		store = heals{w.disk}
	}
	s := w.plan.settings
	var err error
	w.pods, err = pod.Open(w.sys, store, pod.Config{
		IdleAfter: s.idle, MaxActive: s.active, Mailbox: s.mailbox,
		ChangesHeld: s.held, RemindersHeld: s.held, RemindAtOnce: s.held / 2,
		Committer: persist.CommitterConfig{KeepChanges: s.keep, KeepFor: s.keepFor, MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond},
	})
	w.must(err)
	w.pods.OnChange(w.published)
	w.listen()
	w.pods.OnCreated(func(c pod.CreatedChild) { w.note("%s/%s was created in life %d", c.Pod, c.Name, c.Life) })
	eager := w.logs(frail, entity.Sync())
	eager.Eager = s.eager
	for _, d := range []entity.Definition{
		w.logs(things, entity.Sync()), w.sourcedLogs(books), eager, w.logs(beats, entity.Async(flushed)),
		w.bank(accounts, entity.Sync()), w.sourcedBank(purses), w.bank(tills, entity.Async(flushed)),
	} {
		_, err := w.pods.Start(context.Background(), d)
		w.must(err)
	}
	w.must(w.declare())
	w.newKeeper()
	w.openQueues()
	w.openForms()
	w.openCouriers()
	w.openBells()
	w.folds, err = persist.StartProjection(w.pods.Committer(), w.projection())
	w.must(err)
}

// must is for what cannot fail while the disk works.
func (w *process) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("seed %d: the simulation itself failed: %v", w.seed, err))
	}
}

func (w *process) ref(pod, name string) entity.Ref {
	p, err := w.pods.Pod(pod)
	w.must(err)
	return p.Ref(name)
}

// crash ends the process between two steps.
func (w *process) crash() {
	w.note("process %d dies", w.number)
	w.dead = true
	w.disk = w.disk.crash()
	w.witness()
	w.steps += w.exec.Steps()
	w.mix(w.exec.Hash())
	w.exec.Close()
}

// end stops the process in good order, within a time.
func (w *process) end(within time.Duration) {
	w.note("process %d is to end within %v", w.number, within)
	w.ending = true
	ctx, cancel := w.sys.WithTimeout(context.Background(), within)
	defer cancel()
	err := w.pods.Close(ctx)
	serr := w.sys.Stop(ctx)
	w.note("process %d has ended: %v, %v", w.number, err, serr)
	if err == nil && serr == nil {
		w.exec.RunFor(30 * time.Second) // askers that give up by themselves
		w.allEnded("after an orderly end")
		w.orderly = append(w.orderly, w.number)
	}
	w.crash()
}

// allEnded is G7: every ask ends.
func (w *process) allEnded(when string) {
	for _, o := range w.history {
		if w.waiting[o] {
			w.wrong("G7: %v has no answer %s", o.step, when)
		}
	}
	if w.jobs > 0 {
		w.wrong("G7: %d reads or asks have not ended %s", w.jobs, when)
	}
}

// judge looks whether an answer may be given at all.
func (w *process) judge(o *op, v any) {
	if s, is := v.(seen); is && len(s.Last) > 0 && s.Last[0] != o.id {
		w.wrong("G3: the answer to %v shows %v, of a later turn", o.step, s.Last)
	}
	if errors.Is(o.err, persist.ErrInvalid) && !w.disk.guilty[o.key()] {
		w.wrong("G8: %v was refused for its data, for which the store had refused another one: %v", o.step, o.err)
	}
	if errors.Is(o.err, persist.ErrUnknown) && !w.disturbed && !w.ending && !w.halted[o.key()] {
		w.wrong("G7: the outcome of %v is said to be unknown, and nothing had failed: %v", o.step, o.err)
	}
	waited := !o.adds() || o.op == "block" || o.pod != books // for something, such as Init, that ends with the actor
	if errors.Is(o.err, actor.ErrStopped) && !w.ending && (!w.halted[o.key()] || !waited && !w.disturbed) {
		w.wrong("G4: %v met an entity that was about to leave: %v", o.step, o.err)
	}
}

// published looks whether a change that is told to everybody is durable.
func (w *process) published(c persist.Change) {
	if w.dead || c.Key.Pod == beats || c.Key.Pod == tills || c.Key.Pod == scratch {
		return
	}
	log, err := w.disk.base.Log(context.Background(), c.Position-1, 1)
	w.must(err)
	if len(log) == 1 && log[0].Position == c.Position {
		if log[0].Key != c.Key || log[0].Revision != c.Revision || log[0].Life != c.Life {
			w.wrong("G3: the change %s %d-%d was published, at %d the store has %s %d-%d", c.Key, c.Life, c.Revision, c.Position, log[0].Key, log[0].Life, log[0].Revision)
		}
		return
	}
	if last, _ := w.disk.base.Position(context.Background()); last < c.Position {
		w.wrong("G2: the change %s %d-%d was published at %d; the store is at %d", c.Key, c.Life, c.Revision, c.Position, last)
	}
}

// durable looks whether what an answer of a synchronous entity tells is there.
func (w *process) durable(o *op) {
	if w.dead || o.outcome != done || o.pod == beats || o.pod == frail || o.pod == diaries || o.kind == ask { // an asker hears of it later
		return
	}
	rec, err := w.disk.base.Load(context.Background(), o.key())
	switch {
	case o.deletes():
		if err == nil && rec.Life == o.life {
			w.wrong("G6: %v was acknowledged; the store has revision %d of life %d", o.step, rec.Revision, rec.Life)
		}
	case o.revision > 0 && err == nil && (rec.Life < o.life || rec.Life == o.life && rec.Revision < o.revision),
		o.revision > 0 && err != nil && o.kind != get && o.kind != list,
		o.hasLog && o.adds() && err == nil && (o.life == 0 || rec.Life == o.life) && uint64(len(o.log)) > rec.Revision:
		w.wrong("G2: %v was answered with %d-%d %v; the store has %d-%d (%v)", o.step, o.life, o.revision, o.log, rec.Life, rec.Revision, err)
	}
}
