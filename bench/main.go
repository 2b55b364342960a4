// Command bench measures twinsrv against what one would write without it, on
// the machine it runs on.
//
//	go run . [-bench REGEXP] [-runs N] [-for DURATION] [-dir DIR] [-cpuprofile FILE] [-memprofile FILE]
//	go run . -steady DURATION [-dir DIR]
//	go run . -where [-for DURATION] [-dir DIR]
//
// It prints a line for each measurement: its name, our value, the reference's
// value and their ratio, ours through the reference's, separated by tabs. Ours
// and the reference run in turn, and each value is the median of its runs, so
// that a machine that is busy with something else spoils both alike.
//
// The values of durable/, stores/, log/, journal/ and http/ are rates, commands,
// commits, events or requests a second: a ratio over 1 says that ours is faster. The
// values of actor/, start/, memory/, query/ and watch/ are costs, nanoseconds for one operation or, where the name says
// so, bytes: a ratio under 1 says that ours is cheaper. stores/postgres needs a
// PostgreSQL server's binaries and is left out where there are none.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"time"
)

// legend heads the lines. It goes where notes go, so that the output is lines only.
const legend = "# name\tours\treference\tours/reference (durable/, stores/, log/, journal/, http/: a second, more is better; actor/, start/, memory/, query/, watch/: ns or bytes, less is better)\n"

// leastRuns is how many runs a median needs to be worth printing.
const leastRuns = 5

func main() {
	if is, err := sendRequests(os.Stdout); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out, notes io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(notes)
	var (
		pattern = flags.String("bench", ".", "regular expression for the names of the measurements")
		runs    = flags.Int("runs", leastRuns, "runs of each side; the value is their median")
		period  = flags.Duration("for", time.Second, "how long a run takes")
		dir     = flags.String("dir", "", "folder for the files that are written; it should lie on a real disk (default: the system's temporary folder)")
		profile = flags.String("cpuprofile", "", "write a CPU profile of our side to this file; the reference is not run")
		even    = flags.Duration("steady", 0, "instead of measuring, load a store with a commit log evenly for so long; fails when memory or disk grow")
		wherein = flags.Bool("where", false, "instead of measuring, print where the time of a durable command goes")
		heap    = flags.String("memprofile", "", "write a profile of our side's allocations to this file; the reference is not run")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	names, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-bench: %w", err)
	}
	switch {
	case *runs < leastRuns && *profile == "" && *heap == "":
		return fmt.Errorf("-runs %d: a median needs at least %d", *runs, leastRuns)
	case *runs < 1:
		return fmt.Errorf("-runs %d: at least one is needed", *runs)
	case *period <= 0:
		return fmt.Errorf("-for %s: a run needs some time", *period)
	}
	if *profile != "" {
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if *wherein {
		return where(*period, *dir, out)
	}
	if *even > 0 {
		return steady(*even, *dir, out)
	}
	if *heap != "" {
		defer func() { err = errors.Join(err, writeAllocations(*heap)) }()
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	s := session{runs: *runs, period: *period, dir: *dir, alone: *profile != "" || *heap != "", interrupted: interrupted, out: out}
	var chosen []measurement
	for _, m := range measurements() {
		if m.matches(names) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) > 0 {
		_, _ = io.WriteString(notes, legend)
	}
	for _, m := range chosen {
		if err := s.measure(m); err != nil {
			return fmt.Errorf("%s: %w", m.lines[0], err)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-bench %s: no measurement has such a name", *pattern)
	}
	return nil
}

func startProfile(file string) (stop func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

func writeAllocations(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
