package actor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manner is a number of asks in one manner.
type manner struct {
	spins bool
	asks  int
}

// run has a trial see asks that take so long, and returns the manners they were in.
func (t *trial) run(asks int, parks, spins time.Duration) (seen []manner) {
	timed := false
	for range asks {
		var s bool
		was := timed
		s, timed = t.next()
		if n := len(seen); n > 0 && seen[n-1].spins == s {
			seen[n-1].asks++
		} else {
			seen = append(seen, manner{s, 1})
		}
		if was {
			took := parks
			if s {
				took = spins
			}
			switch len(t.times) % 5 {
			case 0: // it was disturbed
				took += time.Second
			case 1: // or had the answer at once
				took = 1
			}
			t.times = append(t.times, took)
		}
	}
	return seen
}

func TestATrialEndsInWhatWasFaster(t *testing.T) {
	var won trial
	require.Equal(t, []manner{{false, trialAsks}, {true, trialAsks + trialWon}, {false, trialAsks}, {true, 1}},
		won.run(3*trialAsks+trialWon+1, 500, 400))

	for name, spins := range map[string]time.Duration{"slower": 900, "as fast": 500, "hardly faster": 470} {
		var lost trial
		want := []manner{{false, trialAsks}, {true, trialAsks}}
		all, pause := 2*trialAsks, trialPause
		for range 10 {
			want = append(want, manner{false, pause + trialAsks}, manner{true, trialAsks})
			all += pause + 2*trialAsks
			pause = min(2*pause, trialMost)
		}
		require.Equal(t, trialMost, pause, "the limit is reached")
		require.Equal(t, want, lost.run(all, 500, spins), name)
	}
}

// When the machine changes, so does the manner, and trials come often again.
func TestATrialIsMadeAgain(t *testing.T) {
	var tr trial
	tr.run(20*trialMost, 500, 900)
	require.Equal(t, trialMost, tr.pause)
	seen := tr.run(2*trialMost, 500, 300)
	require.True(t, seen[len(seen)-1].spins)
	require.Zero(t, tr.pause)
	seen = tr.run(trialWon+2*trialAsks, 500, 900)
	require.False(t, seen[len(seen)-1].spins)
	require.Equal(t, trialPause, tr.pause)
}

func TestATrialWithoutTimesIsLost(t *testing.T) {
	var tr trial
	for range 2*trialAsks + 1 {
		tr.next()
	}
	require.Equal(t, stageOver, tr.stage)
	require.False(t, tr.spins)
}

// Only what is marked is timed, also an ask that finds its actor at work.
func TestAnAskIsTimedWhereItIsToBe(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	r, err := s.Spawn("", PropsFunc(func(ctx *Context, _ any) error { ctx.Respond(1); return nil }))
	require.NoError(t, err)
	a := &asker{d: s.own}
	ask := func() {
		p := s.NewPromise()
		p.asker = a
		require.NoError(t, r.enqueue(Message{Payload: 1, Reply: p}, p.sentBy()))
		<-p.parker.(*chanParker).permit
		a.took()
	}
	ask()
	require.Empty(t, a.trial.times)
	a.timed = true
	ask()
	require.Len(t, a.trial.times, 1)
	require.Positive(t, a.trial.times[0])
	a.took()
	ask()
	require.Len(t, a.trial.times, 1)
}

// One who asks alone comes to a verdict.
func TestALoneAskerMakesATrial(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	r, err := s.Spawn("", PropsFunc(func(ctx *Context, _ any) error { ctx.Respond(1); return nil }))
	require.NoError(t, err)
	p := s.borrow(true)
	p.asker = &asker{d: s.own} // also where there is one processor
	most := 0
	for n := 0; p.asker.trial.stage != stageOver || p.asker.trial.left == 0; n++ {
		require.Less(t, n, 100*trialAsks, "no trial has ended")
		p.word.Store(p.word.Load()&^(promiseNext-1) + promiseNext | promiseQuick)
		require.NoError(t, r.enqueue(Message{Payload: 1, Reply: p}, p.sentBy()))
		v, err := p.await(context.Background(), time.Hour)
		require.NoError(t, err)
		require.Equal(t, 1, v)
		most = max(most, len(p.asker.trial.times))
	}
	require.Positive(t, most, "it timed some")
	require.LessOrEqual(t, most, trialAsks/2/trialEvery)
	p.clock.timer.Stop()
}
