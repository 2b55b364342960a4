package main

import (
	"context"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// runtimes measures messages a second to an actor that does nothing with them,
// against a goroutine that reads a channel.
func runtimes() []measurement {
	return []measurement{
		{name: "runtime/tell", ours: tell, reference: channelTell},
		{name: "runtime/ask", ours: ask, reference: channelAsk},
	}
}

// batch is how many messages are sent between two looks at the clock and at
// how far the receiver is.
const batch = 4096

type ping struct{ last bool }

// tell sends batches, each as soon as the last one was handled.
func tell(_ string, period time.Duration) (rate float64, err error) {
	handled := make(chan struct{}, 1)
	return withActor(func(_ *actor.Context, msg any) error {
		if msg.(ping).last {
			handled <- struct{}{}
		}
		return nil
	}, func(r *actor.Ref) (float64, error) {
		rate, err := crowd(1, period, func(int, int) error {
			for range batch - 1 {
				if err := r.Tell(ping{}); err != nil {
					return err
				}
			}
			err := r.Tell(ping{last: true})
			<-handled
			return err
		})
		return rate * batch, err
	})
}

func channelTell(_ string, period time.Duration) (rate float64, err error) {
	handled := make(chan struct{}, 1)
	pings := make(chan any, 1024)
	go func() {
		for msg := range pings {
			if msg.(ping).last {
				handled <- struct{}{}
			}
		}
	}()
	defer close(pings)
	rate, err = crowd(1, period, func(int, int) error {
		for range batch - 1 {
			pings <- ping{}
		}
		pings <- ping{last: true}
		<-handled
		return nil
	})
	return rate * batch, err
}

// ask sends one message after the other, each when the last was answered.
func ask(_ string, period time.Duration) (rate float64, err error) {
	return withActor(func(c *actor.Context, msg any) error {
		c.Respond(msg)
		return nil
	}, func(r *actor.Ref) (float64, error) {
		return crowd(1, period, func(int, int) error {
			_, err := r.Ask(context.Background(), ping{})
			return err
		})
	})
}

func channelAsk(_ string, period time.Duration) (rate float64, err error) {
	pings, pongs := make(chan any), make(chan any)
	go func() {
		for msg := range pings {
			pongs <- msg
		}
	}()
	defer close(pings)
	return crowd(1, period, func(int, int) error {
		pings <- ping{}
		<-pongs
		return nil
	})
}

// withActor calls f with an actor in a system of its own.
func withActor(receive actor.ActorFunc, f func(r *actor.Ref) (float64, error)) (rate float64, err error) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, sys.Stop(ctx))
	}()
	r, err := sys.Spawn("receiver", actor.PropsFunc(receive))
	if err != nil {
		return 0, err
	}
	return f(r)
}
