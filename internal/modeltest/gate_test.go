package modeltest

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// gate is a store that can die in the middle of what it does: from then on
// nothing reaches the store inside and nothing that it said comes out, so that
// what a crash leaves can be copied. A commit takes some time before it reaches
// the store and some before its outcome comes back.
type gate struct {
	persist.PersistenceService

	pause func(ctx context.Context) error
	inner sync.RWMutex // held for reading while a call may change the store
	dead  atomic.Bool
}

func (g *gate) gone() error {
	return fmt.Errorf("%w: the process has ended", persist.ErrUnavailable)
}

// quiet waits for what changes the store now. The gate has died.
func (g *gate) quiet() {
	g.inner.Lock()
	defer g.inner.Unlock()
}

// change runs something that changes the store.
func (g *gate) change(f func() error) error {
	g.inner.RLock()
	defer g.inner.RUnlock()
	if g.dead.Load() {
		return g.gone()
	}
	return f()
}

func (g *gate) Commit(ctx context.Context, units []persist.Unit) (out []persist.Outcome, err error) {
	if err := g.pause(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", persist.ErrUnavailable, err)
	}
	err = g.change(func() error {
		out, err = g.PersistenceService.Commit(ctx, units)
		return err
	})
	if err == nil {
		err = g.pause(ctx)
	}
	if g.dead.Load() {
		return nil, fmt.Errorf("%w: the process has ended", persist.ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (g *gate) Trim(ctx context.Context, after, through uint64, limit int) (t persist.Trimmed, err error) {
	err = g.change(func() error {
		t, err = g.PersistenceService.Trim(ctx, after, through, limit)
		return err
	})
	return t, err
}

func (g *gate) Import(ctx context.Context, b persist.Batch) error {
	return g.change(func() error { return g.PersistenceService.(persist.Importer).Import(ctx, b) })
}

func (g *gate) Reopen(ctx context.Context) error {
	return g.change(func() error {
		if r, ok := g.PersistenceService.(persist.Reopener); ok {
			return r.Reopen(ctx)
		}
		return nil
	})
}

func (g *gate) Backup(ctx context.Context, w io.Writer) error {
	return g.PersistenceService.(persist.Backuper).Backup(ctx, w)
}

// The reads of a store that has died fail.

func (g *gate) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	if g.dead.Load() {
		return snapshot.Record{}, g.gone()
	}
	return g.PersistenceService.Load(ctx, key)
}

func (g *gate) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	if g.dead.Load() {
		return nil, g.gone()
	}
	return g.PersistenceService.RowsOf(ctx, key)
}

func (g *gate) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	if g.dead.Load() {
		return nil, g.gone()
	}
	return g.PersistenceService.Changes(ctx, key, life, from, limit)
}
