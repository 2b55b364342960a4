package persisttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
)

var _ persist.PersistenceService = (*CrashStore)(nil)

// CrashStore is a store whose machine can lose power: what was not synced by
// then is lost. A commit writes, pauses, syncs and then returns; reads show
// only what is synced. Its methods are safe for concurrent use and wait for
// nobody but Pause.
type CrashStore struct {
	// Memory is what is synced.
	*Memory

	// Pause, if set, is called in each commit between writing and syncing, and
	// gives the sync its duration. When it fails the sync has failed: the
	// commit is lost, and its outcome is unknown to the caller. It must be set
	// before the first commit.
	Pause func(ctx context.Context) error

	mu      sync.Mutex
	writing []*group // commits that are written and not synced, in order
	crashed bool
}

type group struct{ units []persist.Unit }

// NewCrashStore returns an empty store.
func NewCrashStore() *CrashStore { return &CrashStore{Memory: NewMemory()} }

// Commit implements persist.PersistenceService.
func (c *CrashStore) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	if err := c.Memory.use(ctx, func(*image) error { return nil }); err != nil {
		return nil, err
	}
	g := &group{units: units}
	c.mu.Lock()
	c.writing = append(c.writing, g)
	c.mu.Unlock()
	if c.Pause != nil {
		if err := c.Pause(ctx); err != nil {
			c.end(g, nil)
			return nil, fmt.Errorf("%w: sync: %w", persist.ErrUnknown, err)
		}
	}
	var outcomes []persist.Outcome
	if !c.end(g, func() { outcomes, _ = c.Memory.Commit(context.WithoutCancel(ctx), units) }) || outcomes == nil && len(units) > 0 {
		return nil, fmt.Errorf("%w: the store went away during the commit", persist.ErrUnknown)
	}
	return outcomes, nil
}

// end takes a group off the list and, unless a crash has decided its fate
// already, runs sync in the same step.
func (c *CrashStore) end(g *group, sync func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return false
	}
	c.writing = slices.DeleteFunc(c.writing, func(o *group) bool { return o == g })
	if sync != nil {
		sync()
	}
	return true
}

// Crash cuts the power. It returns the store as it is found afterwards: with
// everything that was synced, and each commit in progress wholly or not at all,
// as the seed says. The old store fails every call from now on.
func (c *CrashStore) Crash(seed uint64) *CrashStore {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = true
	c.Memory.mu.Lock()
	defer c.Memory.mu.Unlock()
	c.Memory.closed = true
	data := c.Memory.data.clone()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, g := range c.writing {
		if rng.IntN(2) == 0 {
			data.commit(g.units)
		}
	}
	c.writing = nil
	return &CrashStore{Memory: &Memory{data: data}, Pause: c.Pause}
}
