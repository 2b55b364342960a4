package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// A fork-join is a tree in which each node makes ten below it, five deep, the
// lowest give numbers to those above them, and each passes on the sum.
const (
	forks      = 10
	forkLeaves = 100_000
	forkNodes  = 111_111
	forkSum    = forkLeaves * (forkLeaves - 1) / 2
	heldBytes  = 64 << 20
)

// forkJoins measures a fork-join of actors, each its parent's child, against
// one of goroutines with a buffered channel for each that waits. The value is
// the time through the number of nodes until the sum is there; in the second
// line until all the nodes are gone, too. Goroutines go by themselves: those that
// have given their number away can be sent nothing any more. The process is nearly
// empty, so that garbage is collected three times while the tree grows; in the third
// and fourth line it holds as much as one that does something, and it is not.
func forkJoins() []measurement {
	return []measurement{{
		lines: []string{"actor/fork-join-111111", "actor/fork-join-111111-gone"}, cost: true,
		ours: forkJoin, reference: channelForkJoin,
	}, {
		lines: []string{"actor/fork-join-111111-in-64MiB", "actor/fork-join-111111-in-64MiB-gone"}, cost: true,
		ours: inHeap(forkJoin), reference: inHeap(channelForkJoin),
	}}
}

// inHeap has the process hold heldBytes more while l runs.
func inHeap(l load) load {
	return func(dir string, period time.Duration) ([]float64, error) {
		held := make([]byte, heldBytes)
		values, err := l(dir, period)
		runtime.KeepAlive(held)
		return values, err
	}
}

// standingForkJoins measures the same against goroutines that do what actors do:
// each has a mailbox, and stays until it is told to stop. It comes last, because the
// runtime never gives back what 111,111 goroutines took, and would collect garbage
// less often in what follows.
func standingForkJoins() []measurement {
	return []measurement{{
		lines: []string{"actor/fork-join-111111-standing", "actor/fork-join-111111-standing-gone"}, cost: true,
		ours: forkJoin, reference: standingForkJoin,
	}}
}

// repeatForks runs rounds for a period, and at least one. A round returns when
// its sum was there, and when everyone had gone. Between rounds all garbage is
// collected, so that none pays for the one before.
func repeatForks(period time.Duration, round func() (sum int, joined, gone time.Time)) ([]float64, error) {
	var joins, goes time.Duration
	rounds := 0
	for end := time.Now().Add(period); rounds == 0 || time.Now().Before(end); rounds++ {
		runtime.GC()
		begin := time.Now()
		sum, joined, gone := round()
		if sum != forkSum {
			return nil, fmt.Errorf("the sum is %d, not %d", sum, forkSum)
		}
		joins += joined.Sub(begin)
		goes += gone.Sub(begin)
	}
	through := float64(rounds * forkNodes)
	return []float64{float64(joins.Nanoseconds()) / through, float64(goes.Nanoseconds()) / through}, nil
}

// fork is a node. Its parent, a fork too or the one that asks, gets its sum.
type fork struct {
	first, leaves int // the numbers of the leaves below it
	waits         int // for so many sums
	sum           int
	result        chan<- int // the root's
}

// PreStart forks.
func (f *fork) PreStart(c *actor.Context) error {
	if f.leaves == 1 {
		return c.Tell(c.Parent(), f.first)
	}
	f.waits = forks
	n := f.leaves / forks
	for i := range forks {
		first := f.first + i*n
		if _, err := c.Spawn("", actor.PropsOf(func() actor.Actor { return &fork{first: first, leaves: n} })); err != nil {
			return err
		}
	}
	return nil
}

// Receive joins.
func (f *fork) Receive(c *actor.Context, msg any) error {
	f.sum += msg.(int)
	if f.waits--; f.waits > 0 {
		return nil
	}
	if f.result != nil {
		f.result <- f.sum
		return nil
	}
	return c.Tell(c.Parent(), f.sum)
}

func forkJoin(_ string, period time.Duration) ([]float64, error) {
	return withSystem(func(sys *actor.System) ([]float64, error) {
		return repeatForks(period, func() (sum int, joined, gone time.Time) {
			result := make(chan int, 1)
			root, err := sys.Spawn("", actor.PropsOf(func() actor.Actor { return &fork{leaves: forkLeaves, result: result} }))
			if err != nil {
				return 0, joined, gone
			}
			sum = <-result
			joined = time.Now()
			root.Stop()
			ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
			defer cancel()
			if sys.AwaitStop(ctx, root) != nil {
				return 0, joined, gone
			}
			return sum, joined, time.Now()
		})
	})
}

func channelForkJoin(_ string, period time.Duration) ([]float64, error) {
	return repeatForks(period, func() (sum int, joined, gone time.Time) {
		result := make(chan int, 1)
		go goFork(0, forkLeaves, result)
		sum = <-result
		joined = time.Now()
		return sum, joined, joined
	})
}

func goFork(first, leaves int, result chan<- int) {
	if leaves == 1 {
		result <- first
		return
	}
	sums := make(chan int, forks)
	n := leaves / forks
	for i := range forks {
		go goFork(first+i*n, n, sums)
	}
	sum := 0
	for range forks {
		sum += <-sums
	}
	result <- sum
}

func standingForkJoin(_ string, period time.Duration) ([]float64, error) {
	return repeatForks(period, func() (sum int, joined, gone time.Time) {
		result, stop := make(chan int, 1), make(chan struct{})
		var standing sync.WaitGroup
		standing.Go(func() { standFork(0, forkLeaves, result, stop, &standing) })
		sum = <-result
		joined = time.Now()
		close(stop)
		standing.Wait()
		return sum, joined, time.Now()
	})
}

func standFork(first, leaves int, result chan<- int, stop <-chan struct{}, standing *sync.WaitGroup) {
	mailbox := make(chan int, forks)
	if leaves == 1 {
		result <- first
	} else {
		n := leaves / forks
		for i := range forks {
			standing.Go(func() { standFork(first+i*n, n, mailbox, stop, standing) })
		}
	}
	sum, waits := 0, forks
	for {
		select {
		case some := <-mailbox:
			sum += some
			if waits--; waits == 0 {
				result <- sum
			}
		case <-stop:
			return
		}
	}
}
