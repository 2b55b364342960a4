package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// exchanges is how many pings each pair answers in a round.
const exchanges = 1000

// pingPongs measures two actors that send each other one message to and fro,
// against two goroutines with a buffered channel each. The value is the time
// of one exchange, there and back, through the pairs.
func pingPongs() []measurement {
	var out []measurement
	for _, pairs := range []int{1, 64} {
		name := "actor/ping-pong"
		if pairs > 1 {
			name = fmt.Sprintf("%s-%d-pairs", name, pairs)
		}
		out = append(out, measurement{
			lines: []string{name}, cost: true,
			ours:      func(_ string, period time.Duration) ([]float64, error) { return pingPong(pairs, period) },
			reference: func(_ string, period time.Duration) ([]float64, error) { return channelPingPong(pairs, period) },
		})
	}
	return out
}

func pingPong(pairs int, period time.Duration) ([]float64, error) {
	var open sync.WaitGroup
	ball := &reading{}
	return withSystem(func(sys *actor.System) ([]float64, error) {
		pings := make([]*actor.Ref, pairs)
		for i := range pings {
			pong, err := sys.Spawn(fmt.Sprint("pong-", i), actor.PropsFunc(func(c *actor.Context, msg any) error {
				return c.Tell(c.Sender(), msg)
			}))
			if err != nil {
				return nil, err
			}
			left := exchanges
			pings[i], err = sys.Spawn(fmt.Sprint("ping-", i), actor.PropsFunc(func(c *actor.Context, msg any) error {
				if left == 0 {
					left = exchanges
					open.Done()
					return nil
				}
				left--
				return c.Tell(pong, msg)
			}))
			if err != nil {
				return nil, err
			}
		}
		return each(period, pairs*exchanges, func() error {
			open.Add(pairs)
			for _, ping := range pings {
				if err := ping.Tell(ball); err != nil {
					return err
				}
			}
			open.Wait()
			return nil
		})
	})
}

func channelPingPong(pairs int, period time.Duration) ([]float64, error) {
	var open sync.WaitGroup
	ball := &reading{}
	pings := make([]chan any, pairs)
	for i := range pings {
		ping, pong := make(chan any, 1), make(chan any, 1)
		pings[i] = ping
		go func() {
			for msg := range pong {
				ping <- msg
			}
		}()
		go func() {
			defer close(pong)
			left := exchanges
			for msg := range ping {
				if left == 0 {
					left = exchanges
					open.Done()
					continue
				}
				left--
				pong <- msg
			}
		}()
		defer close(ping)
	}
	return each(period, pairs*exchanges, func() error {
		open.Add(pairs)
		for _, ping := range pings {
			ping <- ball
		}
		open.Wait()
		return nil
	})
}
