package patterns

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// ServiceConfig tunes a ServiceManager. The zero value works.
type ServiceConfig struct {
	// Slots is how many workers there are at a time, at most. 0 means 8.
	Slots int
	// Queue is how many messages may wait for a slot. 0 means 10,000; below
	// zero none waits.
	Queue int
	// Timeout is how long a worker may have its message; then it has failed with
	// actor.ErrTimeout, and is stopped. One that blocks keeps its slot until its
	// handler returns. 0 means for ever.
	Timeout time.Duration
}

// ServiceManager returns the props of an actor that has each message handled by
// a worker of its own, of which there are only so many at a time. Messages
// without a free slot wait in order; those that find no room are dead letters,
// and their asks fail with an *actor.FullError. It knows Status, Pause and
// Continue.
//
// A worker gets one message. It ends with its answer, and when its handler
// returns without one; who needs longer takes the message over with
// Context.Defer, which is never nil here, and answers later. It may also stop
// itself. When it fails, the ask fails with that, and what was told becomes a
// dead letter; a worker is never restarted.
//
// Answers, and what else a worker tells its sender, come to whoever sent the
// message as if from the manager. When the manager stops, its workers do, asks
// end with actor.ErrStopped, and what waits becomes dead letters.
//
// Props of a worker without New are refused at Spawn.
func ServiceManager(worker actor.Props, cfg ServiceConfig) actor.Props {
	if worker.New == nil {
		return actor.Props{}
	}
	if cfg.Slots <= 0 {
		cfg.Slots = 8
	}
	return actor.Props{
		New: func() actor.Actor {
			return &serviceManager{
				worker: worker, slots: cfg.Slots, timeout: cfg.Timeout, jobs: make(map[*actor.Ref]*job),
				state: State{Capacity: room(cfg.Queue, 10_000)},
			}
		},
		Supervisor: &actor.Strategy{Decide: func(error) actor.Directive { return actor.Stop }},
	}
}

type serviceManager struct {
	worker  actor.Props
	slots   int
	timeout time.Duration
	jobs    map[*actor.Ref]*job // by worker
	waiting fifo
	state   State
}

// job is a message that a worker has.
type job struct {
	number uint64 // in order of their beginning
	msg    actor.Message
	reply  *actor.Promise // the worker's
	timer  actor.Timer    // of the Timeout
}

// late is the timer's message.
type late struct{ worker *actor.Ref }

func (s *serviceManager) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case actor.Terminated:
		s.ended(ctx, m)
		return nil
	case late:
		if j := s.jobs[m.worker]; j != nil && !j.reply.Done() {
			j.reply.Fail(fmt.Errorf("worker %s, within %v: %w", m.worker, s.timeout, actor.ErrTimeout))
		}
		return nil
	}
	if from := ctx.Sender(); from != nil && from.Parent() == ctx.Self() {
		s.passBack(ctx, from)
		return nil
	}
	done, resumed := s.state.control(ctx, msg)
	switch {
	case resumed:
		s.next(ctx)
	case done:
	case !s.state.Paused && s.state.Active < s.slots: // so nobody waits
		s.start(ctx, take(ctx))
	case s.state.Waiting < s.state.Capacity:
		s.waiting.push(take(ctx))
		s.state.Waiting++
	default:
		s.state.Refused++
		refuse(ctx.Self(), take(ctx), &actor.FullError{Ref: ctx.Self(), Capacity: s.state.Capacity})
	}
	return nil
}

// start gives a message to a new worker.
func (s *serviceManager) start(ctx *actor.Context, m actor.Message) {
	self := ctx.Self()
	worker, err := ctx.Spawn("", s.worker)
	if err != nil {
		refuse(self, m, err)
		return
	}
	s.state.Passed++
	s.state.Active++
	j := &job{number: s.state.Passed, msg: m}
	j.reply = ctx.System().OnReply(func(v any, err error) {
		j.end(self, worker, v, err)
		worker.Stop()
	})
	s.jobs[worker] = j
	if s.timeout > 0 {
		j.timer = ctx.ScheduleOnce(s.timeout, self, late{worker})
	}
	given := actor.Message{Payload: m.Payload, Reply: j.reply}
	if m.Sender != nil {
		given.Sender = self
	}
	if err := worker.Post(given); err != nil {
		j.reply.Fail(err)
	}
}

// end passes the worker's answer on, in the call of whoever gave it. What is
// told goes by the manager's mailbox, behind what the worker has told before.
func (j *job) end(manager, worker *actor.Ref, v any, err error) {
	switch {
	case j.msg.Reply != nil && err != nil:
		if !j.msg.Reply.Done() {
			j.msg.Reply.Fail(err)
		}
	case j.msg.Reply != nil:
		j.msg.Reply.Complete(v)
	case err == nil:
		_ = manager.Post(actor.Message{Payload: v, Sender: worker}) // its mailbox is unbounded
	case errors.Is(err, actor.ErrNoReply): // done, and there is nothing to say
	default:
		refuse(manager, j.msg, err)
	}
}

// passBack has whoever sent the worker's message get one of the worker's.
func (s *serviceManager) passBack(ctx *actor.Context, worker *actor.Ref) {
	m := take(ctx)
	j := s.jobs[worker]
	if j == nil || j.msg.Sender == nil {
		refuse(ctx.Self(), m, fmt.Errorf("from worker %s to nobody: %w", worker, actor.ErrNotFound))
		return
	}
	m.Sender = ctx.Self()
	if err := j.msg.Sender.Post(m); err != nil {
		refuse(j.msg.Sender, m, err)
	}
}

// ended frees the slot of a worker that has stopped.
func (s *serviceManager) ended(ctx *actor.Context, t actor.Terminated) {
	j := s.jobs[t.Ref]
	if j == nil {
		return
	}
	delete(s.jobs, t.Ref)
	s.state.Active--
	if j.timer != nil {
		j.timer.Stop()
	}
	j.fail(t)
	s.next(ctx)
}

// fail ends a job that its worker took over and left behind.
func (j *job) fail(t actor.Terminated) {
	switch {
	case j.reply.Done():
	case t.Reason != nil:
		j.reply.Fail(t.Reason)
	case t.Cause == actor.CauseSelf:
		j.reply.Fail(fmt.Errorf("worker %s has stopped itself: %w", t.Ref, actor.ErrNoReply))
	default:
		j.reply.Fail(fmt.Errorf("worker %s, before it answered: %w", t.Ref, actor.ErrStopped))
	}
}

// next fills the free slots.
func (s *serviceManager) next(ctx *actor.Context) {
	for !s.state.Paused && s.state.Waiting > 0 && s.state.Active < s.slots {
		s.state.Waiting--
		s.start(ctx, s.waiting.pop())
	}
}

// PreRestart ends what the instance that is dropped has in hand.
func (s *serviceManager) PreRestart(ctx *actor.Context, _ error, _ any) { s.PostStop(ctx) }

// PostStop ends the jobs that workers had taken over, and what waits.
func (s *serviceManager) PostStop(ctx *actor.Context) {
	left := slices.SortedFunc(maps.Values(s.jobs), func(a, b *job) int { return cmp.Compare(a.number, b.number) })
	for _, j := range left {
		if !j.reply.Done() {
			j.reply.Fail(fmt.Errorf("%s, before it answered: %w", ctx.Self(), actor.ErrStopped))
		}
	}
	s.waiting.abandon(ctx.Self())
}
