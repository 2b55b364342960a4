package patterns

import (
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// Rate is how much may pass: in no stretch of time as long as Every are there
// more than Burst messages. The zero value is one a second.
type Rate struct {
	Every time.Duration // 0 means 1 s
	Burst int           // 0 means 1
}

func (r Rate) orDefault() Rate {
	if r.Every <= 0 {
		r.Every = time.Second
	}
	if r.Burst <= 0 {
		r.Burst = 1
	}
	return r
}

// throttle is messages that wait until the rate lets them pass.
type throttle struct {
	rate    Rate
	passed  []time.Time // when the last Burst of them did, from oldest on
	oldest  int
	waiting fifo
	ticking bool // a timer is set for the next one
}

// tick is the timer's message.
type tick struct{ key string }

// wait is how long nothing may pass; nothing or less when something may.
func (t *throttle) wait(now time.Time) time.Duration {
	if len(t.passed) < t.rate.Burst {
		return 0
	}
	return t.passed[t.oldest].Add(t.rate.Every).Sub(now)
}

// note counts one that passes.
func (t *throttle) note(now time.Time) {
	if len(t.passed) < t.rate.Burst {
		t.passed = append(t.passed, now)
		return
	}
	t.passed[t.oldest] = now
	t.oldest = (t.oldest + 1) % len(t.passed)
}

// idle says that nothing waits and no message of before counts any more.
func (t *throttle) idle(now time.Time) bool {
	if t.waiting.len() > 0 || len(t.passed) == 0 {
		return t.waiting.len() == 0
	}
	newest := t.passed[(t.oldest+len(t.passed)-1)%len(t.passed)]
	return !now.Before(newest.Add(t.rate.Every))
}

// pump passes on what may pass, and sets a timer when something waits for time.
func (t *throttle) pump(ctx *actor.Context, s *State, key string, to actor.Target) {
	now := ctx.Now()
	for !s.Paused && t.waiting.len() > 0 {
		if d := t.wait(now); d > 0 {
			if !t.ticking {
				t.ticking = true
				ctx.ScheduleOnce(d, ctx.Self(), tick{key})
			}
			return
		}
		t.note(now)
		s.Waiting--
		s.Passed++
		m := t.waiting.pop()
		if err := passOn(ctx.Self(), m, to); err != nil {
			refuse(ctx.Self(), m, err)
		}
	}
}

// add has a message wait, or refuses it.
func (t *throttle) add(ctx *actor.Context, s *State) {
	m := take(ctx)
	if t.waiting.len() >= max(s.Capacity, 1) {
		s.Refused++
		refuse(ctx.Self(), m, &actor.FullError{Ref: ctx.Self(), Capacity: s.Capacity})
		return
	}
	t.waiting.push(m)
	s.Waiting++
}
