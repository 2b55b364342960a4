package router

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twinsrv/twinsrv/actor"
)

// MaxWorkers is the most workers that a router can have.
const MaxWorkers = 65536

// Config describes a router. Only Worker.New must be set.
type Config struct {
	// Workers is how many there are at most; 0 means 8.
	Workers int
	// Worker makes them.
	Worker actor.Props
	// Route chooses among them; the zero value is RoundRobin.
	Route Route
	// HashKey gives the key of a message for ConsistentHash; false says that
	// it has none. Nil asks messages that are Keyed.
	HashKey func(msg any) (key string, ok bool)
	// Supervisor decides about the workers' failures; nil is the default
	// strategy, which restarts.
	Supervisor *actor.Strategy
	// Mailbox is the router's own; the zero value is unbounded. Workers have
	// that of Worker.
	Mailbox actor.Mailbox
}

// Resize is a message that changes the number of workers. Those that are too
// many stop when they have handled what they have. An ask is answered with nil,
// or with an error that wraps actor.ErrInvalid when the number cannot be.
type Resize struct{ Workers int }

// ToAll is a message whose content goes to all workers, whatever the route.
type ToAll struct{ Message any }

// Spawner is where a router can be put: a *actor.System, *actor.Ref or
// *actor.Context.
type Spawner interface {
	Spawn(name string, p actor.Props) (*actor.Ref, error)
}

// Spawn starts a router under a parent. The errors are those of
// actor.Ref.Spawn; actor.ErrInvalid stands for a Config that cannot be.
func Spawn(under Spawner, name string, cfg Config) (*actor.Ref, error) {
	p, err := Props(cfg)
	if err != nil {
		return nil, err
	}
	return under.Spawn(name, p)
}

// Props returns the props of a router.
func Props(cfg Config) (actor.Props, error) {
	switch {
	case cfg.Route > LeastLoaded:
		return actor.Props{}, fmt.Errorf("router: %w: unknown route %d", actor.ErrInvalid, cfg.Route)
	}
	if err := cfg.Worker.Check(); err != nil {
		return actor.Props{}, fmt.Errorf("router: Config.Worker: %w", err)
	}
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if err := checkWorkers(cfg.Workers); err != nil {
		return actor.Props{}, err
	}
	return actor.Props{
		New: func() actor.Actor {
			return &pool{cfg: cfg, workers: make([]*actor.Ref, cfg.Workers)}
		},
		Mailbox:    cfg.Mailbox,
		Supervisor: cfg.Supervisor,
		// It sees who has stopped when it passes something on.
		IgnoreChildren: true,
	}, nil
}

func checkWorkers(n int) error {
	if n < 1 || n > MaxWorkers {
		return fmt.Errorf("router: %w: %d workers; there can be 1 to %d", actor.ErrInvalid, n, MaxWorkers)
	}
	return nil
}

// pool is a router.
type pool struct {
	cfg     Config
	workers []*actor.Ref // nil until the first message for it
	next    int          // whose turn it is, round-robin
	shrunk  int          // how often there became fewer
}

// Receive passes a message on.
func (p *pool) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case Resize:
		return p.resize(ctx, m.Workers)
	case ToAll:
		return p.broadcast(ctx, m.Message)
	}
	if p.cfg.Route == Broadcast {
		return p.broadcast(ctx, msg)
	}
	at, others, err := p.choose(ctx, msg)
	if err != nil {
		p.refuse(ctx, ctx.Message(), err)
		return nil
	}
	tries := 1
	if others {
		tries = len(p.workers)
	}
	for i := range tries {
		if err = p.pass(ctx, (at+i)%len(p.workers)); err == nil {
			return nil
		}
	}
	p.refuse(ctx, ctx.Message(), err)
	return nil
}

// pass hands the message to the worker at an index.
func (p *pool) pass(ctx *actor.Context, at int) error {
	for {
		w, err := p.worker(ctx, at)
		if err != nil {
			return err
		}
		if err = ctx.TryForward(w); !errors.Is(err, actor.ErrStopped) {
			return err
		}
	}
}

// refuse ends a message that no worker took.
func (p *pool) refuse(ctx *actor.Context, m actor.Message, err error) {
	if m.Reply != nil {
		ctx.Fail(err)
	}
	ctx.System().DeadLetters().Publish(actor.ZombieMsg{To: ctx.Self().Path(), Message: m, Reason: err})
}

// worker returns the live worker at an index.
func (p *pool) worker(ctx *actor.Context, at int) (*actor.Ref, error) {
	if w := p.workers[at]; w != nil && !w.Stopped() {
		return w, nil
	}
	name := strconv.Itoa(at)
	if p.shrunk > 0 { // one of that name may still be at its last messages
		name += "." + strconv.Itoa(p.shrunk)
	}
	w, _, err := ctx.Self().EnsureChild(name, func() actor.Props { return p.cfg.Worker })
	if err != nil {
		return nil, err
	}
	p.workers[at] = w
	return w, nil
}

// broadcast sends msg to all workers. An ask is then theirs.
func (p *pool) broadcast(ctx *actor.Context, msg any) error {
	m := ctx.Message()
	m.Payload = msg
	ctx.Defer() // before a worker can answer; see Context.ForwardAs
	taken := 0
	var full error
	for at := range p.workers {
		w, err := p.worker(ctx, at)
		if err != nil {
			return err
		}
		if err := w.Post(m); err != nil {
			ctx.System().DeadLetters().Publish(actor.ZombieMsg{To: w.Path(), Message: m, Reason: err})
			full = err
		} else {
			taken++
		}
	}
	if taken == 0 && m.Reply != nil {
		m.Reply.Fail(full)
	}
	return nil
}

func (p *pool) resize(ctx *actor.Context, n int) error {
	if err := checkWorkers(n); err != nil {
		ctx.Fail(err)
		return nil
	}
	if n < len(p.workers) {
		p.shrunk++
	}
	for at := n; at < len(p.workers); at++ {
		if w := p.workers[at]; w != nil {
			if err := ctx.Tell(w, actor.PoisonPill{}); err != nil {
				return err
			}
		}
	}
	workers := make([]*actor.Ref, n)
	copy(workers, p.workers)
	p.workers, p.cfg.Workers = workers, n
	if ctx.Message().Reply != nil {
		ctx.Respond(nil)
	}
	return nil
}
