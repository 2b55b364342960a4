package actors

import (
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// scene is a short run of steps, at the beginning of a plan, that seldom come
// together by chance.
func (g *generator) scene() []step {
	begin := func(slot int, p *props) step { return step{kind: spawn, slot: slot, props: p} }
	say := func(slot int, ops ...op) step { return step{kind: tell, slot: slot, letter: &letter{ops: ops}} }
	const a, ax, ay, axk = 0, 3, 4, 9
	switch g.rng.IntN(8) {
	case 0, 1: // more restarts than are counted one by one
		failing := &failure{directive: actor.Restart, above: actor.Restart, number: 1}
		rule := &rule{limit: -1, min: time.Millisecond, max: 5 * time.Millisecond, allForOne: g.rng.IntN(3) == 0}
		return []step{
			begin(a, &props{rule: rule}), begin(ax, &props{}),
			{kind: burst, slot: ax, n: 70, letter: &letter{ops: []op{{kind: opError, fails: failing}}}},
			{kind: goOn, d: 400 * time.Millisecond},
		}
	case 2: // the parent of one that has been replaced ends or restarts
		end := step{kind: stop, slot: a}
		if g.rng.IntN(2) == 0 {
			end = say(a, op{kind: opError, fails: &failure{directive: actor.Restart, above: actor.Restart}})
		}
		all := []step{
			begin(a, &props{}), begin(ax, &props{}), begin(axk, &props{}),
			say(axk, op{kind: opBlock, d: 40 * time.Millisecond}),
			{kind: goOn, d: time.Millisecond},
			{kind: stop, slot: ax},
			{kind: goOn, d: time.Millisecond},
			{kind: ensure, slot: ax, props: &props{}},
			end,
			{kind: goOn, d: time.Millisecond},
		}
		if g.rng.IntN(4) == 0 {
			all = append(all, step{kind: halt, d: time.Millisecond})
		}
		return all
	case 3: // more who are late than an error names
		all := []step{begin(a, &props{}), {kind: brood, slot: a, n: 20, props: &props{}}, {kind: brood, slot: a, n: 20, props: &props{}}}
		all = append(all, step{kind: turns, n: g.rng.IntN(50)}, step{kind: look})
		if g.rng.IntN(4) == 0 {
			all = append(all, step{kind: halt})
		}
		return all
	case 4: // a mailbox that has to be very large
		if g.rng.IntN(3) > 0 {
			return nil
		}
		return []step{
			begin(a, &props{policy: actor.DropOldest, capacity: 4500, held: time.Millisecond}),
			{kind: burst, slot: a, n: 5000, letter: &letter{}},
		}
	default: // a delegation, and its end
		all := []step{
			begin(a, g.plain()), begin(ax, g.plain()), begin(ay, g.plain()),
			say(a, op{kind: opDelegate, slot: ax, n: 1}),
		}
		for range 3 + g.rng.IntN(10) {
			s := say(one(g.rng, a, a, ax), op{kind: one(g.rng, opStore, opHandBack, opStash, opUnstash, opDelegate, opUndo, opWatch, opUnwatch), slot: one(g.rng, ax, ay), n: g.rng.IntN(100)})
			s.letter.direct, s.who = g.rng.IntN(3) == 0, g.rng.IntN(senders)
			all = append(all, s)
			if g.rng.IntN(3) == 0 {
				all = append(all, step{kind: turns, n: 1 + g.rng.IntN(8)})
			}
		}
		return all
	}
}

// plain is the props of one that only sometimes has a rule.
func (g *generator) plain() *props { return &props{rule: g.rule(), held: ms(g.rng, 3)} }
