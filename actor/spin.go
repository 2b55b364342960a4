package actor

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	spinReads  = 5000           // 1.5 to 4 µs: what it costs to park and be woken
	probeReads = 12 * spinReads // what it takes until an idle processor has come
	probeFirst = 64             // asks between two probes, doubled after each in vain
	probeLast  = 8 * probeFirst //
	loneAfter  = 4              // asks in a row that found their actor at rest
	aloneAfter = 64             // asks in a row without anybody else's
	spinYields = 32             // answers that an asker gets spinning before he yields
)

// spinner lets a worker and an asker who have a processor each go on without
// being parked and woken for each ask, which costs more than most handlers take.
// A worker that has nothing to do takes the seat and spins there for a moment
// before it parks. Who schedules a task from outside a turn hands it over there
// with one compare-and-swap; an asker who did so knows that his question is in
// work on another processor, and spins for the answer.
//
// Spinning keeps a processor from others, so it is for an asker who is the only one
// of the system, finds his actors at rest and has tried that it shortens his asks
// (see trial). He stops as soon as it was in vain, and yields now and then. When
// several ask, of one actor or of many, nobody spins.
type spinner struct {
	_      [64]byte            // the seat has a cache line of its own
	seat   atomic.Pointer[Ref] // nil, vacant, or what was handed over
	_      [56]byte
	vacant Ref                   // in the seat: a worker spins there
	lone   atomic.Bool           // the asker is alone and spins if he may
	paid   atomic.Bool           // the last answer found its asker spinning
	only   atomic.Pointer[asker] // who asks alone, if anybody; everybody else takes that away
}

// hand gives r to a worker that spins. False says that none does.
func (s *spinner) hand(r *Ref) bool {
	return s.seat.Load() == &s.vacant && s.seat.CompareAndSwap(&s.vacant, r)
}

// wait spins, if the flag says that it pays, until a task is handed over, or one
// is queued, or the moment is over. It returns what was handed over; nil also when
// another worker spins. The flag falls when it was in vain.
func (s *spinner) wait(flag *atomic.Bool, queued *atomic.Bool) *Ref {
	if !flag.Load() || !s.seat.CompareAndSwap(nil, &s.vacant) {
		return nil
	}
	for range spinReads {
		if s.seat.Load() != &s.vacant || queued.Load() {
			break
		}
	}
	if !s.seat.CompareAndSwap(&s.vacant, nil) {
		return s.seat.Swap(nil)
	}
	if !queued.Load() {
		flag.Store(false)
	}
	return nil
}

// asker is what a Promise keeps of the asks that it has served, for the asker
// alone. It is the Worker that they are sent by.
type asker struct {
	d       *dispatcher
	went    scheduled // of this ask
	near    bool      // the answer to the last ask came while it spun
	streak  uint8     // asks in a row that woke their actor, up to loneAfter
	spun    uint8     // answers that came while it spun
	far     uint16    // asks since the last probe
	probeAt uint16
	calm    uint8     // asks that it has been, or could have become, spinner.only
	trial   trial     // while it is
	timed   bool      // the next ask is
	begin   time.Time // of a timed ask
}

// newAsker returns nil where spinning is of no use: on one processor, and where
// the system is run by somebody else.
func newAsker(d *dispatcher) *asker {
	if d == nil || runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	return &asker{d: d}
}

// sentBy begins an ask, and returns the Worker that it is sent by.
func (p *Promise) sentBy() Worker {
	a := p.asker
	if a == nil {
		return nil
	}
	if a.timed {
		a.begin = a.d.Now()
	}
	return a
}

// Budget is the whole limit.
func (a *asker) Budget(limit int) int { return limit }

// Wake schedules the actor that was asked and was at rest.
func (a *asker) Wake(t Task) {
	a.went = a.d.schedule(t)
	a.streak = min(a.streak+1, loneAfter)
}

// alone says that nobody else has asked in this system during the last asks. It
// is called with each ask.
func (a *asker) alone() bool {
	only := &a.d.spinner.only
	switch who := only.Load(); {
	case who == a:
		a.calm = min(a.calm+1, aloneAfter)
		return a.calm == aloneAfter
	case who != nil:
		only.CompareAndSwap(who, nil)
	case a.calm < aloneAfter:
		a.calm++
	default:
		a.calm = 0
		only.CompareAndSwap(nil, a)
	}
	return false
}

// took notes how long the ask that has just been answered took, if it was timed.
func (a *asker) took() {
	if !a.begin.IsZero() {
		a.trial.times = append(a.trial.times, a.d.Now().Sub(a.begin))
		a.begin, a.timed = time.Time{}, false
	}
}

// reads is how long to spin for the answer to the ask that was just sent; 0 when
// it is better to park. probe says that the worker is not known to be near: it
// may have yielded, and an idle processor may be about to take it up. Whoever
// parks then is woken on that processor, with the worker behind it; who does not
// has it on another from then on.
func (a *asker) reads() (n int, probe bool) {
	went := a.went
	a.went = taskNot
	spins := false
	if a.alone() {
		spins, a.timed = a.trial.next()
	}
	if went == taskNot && !a.near { // the actor was at work for others
		a.streak = 0
	}
	if !spins || a.streak < loneAfter {
		a.near = false
		note(&a.d.spinner.lone, false)
		return 0, false
	}
	note(&a.d.spinner.lone, true)
	switch {
	case went == taskWoke:
		a.near = false
		return 0, false
	case went == taskQueued && !a.near:
		if a.far++; a.far < a.probeAt {
			return 0, false
		}
		a.far = 0
		return probeReads, true
	}
	return spinReads, false
}

// ended notes whether the answer came while the asker spun.
func (a *asker) ended(inTime, probe bool) {
	a.near = inTime
	switch {
	case !inTime:
		a.streak = 0
		note(&a.d.spinner.paid, false)
		if probe {
			a.probeAt = min(max(2*a.probeAt, probeFirst), probeLast)
		}
		return
	case probe:
		a.probeAt = probeFirst
	}
	if a.spun++; a.spun%spinYields == 0 {
		runtime.Gosched()
	}
}

// spin waits for the answer without being parked, where that may pay. False says
// that there is none yet; it then comes with a permit.
func (p *Promise) spin() bool {
	n, probe := p.asker.reads()
	if n == 0 {
		return false
	}
	note(&p.asker.d.spinner.paid, true) // before the worker is done and looks
	inTime := p.watch(n)
	p.asker.ended(inTime, probe)
	return inTime
}

// watch reads the word until the outcome is there, or n times.
func (p *Promise) watch(n int) bool {
	w := p.word.Load()
	if w&promiseState != promiseOpen || !p.word.CompareAndSwap(w, w|promiseSpins) {
		return false
	}
	for ; n > 0; n-- {
		if there(p.word.Load()) {
			return true
		}
	}
	for w = p.word.Load(); !there(w); w = p.word.Load() {
		if p.word.CompareAndSwap(w, w&^promiseSpins) {
			return false
		}
	}
	return true
}

func there(word uint64) bool {
	return word&promiseThere != 0 || word&promiseState == promiseGivenUp
}
