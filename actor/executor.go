package actor

import (
	"context"
	"time"
)

// Executor runs everything of a system: actors' turns, blocking jobs, timers
// and waits; and it gives the time and the randomness. A system makes its own
// when none is configured, with a fixed number of workers; actortest.Seeded is
// the other, which runs all of it on one goroutine in an order that a seed
// chooses.
//
// Users of actors never call these methods; System has what they need.
type Executor interface {
	// Schedule queues a turn. The task is not queued already.
	Schedule(t Task)
	// Go runs f, which may block.
	Go(f func())
	// After runs f once, d from now. f must not block.
	After(d time.Duration, f func()) Timer
	// Every runs f each d (which is > 0), never two at a time. f must not block.
	Every(d time.Duration, f func()) Timer
	// Now is the executor's time.
	Now() time.Time
	// Uint64 is a random number.
	Uint64() uint64
	// NewParker makes a place to wait at.
	NewParker() Parker
	// OnDone calls f once when ctx ends, unless stop is called first; stop
	// says whether it prevented that. f must not block.
	OnDone(ctx context.Context, f func()) (stop func() bool)
}

// Parker is a place where one caller at a time waits for a permit. At most one
// permit is kept.
type Parker interface {
	// Park takes the permit, waiting for it if need be. It returns ctx's error
	// when ctx ends first, and context.DeadlineExceeded when limit passes
	// first (0: no limit).
	Park(ctx context.Context, limit time.Duration) error
	// Unpark gives the permit, from any goroutine. It never blocks.
	Unpark()
	// Reset takes a permit away if there is one. Nobody may be waiting.
	Reset()
}

// Timer is something that will happen, once or repeatedly.
type Timer interface {
	// Stop prevents what has not happened yet. It says whether it did.
	Stop() bool
}

// Worker is what runs a turn.
type Worker interface {
	// Wake queues a task that this turn's handler made ready; the worker may
	// run it next. The task is of the same system.
	Wake(t Task)
	// Budget is how many messages a turn may handle, at most limit.
	Budget(limit int) int
}

// Task is an actor that has something to do. The zero Task is none.
type Task struct{ r *Ref }

// Run runs one turn. When it returns true the task must be queued again. A
// task is run by one worker at a time.
func (t Task) Run(w Worker) (again bool) {
	returned := false
	defer func() {
		if !returned {
			t.r.exited()
		}
	}()
	again = t.r.turn(&call{worker: within{w, t.r.sys}})
	returned = true
	return again
}

// within is a worker for the tasks of one system.
type within struct {
	Worker
	sys *System
}

// Wake schedules what is another system's there.
func (w within) Wake(t Task) {
	if t.r.sys != w.sys {
		t.r.sys.exec.Schedule(t)
		return
	}
	w.Worker.Wake(t)
}

// Name is the actor's name, for traces.
func (t Task) Name() string { return t.r.Name() }
