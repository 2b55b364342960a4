package patterns

import (
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// ReapTransformConfig tunes a ReapTransform. The zero value works.
type ReapTransformConfig struct {
	// Host is the actor whose children are asked; nil is the parent.
	Host *actor.Ref
	// Ask makes of a request what the children are asked; nil asks them the
	// request itself.
	Ask func(request any) any
	// Transform makes of what was gathered the answer to the request, or an error;
	// nil answers with Reaped. It is called in the actor's turn, so it must not
	// block. A panic in it is the error of that one request.
	Transform func(request any, r Reaped) (any, error)
	// Limit is how many requests may be in progress. 0 means 1,000.
	Limit int
	// Timeout is how long to wait for the children's answers. 0 means 10 s.
	Timeout time.Duration
}

// ReapTransform returns the props of an actor that answers for all children of a
// host: it asks each of them, gathers their answers as a Reaper does, and answers
// the request with what Transform makes of these. It may be a child of the host
// itself, as others of its kind may: none asks another. What answers a request
// that was told comes as if from the host.
func ReapTransform(cfg ReapTransformConfig) actor.Props {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	return actor.PropsOf(func() actor.Actor {
		return &reapTransform{gathering: newGathering(cfg.Limit), cfg: cfg}
	})
}

type reapTransform struct {
	gathering
	cfg ReapTransformConfig
}

// PreStart makes it known to other reapers.
func (t *reapTransform) PreStart(ctx *actor.Context) error {
	enter(ctx)
	return nil
}

func (t *reapTransform) Receive(ctx *actor.Context, msg any) error {
	if t.control(ctx, msg) {
		return nil
	}
	request := take(ctx)
	question := msg
	err := protect(func() error {
		if t.cfg.Ask != nil {
			question = t.cfg.Ask(msg)
		}
		return nil
	})
	if err != nil {
		refuse(ctx.Self(), request, err)
		return nil
	}
	t.begin(ctx, &reap{request: request, done: t.answer}, question, nil, t.host(ctx), t.cfg.Timeout)
	return nil
}

func (t *reapTransform) host(ctx *actor.Context) *actor.Ref {
	if t.cfg.Host != nil {
		return t.cfg.Host
	}
	return ctx.Parent()
}

func (t *reapTransform) answer(ctx *actor.Context, request actor.Message, r Reaped) {
	v := any(r)
	err := protect(func() (err error) {
		if t.cfg.Transform != nil {
			v, err = t.cfg.Transform(request.Payload, r)
		}
		return err
	})
	if err != nil {
		refuse(ctx.Self(), request, err)
		return
	}
	if err := answer(t.host(ctx), request, v); err != nil {
		refuse(ctx.Self(), actor.Message{Payload: v, Sender: ctx.Self()}, err)
	}
}

// PreRestart ends what the instance that is dropped has in hand.
func (t *reapTransform) PreRestart(ctx *actor.Context, _ error, _ any) { t.abandon(ctx.Self()) }

// PostStop ends the requests in progress.
func (t *reapTransform) PostStop(ctx *actor.Context) {
	leave(ctx)
	t.abandon(ctx.Self())
}
