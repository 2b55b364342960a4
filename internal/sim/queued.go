package sim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// book is what is known of the durable queues in a run. Nil says that nobody has
// used one.
type book struct {
	slots, queue, attempts int
	timeout                time.Duration

	tasks    []*task
	by       map[string]*task
	offices  map[string]*office // the manager of each queue that was started last
	managers int
	client   *actor.Ref      // who tells them
	told     map[string]bool // the jobs that it was told are accepted
	spoiled  map[string]bool // by the job's id

	accepted, attempted, worked int // how many, for crashes
}

// task is an errand that a queue was given.
type task struct {
	step
	errand   errand
	taker    *office // whom it was given to
	asked    int     // events
	accepted int     // 0: it was not, or it is not known
	refused  error   // it was not taken
	job      string  // its id, once it is known
	begun    map[int]bool
	attempt  int     // the last
	worked   *office // whose worker has done it
	letter   bool    // it was given up
	removed  bool    // a process found the store without it
}

func (w *process) newBook() {
	if w.book != nil {
		return
	}
	rng := rand.New(rand.NewPCG(w.seed, 0x6a6f6273))
	w.book = &book{
		slots: 1 + rng.IntN(3), queue: choose(rng, 0, 0, 2), attempts: 2 + rng.IntN(2), timeout: choose(rng, 0, 15*time.Millisecond),
		by: map[string]*task{}, offices: map[string]*office{}, told: map[string]bool{}, spoiled: map[string]bool{},
	}
	w.openQueues()
}

// openQueues starts the managers of what was left in the store.
func (w *process) openQueues() {
	b := w.book
	if b == nil {
		return
	}
	for _, k := range b.tasks {
		if k.job != "" && !w.inQueue(k.pod, k.job) {
			k.removed = true
		}
	}
	w.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		// Without a sender it is one that a worker which was stopped did not get.
		if j, is := z.Message.Payload.(persist.Job[errand]); is && z.Message.Sender != nil {
			w.givenUp(j, z)
		}
	})
	var err error
	b.client, err = w.sys.Spawn("", actor.PropsFunc(func(_ *actor.Context, msg any) error {
		w.toldOfErrand(msg)
		return nil
	}))
	w.must(err)
	for _, queue := range sortedKeys(b.offices) {
		w.newOffice(queue)
	}
}

func (w *process) toldOfErrand(msg any) {
	switch m := msg.(type) {
	case persist.JobAccepted:
		w.book.told[m.ID] = true
		w.book.accepted++
		w.isKept(m.ID)
	case persist.JobRefused:
		e, _ := m.Payload.(errand)
		w.taken(w.book.by[e.ID], nil, m.Err)
	}
}

// taken notes what was said to who gave a job.
func (w *process) taken(k *task, v any, err error) {
	if w.dead {
		return
	}
	now := w.tick()
	w.note("%s of %s: %v %v", k.op, k.id, v, err)
	a, is := v.(persist.JobAccepted)
	switch key := (persist.Key{Pod: queuePod, Name: k.pod}); {
	case err == nil && (!is || math.IsNaN(k.errand.Odd)):
		w.wrong("G7: the job %s was answered with %v", k.id, v)
	case err == nil:
		w.book.accepted++
		k.accepted = now
		k.taker.owns = true
		k.is(w, a.ID)
		w.isKept(a.ID)
	case errors.Is(err, persist.ErrUnknown), errors.Is(err, actor.ErrTimeout):
	default:
		if errors.Is(err, persist.ErrInvalid) && !w.disk.guilty[key] && !math.IsNaN(k.errand.Odd) {
			w.wrong("G8: the job %s was refused for its data, for which the store had refused another one: %v", k.id, err)
		}
		if len(k.begun) > 0 {
			w.wrong("G3: the job %s has begun and was refused: %v", k.id, err)
		}
		k.refused = err
	}
}

// is notes the id of a job.
func (k *task) is(w *process, id string) {
	if k.job != "" && k.job != id {
		w.wrong("the job %s is %s and %s", k.id, k.job, id)
	}
	k.job = id
}

