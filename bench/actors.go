package main

import (
	"context"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// stopLimit is how long a measured system may take to stop.
const stopLimit = 30 * time.Second

// withSystem calls f with an actor system of its own, and stops that afterwards.
func withSystem(f func(sys *actor.System) ([]float64, error)) (values []float64, err error) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		err = errors.Join(err, sys.Stop(ctx))
	}()
	return f(sys)
}

// each repeats a round of n operations for a period, after one that prepares,
// and returns the nanoseconds that one operation took.
func each(period time.Duration, n int, round func() error) ([]float64, error) {
	rate, err := crowd(1, period, func(int, int) error { return round() })
	return []float64{1e9 / (rate * float64(n))}, err
}
