package pod

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// remindAhead is how far ahead a reminder is held in memory.
	remindAhead = time.Hour
	// remindEarly is how long before the first reminder that is not held is due
	// they are read again.
	remindEarly = time.Minute
	// remindPage is how many rows are read at a time.
	remindPage = 256
	// remindPatience is how long an entity may take before another one is
	// reminded in its place. It is still waited for.
	remindPatience = time.Minute
	// remindLook bounds the wait for a time to come, which clocks may jump over.
	remindLook = time.Minute
	// An entity that could not be reminded at the moment is again, after a pause
	// that doubles from minRemindPause to maxRemindPause.
	minRemindPause = 50 * time.Millisecond
	maxRemindPause = 30 * time.Second
)

// never is a time that does not come.
const never = math.MaxInt64

// reminders wakes a pod's entities when they have reminders due. It is no more
// than a memory of the store's rows: the entity knows whether a reminder is due,
// and its own commit ends it.
//
// What it relies on: every reminder in the store is held, or not to be handled
// before behind, or will be told of. Entities tell of theirs when they are read,
// and of each change once that is durable; a reading of all rows finds the
// others.
type reminders struct {
	pod *Pod

	mu       sync.Mutex
	begun    bool
	read     bool // all rows have been, once
	reading  bool
	all      map[reminderKey]*alarm
	waiting  alarms    // of these, those that are not under way
	underWay list.List // of *flight, oldest first; none that is over
	flights  int       // with those that are over and unanswered
	behind   int64     // nothing that is not held is to be handled before
	timer    *reminderTimer
	looked   int64 // when it was seen last what is to be done

	// After failures, which the rows do not show, they are not read before
	// readable; setback grows while nothing succeeds.
	readable int64
	setback  time.Duration
}

type reminderKey struct{ name, id string }

// alarm is one reminder that is held. Times are in nanoseconds of Unix time.
type alarm struct {
	reminderKey
	due     int64 // when it is to be handled, as far as is known
	at      int64 // when its entity is woken: then, or later after a failure
	place   int   // in the heap
	flight  *flight
	told    bool          // the entity has said, since it was woken, when it is due,
	gone    bool          // or that it is no longer
	pause   time.Duration // after the last failure
	refused error         // the store's answer to the last commit, if it was for the data
}

func newAlarm(key reminderKey, due int64) *alarm { return &alarm{reminderKey: key, due: due, at: due} }

// flight is an entity that was woken and has not answered.
type flight struct {
	alarm *alarm
	since int64
	entry *list.Element // nil once it is over: answered, or not waited for
}

type reminderTimer struct {
	t  actor.Timer
	at int64
}

func (r *reminders) init(p *Pod) {
	r.pod = p
	r.all = make(map[reminderKey]*alarm)
	r.behind = never
}

// begin has the pod's entities reminded from now on.
func (r *reminders) begin() {
	spec := r.pod.spec.Load()
	if spec == nil || spec.Kind != entity.KindTyped || spec.Durability.IsVolatile() {
		return // documents set none, and volatile entities cannot
	}
	r.mu.Lock()
	r.begun, r.read = true, mutant.On(mutant.RemindersNotRead)
	r.mu.Unlock()
	r.run()
}

// tell says, durably, when a reminder is to be handled; with the zero time, that
// it is gone.
func (r *reminders) tell(name, id string, at time.Time) {
	key := reminderKey{name, id}
	r.mu.Lock()
	a := r.all[key]
	switch {
	case a != nil && a.flight != nil:
		a.told, a.gone = true, at.IsZero()
		if !a.gone {
			a.due = at.UnixNano()
		}
		r.mu.Unlock()
		return // what comes of it is seen when the entity has answered
	case a != nil && !at.IsZero() && a.due == at.UnixNano():
		r.mu.Unlock()
		return // and it keeps its pause: an entity whose commit failed is read, and tells this
	case a != nil:
		heap.Remove(&r.waiting, a.place)
		delete(r.all, key)
	}
	if !at.IsZero() {
		r.hold(newAlarm(key, at.UnixNano()))
	}
	r.mu.Unlock()
	r.run()
}

