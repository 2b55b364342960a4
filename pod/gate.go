package pod

import (
	"context"
	"sync"

	"github.com/twinsrv/twinsrv/actor"
)

// gate lets one in at a time, in order, like a mutex whose waiters wait through
// the system's executor and give up with their context.
type gate struct {
	mu      sync.Mutex
	taken   bool
	waiters []*actor.Waiter
}

func (g *gate) enter(ctx context.Context, sys *actor.System) error {
	g.mu.Lock()
	if !g.taken {
		g.taken = true
		g.mu.Unlock()
		return nil
	}
	w := sys.NewWaiter()
	g.waiters = append(g.waiters, w)
	g.mu.Unlock()
	err := w.Wait(ctx)
	if err == nil {
		return nil // leave handed the gate over
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, x := range g.waiters {
		if x == w {
			g.waiters = append(g.waiters[:i], g.waiters[i+1:]...)
			return err
		}
	}
	g.pass() // handed over in the very moment of giving up
	return err
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

func (g *gate) pass() {
	if len(g.waiters) == 0 {
		g.taken = false
		return
	}
	w := g.waiters[0]
	g.waiters = g.waiters[1:]
	w.Wake()
}
