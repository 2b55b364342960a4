package actor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a system. Its zero value works.
type Config struct {
	// Workers is how many goroutines run actors' turns; 0 means GOMAXPROCS,
	// at least 2. More are added while some stand still in a handler that
	// blocks. Not used with an Executor.
	Workers int
	// Throughput is how many messages an actor may handle before it is
	// another's turn; 0 means 32.
	Throughput int
	// AskTimeout bounds asks whose context has no deadline; 0 means 10 s. With
	// the system's own executor an ask may wait up to a sixteenth longer, as no
	// timer is armed for each.
	AskTimeout time.Duration
	// Logger gets failures of actors and the like; nil discards.
	Logger *slog.Logger
	// Executor runs everything; nil means a real one of the system's own.
	Executor Executor
}

// System is a tree of actors: users' under /user, the runtime's under
// /system. Two systems share nothing. All methods may be called from any
// goroutine.
type System struct {
	name       string
	log        *slog.Logger
	exec       Executor
	own        *dispatcher // exec, when the system made it
	throughput int
	askTimeout time.Duration
	strategy   Strategy // the default one

	root, user, system *Ref
	letters            DeadLetters
	events             Events
	global             Store
	promises           sync.Pool
	spent              Promise // stands for asks that a call has answered or passed on
	buffers            buffers
	childless          family // of all who stop without ever having had a child; closed
	plain              spec   // of all whose Props say no more than New
	jobs               jobs
	stopping           atomic.Bool
}

// NewSystem starts a system. Stop it with System.Stop.
func NewSystem(name string, cfg Config) *System {
	s := &System{
		name:       name,
		log:        cfg.Logger,
		exec:       cfg.Executor,
		throughput: cfg.Throughput,
		askTimeout: cfg.AskTimeout,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.throughput <= 0 {
		s.throughput = 32
	}
	if s.askTimeout <= 0 {
		s.askTimeout = 10 * time.Second
	}
	if s.exec == nil {
		n := cfg.Workers
		if n <= 0 {
			n = max(runtime.GOMAXPROCS(0), 2)
		}
		s.own = newDispatcher(n, s.log)
		s.exec = s.own
	}
	s.letters.sys = s
	s.spent.sys, s.spent.taken = s, true
	s.spent.word.Store(promiseAnswered)
	s.events.sys = s
	s.childless.closed = true
	s.jobs.sys = s
	s.plant()
	return s
}

// plant makes the top of the tree.
func (s *System) plant() {
	own := PropsFunc(s.zombie)
	own.IgnoreChildren = true
	root := own
	root.Supervisor = &Strategy{Decide: func(error) Directive { return Resume }}
	s.root = newRef(s, nil, "", 0, &root, nil, nil)
	s.exec.Schedule(Task{s.root})
	s.user = s.mustSpawn(s.root, "user", own)
	s.system = s.mustSpawn(s.root, "system", own)
	s.mustSpawn(s.system, "deadletters", own)
	s.mustSpawn(s.system, "events", own)
}

// zombie is the behaviour of the runtime's own actors: but for subscriptions,
// whatever is sent to them reaches nobody.
func (s *System) zombie(c *Context, msg any) error {
	m := c.Message()
	switch p := msg.(type) {
	case ZombieMsg:
		s.letters.Publish(p)
		return nil
	case Subscribe:
		if s.subscribe(c.ref(), cmp.Or(p.Ref, m.Sender)) {
			c.acknowledge()
			return nil
		}
	case Unsubscribe:
		if s.unsubscribe(c.ref(), cmp.Or(p.Ref, m.Sender)) {
			c.acknowledge()
			return nil
		}
	}
	s.letters.Publish(ZombieMsg{To: c.ref().Path(), Message: m, Reason: errNobody})
	return nil
}

func (s *System) mustSpawn(under *Ref, name string, p Props) *Ref {
	r, err := under.Spawn(name, p)
	if err != nil {
		panic(err) // the names are the system's own, and free
	}
	return r
}

// newRef makes a Ref, in parent's family unless that is nil. Its mu is held.
func newRef(s *System, parent *Ref, name string, number uint32, p *Props, l *lane, f *family) *Ref {
	r := &Ref{sys: s, parent: parent, newActor: p.New, capacity: p.Mailbox.capacity(), number: number, hold: holdPhase}
	if r.capacity != 0 {
		r.set(limited)
	}
	if number == 0 {
		r.name = name
	}
	if f == nil {
		r.props = p.spec(s, nil)
	} else {
		f.shared = p.spec(s, f.shared)
		r.props = f.shared
	}
	if p.Held {
		r.hold |= holdUser
	}
	if l != nil {
		r.rarely().lane = l
	}
	return r
}

// Name returns the system's name.
func (s *System) Name() string { return s.name }

// Logger returns the configured logger, or one that discards.
func (s *System) Logger() *slog.Logger { return s.log }

// Global returns the system's store, which all its actors share.
func (s *System) Global() *Store { return &s.global }

// Root returns the actor /, the parent of /user and /system.
func (s *System) Root() *Ref { return s.root }

// User returns the actor /user, which top-level actors are children of.
func (s *System) User() *Ref { return s.user }

// Spawn makes an actor under /user; see Ref.Spawn.
func (s *System) Spawn(name string, p Props) (*Ref, error) { return s.user.Spawn(name, p) }

// Now returns the executor's time.
func (s *System) Now() time.Time { return s.exec.Now() }

// Uint64 returns a random number from the executor.
func (s *System) Uint64() uint64 { return s.exec.Uint64() }

// After calls f once, d from now. f runs on the executor, must not block and
// must not panic.
func (s *System) After(d time.Duration, f func()) Timer { return s.exec.After(d, f) }

// Go runs f, which may block by the system's means: waits, asks, Sleep. f must
// not panic. System.Stop waits for it within its deadline.
func (s *System) Go(f func()) {
	s.jobs.add()
	s.exec.Go(func() {
		defer s.jobs.done()
		f()
	})
}

// Sleep waits for d. The error is ctx's when it ends first.
func (s *System) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	err := s.exec.NewParker().Park(ctx, d)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// Waiter is a place where one goroutine at a time waits to be woken.
type Waiter struct{ p Parker }

// NewWaiter returns a waiter that has not been woken.
func (s *System) NewWaiter() *Waiter { return &Waiter{s.exec.NewParker()} }

// Wake has the present or the next Wait return. Woken twice before that, it
// returns once. It never blocks.
func (w *Waiter) Wake() { w.p.Unpark() }

// Wait returns nil when woken, and ctx's error when that ends first.
func (w *Waiter) Wait(ctx context.Context) error { return w.p.Park(ctx, 0) }
