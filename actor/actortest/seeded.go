package actortest

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

var (
	// ErrClosed is what waits return once the executor is closed.
	ErrClosed = errors.New("the seeded executor is closed")
	// ErrStuck is what a test's wait returns when nothing is left to run that
	// could end it.
	ErrStuck = errors.New("nothing is left to run, and the wait has not ended")
)

// Horizon is how far Run, RunUntil and a test's own waits let the virtual
// clock go on, from where they began.
const Horizon = 24 * time.Hour

// Seeded is an actor.Executor that runs everything on the caller's goroutine:
// turns, jobs, timers. Whenever several things could happen next, the seed
// chooses; the same seed and the same program give the same run. What waits is
// a coroutine that is gone back to later. The clock is virtual: it stands still
// while there is something to do, and then jumps to the next timer.
//
// A Seeded is not safe for use by several goroutines. Systems may share one.
type Seeded struct {
	pick, draw *rand.Rand // choices; Uint64
	clock      clock
	ready      []item
	polled     []*poll
	trace      trace

	current *coroutine
	idle    []*coroutine
	all     []*coroutine
	closed  bool
}

var _ actor.Executor = (*Seeded)(nil)

// NewSeeded returns an executor whose choices follow from seed. Close it.
func NewSeeded(seed uint64) *Seeded {
	s := &Seeded{
		pick:  rand.New(rand.NewPCG(seed, 0x7069636b)),
		draw:  rand.New(rand.NewPCG(seed, 0x64726177)),
		trace: newTrace(),
	}
	s.clock.now = epoch()
	return s
}

// item is something that can run now.
type item struct {
	kind itemKind
	task actor.Task
	f    func()
	t    *timer
	poll *poll
	co   *coroutine // waited, and can go on
}

type itemKind uint8

const (
	runTurn itemKind = iota
	runJob
	runTimer
	runDone // a context ended
	runOn   // a coroutine goes on
)

func (k itemKind) String() string {
	return [...]string{"turn", "job", "timer", "done", "on"}[k]
}

// Schedule queues a turn.
func (s *Seeded) Schedule(t actor.Task) { s.enqueue(item{kind: runTurn, task: t}) }

// Go queues a job.
func (s *Seeded) Go(f func()) { s.enqueue(item{kind: runJob, f: f}) }

func (s *Seeded) enqueue(it item) { s.ready = append(s.ready, it) }

// Uint64 is a random number that follows from the seed.
func (s *Seeded) Uint64() uint64 { return s.draw.Uint64() }

// Now is the virtual time; it starts at the beginning of 2030, UTC.
func (s *Seeded) Now() time.Time { return s.clock.now }

// Step runs one thing that is ready; when there is none it first lets the
// clock jump to the next timer. False says that nothing is left to do.
func (s *Seeded) Step() bool { return s.step(time.Time{}) }

// Run runs until nothing is ready and no timer is pending but periodic ones,
// or the next timer is beyond the Horizon.
func (s *Seeded) Run() {
	end := s.clock.now.Add(Horizon)
	for len(s.ready) > 0 || s.pollContexts() || s.clock.onceBefore(end) {
		if !s.step(end) {
			return
		}
	}
}

// RunFor runs what is ready and what becomes ready within d. The clock is then
// d later.
func (s *Seeded) RunFor(d time.Duration) {
	end := s.clock.now.Add(d)
	for s.step(end) {
	}
	s.clock.now = end
}

// RunUntil runs until cond holds, and returns true then; false when nothing is
// left to do within the Horizon. cond is called between steps.
func (s *Seeded) RunUntil(cond func() bool) bool {
	end := s.clock.now.Add(Horizon)
	for !cond() {
		if !s.step(end) {
			return cond()
		}
	}
	return true
}

// step is Step with timers up to end only, unless that is zero.
func (s *Seeded) step(end time.Time) bool {
	if s.current != nil {
		panic("actortest: the executor was run from inside a turn or a job")
	}
	s.pollContexts()
	if len(s.ready) == 0 && !s.advance(end) {
		return false
	}
	i := 0
	if n := len(s.ready); n > 1 {
		i = s.pick.IntN(n)
	}
	it := s.ready[i]
	last := len(s.ready) - 1
	s.ready[i] = s.ready[last]
	s.ready[last] = item{}
	s.ready = s.ready[:last]
	s.trace.note(it, i, last+1, s.clock.now)
	s.run(it)
	return true
}

// advance lets the clock jump to the next timers and makes them ready.
func (s *Seeded) advance(end time.Time) bool {
	due, ok := s.clock.next()
	if !ok || (!end.IsZero() && due.After(end)) {
		return false
	}
	s.clock.now = due
	for {
		t := s.clock.popDue()
		if t == nil {
			return true
		}
		s.enqueue(item{kind: runTimer, t: t})
	}
}

func (s *Seeded) run(it item) {
	co := it.co
	if co == nil {
		co = s.coroutine()
		co.work = it
	}
	s.resume(co)
}

// perform is a coroutine's work.
func (s *Seeded) perform(it item) {
	switch it.kind {
	case runTurn:
		if it.task.Run(worker{s}) {
			s.Schedule(it.task)
		}
	case runJob:
		it.f()
	case runTimer:
		it.t.fire()
	case runDone:
		it.poll.call()
	}
}

// worker lets a turn handle one message, so that every interleaving of
// messages can come up.
type worker struct{ s *Seeded }

func (w worker) Wake(t actor.Task) { w.s.Schedule(t) }
func (w worker) Budget(int) int    { return 1 }

// Close ends all coroutines: waits in them return ErrClosed, as later ones
// do. Nothing runs afterwards. Systems on the executor are best stopped before.
func (s *Seeded) Close() {
	if s.closed {
		return
	}
	s.closed = true
	for i := 0; i < len(s.all); i++ {
		s.end(s.all[i])
	}
	s.all, s.idle, s.ready = nil, nil, nil
}
