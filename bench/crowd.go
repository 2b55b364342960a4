package main

import (
	"errors"
	"sync"
	"time"
)

// crowd has n goroutines do something over and over for a period, and returns
// how often all of them did it a second. Turn 0 of each prepares and is over
// before the period begins. The first error ends its goroutine and is returned.
func crowd(n int, period time.Duration, do func(who, turn int) error) (rate float64, err error) {
	if err := together(n, func(who int) error { return do(who, 0) }); err != nil {
		return 0, err
	}
	counts := make([]int, n)
	begin := time.Now()
	end := begin.Add(period)
	err = together(n, func(who int) error {
		for turn := 1; time.Now().Before(end); turn++ {
			if err := do(who, turn); err != nil {
				return err
			}
			counts[who]++
		}
		return nil
	})
	took := time.Since(begin)
	done := 0
	for _, c := range counts {
		done += c
	}
	return float64(done) / took.Seconds(), err
}

// together calls f n times at once and waits for all of them.
func together(n int, f func(who int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for who := range n {
		all.Go(func() { errs[who] = f(who) })
	}
	all.Wait()
	return errors.Join(errs...)
}
