package persist

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/snapshot"
)

// serviceHost is the actor that a PersistentServiceManager is. Its fields are
// its turns' own, but for what is set once in PreStart.
//
// A job is in one place: coming (its row is not durable), waiting, pausing
// (after a failed attempt, with a timer), beginning (the row that counts the
// attempt is not durable), running, or leaving (its row is being removed). One
// that begins or runs has a slot, and so may one that comes.
type serviceHost struct {
	cfg       *serviceConfig
	committer *Committer
	self      *actor.Ref
	scope     context.Context // of what reads for this instance
	leave     context.CancelFunc

	life, revision uint64 // of the queue's record
	position       uint64 // of the taking over
	given          uint64 // the last job's number

	coming   map[*job]bool // and whether they have a slot
	arriving int           // of these, how many have none
	waiting  waitingJobs
	pausing  int
	running  map[*actor.Ref]*job
	taken    int // slots

	paused          bool
	passed, refused uint64 // for the State

	again    []jobOp // to be submitted when the store has had its pause
	failures int     // of the store, in a row
	doubtful []jobOp // that met a conflict
}

// jobOp is one step of a job, a unit with one row. To submit it again is to do
// it once.
type jobOp struct {
	job  *job
	step jobStep
}

type jobStep uint8

const (
	comes  jobStep = iota // its row is written
	begins                // its attempt is counted
	leaves                // its row is removed
)

// The messages of the manager to itself.
type (
	jobSettled struct {
		host *serviceHost
		op   jobOp
		err  error
	}
	jobDue   struct{ job *job }
	jobLate  struct{ worker *actor.Ref }
	storeDue struct{}
)

func (h *serviceHost) PreStart(ctx *actor.Context) error {
	err := h.cfg.check()
	if err == nil {
		h.committer, err = h.cfg.persistent.serviceOf(ctx.System(), nil)
	}
	if err != nil {
		return fmt.Errorf("start the manager of %s: %w", h.cfg.key, err)
	}
	h.self = ctx.Self()
	h.scope, h.leave = context.WithCancel(ctx.Context())
	h.coming, h.running = map[*job]bool{}, map[*actor.Ref]*job{}
	ctx.Hold()
	scope := h.scope
	ctx.System().Go(func() {
		found := h.takeOver(scope)
		if scope.Err() == nil {
			h.self.TellSystem(found)
		}
	})
	return nil
}

func (h *serviceHost) ReceiveSystem(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case queueFound:
		if m.host == h {
			return h.found(ctx, m)
		}
	case jobSettled:
		if m.host == h {
			h.settled(ctx, m)
		}
	case queueOwner:
		if m.host == h {
			h.owned(ctx, m)
		}
	}
	return nil
}

// found begins with the jobs that were in the store.
func (h *serviceHost) found(ctx *actor.Context, m queueFound) error {
	if m.err != nil {
		return fmt.Errorf("start the manager of %s: %w", h.cfg.key, m.err)
	}
	h.life, h.revision, h.position = m.life, m.revision, m.position
	for _, j := range m.jobs {
		if j.record.Revision >= uint64(h.cfg.attempts) && !mutant.On(mutant.JobLastAttemptForgotten) {
			h.bury(ctx, j, errAttemptLost)
			continue
		}
		heap.Push(&h.waiting, j)
	}
	ctx.Resume()
	h.fill(ctx)
	return nil
}

// errAttemptLost is why a job is given up that the end of a manager has left at
// its last attempt.
var errAttemptLost = errors.New("the last attempt did not end before the manager did")

func (h *serviceHost) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case actor.Terminated:
		h.ended(ctx, m)
	case jobDue:
		h.pausing--
		heap.Push(&h.waiting, m.job)
		h.fill(ctx)
	case jobLate:
		if j := h.running[m.worker]; j != nil {
			j.late = true
			m.worker.Stop()
		}
	case storeDue:
		ops := h.again
		h.again = nil
		for _, op := range ops {
			h.submit(op)
		}
	case patterns.Status:
		if ctx.Message().Reply != nil || ctx.Sender() != nil {
			ctx.Respond(h.state())
		}
	case patterns.Pause:
		h.pause(ctx, true)
	case patterns.Continue:
		h.pause(ctx, false)
		h.fill(ctx)
	default:
		h.offered(ctx)
	}
	return nil
}

