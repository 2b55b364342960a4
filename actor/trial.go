package actor

import (
	"slices"
	"time"
)

const (
	trialAsks  = 1024            // in each manner; the first half is for getting into step
	trialEvery = 16              // one of so many of the other half is timed
	trialPause = 4 * trialAsks   // asks until the next trial, doubled after each in vain
	trialMost  = 256 * trialAsks // ... up to this
	trialWon   = 64 * trialAsks  // asks that an asker spins before that is tried again
)

// trial has a lone asker find out whether spinning shortens his asks: whether two
// processors reach each other fast, and are both free, differs from machine to
// machine and from one minute to the next. He parks for some asks, spins for as
// many, and goes on in the manner whose median was clearly lower.
type trial struct {
	stage trialStage
	spins bool // as of now
	left  int  // asks of this stage
	pause int
	times []time.Duration // of this stage
	parks time.Duration   // the median of stageParks
}

type trialStage uint8

const (
	stageOver trialStage = iota // of the last trial
	stageParks
	stageSpins
)

// next begins an ask: it says whether to spin for the answer, and whether to
// time the ask that follows.
func (t *trial) next() (spins, timed bool) {
	if t.left == 0 {
		t.advance()
	}
	t.left--
	return t.spins, t.stage != stageOver && t.left < trialAsks/2 && t.left%trialEvery == 1
}

func (t *trial) advance() {
	median, known := t.median()
	switch t.stage {
	case stageOver:
		t.stage, t.spins, t.left = stageParks, false, trialAsks
	case stageParks:
		t.stage, t.spins, t.left = stageSpins, true, trialAsks
		t.parks = median
	case stageSpins:
		t.stage = stageOver
		if t.spins = known && median < t.parks*9/10; t.spins {
			t.left, t.pause = trialWon, 0
		} else {
			t.pause = min(max(2*t.pause, trialPause), trialMost)
			t.left = t.pause
		}
	}
}

// median also forgets the times.
func (t *trial) median() (time.Duration, bool) {
	n := len(t.times)
	if n == 0 {
		return 0, false
	}
	slices.Sort(t.times)
	m := t.times[n/2]
	t.times = t.times[:0]
	return m, true
}
