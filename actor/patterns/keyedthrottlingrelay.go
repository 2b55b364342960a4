package patterns

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twinsrv/twinsrv/actor"
)

// KeyedRelayConfig tunes a KeyedThrottlingRelay. The zero value works.
type KeyedRelayConfig struct {
	// Rate is that of each key.
	Rate
	// Rates are those of keys that have another.
	Rates map[string]Rate
	// Key gives the key of a message, of what is in a Proxy without a Key; false
	// says that it has none. Nil asks messages that have a method
	// HashKey() string, as those for actor/router do.
	Key func(msg any) (key string, ok bool)
	// Queue is how many messages may wait for each key. 0 means 1,000.
	Queue int
	// Keys is how many keys there may be at a time: a key is forgotten when
	// nothing waits for it and its rate lets anything pass. 0 means 1,000.
	Keys int
	// To is as RelayConfig.To.
	To actor.Target
}

// KeyedThrottlingRelay returns the props of an actor that is a ThrottlingRelay
// for each key of messages: the keys do not wait for each other. Messages
// without a key share one of their own. Messages of a key beyond Keys are refused
// as those that find no room in the queue. Pause and Continue are for all keys,
// and Status counts all of them.
func KeyedThrottlingRelay(cfg KeyedRelayConfig) actor.Props {
	cfg.Rates = maps.Clone(cfg.Rates)
	if cfg.Keys <= 0 {
		cfg.Keys = 1000
	}
	return actor.PropsOf(func() actor.Actor {
		return &keyedRelay{
			cfg: cfg, byKey: make(map[string]*throttle),
			state: State{Capacity: max(room(cfg.Queue, 1000), 1)},
		}
	})
}

type keyedRelay struct {
	cfg   KeyedRelayConfig
	byKey map[string]*throttle
	state State
}

func (r *keyedRelay) Receive(ctx *actor.Context, msg any) error {
	if t, ok := msg.(tick); ok {
		if one := r.byKey[t.key]; one != nil {
			one.ticking = false
			one.pump(ctx, &r.state, t.key, r.cfg.To)
		}
		return nil
	}
	done, resumed := r.state.control(ctx, msg)
	switch {
	case resumed:
		for _, key := range r.keys() {
			r.byKey[key].pump(ctx, &r.state, key, r.cfg.To)
		}
	case !done:
		r.add(ctx, msg)
	}
	return nil
}

func (r *keyedRelay) add(ctx *actor.Context, msg any) {
	key, err := r.key(msg)
	if err != nil {
		refuse(ctx.Self(), take(ctx), err)
		return
	}
	one := r.throttle(ctx, key)
	if one == nil {
		r.state.Refused++
		full := &actor.FullError{Ref: ctx.Self(), Capacity: r.state.Capacity}
		refuse(ctx.Self(), take(ctx), fmt.Errorf("no room for another key, there are %d: %w", r.cfg.Keys, full))
		return
	}
	one.add(ctx, &r.state)
	one.pump(ctx, &r.state, key, r.cfg.To)
}

// key returns the key of a message; "" when it has none.
func (r *keyedRelay) key(msg any) (key string, err error) {
	if p, ok := msg.(Proxy); ok {
		if p.Key != "" {
			return p.Key, nil
		}
		msg = p.Message
	}
	err = protect(func() error {
		if r.cfg.Key != nil {
			if k, ok := r.cfg.Key(msg); ok {
				key = k
			}
		} else if k, ok := msg.(interface{ HashKey() string }); ok {
			key = k.HashKey()
		}
		return nil
	})
	return key, err
}

// throttle returns that of a key; nil when there are too many.
func (r *keyedRelay) throttle(ctx *actor.Context, key string) *throttle {
	if one := r.byKey[key]; one != nil {
		return one
	}
	if len(r.byKey) >= r.cfg.Keys {
		now := ctx.Now()
		maps.DeleteFunc(r.byKey, func(_ string, one *throttle) bool { return one.idle(now) })
		if r.state.Active = len(r.byKey); r.state.Active >= r.cfg.Keys {
			return nil
		}
	}
	rate, ok := r.cfg.Rates[key]
	if !ok {
		rate = r.cfg.Rate
	}
	one := &throttle{rate: rate.orDefault()}
	r.byKey[key] = one
	r.state.Active = len(r.byKey)
	return one
}

func (r *keyedRelay) keys() []string { return slices.Sorted(maps.Keys(r.byKey)) }

// PreRestart ends what the instance that is dropped has in hand.
func (r *keyedRelay) PreRestart(ctx *actor.Context, _ error, _ any) { r.PostStop(ctx) }

// PostStop ends what waits.
func (r *keyedRelay) PostStop(ctx *actor.Context) {
	for _, key := range r.keys() {
		r.byKey[key].waiting.abandon(ctx.Self())
	}
}