// isKept looks whether a job that was accepted is in the store, or has been
// there.
func (w *process) isKept(id string) {
	for _, k := range w.book.tasks {
		if k.job == id && (k.worked != nil || k.letter) {
			return
		}
	}
	for _, queue := range sortedKeys(w.book.offices) {
		if w.inQueue(queue, id) {
			return
		}
	}
	w.wrong("G2: the job %s was accepted, and the store does not have it", id)
}

func (w *process) errandRows(queue string) []persist.Row {
	rows, err := w.disk.base.RowsOf(context.Background(), persist.Key{Pod: queuePod, Name: queue})
	w.must(err)
	return rows
}

func (w *process) inQueue(queue, id string) bool {
	return slices.ContainsFunc(w.errandRows(queue), func(r persist.Row) bool { return r.ID == id })
}

// begins judges an attempt that a worker begins.
func (o *office) begins(j persist.Job[errand]) {
	w := o.process
	if w.dead {
		return
	}
	w.tick()
	w.note("attempt %d at %s, which is job %s of %s", j.Attempt, j.Payload.ID, j.ID, o.queue)
	k := w.book.by[j.Payload.ID]
	if k == nil || k.pod != o.queue {
		w.wrong("G5: nobody has given the queue %s the job %+v", o.queue, j.Payload)
		return
	}
	k.is(w, j.ID)
	want := k.errand
	want.Schema = o.schema
	first := o.begun[k.id] == 0
	switch {
	case j.Payload != want:
		w.wrong("G5: the job %s was given as %+v, and is %+v", k.id, want, j.Payload)
	case k.refused != nil:
		w.wrong("G3: the job %s was refused and begins: %v", k.id, k.refused)
	case k.removed || k.worked == o:
		w.wrong("G5: the job %s was done, and begins again as attempt %d", k.id, j.Attempt)
	case k.begun[j.Attempt], j.Attempt < k.attempt && !o.rival:
		w.wrong("G5: attempt %d at the job %s comes twice, or late", j.Attempt, k.id)
	case j.Attempt > w.book.attempts:
		w.wrong("G8: the job %s has had %d attempts", k.id, w.book.attempts)
	case first && k.taker == o && j.Attempt != 1, !first && j.Attempt != o.begun[k.id]+1:
		w.wrong("G5: the job %s begins attempt %d behind attempt %d", k.id, j.Attempt, o.begun[k.id])
	case o.paused > 0 && k.taker == o && k.asked > o.paused:
		w.wrong("G1: the job %s begins though its queue is paused", k.id)
	case o.atWork() > w.book.slots:
		w.wrong("G8: the queue %s has %d workers", o.queue, o.atWork())
	}
	o.owns = true
	o.begun[k.id], k.attempt, k.begun[j.Attempt] = j.Attempt, j.Attempt, true
	w.book.attempted++
	if !o.rival {
		o.isCounted(k, j.Attempt)
		o.isNext(k)
	}
}

// atWork is how many workers there are. The slot of one whose context has ended
// is free.
func (o *office) atWork() int {
	n := o.clerks
	for _, c := range o.contexts {
		if c.Err() != nil {
			n--
		}
	}
	return n
}

// isCounted looks whether the store has an attempt that begins.
func (o *office) isCounted(k *task, attempt int) {
	for _, row := range o.errandRows(o.queue) {
		if row.ID != k.job || row.Err != nil {
			continue
		}
		record, err := snapshot.Parse(row.Value)
		if err == nil && record.Revision != uint64(attempt) {
			o.wrong("G2: attempt %d at the job %s begins; the store has %d", attempt, k.id, record.Revision)
		}
		return
	}
	if !o.book.spoiled[k.job] {
		o.wrong("G2: attempt %d at the job %s begins, and the store does not have it", attempt, k.id)
	}
}

// isNext looks whether a job begins in its turn. Those before it that have not
// begun have slots, too.
func (o *office) isNext(k *task) {
	var before []string
	for _, a := range o.book.tasks {
		waits := a.pod == o.queue && a.accepted > 0 && a.job < k.job && o.begun[a.id] == 0
		if waits && a.worked == nil && !a.letter && !a.removed && !o.book.spoiled[a.job] && (a.taker != o || a.accepted < k.asked) {
			before = append(before, a.id)
		}
	}
	if len(before) >= o.book.slots {
		o.wrong("G1: the job %s begins before %s", k.id, strings.Join(before, ", "))
	}
}

