package main

import (
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// batch is how many messages one sender sends between two looks at the clock
// and at how far the receiver is.
const batch = 4096

// reading is a message.
type reading struct {
	place   uint64
	celsius float64
	last    bool // of its batch
}

// tells measures messages that nobody answers, their sending and their
// handling, one sender to one receiver. The reference is a goroutine that reads
// a buffered channel of the same messages. Both sides wait for the end of each
// batch, so that neither measures how a queue grows. The channel's buffer holds
// a batch, so that its sender never waits for room.
func tells() []measurement {
	return []measurement{
		{lines: []string{"actor/tell-pointer"}, cost: true, ours: tellPointers, reference: channelPointers},
		{lines: []string{"actor/tell-struct"}, cost: true, ours: tellStructs, reference: channelStructs},
		{lines: []string{"actor/tell-2-to-1000"}, cost: true, ours: tellCrowd, reference: channelCrowd},
	}
}

// tellPointers sends the same pointers over and over: no allocation is needed.
func tellPointers(_ string, period time.Duration) ([]float64, error) {
	some, last := &reading{}, &reading{last: true}
	handled := make(chan struct{}, 1)
	return withSystem(func(sys *actor.System) ([]float64, error) {
		r, err := sys.Spawn("receiver", actor.PropsFunc(func(_ *actor.Context, msg any) error {
			if msg.(*reading).last {
				handled <- struct{}{}
			}
			return nil
		}))
		if err != nil {
			return nil, err
		}
		return each(period, batch, func() error {
			for range batch - 1 {
				if err := r.Tell(some); err != nil {
					return err
				}
			}
			err := r.Tell(last)
			<-handled
			return err
		})
	})
}

func channelPointers(_ string, period time.Duration) ([]float64, error) {
	some, last := &reading{}, &reading{last: true}
	handled := make(chan struct{}, 1)
	readings := make(chan any, batch)
	go func() {
		for msg := range readings {
			if msg.(*reading).last {
				handled <- struct{}{}
			}
		}
	}()
	defer close(readings)
	return each(period, batch, func() error {
		for range batch - 1 {
			readings <- some
		}
		readings <- last
		<-handled
		return nil
	})
}

// tellStructs sends structs, of which each is boxed on its own.
func tellStructs(_ string, period time.Duration) ([]float64, error) {
	handled := make(chan struct{}, 1)
	return withSystem(func(sys *actor.System) ([]float64, error) {
		r, err := sys.Spawn("receiver", actor.PropsFunc(func(_ *actor.Context, msg any) error {
			if msg.(reading).last {
				handled <- struct{}{}
			}
			return nil
		}))
		if err != nil {
			return nil, err
		}
		return each(period, batch, func() error {
			for i := range batch - 1 {
				if err := r.Tell(reading{place: uint64(i), celsius: 21.5}); err != nil {
					return err
				}
			}
			err := r.Tell(reading{last: true})
			<-handled
			return err
		})
	})
}

func channelStructs(_ string, period time.Duration) ([]float64, error) {
	handled := make(chan struct{}, 1)
	readings := make(chan any, batch)
	go func() {
		for msg := range readings {
			if msg.(reading).last {
				handled <- struct{}{}
			}
		}
	}()
	defer close(readings)
	return each(period, batch, func() error {
		for i := range batch - 1 {
			readings <- reading{place: uint64(i), celsius: 21.5}
		}
		readings <- reading{last: true}
		<-handled
		return nil
	})
}
