package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/twinsrv/twinsrv/persist/bolt"
)

// durable measures commands a second of which each changes an entity's state
// and is durable when it is answered. Each entity has one command outstanding,
// so that nothing but entities among each other can share a commit. The
// reference is what one would write first: a transaction for each snapshot,
// from as many goroutines.
func durable() []measurement {
	var out []measurement
	for _, n := range []int{1, 16, 256} {
		out = append(out, measurement{
			lines:     []string{fmt.Sprintf("durable/%d", n)},
			ours:      func(dir string, period time.Duration) ([]float64, error) { return one(pods(dir, n, period)) },
			reference: func(dir string, period time.Duration) ([]float64, error) { return one(transactions(dir, n, period)) },
		})
	}
	return out
}

func one(value float64, err error) ([]float64, error) { return []float64{value}, err }

// meter is the state of the measured entities.
type meter struct {
	Count    int     `json:"count"`
	Celsius  float64 `json:"celsius"`
	Place    string  `json:"place"`
	Operator string  `json:"operator"`
}

type tick struct {
	Celsius float64 `json:"celsius"`
}

func newMeter(name string) meter {
	return meter{Place: "building 7, floor 3, room " + name, Operator: "the operator of this meter"}
}

func (m *meter) tick(t tick) {
	m.Count++
	m.Celsius = t.Celsius
}

func meterName(who int) string { return fmt.Sprintf("meter-%04d", who) }

// pods sends commands to n entities on a new bolt store.
func pods(dir string, n int, period time.Duration) (float64, error) {
	store, err := bolt.Open(filepath.Join(dir, "twinsrv.db"), bolt.Config{})
	if err != nil {
		return 0, err
	}
	return commands(store, n, period, meterName)
}

// transactions writes the same records from n goroutines, each in a
// transaction of its own.
func transactions(dir string, n int, period time.Duration) (float64, error) {
	return plainWrites(filepath.Join(dir, "plain.db"), n, period, meterName)
}
