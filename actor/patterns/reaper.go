package patterns

import (
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// ReaperConfig tunes a Reaper. The zero value works.
type ReaperConfig struct {
	// Limit is how many reaps may be in progress; a Reap beyond it is a dead
	// letter, and its ask fails with an *actor.FullError. 0 means 1,000.
	Limit int
	// Timeout is that of a Reap without one. 0 means 10 s.
	Timeout time.Duration
}

// Reap is a request to a Reaper: ask all targets the same, and gather what they
// answer. It is answered with Reaped: when all have answered, at once when there
// is none to ask, and at the deadline with what has come until then.
type Reap struct {
	// Message is what each target is asked. All get the same value, so they must
	// not change what it points to.
	Message any
	// Targets are who is asked.
	Targets []actor.Target
	// Children names an actor whose children are asked besides: those that it has
	// when the request is handled, by name. Reapers among them are not asked, and
	// children that stop before they answer are left out.
	Children *actor.Ref
	// Timeout is how long to wait for answers. 0 means that of the config.
	Timeout time.Duration
}

// Reaper returns the props of an actor that asks many and gathers their answers
// (Reap). It handles any number of requests at a time, each for itself. An answer
// that comes after the deadline is a dead letter. When it stops, requests in
// progress end with actor.ErrStopped.
func Reaper(cfg ReaperConfig) actor.Props {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	return actor.PropsOf(func() actor.Actor {
		return &reaper{gathering: newGathering(cfg.Limit), timeout: cfg.Timeout}
	})
}

type reaper struct {
	gathering
	timeout time.Duration
}

// PreStart makes it known to other reapers.
func (r *reaper) PreStart(ctx *actor.Context) error {
	enter(ctx)
	return nil
}

func (r *reaper) Receive(ctx *actor.Context, msg any) error {
	if r.control(ctx, msg) {
		return nil
	}
	request := take(ctx)
	m, ok := msg.(Reap)
	if !ok {
		refuse(ctx.Self(), request, fmt.Errorf("%w: a Reaper takes Reap, not %T", actor.ErrInvalid, msg))
		return nil
	}
	timeout := m.Timeout
	if timeout <= 0 {
		timeout = r.timeout
	}
	r.begin(ctx, &reap{request: request, done: answerReap}, m.Message, m.Targets, m.Children, timeout)
	return nil
}

func answerReap(ctx *actor.Context, request actor.Message, r Reaped) {
	if err := answer(ctx.Self(), request, r); err != nil {
		refuse(ctx.Self(), actor.Message{Payload: r, Sender: ctx.Self()}, err)
	}
}

// PreRestart ends what the instance that is dropped has in hand.
func (r *reaper) PreRestart(ctx *actor.Context, _ error, _ any) { r.abandon(ctx.Self()) }

// PostStop ends the requests in progress.
func (r *reaper) PostStop(ctx *actor.Context) {
	leave(ctx)
	r.abandon(ctx.Self())
}