func (h *serviceHost) pause(ctx *actor.Context, paused bool) {
	h.paused = paused
	if ctx.Message().Reply != nil {
		ctx.Respond(h.state())
	}
}

func (h *serviceHost) state() patterns.State {
	return patterns.State{
		Paused: h.paused, Waiting: h.backlog(), Capacity: h.cfg.queue, Active: h.taken, Passed: h.passed, Refused: h.refused,
	}
}

// offered takes a message as a job, or refuses it.
func (h *serviceHost) offered(ctx *actor.Context) {
	m := ctx.Message()
	ctx.Defer()
	slot := h.hasSlot() && len(h.waiting) == 0 && h.arriving == 0
	j, err := h.newJob(ctx, m, slot)
	if err != nil {
		h.refuse(ctx, m, fmt.Errorf("%s: %w", h.cfg.key, err))
		return
	}
	if slot { // one commit is enough
		h.taken++
		j.record.Revision = 1
	} else {
		h.arriving++
	}
	h.coming[j] = slot
	h.submit(jobOp{j, comes})
	if mutant.On(mutant.JobAcceptedEarly) {
		h.accept(ctx, j)
	}
}

func (h *serviceHost) newJob(ctx *actor.Context, m actor.Message, slot bool) (*job, error) {
	if !h.cfg.takes(m.Payload) {
		return nil, invalid("a %T is no job; it takes %v", m.Payload, h.cfg.payload)
	}
	if !slot && h.backlog() >= h.cfg.queue {
		h.refused++
		return nil, &actor.FullError{Ref: h.self, Capacity: h.cfg.queue}
	}
	p := &h.cfg.persistent
	var state []byte
	err := guarded(func() (err error) {
		state, err = p.Codec.Append(nil, m.Payload)
		return err
	})
	if err != nil {
		return nil, err
	}
	h.given++
	return &job{
		id: jobID(h.position, h.given), asked: m,
		record: snapshot.Record{Changed: ctx.Now().UTC(), Schema: p.Schema, Codec: p.Codec.Name(), State: state},
	}, nil
}

// hasSlot says that a job may begin.
func (h *serviceHost) hasSlot() bool { return !h.paused && h.taken < h.cfg.slots }

// backlog is how many jobs have no slot.
func (h *serviceHost) backlog() int { return len(h.waiting) + h.pausing + h.arriving }

func (h *serviceHost) submit(op jobOp) {
	row := op.job.row()
	if op.step == leaves {
		row = RowOp{Kind: jobKind, ID: op.job.id, Delete: true}
	}
	// Each has a lane of its own, since none is computed on another.
	h.committer.Lane(func(r []Result) {
		h.self.TellSystem(jobSettled{h, op, r[0].Outcome.Err})
	}).Submit(Unit{Key: h.cfg.key, Life: h.life, Expect: h.revision, Rows: []RowOp{row}}, nil)
}

func (h *serviceHost) settled(ctx *actor.Context, m jobSettled) {
	op := m.op
	switch {
	case m.err == nil:
		h.failures = 0
		h.durable(ctx, op)
	case errors.Is(m.err, ErrConflict):
		h.doubtful = append(h.doubtful, op)
		if len(h.doubtful) == 1 {
			h.doubt()
		}
	case op.step == comes:
		h.notTaken(ctx, op.job, m.err)
	case op.step == begins && errors.Is(m.err, ErrInvalid):
		h.taken--
		h.bury(ctx, op.job, m.err)
		h.fill(ctx)
	case op.step == leaves && mutant.On(mutant.JobRemovalForgotten):
	default:
		h.later(ctx, op)
	}
}

