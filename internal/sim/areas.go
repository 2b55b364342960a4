package sim

import "math/rand/v2"

// area is a part of the workload that has steps, state and checks of its own.
type area struct {
	kind  kind
	plan  func(*plan, *rand.Rand) step // the zero step is none
	do    func(*process, step)
	check func(*process) // at rest, in the last process, before it ends; or nil
}

// areas are the parts whose steps come between those of the plan. Theirs are
// drawn from a generator of their own, so that one more changes no other's.
func areas() []area {
	return []area{
		{query, planQuery, (*process).query, (*process).checkQueries},
		{follow, planFollow, (*process).follow, (*process).checkFollowers},
		{recall, planRecall, (*process).recall, (*process).checkPasts},
		{admit, planAdmit, (*process).admit, nil},
		{probe, planProbe, (*process).probe, (*process).checkHearing},
		{employ, planErrand, (*process).doErrand, (*process).checkErrands},
		{post, planPosting, (*process).postLedger, (*process).checkLedgers},
		{carry, planCarry, (*process).carryOut, (*process).checkCouriers},
		{tally, planTally, (*process).doTally, (*process).checkTallies},
		{ring, planRing, (*process).ringBell, (*process).checkBells},
		{fill, planForm, (*process).fillForm, (*process).checkForms},
	}
}

// between draws the steps of areas that come next; mostly none.
func (p *plan) between(rng *rand.Rand) (steps []step) {
	all := areas()
	for len(all) > 0 && rng.IntN(4) == 0 {
		a := all[rng.IntN(len(all))]
		if s := a.plan(p, rng); s != (step{}) {
			s.kind = a.kind
			steps = append(steps, s)
		}
	}
	return steps
}

// inArea carries out a step of an area.
func (w *process) inArea(s step) {
	for _, a := range areas() {
		if a.kind == s.kind {
			a.do(w, s)
		}
	}
}

func (w *process) checkAreas() {
	for _, a := range areas() {
		if a.check != nil {
			a.check(w)
		}
	}
}