// worked notes that a worker has done its job.
func (o *office) worked(j persist.Job[errand]) {
	if o.dead {
		return
	}
	o.note("%s is done", j.Payload.ID)
	o.book.worked++
	if k := o.book.by[j.Payload.ID]; k != nil {
		k.worked = o
	}
}

// givenUp judges the dead letter of a job.
func (w *process) givenUp(j persist.Job[errand], z actor.ZombieMsg) {
	if w.dead {
		return
	}
	w.note("%s is given up: %v", j.Payload.ID, z.Reason)
	k, o := w.book.by[j.Payload.ID], w.book.offices[errands]
	if k != nil {
		o = w.book.offices[k.pod]
	}
	switch own := o.ref.Path() == z.To; {
	case k == nil:
		w.wrong("G5: nobody has given the job that is given up: %+v", j.Payload)
		return
	case j.Attempt < w.book.attempts && (!errors.Is(z.Reason, persist.ErrInvalid) || !w.disk.guilty[persist.Key{Pod: queuePod, Name: k.pod}]):
		w.wrong("G7: the job %s is given up after %d attempts: %v", k.id, j.Attempt, z.Reason)
	case own && k.worked == o, k.removed:
		w.wrong("G5: the job %s was done, and is given up: %v", k.id, z.Reason)
	case k.refused != nil:
		w.wrong("G3: the job %s was refused, and is given up: %v", k.id, z.Reason)
	}
	k.is(w, j.ID)
	k.letter = true
}

// stated judges a manager's state.
func (o *office) stated(v any, err error) {
	s, is := v.(patterns.State)
	o.note("the queue %s: %+v %v", o.queue, v, err)
	if err == nil && (!is || s.Active > o.book.slots || s.Active < 0 || s.Waiting < 0) {
		o.wrong("G8: the queue %s with %d slots says %+v", o.queue, o.book.slots, v)
	}
}

// errandsDone says that nothing is left of all jobs, and has the managers do
// what is.
func (w *process) errandsDone() bool {
	if w.book == nil {
		return true
	}
	done := true
	for _, queue := range sortedKeys(w.book.offices) {
		o := w.office(queue)
		if o.paused > 0 {
			o.resume()
		}
		left := len(w.leftErrands(queue))
		if o.rival && o.clerks == 0 && left > 0 {
			// Of two that began at the same time the older version may have the
			// queue, and leaves the jobs that the newer one wrote.
			w.newOffice(queue)
		}
		done = done && o.clerks == 0 && left == 0
	}
	return done
}

// leftErrands are the jobs that the store has and that can be read.
func (w *process) leftErrands(queue string) []persist.Row {
	return slices.DeleteFunc(w.errandRows(queue), func(r persist.Row) bool { return w.book.spoiled[r.ID] && r.Err != nil })
}

// checkErrands looks whether every job that was accepted has been done or given
// up, and nothing is left of it.
func (w *process) checkErrands() {
	b := w.book
	if b == nil {
		return
	}
	ended := map[string]bool{}
	for _, k := range b.tasks {
		ended[k.job] = k.worked != nil || k.letter
		if k.accepted > 0 && !ended[k.job] && !b.spoiled[k.job] {
			w.wrong("G5: the job %s (%s) was accepted, and is neither done nor given up", k.id, k.job)
		}
	}
	for _, id := range sortedKeys(b.told) {
		if !ended[id] && !b.spoiled[id] {
			w.wrong("G5: the job %s was accepted, and is neither done nor given up", id)
		}
	}
	for _, queue := range sortedKeys(b.offices) {
		for _, row := range w.leftErrands(queue) {
			w.wrong("G7: the job %s is left in the queue %s", row.ID, queue)
		}
		if o := b.offices[queue]; o.clerks != 0 {
			w.wrong("G7: the queue %s has %d workers at rest", queue, o.clerks)
		}
		w.office(queue).ask(patterns.Status{}, func(v any, err error) {
			if s, _ := v.(patterns.State); err != nil || s.Waiting != 0 || s.Active != 0 || s.Paused {
				w.wrong("G7: the queue %s is at rest, and says %+v (%v)", queue, v, err)
			}
		})
	}
	w.exec.RunUntil(func() bool { return w.jobs == 0 })
}