// hold takes an alarm in, unless its time is too far. Those that failed are held
// in any case, so that they keep their pause.
func (r *reminders) hold(a *alarm) {
	if a.pause == 0 && (a.at >= r.behind || a.at > r.now()+int64(remindAhead)) {
		r.behind = min(r.behind, a.at)
		return
	}
	a.flight, a.told, a.gone = nil, false, false
	r.all[a.reminderKey] = a
	heap.Push(&r.waiting, a)
	if len(r.all) > r.pod.pods.cfg.RemindersHeld {
		r.shed()
	}
}

// shed lets a quarter of the alarms go, those that are furthest off.
func (r *reminders) shed() {
	slices.SortFunc(r.waiting, func(a, b *alarm) int { return a.compare(b) })
	keep := len(r.waiting) - (len(r.waiting)+3)/4
	r.behind = min(r.behind, r.waiting[keep].at)
	for _, a := range r.waiting[keep:] {
		delete(r.all, a.reminderKey)
	}
	clear(r.waiting[keep:])
	r.waiting = r.waiting[:keep] // sorted, and so a heap
	for i, a := range r.waiting {
		a.place = i
	}
}

func (r *reminders) now() int64 { return r.pod.pods.sys.Now().UnixNano() }

// run wakes the entities whose time has come, reads the rows again if need be,
// and sees to it that it is called when there is something to do.
func (r *reminders) run() {
	for {
		due := r.take()
		if len(due) == 0 {
			return
		}
		for _, f := range due {
			if err := r.wake(f); err != nil {
				r.answered(f, err)
			}
		}
	}
}

// take returns those that are to be woken now.
func (r *reminders) take() (due []*flight) {
	p := r.pod.pods
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun || p.closing.Load() {
		return nil
	}
	now := r.now()
	if now < r.looked {
		r.setBack(now)
	}
	r.looked = now
	r.giveUp(now)
	for len(r.waiting) > 0 && r.waiting[0].at <= now && r.free() {
		a := heap.Pop(&r.waiting).(*alarm)
		f := &flight{alarm: a, since: now}
		f.entry = r.underWay.PushBack(f)
		a.flight = f
		r.flights++
		due = append(due, f)
	}
	if next, needed := r.nextReading(); needed && next <= now {
		r.reading, r.behind = true, never
		p.sys.Go(r.readAll)
	}
	r.arm(now)
	return due
}

// setBack has what was reckoned from a later time, before the clock was set
// back, begin now: pauses and patience would last as much longer.
func (r *reminders) setBack(now int64) {
	r.readable = min(r.readable, now+int64(r.setback))
	for e := r.underWay.Front(); e != nil; e = e.Next() {
		f := e.Value.(*flight)
		f.since = min(f.since, now)
	}
	for _, a := range r.waiting {
		a.at = max(a.due, min(a.at, now+int64(a.pause)))
	}
	heap.Init(&r.waiting)
}

// free reports whether one more may be woken.
func (r *reminders) free() bool {
	cfg := &r.pod.pods.cfg
	return r.underWay.Len() < cfg.RemindAtOnce && r.flights < cfg.RemindersHeld/2
}

// nextReading returns when the rows are to be read, if that would bring reminders
// that come before those that are held, or that there is room for.
func (r *reminders) nextReading() (at int64, needed bool) {
	switch room := len(r.all) <= r.pod.pods.cfg.RemindersHeld/2; {
	case r.reading:
		return 0, false
	case !r.read:
		return 0, true
	case r.behind != never && (room || len(r.waiting) == 0 || r.waiting[0].at > r.behind):
		return max(r.behind-int64(remindEarly), r.readable), true
	}
	return 0, false
}

// giveUp no longer counts those that take too long.
func (r *reminders) giveUp(now int64) {
	for e := r.underWay.Front(); e != nil; e = r.underWay.Front() {
		f := e.Value.(*flight)
		if now-f.since < int64(remindPatience) {
			return
		}
		r.underWay.Remove(e)
		f.entry = nil
	}
}

