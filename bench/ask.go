package main

import (
	"context"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// manyAskers is how many goroutines ask one actor at a time.
const manyAskers = 64

// asks measures messages that are answered. The reference is a goroutine that
// reads requests from a buffered channel and answers each on the channel that
// comes with it. The asker makes that once and waits without end, which is the
// least that channels can do. In the lines with "bounded" both sides wait until a
// context of the asker's ends, as most callers have one; the reference then needs
// another channel for each request, lest it takes a late answer for that to the next.
func asks() []measurement {
	return []measurement{
		{
			lines: []string{"actor/ask-p50", "actor/ask-p99"}, cost: true,
			ours: func(_ string, period time.Duration) ([]float64, error) {
				_, l, err := ask(context.Background(), 1, period)
				return []float64{l.quantile(0.5), l.quantile(0.99)}, err
			},
			reference: func(_ string, period time.Duration) ([]float64, error) {
				_, l, err := channelAsk(1, period)
				return []float64{l.quantile(0.5), l.quantile(0.99)}, err
			},
		},
		{
			lines: []string{"actor/ask-64-askers", "actor/ask-64-askers-p99"}, cost: true,
			ours: func(_ string, period time.Duration) ([]float64, error) {
				cost, l, err := ask(context.Background(), manyAskers, period)
				return []float64{cost, l.quantile(0.99)}, err
			},
			reference: func(_ string, period time.Duration) ([]float64, error) {
				cost, l, err := channelAsk(manyAskers, period)
				return []float64{cost, l.quantile(0.99)}, err
			},
		},
		boundedAsks(),
	}
}

// boundedAsks measures one asker who has a context with a deadline.
func boundedAsks() measurement {
	bounded := func(ask func(ctx context.Context, n int, period time.Duration) (float64, *latencies, error)) load {
		return func(_ string, period time.Duration) ([]float64, error) {
			ctx, cancel := context.WithTimeout(context.Background(), period+time.Minute)
			defer cancel()
			_, l, err := ask(ctx, 1, period)
			return []float64{l.quantile(0.5), l.quantile(0.99)}, err
		}
	}
	return measurement{
		lines: []string{"actor/ask-bounded-p50", "actor/ask-bounded-p99"}, cost: true,
		ours: bounded(ask), reference: bounded(boundedChannelAsk),
	}
}

// ask has n goroutines ask an actor, each again when it has been answered.
func ask(ctx context.Context, n int, period time.Duration) (cost float64, all *latencies, err error) {
	all = &latencies{}
	question := &reading{}
	_, err = withSystem(func(sys *actor.System) ([]float64, error) {
		r, err := sys.Spawn("receiver", actor.PropsFunc(func(c *actor.Context, msg any) error {
			c.Respond(msg)
			return nil
		}))
		if err != nil {
			return nil, err
		}
		cost, err = timed(n, period, all, func(int) error {
			_, err := r.Ask(ctx, question)
			return err
		})
		return nil, err
	})
	return cost, all, err
}

type request struct {
	msg    any
	answer chan any
}

// answerer has a goroutine answer each request with what it asks, until the channel,
// which has room for n, is closed.
func answerer(n int) chan request {
	requests := make(chan request, n)
	go func() {
		for r := range requests {
			r.answer <- r.msg
		}
	}()
	return requests
}

func channelAsk(n int, period time.Duration) (cost float64, all *latencies, err error) {
	all = &latencies{}
	question := &reading{}
	requests := answerer(n)
	defer close(requests)
	answers := make([]chan any, n)
	for i := range answers {
		answers[i] = make(chan any, 1)
	}
	cost, err = timed(n, period, all, func(who int) error {
		requests <- request{question, answers[who]}
		<-answers[who]
		return nil
	})
	return cost, all, err
}

// boundedChannelAsk is channelAsk for askers who wait until ctx ends.
func boundedChannelAsk(ctx context.Context, n int, period time.Duration) (cost float64, all *latencies, err error) {
	all = &latencies{}
	question := &reading{}
	requests := answerer(n)
	defer close(requests)
	cost, err = timed(n, period, all, func(int) error {
		answer := make(chan any, 1)
		select {
		case requests <- request{question, answer}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-answer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return cost, all, err
}

// timed has n goroutines do something over and over, notes how long each time
// took, and returns the nanoseconds through all of them.
func timed(n int, period time.Duration, all *latencies, do func(who int) error) (cost float64, err error) {
	taken := make([]latencies, n)
	rate, err := crowd(n, period, func(who, turn int) error {
		begin := time.Now()
		err := do(who)
		if turn > 0 {
			taken[who].add(time.Since(begin))
		}
		return err
	})
	for i := range taken {
		all.merge(&taken[i])
	}
	return 1e9 / rate, err
}
