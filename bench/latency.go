package main

import (
	"math/bits"
	"time"
)

// fine is how many bits below the highest a latencies' bucket tells apart: its
// width is at most a 64th of what it stands for.
const fine = 6

// latencies counts durations without keeping each. Not for two goroutines.
type latencies [64 << fine]uint64

func (l *latencies) add(d time.Duration) { l[bucket(uint64(max(d, 0)))]++ }

func (l *latencies) merge(other *latencies) {
	for i, n := range other {
		l[i] += n
	}
}

// quantile returns the least duration in nanoseconds, to a bucket's width,
// that a share q of all does not exceed; 0 when there are none.
func (l *latencies) quantile(q float64) float64 {
	total := uint64(0)
	for _, n := range l {
		total += n
	}
	seen := uint64(0)
	for i, n := range l {
		if seen += n; n > 0 && float64(seen) >= q*float64(total) {
			return value(i)
		}
	}
	return 0
}

// bucket numbers the values so that small ones have each their own, and larger
// ones share one with those that have the same highest bits.
func bucket(v uint64) int {
	shift := bits.Len64(v) - fine - 1
	if shift <= 0 {
		return int(v)
	}
	return shift<<fine + int(v>>shift)
}

// value is the middle of a bucket.
func value(bucket int) float64 {
	shift := bucket>>fine - 1
	if shift <= 0 {
		return float64(bucket)
	}
	low := uint64(bucket-shift<<fine) << shift
	return float64(low) + float64(uint64(1)<<shift)/2
}