// arm sets the timer to when there is something to do next, if that is known.
func (r *reminders) arm(now int64) {
	next := int64(never)
	if len(r.waiting) > 0 && r.free() {
		next = r.waiting[0].at
	}
	if at, needed := r.nextReading(); needed {
		next = min(next, at)
	}
	if e := r.underWay.Front(); e != nil && len(r.waiting) > 0 {
		next = min(next, e.Value.(*flight).since+int64(remindPatience))
	}
	if next == never {
		return
	}
	next = min(max(next, now), now+int64(remindLook))
	if r.timer != nil {
		if r.timer.at <= next {
			return
		}
		r.timer.t.Stop()
	}
	timer := &reminderTimer{at: next}
	r.timer = timer
	timer.t = r.pod.pods.sys.After(time.Duration(next-now), func() {
		r.mu.Lock()
		if r.timer == timer {
			r.timer = nil
		}
		r.mu.Unlock()
		r.run()
	})
}

// wake has an entity handle a reminder.
func (r *reminders) wake(f *flight) error {
	reply := r.pod.pods.sys.OnReply(func(_ any, err error) {
		r.answered(f, err)
		r.run()
	})
	return r.pod.post(f.alarm.name, actor.Message{Payload: entity.Remind(f.alarm.id, f.alarm.refused), Reply: reply})
}

// answered takes an entity's answer. Without an error it has told by then when
// the reminder is due next, if it is.
func (r *reminders) answered(f *flight, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.entry != nil {
		r.underWay.Remove(f.entry)
		f.entry = nil
	}
	r.flights--
	a, now := f.alarm, r.now()
	delete(r.all, a.reminderKey)
	switch {
	case err == nil && !a.told, a.told && a.gone:
		r.setback = 0
		return
	case errors.Is(err, entity.ErrQuarantined):
		return // it tells of all its reminders when it can be read
	case err == nil:
		r.setback = 0
		a.pause, a.refused = 0, nil
		a.at = max(a.due, now) // behind those that wait already
	default:
		a.pause = min(max(2*a.pause, minRemindPause), maxRemindPause)
		a.at = max(a.due, now+int64(a.pause))
		if errors.Is(err, persist.ErrInvalid) {
			a.refused = err
		}
		if r.readable <= now {
			r.setback = min(max(2*r.setback, minRemindPause), maxRemindPause)
			r.readable = now + int64(r.setback)
		}
	}
	r.hold(a)
}

// readAll reads the rows of all reminders, in the background.
func (r *reminders) readAll() {
	p := r.pod.pods
	after := persist.Row{Kind: entity.ReminderRows, Key: persist.Key{Pod: r.pod.name}}
	for p.work.Err() == nil {
		more, err := r.readPage(p.work, &after)
		switch {
		case err != nil && p.work.Err() != nil:
			return // the pods are closing
		case err != nil:
			p.sys.Logger().Warn("reminders could not be read yet; trying again", "pod", r.pod.name, "error", err)
			if p.sys.Sleep(p.work, wakePause) != nil {
				return
			}
			continue
		case !more:
			r.mu.Lock()
			r.read, r.reading = true, false
			r.mu.Unlock()
		}
		r.run()
		if !more {
			return
		}
	}
}

// readPage takes in one page of rows behind a row, which it moves on, and
// reports whether there may be more.
func (r *reminders) readPage(ctx context.Context, after *persist.Row) (more bool, err error) {
	rows, err := r.pod.store().Rows(ctx, entity.ReminderRows, after, remindPage)
	if err != nil {
		return false, err
	}
	more = len(rows) == remindPage
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		if row.Key.Pod != r.pod.name {
			return false, nil
		}
		*after = row
		key := reminderKey{row.Key.Name, row.ID}
		if r.all[key] != nil {
			continue // what the entity has told of it is no older
		}
		at := r.now() // of a row that cannot be read: its entity will say so
		if t, err := entity.ReminderNext(row); err == nil {
			at = t.UnixNano()
		}
		r.hold(newAlarm(key, at))
	}
	return more, nil
}

// alarms is a heap, the next one first.
type alarms []*alarm

func (a *alarm) compare(b *alarm) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name), strings.Compare(a.id, b.id))
}

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.place = len(*h)
	*h = append(*h, a)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}
