package patterns

import (
	"cmp"
	"errors"

	"github.com/twinsrv/twinsrv/actor"
)

// way is what one message to a pipeline has become: as many branches as hubs
// made of it.
type way struct {
	msg      actor.Message // as it came; what a stage sent by itself has no sender
	branches int           // that have not come to an end
	failure  error         // of an ask, the one that says most
}

// end has a branch come out with an answer.
func (w *way) end(ctx *actor.Context, answer any) {
	w.branches--
	if w.msg.Reply != nil {
		w.msg.Reply.Complete(answer)
		return
	}
	w.tell(ctx, answer)
}

// fail has a branch end at a stage.
func (w *way) fail(ctx *actor.Context, f StageFailed) {
	w.branches--
	silent := errors.Is(f.Err, actor.ErrNoReply)
	switch {
	case w.msg.Reply != nil:
		if w.failure == nil || errors.Is(w.failure, actor.ErrNoReply) {
			w.failure = f
		}
		w.close()
	case silent: // the stage has kept it to itself
	case w.origin(nil) == nil:
		refuse(ctx.Self(), w.msg, f)
	default:
		w.tell(ctx, f)
	}
}

// close fails the ask when no branch is left to answer it.
func (w *way) close() {
	if w.branches > 0 || w.msg.Reply == nil || w.msg.Reply.Done() {
		return
	}
	w.msg.Reply.Fail(cmp.Or(w.failure, actor.ErrNoReply))
}

// origin returns who gets what became of a message that was told.
func (w *way) origin(answer any) *actor.Ref {
	return cmp.Or(originOf(answer), originOf(w.msg.Payload), w.msg.Sender)
}

func (w *way) tell(ctx *actor.Context, answer any) {
	to := w.origin(answer)
	if err := ctx.Tell(to, answer); err != nil {
		refuse(to, actor.Message{Payload: answer, Sender: ctx.Self()}, err)
	}
}
