package sim

import (
	"context"
	"time"
)

// stay keeps an entity in memory though it is idle, or lets it leave again.
func (w *process) stay(s step) {
	p, err := w.pods.Pod(s.pod)
	w.must(err)
	if s.n%2 == 0 {
		p.PausePassivation(s.name)
	} else {
		p.ResumePassivation(s.name)
	}
}

// checkStaying looks at rest whether an entity whose passivation is paused stays
// in memory, and leaves it when it is resumed.
func (w *process) checkStaying() {
	slots := w.pods.Slots()
	if n := slots.Activating + slots.Active + slots.Removing; slots.Removing > 0 || n != w.pods.Active() {
		w.wrong("at rest %d names are in memory, and their states are %+v", w.pods.Active(), slots)
	}
	p, err := w.pods.Pod(things)
	w.must(err)
	name := entityName(0)
	if _, err := p.Get(context.Background(), name); err != nil || w.plan.idle < 0 {
		return
	}
	p.PausePassivation(name)
	_ = p.Tell(name, look{})
	w.exec.RunFor(5 * w.plan.idle)
	if _, is := p.Resident(name); !is {
		w.wrong("%s/%s has left memory, and its passivation was paused", things, name)
	}
	p.ResumePassivation(name)
	for range 5 { // a reminder may come
		w.exec.RunFor(2*w.plan.idle + 10*time.Millisecond)
		if _, is := p.Resident(name); !is {
			return
		}
	}
	w.wrong("%s/%s stays in memory, and nobody uses it", things, name)
}
