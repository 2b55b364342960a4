// Command simulate runs seeds of the simulation, shrinks what fails, and shows
// which mutants it finds.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Seeds   int           `default:"1000" help:"How many seeds are run."`
	Base    uint64        `help:"The first seed; 0 takes a random one."`
	Twice   int           `default:"4" help:"Run each so-many-th seed a second time and compare the traces; 1 is every one, 0 none."`
	Within  time.Duration `help:"Stop after so long, with the seeds that were run by then; 0 has no bound."`
	Workers int           `help:"How many seeds are run at a time; 0 takes the number of processors."`
	Stop    int           `default:"3" help:"Stop after so many failures."`

	Only    string  `enum:"all,entities,actors" default:"all" help:"Which simulation: ${enum}."`
	Seed    *uint64 `help:"Run this one seed and print its trace."`
	Steps   []int   `help:"With --seed: carry out these steps alone."`
	Mutants bool    `help:"Look for every mutant, up to --seeds each, and print a table."`
	Mutant  string  `help:"With --mutants: look for this one alone."`
	Digest  bool    `hidden:"" help:"Print the number of seeds until the first failure, for --mutants."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Description("Runs twinsrv's entities, pods and actors under seeds that decide everything."))
	if o.Base == 0 {
		o.Base = rand.Uint64N(1 << 40)
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if !o.run() {
		os.Exit(1)
	}
}

// run reports whether all is well.
func (o *options) run() bool {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case o.Mutants:
		return o.mutants(ctx)
	case o.Seed != nil:
		return o.replay()
	}
	begin := time.Now()
	t := o.hunt(ctx)
	if o.Digest {
		fmt.Println(t.first)
		return true
	}
	fmt.Printf("%d seeds from %d in %.1f s: %d failed, %d events, %d histories too long to judge\n",
		t.seeds, o.Base, time.Since(begin).Seconds(), t.failed, t.events, t.unproven)
	return t.failed == 0
}
