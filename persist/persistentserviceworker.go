package persist

import (
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
)

// read makes of a job what a worker gets. One that cannot be read is reported; it
// stays in the store, and the manager has done with it.
func (h *serviceHost) read(ctx *actor.Context, j *job) (msg any, ok bool) {
	msg, err := h.cfg.job(j.id, &j.record)
	if err != nil {
		ctx.System().Logger().Error("a job cannot be read; it stays in the store", "key", h.cfg.key.String(), "job", j.id, "error", err)
	}
	return msg, err == nil
}

// run gives a job to a worker. Its attempt is durable.
func (h *serviceHost) run(ctx *actor.Context, j *job) {
	msg, ok := h.read(ctx, j)
	if !ok {
		h.taken--
		h.fill(ctx)
		return
	}
	worker, err := ctx.Spawn(fmt.Sprintf("%s-%d", j.id, j.record.Revision), h.cfg.worker)
	if err != nil {
		h.failed(ctx, j, fmt.Errorf("start a worker: %w", err))
		return
	}
	h.running[worker] = j
	h.passed++
	j.late = false
	if h.cfg.timeout > 0 {
		j.timer = ctx.ScheduleOnce(h.cfg.timeout, h.self, jobLate{worker})
	}
	worker.Tell(msg)
}

// ended goes on with the job of a worker that has stopped.
func (h *serviceHost) ended(ctx *actor.Context, t actor.Terminated) {
	j := h.running[t.Ref]
	if j == nil {
		return
	}
	delete(h.running, t.Ref)
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	switch {
	case t.Cause == actor.CauseSelf && t.Reason == nil:
		h.taken--
		h.submit(jobOp{j, leaves})
		h.fill(ctx)
	case t.Reason != nil:
		h.failed(ctx, j, t.Reason)
	case j.late:
		h.failed(ctx, j, fmt.Errorf("it took longer than %v: %w", h.cfg.timeout, actor.ErrTimeout))
	default:
		h.failed(ctx, j, fmt.Errorf("its worker did not stop itself: %v", t.Cause))
	}
}

// failed tries a job again some time, unless that was its last attempt.
func (h *serviceHost) failed(ctx *actor.Context, j *job, reason error) {
	h.taken--
	if n := j.record.Revision; n < uint64(h.cfg.attempts) {
		h.pausing++
		ctx.ScheduleOnce(h.cfg.pause(n), h.self, jobDue{j})
	} else {
		h.bury(ctx, j, reason)
	}
	h.fill(ctx)
}

// bury makes a dead letter of a job, and then removes it.
func (h *serviceHost) bury(ctx *actor.Context, j *job, reason error) {
	msg, ok := h.read(ctx, j)
	if !ok {
		return
	}
	ctx.System().DeadLetters().Publish(actor.ZombieMsg{
		To: h.self.Path(), Message: actor.Message{Payload: msg, Sender: h.self},
		Reason: fmt.Errorf("%s: job %s is given up after %d attempts: %w", h.cfg.key, j.id, j.record.Revision, reason),
	})
	h.submit(jobOp{j, leaves})
}
