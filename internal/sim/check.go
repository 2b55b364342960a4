package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/twinsrv/twinsrv/persist"
)

func byKey(a, b persist.Key) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func entityName(i int) string { return fmt.Sprintf("e%d", i) }

// check judges the histories of the entities with a log. It returns for how many
// no order was found or excluded in time.
func (r *run) check() (unproven int) {
	by := map[persist.Key][]*op{}
	for _, o := range r.history {
		by[o.key()] = append(by[o.key()], o)
	}
	for _, key := range slices.SortedFunc(maps.Keys(by), byKey) {
		h := by[key]
		slices.SortStableFunc(h, func(a, b *op) int { return cmp.Compare(a.call, b.call) }) // some are noted behind their answers
		r.checkRefused(key, h)
		r.checkLogs(key, h)
		r.checkAcknowledged(key, h)
		r.checkLives(key, h)
		r.checkTags(key, h)
		r.checkAbsence(key, h)
		if key.Pod != things && key.Pod != books {
			continue
		}
		switch linearizable(h) {
		case porcupine.Illegal:
			r.wrong("no order of the operations on %s explains its answers:\n%s", key, describe(h))
		case porcupine.Unknown:
			unproven++
		}
	}
	return unproven
}

func describe(h []*op) string {
	var b strings.Builder
	for _, o := range h {
		fmt.Fprintf(&b, "  [%d, %d] %v: outcome %d %d-%d %v if %v (%v)\n", o.call, o.ret, o.step, o.outcome, o.life, o.revision, o.log, o.cond, o.err)
	}
	return b.String()
}

// checkRefused: what was refused, or what a refused message did, is nowhere.
func (r *run) checkRefused(key persist.Key, h []*op) {
	never := map[string]*op{}
	for _, o := range r.history {
		if o.kind == get || o.outcome != refused && o.op != "reject" && o.op != "fail" && o.op != "crash" {
			continue
		}
		for _, suffix := range []string{"", "-sent", "-told", "-due", "-rung", "-piped"} {
			never[o.id+suffix] = o
		}
	}
	for _, o := range h {
		for _, id := range o.log {
			if bad, is := never[id]; is && o.outcome != maybe {
				r.wrong("G3: %s holds %s of %v, which was refused (%v)", key, id, bad.step, bad.err)
				return
			}
		}
	}
}

// checkLogs: nothing is in a log twice, and the messages of one sender are there
// in order.
func (r *run) checkLogs(key persist.Key, h []*op) {
	ordered := map[string]bool{}
	for _, o := range h {
		ordered[o.id] = o.kind == send && !strings.Contains(o.id, "-")
	}
	for _, o := range h {
		last := map[byte]int{}
		there := map[string]bool{}
		for _, id := range o.log {
			if there[id] {
				r.wrong("G4: %s has %s twice: %v", key, id, o.log)
				return
			}
			there[id] = true
			if !ordered[id] {
				continue
			}
			var n int
			_, _ = fmt.Sscanf(id[1:], "%d", &n)
			if n <= last[id[0]] && last[id[0]] > 0 {
				r.wrong("G1: %s handled %s late: %v", key, id, o.log)
				return
			}
			last[id[0]] = n
		}
	}
}

// checkAcknowledged: what was acknowledged in a life is in all that is seen of it
// later. Asynchronous entities may forget in a crash.
func (r *run) checkAcknowledged(key persist.Key, h []*op) {
	for _, a := range h {
		if a.outcome != done || !a.adds() || a.life == 0 || strings.Contains(a.id, "-") {
			continue
		}
		for _, o := range h {
			if o.outcome != done || !o.hasLog || o.life != a.life || o.call < a.ret || contains(o.log, a.id) || !r.holds(key, a.process, o.process) {
				continue
			}
			r.wrong("G5: %s acknowledged %v in life %d, and has lost it: %v", key, a.step, a.life, o.log)
			return
		}
	}
}

