package sim

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// tally is a step about projections that begin somewhere in the journal.
const tally kind = "tally"

// talliedPods are those that they follow.
func talliedPods() []string { return []string{things, papers, accounts} }

// tallying is a projection that makes a stroke for each change of an entity, and
// forgets those that are deleted.
type tallying struct {
	name    string
	from    persist.Start
	starts  []uint64 // the positions that it may have begun behind
	vague   bool     // or another one
	gap     bool
	running *persist.Running
	at      *process
}

func planTally(_ *plan, rng *rand.Rand) step {
	if rng.IntN(4) > 0 {
		return step{}
	}
	return step{kind: tally, op: choose(rng, "start", "start", "stop", "rebuild"), name: choose(rng, "zero", "now", "some"), n: rng.IntN(40)}
}

// doTally carries out a step about tallies, in the background.
func (w *process) doTally(s step) {
	if w.tallies == nil {
		w.tallies = map[string]*tallying{}
	}
	t := w.tallies[s.name]
	if t == nil && s.op == "start" {
		t = &tallying{name: s.name, from: persist.FromZero()}
		switch s.name {
		case "zero":
			t.starts = []uint64{0}
		case "some":
			t.from, t.starts = persist.FromPosition(uint64(s.n)), []uint64{uint64(s.n)}
		default:
			t.from = persist.FromNow()
		}
		w.tallies[s.name] = t
	}
	if t == nil {
		return
	}
	w.jobs++
	w.sys.Go(func() {
		defer func() { w.jobs-- }()
		switch running := t.running; {
		case s.op == "start":
			w.startTally(t)
		case t.at != w || running == nil:
		case s.op == "rebuild":
			t.starts = append(t.starts, 0)
			running.Rebuild()
		default:
			ctx, cancel := w.sys.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := running.Stop(ctx); err == nil && t.running == running {
				t.running = nil
			}
		}
	})
}

// startTally starts a projection, unless it runs.
func (w *process) startTally(t *tallying) {
	if t.at == w && t.running != nil {
		return
	}
	before, err := w.disk.base.Position(context.Background())
	w.must(err)
	running, err := persist.StartProjection(w.pods.Committer(), persist.Projection{
		Name: "tally-" + t.name, Pods: talliedPods(), Batch: 5, From: t.from,
		Gap:       func(uint64, uint64) error { t.gap = true; return nil },
		OnDamaged: func(persist.Change) error { return nil },
		Apply: func(ctx context.Context, table *persist.Table, changes []persist.Change) error {
			for i := range changes {
				id := changes[i].Key.String()
				if changes[i].Type == "deleted" {
					table.Delete(id)
					continue
				}
				old, _, err := table.Get(ctx, id)
				if err != nil {
					return err
				}
				table.Put(id, append(old, '1'))
			}
			return nil
		},
	})
	if w.dead {
		return
	}
	w.note("the tally %s begins: %v", t.name, err)
	if t.name == "now" {
		after, err := w.disk.base.Position(context.Background())
		w.must(err)
		t.starts, t.vague = append(t.starts, before), t.vague || after != before || errors.Is(err, persist.ErrUnknown)
	}
	if err == nil {
		t.running, t.at = running, w
	}
}

// checkTallies compares the tables with the journal, once they have all of it.
func (w *process) checkTallies() {
	ctx, cancel := w.sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	last, err := w.disk.base.Position(ctx)
	w.must(err)
	log, err := w.disk.base.Log(ctx, 0, 1<<20)
	w.must(err)
	for _, name := range sortedKeys(w.tallies) {
		t := w.tallies[name]
		w.startTally(t)
		if t.running == nil {
			w.wrong("the tally %s does not begin", name)
			continue
		}
		if err := t.running.Wait(ctx, last); err != nil || t.running.Err() != nil {
			w.wrong("the tally %s does not get to position %d: %v, %v", name, last, err, t.running.Err())
			continue
		}
		entries, err := t.running.Scan(ctx, "", "", 1<<16)
		w.must(err)
		got := map[string]string{}
		for _, e := range entries {
			got[e.ID] = string(e.Value)
		}
		fits := t.vague || t.gap || w.plan.keep > 0 || w.plan.keepFor > 0
		for _, start := range t.starts {
			fits = fits || maps.Equal(got, tallied(log, start))
		}
		if !fits {
			w.wrong("the tally %s, which began behind one of %v, has %v, and the journal says %v", name, t.starts, got, tallied(log, t.starts[0]))
		}
		for _, prefix := range talliedPods() {
			part, err := t.running.Scan(ctx, prefix+"/", prefix+"/e0", 2)
			w.must(err)
			for _, e := range part {
				if !strings.HasPrefix(e.ID, prefix+"/") || e.ID <= prefix+"/e0" || got[e.ID] != string(e.Value) {
					w.wrong("a part of the tally %s is %s: %s", name, e.ID, e.Value)
				}
			}
		}
	}
}

// tallied is the table that a journal makes, behind a position.
func tallied(log []persist.Change, behind uint64) map[string]string {
	out := map[string]string{}
	for i := range log {
		switch c := &log[i]; {
		case c.Position <= behind || !contains(talliedPods(), c.Key.Pod):
		case c.Type == "deleted":
			delete(out, c.Key.String())
		default:
			out[c.Key.String()] += "1"
		}
	}
	return out
}
