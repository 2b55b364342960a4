package router

import (
	"fmt"
	"hash/fnv"
	"runtime/debug"

	"github.com/twinsrv/twinsrv/actor"
)

// Route says which worker a message goes to.
type Route uint8

const (
	// RoundRobin takes the workers in turn. It passes over those that are full.
	RoundRobin Route = iota
	// Random takes a random one, by the system's randomness. When that one is
	// full it passes on from there.
	Random
	// Broadcast sends each message to all workers. An ask is answered by the
	// first that answers or fails.
	Broadcast
	// ConsistentHash takes the worker that belongs to the message's key: see
	// Keyed and Config.HashKey. Messages without a key go round-robin. When the
	// number of workers changes, as few keys as possible change theirs.
	ConsistentHash
	// LeastLoaded takes the worker with the fewest messages (actor.Ref.Load),
	// and among those with equally few goes round-robin.
	LeastLoaded
)

// String returns the route's name.
func (r Route) String() string {
	switch r {
	case RoundRobin:
		return "round-robin"
	case Random:
		return "random"
	case Broadcast:
		return "broadcast"
	case ConsistentHash:
		return "consistent hash"
	case LeastLoaded:
		return "least loaded"
	}
	return fmt.Sprintf("route(%d)", uint8(r))
}

// Keyed is a message that says by which key ConsistentHash routes it: equal keys
// go to the same worker.
type Keyed interface{ HashKey() string }

// choose returns the index of the worker for a message, and whether another
// may have it when that one is full. The error is that of the message's key.
func (p *pool) choose(ctx *actor.Context, msg any) (at int, others bool, err error) {
	switch p.cfg.Route {
	case Random:
		return int(ctx.System().Uint64() % uint64(len(p.workers))), true, nil
	case ConsistentHash:
		key, ok, err := p.key(msg)
		if err != nil {
			return 0, false, fmt.Errorf("%s: the key of a %T: %w", ctx.Self().Path(), msg, err)
		}
		if ok {
			return jump(hash(key), len(p.workers)), false, nil
		}
	case LeastLoaded:
		return p.leastLoaded(), true, nil
	}
	return p.inTurn(), true, nil
}

func (p *pool) inTurn() int {
	at := p.next % len(p.workers)
	p.next = (at + 1) % len(p.workers)
	return at
}

func (p *pool) leastLoaded() int {
	first := p.next % len(p.workers)
	best, least := first, load(p.workers[first])
	for i := 1; i < len(p.workers) && least > 0; i++ {
		at := (first + i) % len(p.workers)
		if n := load(p.workers[at]); n < least {
			best, least = at, n
		}
	}
	p.next = (best + 1) % len(p.workers)
	return best
}

// load of a worker that is not there is that of one with nothing to do.
func load(w *actor.Ref) int {
	if w == nil || w.Stopped() {
		return 0
	}
	return w.Load()
}

// key calls the user's code, whose panic harms the message in hand and not the
// workers with all that waits there.
func (p *pool) key(msg any) (key string, ok bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &actor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if p.cfg.HashKey != nil {
		key, ok = p.cfg.HashKey(msg)
		return key, ok, nil
	}
	if k, keyed := msg.(Keyed); keyed {
		return k.HashKey(), true, nil
	}
	return "", false, nil
}

func hash(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return h.Sum64()
}

// jump is the consistent hash of Lamping and Veach: of n buckets the one for a
// key; with one bucket more, only one key in n+1 changes its own.
func jump(key uint64, n int) int {
	bucket, next := int64(-1), int64(0)
	for next < int64(n) {
		bucket = next
		key = key*2862933555777941757 + 1
		next = int64(float64(bucket+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int(bucket)
}
