package persisttest

import (
	"context"
	"fmt"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

var _ persist.PersistenceService = (*Memory)(nil)

// Memory is a correct store that forgets everything with the process. Its
// methods are safe for concurrent use.
type Memory struct {
	mu     sync.Mutex
	data   *image
	closed bool
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{data: newImage()} }

// Again returns a store with the same data, open, and closes m: what a file
// store does when it is opened again.
func (m *Memory) Again() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return &Memory{data: m.data}
}

// Damage flips a bit of a stored record, so that it cannot be read. It does
// nothing to an absent one.
func (m *Memory) Damage(key persist.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data.damage(key)
}

func (m *image) damage(key persist.Key) {
	r, ok := m.records.m[path(key)]
	if !ok {
		return
	}
	r.data = cloneBytes(r.data)
	r.data[len(r.data)/2] ^= 0x10
	m.records.put(path(key), r)
}

// use runs fn on the data while the store is open.
func (m *Memory) use(ctx context.Context, fn func(*image) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: nothing was begun: %w", persist.ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("%w: it was closed", persist.ErrUnavailable)
	}
	return fn(m.data)
}

// Commit implements persist.PersistenceService.
func (m *Memory) Commit(ctx context.Context, units []persist.Unit) (o []persist.Outcome, err error) {
	err = m.use(ctx, func(d *image) error { o = d.commit(units); return nil })
	return o, err
}

// Load implements persist.PersistenceService.
func (m *Memory) Load(ctx context.Context, key persist.Key) (r snapshot.Record, err error) {
	err = m.use(ctx, func(d *image) (err error) { r, err = d.load(key); return err })
	return r, err
}

// List implements persist.PersistenceService.
func (m *Memory) List(ctx context.Context, pod string, o persist.ListOptions) (page persist.Page, err error) {
	err = m.use(ctx, func(d *image) error { page = d.list(pod, o); return nil })
	return page, err
}

// Changes implements persist.PersistenceService.
func (m *Memory) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) (c []persist.Change, err error) {
	err = m.use(ctx, func(d *image) error { c = d.history(key, life, from, limit); return nil })
	return c, err
}

// Log implements persist.PersistenceService.
func (m *Memory) Log(ctx context.Context, after uint64, limit int) (c []persist.Change, err error) {
	err = m.use(ctx, func(d *image) error { c = d.log(after, limit); return nil })
	return c, err
}

// Trim implements persist.PersistenceService.
func (m *Memory) Trim(ctx context.Context, after, through uint64, limit int) (t persist.Trimmed, err error) {
	err = m.use(ctx, func(d *image) error { t = d.trim(after, through, limit); return nil })
	return t, err
}

// Rows implements persist.PersistenceService.
func (m *Memory) Rows(ctx context.Context, kind string, after *persist.Row, limit int) (r []persist.Row, err error) {
	err = m.use(ctx, func(d *image) error { r = d.rowsFrom(kind, after, limit); return nil })
	return r, err
}

// RowsOf implements persist.PersistenceService.
func (m *Memory) RowsOf(ctx context.Context, key persist.Key) (r []persist.Row, err error) {
	err = m.use(ctx, func(d *image) error { r = d.rowsOf(key); return nil })
	return r, err
}

// Pods implements persist.PersistenceService.
func (m *Memory) Pods(ctx context.Context) (pods []string, err error) {
	err = m.use(ctx, func(d *image) error { pods = d.pods(); return nil })
	return pods, err
}

// Position implements persist.PersistenceService.
func (m *Memory) Position(ctx context.Context) (p uint64, err error) {
	err = m.use(ctx, func(d *image) error { p = d.next - 1; return nil })
	return p, err
}

// Close implements persist.PersistenceService.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
