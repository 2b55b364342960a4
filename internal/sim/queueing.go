package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// employ is a step about a durable queue of jobs.
const employ kind = "employ"

// The queues. Workers of the first are actors, those of the second a function.
const (
	errands = "errands"
	chores  = "chores"
)

// queuePod is where the store keeps the queues.
const queuePod = "$queues"

// errand is a job.
type errand struct {
	ID     string        `json:"id"`
	Way    string        `json:"way"`   // how its worker ends; "" is well
	Until  int           `json:"until"` // and which attempt is the first to end well; 0: none
	Takes  time.Duration `json:"takes"`
	Schema int           `json:"schema"` // the version that it is of, by what upgrades say
	Odd    float64       `json:"odd"`
}

// home tells a worker that its errand is over.
type home struct{}

// planErrand is one step about a queue, behind a few others.
func planErrand(p *plan, rng *rand.Rand) step {
	if !p.jobs {
		return step{}
	}
	queue := choose(rng, errands, errands, chores)
	do := func(op string) step {
		return step{kind: employ, pod: queue, op: op, n: rng.IntN(1000), who: rng.IntN(senders)}
	}
	give := func() step { return do(choose(rng, "give", "give", "give", "tell")) }
	switch rng.IntN(8) {
	case 0, 1: // a crash where it matters
		for range 1 + rng.IntN(5) {
			p.add(give())
		}
		return do("cut")
	case 2:
		p.add(do("pause"))
		p.add(give())
		p.add(give())
		p.add(step{kind: goOn, d: 5 * time.Millisecond})
		p.add(do("status"))
		return do("continue")
	case 3: // another manager has the queue
		p.add(give())
		p.add(give())
		p.add(step{kind: steps, n: 1 + rng.IntN(25)})
		p.add(do(choose(rng, "second", "second", "stop", "poison")))
		p.add(give())
		return give()
	case 4: // a fault in what a manager does
		p.add(step{kind: faulty, n: 1 + rng.IntN(int(fates)-1)})
		p.add(give())
		return give()
	case 5:
		return do(choose(rng, "odd", "status", "spoil", "pause", "second"))
	}
	for range rng.IntN(4) {
		p.add(give())
	}
	return give()
}

// doErrand carries out a step about a queue.
func (w *process) doErrand(s step) {
	o := w.office(s.pod)
	switch s.op {
	case "give", "tell":
		w.giveErrand(o, s)
	case "odd": // what is no job, and managers that are none
		o.ask(touch{s.id}, func(v any, err error) {
			if err == nil {
				w.wrong("G7: the queue %s took what is no job: %v", o.queue, v)
			}
		})
		for _, bad := range []errandManager{{Name: "none"}, {Name: ".", Work: o.work}, {Name: "both", Work: o.work, Worker: o.worker()}} {
			if ref, err := w.sys.Spawn("", bad.Props()); err == nil {
				ref.Stop()
			}
		}
	case "pause":
		was := o.resumed
		o.ask(patterns.Pause{}, func(v any, err error) {
			if err == nil && o.resumed == was {
				o.paused = w.tick()
			}
			o.stated(v, err)
		})
	case "continue":
		o.resume()
	case "status":
		o.ask(patterns.Status{}, o.stated)
	case "stop":
		o.ref.Stop()
	case "poison":
		_ = o.ref.Tell(actor.PoisonPill{})
	case "second":
		w.newOffice(s.pod)
	case "spoil":
		w.spoilErrand(o)
	case "cut":
		w.cutErrand(o, s.n)
	}
}

// giveErrand gives a queue a job, by an ask or from an actor.
func (w *process) giveErrand(o *office, s step) {
	e := errand{ID: s.id, Schema: o.schema, Takes: time.Duration(s.n%7) * 4 * time.Millisecond}
	switch s.n % 4 {
	case 1:
		e.Way = []string{"fails", "panics", "is stopped", "is poisoned", "hangs"}[s.n/4%5]
		e.Until = []int{0, 2, 2, 3}[s.n/20%4]
	case 2:
		if s.n%12 == 2 {
			e.Odd = math.NaN()
		}
	}
	k := &task{step: s, errand: e, taker: o, asked: w.tick(), begun: map[int]bool{}}
	w.book.tasks = append(w.book.tasks, k)
	w.book.by[e.ID] = k
	if s.op == "tell" {
		_ = o.ref.TellFrom(e, w.book.client) // else it is a dead letter
		return
	}
	o.ask(e, func(v any, err error) { w.taken(k, v, err) })
}

