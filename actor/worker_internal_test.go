package actor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFifoKeepsOrderAcrossGrowth(t *testing.T) {
	var q fifo[*Ref]
	refs := make([]*Ref, 1000)
	for i := range refs {
		refs[i] = &Ref{}
	}
	in, out := 0, 0
	for in < len(refs) {
		for range 7 {
			if in < len(refs) {
				q.push(refs[in])
				in++
			}
		}
		for range 3 {
			require.Same(t, refs[out], q.pop())
			out++
		}
	}
	for r := q.pop(); r != nil; r = q.pop() {
		require.Same(t, refs[out], r)
		out++
	}
	require.Equal(t, len(refs), out)
}

// A ring overflows to the global queue and is stolen from, and nothing gets
// lost or doubled.
func TestRingOverflowAndStealing(t *testing.T) {
	d := &dispatcher{base: 2}
	a, b := newWorker(d), newWorker(d)
	d.workers.Store(&[]*worker{a, b})
	d.monitor.init(d)
	seen := map[*Ref]int{}
	const n = 3*ringSize + 7
	for range n {
		a.queue(&Ref{})
	}
	for {
		r := b.local()
		if r == nil {
			r = b.steal()
		}
		if r == nil {
			r = d.fetch(b, true)
		}
		if r == nil {
			break
		}
		seen[r]++
	}
	require.Len(t, seen, n)
}

// What a worker's own handlers wake again and again goes before the ring and
// the global queue only so often.
func TestAWorkerLooksBeyondItsNextSlot(t *testing.T) {
	d := &dispatcher{base: 1}
	w := newWorker(d)
	d.workers.Store(&[]*worker{w})
	d.monitor.init(d)
	busy, ringed, global := &Ref{sys: &System{own: d}}, &Ref{}, &Ref{}
	turnsUntil := func(want *Ref) int {
		for n := 1; ; n++ {
			w.Wake(Task{busy})
			if r := w.find(); r == want {
				return n
			}
			require.Less(t, n, 1000)
		}
	}
	w.queue(ringed)
	require.LessOrEqual(t, turnsUntil(ringed), nextRuns+2)
	d.Schedule(Task{global})
	require.LessOrEqual(t, turnsUntil(global), lookAfter)
}

// A stop goes ahead of the turns that wait for a worker, however many there are.
func TestAStopGoesAheadOfWhatWaits(t *testing.T) {
	d, _ := still(1)
	w := (*d.workers.Load())[0]
	for range 20 {
		d.schedule(Task{&Ref{}})
	}
	first, second := &Ref{}, &Ref{}
	first.set(urgent)
	second.set(urgent)
	d.schedule(Task{first})
	d.schedule(Task{second})
	require.Equal(t, 22, d.global.len())
	require.Same(t, first, d.fetch(w, false))
	require.Same(t, second, d.fetch(w, false))
	for range 20 {
		require.NotNil(t, d.fetch(w, false))
	}
	require.Nil(t, d.fetch(w, false))
}
