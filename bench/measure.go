package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// measurement compares two ways to do the same.
type measurement struct {
	name            string
	ours, reference load
}

// load does something for about period, with whatever it writes in dir, an
// empty folder, and returns how often it did it a second.
type load func(dir string, period time.Duration) (rate float64, err error)

func measurements() []measurement {
	return append(durable(), runtimes()...)
}

// session is one call of the program.
type session struct {
	runs        int
	period      time.Duration
	dir         string // empty: the system's temporary folder
	alone       bool   // without the references
	interrupted <-chan os.Signal
	out         io.Writer
}

// measure runs both sides in turn and prints the line.
func (s *session) measure(m measurement) error {
	var ours, reference []float64
	for range s.runs {
		rate, err := s.once(m.ours)
		if err != nil {
			return err
		}
		ours = append(ours, rate)
		if s.alone {
			continue
		}
		if rate, err = s.once(m.reference); err != nil {
			return fmt.Errorf("the reference: %w", err)
		}
		reference = append(reference, rate)
	}
	if s.alone {
		_, err := fmt.Fprintf(s.out, "%s\t%.0f\t-\t-\n", m.name, median(ours))
		return err
	}
	_, err := fmt.Fprintf(s.out, "%s\t%.0f\t%.0f\t%.2f\n", m.name, median(ours), median(reference), median(ours)/median(reference))
	return err
}

// once runs a load in a folder of its own, which is removed afterwards.
func (s *session) once(l load) (rate float64, err error) {
	select {
	case <-s.interrupted:
		return 0, errors.New("interrupted")
	default:
	}
	dir, err := os.MkdirTemp(s.dir, "twinsrv-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return l(dir, s.period)
}

// median returns the middle of an odd number of rates, and the mean of the two
// in the middle of an even one. It sorts the rates.
func median(rates []float64) float64 {
	slices.Sort(rates)
	n := len(rates)
	return (rates[(n-1)/2] + rates[n/2]) / 2
}
