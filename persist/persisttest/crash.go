package persisttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.PersistenceService = (*CrashStore)(nil)
	_ persist.Folder             = (*CrashStore)(nil)
)

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

// group is what one call writes.
type group struct{ apply func(*Memory) error }

// NewCrashStore returns an empty store.
func NewCrashStore() *CrashStore { return &CrashStore{Memory: NewMemory()} }

// Commit implements persist.PersistenceService.
func (c *CrashStore) Commit(ctx context.Context, units []persist.Unit) (outcomes []persist.Outcome, err error) {
	err = c.write(ctx, func(m *Memory) (err error) {
		outcomes, err = m.Commit(context.WithoutCancel(ctx), units)
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// Import implements persist.Importer.
func (c *CrashStore) Import(ctx context.Context, b persist.Batch) error {
	return c.write(ctx, func(m *Memory) error { return m.Import(context.WithoutCancel(ctx), b) })
}

// Fold implements persist.Folder.
func (c *CrashStore) Fold(ctx context.Context, f persist.Fold) error {
	return c.write(ctx, func(m *Memory) error { return m.Fold(context.WithoutCancel(ctx), f) })
}

// write applies something once the pause is over.
func (c *CrashStore) write(ctx context.Context, apply func(*Memory) error) error {
	if _, err := c.Memory.Position(ctx); err != nil {
		return err
	}
	g := &group{apply: apply}
	c.mu.Lock()
	c.writing = append(c.writing, g)
	c.mu.Unlock()
	if c.Pause != nil {
		if err := c.Pause(ctx); err != nil {
			_, _ = c.end(g, false)
			return fmt.Errorf("%w: sync: %w", persist.ErrUnknown, err)
		}
	}
	alive, err := c.end(g, true)
	if !alive || errors.Is(err, persist.ErrUnavailable) {
		return fmt.Errorf("%w: the store went away during the commit", persist.ErrUnknown)
	}
	return err
}

// end takes a group off the list and, unless a crash has decided its fate
// already, applies it in the same step if it is synced.
func (c *CrashStore) end(g *group, synced bool) (alive bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return false, nil
	}
	c.writing = slices.DeleteFunc(c.writing, func(o *group) bool { return o == g })
	if synced {
		err = g.apply(c.Memory)
	}
	return true, err
}

// Crash cuts the power. It returns the store as it is found afterwards: with
// everything that was synced, and each commit in progress wholly or not at all,
// as the seed says. The old store fails every call from now on.
func (c *CrashStore) Crash(seed uint64) *CrashStore {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = true
	after := c.Memory.Again()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, g := range c.writing {
		if rng.IntN(2) == 0 {
			_ = g.apply(after) // it is open, and what it refuses is not there
		}
	}
	c.writing = nil
	return &CrashStore{Memory: after, Pause: c.Pause}
}
