package patterns

import "github.com/twinsrv/twinsrv/actor"

// RelayConfig tunes a ThrottlingRelay. The zero value works.
type RelayConfig struct {
	Rate
	// Queue is how many messages may wait. 0 means 10,000.
	Queue int
	// To is who gets the messages that are no Proxy with a target of its own.
	// Nil means that they come back to whoever sent them.
	To actor.Target
}

// ThrottlingRelay returns the props of an actor that passes messages on no
// faster than at a rate, in the order in which they came, with their senders and
// asks. Messages that find no room are dead letters, and their asks fail with an
// *actor.FullError. It knows Status, Pause and Continue. When it stops, what
// waits becomes dead letters, and their asks fail with actor.ErrStopped.
//
// A message without a target comes back to whoever sent it when its time has
// come. So a relay is also a stage of a Pipeline, and anybody can wait for their
// turn by asking it with a Proxy{}.
func ThrottlingRelay(cfg RelayConfig) actor.Props {
	return actor.PropsOf(func() actor.Actor {
		return &throttlingRelay{
			to:       cfg.To,
			throttle: throttle{rate: cfg.Rate.orDefault()},
			state:    State{Capacity: max(room(cfg.Queue, 10_000), 1)},
		}
	})
}

type throttlingRelay struct {
	to actor.Target
	throttle
	state State
}

func (r *throttlingRelay) Receive(ctx *actor.Context, msg any) error {
	if _, ok := msg.(tick); ok {
		r.ticking = false
	} else if done, resumed := r.state.control(ctx, msg); done && !resumed {
		return nil
	} else if !done {
		r.add(ctx, &r.state)
	}
	r.pump(ctx, &r.state, "", r.to)
	return nil
}

// PreRestart ends what the instance that is dropped has in hand.
func (r *throttlingRelay) PreRestart(ctx *actor.Context, _ error, _ any) { r.PostStop(ctx) }

// PostStop ends what waits.
func (r *throttlingRelay) PostStop(ctx *actor.Context) { r.waiting.abandon(ctx.Self()) }