// ask sends a manager something that it must answer.
func (o *office) ask(msg any, answered func(v any, err error)) {
	w := o.process
	w.jobs++
	reply := w.sys.OnReply(func(v any, err error) {
		w.jobs--
		if !w.dead {
			answered(v, err)
		}
	})
	if err := o.ref.Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

func (o *office) resume() {
	o.paused = 0
	o.resumed++
	_ = o.ref.Tell(patterns.Continue{})
}

type errandManager = persist.PersistentServiceManager[errand]

// office is a manager of a queue, and what its workers do.
type office struct {
	*process
	queue    string
	ref      *actor.Ref
	schema   int
	paused   int               // the event when it said that it is; 0: it is not
	resumed  int               // how often it was told to go on
	owns     bool              // it has had the queue
	rival    bool              // there is another one that may have the queue
	clerks   int               // workers
	contexts []context.Context // of the workers that are functions
	begun    map[string]int    // the last attempt, by errand
}

// office is the queue's manager, which may have to be started.
func (w *process) office(queue string) *office {
	w.newBook()
	if o := w.book.offices[queue]; o != nil && o.process == w && !o.ref.Stopped() {
		return o
	}
	return w.newOffice(queue)
}

// newOffice starts a manager. One that there is finds out that it has lost the
// queue. Each is of a newer version than those before.
func (w *process) newOffice(queue string) *office {
	b := w.book
	b.managers++
	o := &office{process: w, queue: queue, schema: b.managers / 2, begun: map[string]int{}}
	if old := b.offices[queue]; old != nil && old.process == w {
		old.rival, o.rival = true, !old.owns // two that begin at the same time may take it over in any order
	}
	b.offices[queue] = o
	m := errandManager{
		Name: queue, Slots: b.slots, Queue: b.queue, MaxAttempts: b.attempts, Timeout: b.timeout,
		MinBackoff: 3 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
		Schema: uint32(o.schema), Upgrades: snapshot.Upgrades{}, Codec: choose[snapshot.Codec](w.rng, nil, snapshot.JSON()),
	}
	for v := range uint32(o.schema) {
		m.Upgrades[v] = func(state map[string]any) error {
			state["schema"] = int64(v) + 1
			return nil
		}
	}
	if queue == chores {
		m.Work, m.Committer = o.work, w.pods.Committer()
	} else {
		m.Worker = o.worker()
		w.pods.Committer().MakeDefault()
	}
	var err error
	o.ref, err = w.sys.Spawn("", m.Props())
	w.must(err)
	w.note("%s has the queue %s", o.ref.Path(), queue)
	return o
}

// clerk is a worker that is an actor.
type clerk struct {
	office *office
	job    persist.Job[errand]
}

func (o *office) worker() actor.Props {
	return actor.PropsOf(func() actor.Actor { return &clerk{office: o} })
}

func (c *clerk) PreStart(*actor.Context) error {
	c.office.clerks++
	return nil
}

func (c *clerk) PostStop(*actor.Context) { c.office.clerks-- }

func (c *clerk) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case persist.Job[errand]:
		c.job = m
		c.office.begins(m)
		switch c.office.way(m) {
		case "":
			ctx.ScheduleOnce(m.Payload.Takes, ctx.Self(), home{})
		case "panics":
			panic("on purpose")
		case "is stopped":
			ctx.Self().Stop()
		case "is poisoned":
			return ctx.Self().Tell(actor.PoisonPill{})
		case "hangs":
		default:
			return errOnPurpose
		}
	case home:
		c.office.worked(c.job)
		ctx.StopSelf()
	}
	return nil
}

// work is what a worker does that is a function.
func (o *office) work(ctx context.Context, m persist.Job[errand]) error {
	o.contexts = append(o.contexts, ctx)
	o.clerks++
	defer func() {
		o.clerks--
		i := slices.Index(o.contexts, ctx)
		o.contexts = slices.Delete(o.contexts, i, i+1)
	}()
	o.begins(m)
	takes := m.Payload.Takes
	switch o.way(m) {
	case "":
	case "panics":
		panic("on purpose")
	case "hangs":
		takes = time.Hour
	default:
		return errOnPurpose
	}
	if err := o.sys.Sleep(ctx, takes); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	o.worked(m)
	return nil
}

// way is how an attempt ends.
func (o *office) way(m persist.Job[errand]) string {
	e := m.Payload
	switch {
	case e.Until > 0 && m.Attempt >= e.Until:
		return ""
	case e.Way == "hangs" && o.book.timeout == 0:
		return "fails"
	}
	return e.Way
}

// spoilErrand makes the row of a job unreadable, for a manager that reads it.
func (w *process) spoilErrand(o *office) {
	m, can := w.disk.damageable()
	rows := w.errandRows(o.queue)
	if !can || len(rows) == 0 {
		return
	}
	row := rows[w.rng.IntN(len(rows))]
	m.DamageRow(row)
	w.damaged[row.Key] = true
	w.book.spoiled[row.ID] = true
	w.note("the row of job %s is damaged", row.ID)
}

// cutErrand has the process crash when a job has come so far.
func (w *process) cutErrand(o *office, n int) {
	b := w.book
	accepted, begun, worked := b.accepted, b.attempted, b.worked
	reached := []func() bool{
		func() bool { return w.writes(false) },
		func() bool { return b.accepted > accepted },
		func() bool { return b.attempted > begun },
		func() bool { return b.worked > worked },
		func() bool { return w.writes(true) },
	}[n%5]
	for range 400 {
		if reached() || !w.exec.Step() {
			break
		}
	}
	for range n / 5 % 4 {
		w.exec.Step()
	}
	w.note("%d accepted, %d begun, %d worked at %s", b.accepted, b.attempted, b.worked, o.queue)
	w.crash()
	w.run.active = w.run.start()
}

// writes says that a job is being written, or removed.
func (w *process) writes(removed bool) bool {
	return slices.ContainsFunc(w.disk.writing, func(u persist.Unit) bool {
		return u.Key.Pod == queuePod && len(u.Rows) > 0 && u.Rows[0].Delete == removed
	})
}