// later submits a step anew when the store has had a pause.
func (h *serviceHost) later(ctx *actor.Context, op jobOp) {
	h.again = append(h.again, op)
	if len(h.again) == 1 {
		ctx.ScheduleOnce(h.pauseForStore(), h.self, storeDue{})
	}
}

// owned goes on after a conflict, or stops.
func (h *serviceHost) owned(ctx *actor.Context, m queueOwner) {
	if m.err != nil {
		ctx.System().Logger().Error("a manager of jobs stops: its queue is not its own any more", "actor", h.self.Path(), "error", m.err)
		for _, op := range h.doubtful {
			if op.step == comes {
				h.arrived(op.job)
				h.refuse(ctx, op.job.asked, m.err)
			}
		}
		ctx.StopSelf()
		return
	}
	ops := h.doubtful
	h.doubtful = nil
	for _, op := range ops {
		h.later(ctx, op)
	}
}

// durable goes on with a job whose step is durable.
func (h *serviceHost) durable(ctx *actor.Context, op jobOp) {
	j := op.job
	switch op.step {
	case comes:
		slot := h.arrived(j)
		h.accept(ctx, j)
		if slot {
			h.run(ctx, j)
			return
		}
		heap.Push(&h.waiting, j)
		h.fill(ctx)
	case begins:
		h.run(ctx, j)
	case leaves:
	}
}

// arrived says whether a job that comes no more has a slot.
func (h *serviceHost) arrived(j *job) (slot bool) {
	slot = h.coming[j]
	delete(h.coming, j)
	if !slot {
		h.arriving--
	}
	return slot
}

func (h *serviceHost) accept(ctx *actor.Context, j *job) {
	m := j.asked
	j.asked = actor.Message{}
	answer := JobAccepted{ID: j.id}
	switch {
	case m.Reply != nil:
		m.Reply.Complete(answer)
	case m.Sender != nil:
		ctx.Tell(m.Sender, answer)
	}
}

// notTaken ends a job that was to come. One that may be durable is removed.
func (h *serviceHost) notTaken(ctx *actor.Context, j *job, err error) {
	if h.arrived(j) {
		h.taken--
	}
	h.refuse(ctx, j.asked, err)
	if errors.Is(err, ErrUnknown) {
		h.submit(jobOp{j, leaves})
	}
	h.fill(ctx)
}

func (h *serviceHost) refuse(ctx *actor.Context, m actor.Message, err error) {
	if m.Reply != nil {
		m.Reply.Fail(err)
	}
	ctx.System().DeadLetters().Publish(actor.ZombieMsg{To: h.self.Path(), Message: m, Reason: err})
	if m.Reply == nil && m.Sender != nil {
		ctx.Tell(m.Sender, JobRefused{Payload: m.Payload, Err: err})
	}
}

// fill has jobs begin that wait, while there are slots. What cannot be read has
// no attempt counted: another version of the program may be able to.
func (h *serviceHost) fill(ctx *actor.Context) {
	for h.hasSlot() && len(h.waiting) > 0 {
		j := heap.Pop(&h.waiting).(*job)
		if _, ok := h.read(ctx, j); !ok {
			continue
		}
		h.taken++
		j.record.Revision++
		if mutant.On(mutant.JobAttemptUncounted) {
			h.run(ctx, j)
			continue
		}
		h.submit(jobOp{j, begins})
	}
}

// end lets go of what the instance has begun.
func (h *serviceHost) end(ctx *actor.Context) {
	if h.leave == nil {
		return
	}
	h.leave()
	var all []*job
	for j := range h.coming {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	for _, j := range all {
		h.refuse(ctx, j.asked, fmt.Errorf("%s: %w: %w", h.cfg.key, ErrUnknown, actor.ErrStopped))
	}
}

func (h *serviceHost) PostStop(ctx *actor.Context) { h.end(ctx) }

func (h *serviceHost) PreRestart(ctx *actor.Context, _ error, _ any) { h.end(ctx) }