// holds reports whether an acknowledgement of one process binds another one.
func (r *run) holds(key persist.Key, from, to int) bool {
	for n := from; key.Pod == beats && n < to; n++ {
		if !slices.Contains(r.orderly, n) {
			return false
		}
	}
	return true
}

// checkReminders: what was set in the life that there is came, or still waits for
// a later time (see process.rest). Asynchronous entities keep no more promises, and damaged ones are
// reminded of nothing.
func (r *run) checkReminders(last map[persist.Key]*op) {
	for _, o := range r.history {
		end := last[o.key()]
		if o.op != "remind" || o.outcome != done || o.pod != things && o.pod != books || end == nil || !end.exists || end.life != o.life {
			continue
		}
		if !contains(end.log, o.id+"-rung") && !r.active.awaits(o.key(), o.id) {
			r.wrong("G5: %s was not reminded of %s: %v", o.key(), o.id, end.log)
		}
	}
}

// checkLives: an entity has at most one life more than deletions that may have
// been done, lives rise, and each is created once.
func (r *run) checkLives(key persist.Key, h []*op) {
	lives := map[uint64]bool{}
	deletions, forgotten := 0, 0
	created := map[uint64]string{}
	for _, o := range h {
		switch {
		case o.outcome == done && o.created:
			if by, twice := created[o.life]; twice {
				r.wrong("G4: life %d of %s was created by %s and by %s", o.life, key, by, o.id)
			}
			created[o.life] = o.id
		case o.deletes() && o.outcome != refused:
			deletions++
		}
		if o.outcome == done && o.life != 0 {
			lives[o.life] = true
		}
	}
	if key.Pod == beats { // a crash may take a creation back
		forgotten = r.number - len(r.orderly)
	}
	if len(lives) > 1+deletions+forgotten {
		r.wrong("G6: %s has had the lives %v, and %d deletions", key, slices.Sorted(maps.Keys(lives)), deletions)
	}
	last := uint64(0)
	for _, o := range h { // in the order of the calls; one that ended before another began
		if o.outcome != done || o.life == 0 {
			continue
		}
		if o.life < last {
			r.wrong("G6: %s was seen in life %d after life %d", key, o.life, last)
		}
		for _, p := range h {
			if p.outcome == done && p.ret > 0 && p.ret < o.call {
				last = max(last, p.life)
			}
		}
	}
}

// checkAbsence: who was there is there, unless somebody may have deleted it.
func (r *run) checkAbsence(key persist.Key, h []*op) {
	if slices.ContainsFunc(h, func(o *op) bool { return o.deletes() && o.outcome != refused }) {
		return
	}
	for _, o := range h {
		if o.kind != get || o.outcome != done || o.exists {
			continue
		}
		for _, a := range h {
			if a.outcome == done && a.exists && a.ret > 0 && a.ret < o.call && (a.adds() || a.kind == get) && r.holds(key, a.process, o.process) {
				r.wrong("G5: %s was there (%v), and is seen absent though nobody deleted it", key, a.step)
				return
			}
		}
	}
}

// checkTags: a revision of a life is one state, whoever sees it and when.
func (r *run) checkTags(key persist.Key, h []*op) {
	type tag struct{ life, revision uint64 }
	states, makers := map[tag]string{}, map[tag]string{}
	for _, o := range h {
		if t := (tag{o.life, o.revision}); o.outcome == done && o.adds() && o.life > 0 && o.revision > 0 {
			if by, twice := makers[t]; twice && by != o.id {
				r.wrong("the revision %d-%d of %s was given to %s and to %s", t.life, t.revision, key, by, o.id)
			}
			makers[t] = o.id
		}
		if o.outcome != done || o.kind != get || !o.exists {
			continue
		}
		t, log := tag{o.life, o.revision}, strings.Join(o.log, " ")
		if was, seen := states[t]; seen && was != log {
			r.wrong("the revision %d-%d of %s was %q and %q", t.life, t.revision, key, was, log)
		}
		states[t] = log
	}
}
