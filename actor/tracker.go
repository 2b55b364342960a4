package actor

import "time"

// tracked is how many bursts of restarts a tracker remembers.
const tracked = 64

// tracker counts restarts within a time, in bounded memory: when there are too
// many, the two oldest bursts become one with the later time.
type tracker struct{ bursts []burst }

type burst struct {
	at time.Time
	n  int
}

func (t *tracker) count(now time.Time, within time.Duration) (n int) {
	for len(t.bursts) > 0 && now.Sub(t.bursts[0].at) >= within {
		t.bursts = t.bursts[1:]
	}
	for _, b := range t.bursts {
		n += b.n
	}
	return n
}

func (t *tracker) add(now time.Time) {
	if len(t.bursts) >= tracked {
		t.bursts[1].n += t.bursts[0].n
		t.bursts = append(t.bursts[:0], t.bursts[1:]...)
	}
	t.bursts = append(t.bursts, burst{now, 1})
}
