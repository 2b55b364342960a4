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
	passed  []time.Time // when those did that count still, from oldest on
	waiting fifo
	ticking bool // a timer is set for the next one
}

// tick is the timer's message.
type tick struct{ key string }

// wait is how long nothing may pass; nothing or less when something may.
func (t *throttle) wait(now time.Time) time.Duration {
	t.forget(now)
	if len(t.passed) < t.rate.Burst {
		return 0
	}
	return t.passed[0].Add(t.rate.Every).Sub(now)
}

// note counts one that passes.
func (t *throttle) note(now time.Time) { t.passed = append(t.passed, now) }

// forget lets go of those that count no more. So a large Burst costs only as
// much as passes within Every.
func (t *throttle) forget(now time.Time) {
	old := 0
	for old < len(t.passed) && !now.Before(t.passed[old].Add(t.rate.Every)) {
		old++
	}
	switch {
	case old < len(t.passed):
		t.passed = t.passed[old:]
	case cap(t.passed) > 64:
		t.passed = nil // a burst does not keep its room
	default:
		t.passed = t.passed[:0]
	}
}

// idle says that nothing waits and no message of before counts any more.
func (t *throttle) idle(now time.Time) bool {
	t.forget(now)
	return t.waiting.len() == 0 && len(t.passed) == 0
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
