package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"
)

// measurement compares two ways to do the same, by one value or by several.
type measurement struct {
	lines           []string // a name for each value
	cost            bool     // the values are costs, not rates
	ours, reference load
	// setup, if set, prepares in a folder of its own, once for all runs.
	setup func(dir string) error
}

func (m *measurement) matches(names *regexp.Regexp) bool {
	return slices.ContainsFunc(m.lines, names.MatchString)
}

// load does something for about period, with whatever it writes in dir, an
// empty folder, and returns a value for each line of its measurement.
type load func(dir string, period time.Duration) (values []float64, err error)

func measurements() []measurement {
	var all []measurement
	for _, some := range [][]measurement{durable(), onStores(), onLog(), logs(), onPostgres(), journals(), restarts(), sizes(), tells(), pingPongs(), asks(), spawns(), forkJoins(), onHTTP(), queries(), standingForkJoins()} {
		all = append(all, some...)
	}
	return all
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

// measure runs both sides in turn and prints the lines.
func (s *session) measure(m measurement) error {
	if m.setup != nil {
		dir, err := os.MkdirTemp(s.dir, "twinsrv-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := m.setup(dir); err != nil {
			return fmt.Errorf("set up: %w", err)
		}
	}
	ours, reference := make([][]float64, len(m.lines)), make([][]float64, len(m.lines))
	for range s.runs {
		if err := s.collect(m.ours, ours); err != nil {
			return err
		}
		if s.alone {
			continue
		}
		if err := s.collect(m.reference, reference); err != nil {
			return fmt.Errorf("the reference: %w", err)
		}
	}
	for i, name := range m.lines {
		if err := s.print(m, name, ours[i], reference[i]); err != nil {
			return err
		}
	}
	return nil
}

// collect runs a load and appends each of its values to those of its line.
func (s *session) collect(l load, to [][]float64) error {
	values, err := s.once(l)
	if err != nil {
		return err
	}
	for i, v := range values {
		to[i] = append(to[i], v)
	}
	return nil
}

func (s *session) print(m measurement, name string, ours, reference []float64) error {
	digits := 0
	if m.cost {
		digits = 1
	}
	if s.alone {
		_, err := fmt.Fprintf(s.out, "%s\t%.*f\t-\t-\n", name, digits, median(ours))
		return err
	}
	a, b := median(ours), median(reference)
	_, err := fmt.Fprintf(s.out, "%s\t%.*f\t%.*f\t%.2f\n", name, digits, a, digits, b, a/b)
	return err
}

// once runs a load in a folder of its own, which is removed afterwards.
func (s *session) once(l load) (values []float64, err error) {
	select {
	case <-s.interrupted:
		return nil, errors.New("interrupted")
	default:
	}
	dir, err := os.MkdirTemp(s.dir, "twinsrv-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return l(dir, s.period)
}

// median returns the middle of an odd number of values, and the mean of the two
// in the middle of an even one. It sorts the values.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
