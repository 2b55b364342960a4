package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/internal/sim"
	"github.com/twinsrv/twinsrv/internal/sim/actors"
)

// simulation is one of those that seeds are run in.
type simulation struct {
	name string
	run  func(seed uint64, keep func(int) bool, log io.Writer) sim.Result
}

// simulations returns the chosen ones.
func (o *options) simulations() (chosen []simulation) {
	for _, s := range []simulation{
		{"entities", sim.Run},
		{"actors", func(seed uint64, keep func(int) bool, log io.Writer) sim.Result {
			r := actors.Run(seed, keep, log)
			return sim.Result{Trace: r.Trace, Steps: r.Steps, Wrong: r.Wrong}
		}},
	} {
		if o.Only == "all" || o.Only == s.name {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// tally is what a hunt came to.
type tally struct {
	seeds, failed int
	first         int // how many seeds it took to fail; 0: none did
	events        uint64
	unproven      int
}

// hunt runs seeds until there are enough of them, or of failures.
func (o *options) hunt(ctx context.Context) (t tally) {
	if o.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Within)
		defer cancel()
	}
	var mu sync.Mutex
	var next atomic.Int64
	var group sync.WaitGroup
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return t.failed >= o.Stop || ctx.Err() != nil
	}
	for range o.Workers {
		group.Go(func() {
			for n := int(next.Add(1)); n <= o.Seeds && !enough(); n = int(next.Add(1)) {
				for _, s := range o.simulations() {
					seed := o.Base + uint64(n-1)
					r := o.once(s, seed)
					mu.Lock()
					t.events += r.Events
					t.unproven += r.Unproven
					if len(r.Wrong) > 0 {
						t.failed++
						if t.first == 0 || n < t.first {
							t.first = n
						}
						o.report(s, seed, r)
					}
					mu.Unlock()
				}
				mu.Lock()
				t.seeds++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return t
}

// once runs a seed, and again if the traces are to be compared. A panic of the
// simulated program is a failure of the seed.
func (o *options) once(s simulation, seed uint64) sim.Result {
	r := guarded(s, seed, nil, nil)
	if o.Twice > 0 && seed%uint64(o.Twice) == 0 && len(r.Wrong) == 0 {
		if again := guarded(s, seed, nil, nil); again.Trace != r.Trace {
			r.Wrong = append(r.Wrong, fmt.Sprintf("two runs of the seed differ: %x and %x", r.Trace, again.Trace))
		}
	}
	return r
}

func guarded(s simulation, seed uint64, keep func(int) bool, log io.Writer) (r sim.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Wrong = append(r.Wrong, fmt.Sprintf("panic: %v", p))
		}
	}()
	return s.run(seed, keep, log)
}

// shrinkFor bounds the time that is spent on making a failure smaller.
const shrinkFor = 20 * time.Second

// report prints a failure and the command that shows it again.
func (o *options) report(s simulation, seed uint64, r sim.Result) {
	if o.Digest {
		return
	}
	fmt.Printf("seed %d of %s failed:\n  %s\n", seed, s.name, strings.Join(r.Wrong, "\n  "))
	end := time.Now().Add(shrinkFor)
	steps := sim.Shrink(r.Steps, func(keep func(int) bool) bool {
		return time.Now().Before(end) && len(guarded(s, seed, keep, nil).Wrong) > 0
	})
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(steps), " ", ","), "[]")
	fmt.Printf("  all of it: go run ./internal/sim/simulate --only %s --seed %d\n", s.name, seed)
	fmt.Printf("  %d of its %d steps: go run ./internal/sim/simulate --only %s --seed %d --steps %s\n", len(steps), r.Steps, s.name, seed, list)
}

// replay runs one seed with its trace.
func (o *options) replay() bool {
	var keep func(int) bool
	if len(o.Steps) > 0 {
		keep = sim.Only(o.Steps)
	}
	well := true
	for _, s := range o.simulations() {
		r := guarded(s, *o.Seed, keep, os.Stdout)
		fmt.Printf("%s: seed %d, %d steps, trace %x\n", s.name, *o.Seed, r.Steps, r.Trace)
		for _, w := range r.Wrong {
			well = false
			fmt.Println("WRONG:", w)
		}
	}
	return well
}
