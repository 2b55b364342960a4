package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

const (
	receivers = 1000
	producers = 2
	laps      = 8 // of a producer over all receivers in a round
)

// fanRound is how many messages a round sends.
const fanRound = receivers * producers * laps

// sendLaps has the producers send to all receivers, in turn, lap after lap.
func sendLaps(send func(to int) error) error {
	return together(producers, func(int) error {
		for range laps {
			for to := range receivers {
				if err := send(to); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// tellCrowd sends from 2 goroutines to 1,000 actors.
func tellCrowd(_ string, period time.Duration) ([]float64, error) {
	var open sync.WaitGroup
	return withSystem(func(sys *actor.System) ([]float64, error) {
		refs := make([]*actor.Ref, receivers)
		for i := range refs {
			got := 0
			r, err := sys.Spawn(fmt.Sprint("receiver-", i), actor.PropsFunc(func(*actor.Context, any) error {
				if got++; got%(producers*laps) == 0 {
					open.Done()
				}
				return nil
			}))
			if err != nil {
				return nil, err
			}
			refs[i] = r
		}
		msg := &reading{}
		return each(period, fanRound, func() error {
			open.Add(receivers)
			if err := sendLaps(func(to int) error { return refs[to].Tell(msg) }); err != nil {
				return err
			}
			open.Wait()
			return nil
		})
	})
}

// channelCrowd sends from 2 goroutines to 1,000, each with a channel that has
// room for a round.
func channelCrowd(_ string, period time.Duration) ([]float64, error) {
	var open sync.WaitGroup
	channels := make([]chan any, receivers)
	for i := range channels {
		c := make(chan any, producers*laps)
		channels[i] = c
		go func() {
			got := 0
			for range c {
				if got++; got%(producers*laps) == 0 {
					open.Done()
				}
			}
		}()
		defer close(c)
	}
	msg := &reading{}
	return each(period, fanRound, func() error {
		open.Add(receivers)
		err := sendLaps(func(to int) error { channels[to] <- msg; return nil })
		open.Wait()
		return err
	})
}
