package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// settling is how long a system may take to come to rest, in virtual time, once
// nothing disturbs it.
const settling = 10 * time.Minute

// finish lets everything come to rest, ends the process, starts it again, and
// compares what is there with what was.
func (r *run) finish() {
	r.note("nothing disturbs it from here")
	r.disk.errRate, r.disk.next, r.disk.slow, r.disk.away = 0, nil, time.Millisecond, time.Time{}
	w := r.active
	w.unruly = false
	w.rest()
	w.checkStranger()
	w.caughtUp()
	w.checkHearing()
	before := w.everything()
	if r.plan.throws {
		w.crash()
	} else {
		w.end(time.Minute)
		if len(r.orderly) == 0 || r.orderly[len(r.orderly)-1] != w.number {
			r.wrong("G8: process %d did not end in good order though nothing disturbed it", w.number)
		}
	}
	r.active = r.start()
	w = r.active
	w.unruly = false
	w.rest()
	r.compare(before, w.everything())
	r.checkReminders(before)
	w.checkFolds()
	r.checkAccounts(w.balances())
	w.checkPapers()
	w.checkAreas()
	w.end(time.Minute)
}

// rest waits until nothing is under way: every asker has its answer, and every
// message of SendOnce has arrived.
func (w *process) rest() {
	ctx := context.Background()
	pause, quiet := 1200*time.Millisecond, false // longer than any pause of an entity that has failed
	for begin := w.sys.Now(); w.sys.Now().Sub(begin) < settling; pause = min(2*pause, 10*time.Second) {
		w.exec.RunFor(pause)
		rows, err := w.disk.base.Rows(ctx, entity.OutboxRows, nil, 1)
		w.must(err)
		if len(rows) == 0 && w.reminders() == 0 && len(w.waiting) == 0 && w.jobs == 0 && w.folds.Status().Lag == 0 && w.errandsDone() {
			if quiet { // also nothing that timers have brought since
				w.checkMemory()
				return
			}
			quiet = true
			continue
		}
		quiet = false
	}
	w.allEnded("at rest")
	rows, err := w.disk.base.Rows(ctx, entity.OutboxRows, nil, 100)
	w.must(err)
	for _, row := range rows {
		w.wrong("G7: a message of SendOnce of %s is not delivered", row.Key)
	}
	if n := w.reminders(); n > 0 {
		w.wrong("G7: %d reminders have not come", n)
	}
	if !w.errandsDone() {
		w.wrong("G7: jobs are left in the queues")
	}
	if status := w.folds.Status(); status.Lag > 0 {
		w.wrong("the projection is %d behind: %v", status.Lag, status.Err)
	}
}

// awaits says whether an entity has a reminder that is not due yet.
func (w *process) awaits(k persist.Key, name string) bool {
	rows, err := w.disk.base.RowsOf(context.Background(), k)
	w.must(err)
	return slices.ContainsFunc(rows, func(r persist.Row) bool {
		next, err := entity.ReminderNext(r)
		return r.Kind == entity.ReminderRows && r.ID == name && err == nil && next.After(w.sys.Now())
	})
}

// reminders counts those that are due and have not come, of entities that can be
// read. Each process has a clock of its own, so that one may have been set for a
// time that this one does not reach.
func (w *process) reminders() (n int) {
	rows, err := w.disk.base.Rows(context.Background(), entity.ReminderRows, nil, 1000)
	w.must(err)
	for _, row := range rows {
		if row.Key.Pod == frail {
			continue
		}
		if next, err := entity.ReminderNext(row); err != nil || !next.After(w.sys.Now()) {
			n++
		}
	}
	return n
}

// checkMemory looks whether names without an entity have left memory, where
// nothing but their own last message takes them out.
func (w *process) checkMemory() {
	if w.plan.idle >= 0 || w.lost {
		return
	}
	there := 0
	for _, p := range w.pods.All() {
		page, err := p.List(context.Background(), persist.ListOptions{})
		w.must(err)
		there += len(page.Items)
	}
	if active := w.pods.Active(); active > there {
		w.wrong("G4: %d entities are in memory, of which there are %d", active, there)
	}
}

// everything reads all entities with a log, as the last operation on each.
func (w *process) everything() map[persist.Key]*op {
	from := len(w.history)
	for _, pod := range []string{things, books, frail, beats} {
		for i := range w.plan.names {
			w.read(step{kind: get, pod: pod, name: entityName(i)})
		}
	}
	w.exec.RunUntil(func() bool { return w.jobs == 0 })
	out := map[persist.Key]*op{}
	for _, o := range w.history[from:] {
		out[o.key()] = o
	}
	return out
}

// compare looks whether a start has brought everything back.
func (r *run) compare(before, after map[persist.Key]*op) {
	for _, key := range slices.SortedFunc(maps.Keys(before), byKey) {
		b, a := before[key], after[key]
		if errors.Is(b.err, entity.ErrQuarantined) && errors.Is(a.err, entity.ErrQuarantined) {
			continue
		}
		if r.damaged[key] && errors.Is(a.err, entity.ErrQuarantined) {
			continue // it was in memory, and its record damaged behind its back
		}
		if b.exists != a.exists || b.life != a.life || b.revision != a.revision || !slices.Equal(b.log, a.log) || (a.err == nil) != (b.err == nil) {
			r.wrong("G5: %s was %d-%d %v (%v), and after a start is %d-%d %v (%v)", key, b.life, b.revision, b.log, b.err, a.life, a.revision, a.log, a.err)
		}
	}
}

// balances reads all accounts.
func (w *process) balances() map[string]account {
	out := map[string]account{}
	for _, name := range []string{accounts, purses, tills} {
		p, err := w.pods.Pod(name)
		w.must(err)
		for i := range w.plan.names {
			v, err := p.Get(context.Background(), entityName(i))
			if errors.Is(err, entity.ErrNotFound) {
				continue
			}
			w.must(err)
			a, err := decoded[account](&v)
			w.must(err)
			out[name+"/"+entityName(i)] = a
		}
	}
	return out
}
