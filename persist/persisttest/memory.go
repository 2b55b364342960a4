package persisttest

import (
	"context"
	"fmt"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

var (
	_ persist.PersistenceService = (*Memory)(nil)
	_ persist.Importer           = (*Memory)(nil)
	_ persist.TellingBackuper    = (*Memory)(nil)
	_ persist.Folder             = (*Memory)(nil)
)

// Memory is a memory.Store of which single things can be made unreadable. Its
// methods are safe for concurrent use.
type Memory struct {
	store *memory.Store

	mu      sync.Mutex
	records map[persist.Key]bool // what is damaged
	changes map[uint64]bool
	rows    map[rowName]bool
}

type rowName struct {
	persist.Key
	kind, id string
}

func nameOf(r *persist.Row) rowName { return rowName{r.Key, r.Kind, r.ID} }

// NewMemory returns an empty store.
func NewMemory() *Memory { return newMemory(memory.Open(memory.Config{})) }

func newMemory(store *memory.Store) *Memory {
	return &Memory{store: store, records: map[persist.Key]bool{}, changes: map[uint64]bool{}, rows: map[rowName]bool{}}
}

// Again returns a store with the same data, open, and closes m: what a file
// store does when it is opened again.
func (m *Memory) Again() *Memory {
	_ = m.store.Close() // always nil
	return m.fork()
}

func (m *Memory) fork() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := newMemory(m.store.Fork())
	for k := range m.records {
		n.records[k] = true
	}
	for p := range m.changes {
		n.changes[p] = true
	}
	for r := range m.rows {
		n.rows[r] = true
	}
	return n
}

// Damage makes a stored record unreadable. It does nothing to an absent one.
func (m *Memory) Damage(key persist.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[key] = true
}

// DamageChange makes the change at the position of c unreadable.
func (m *Memory) DamageChange(c persist.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes[c.Position] = true
}

// DamageRow makes the row of r's kind, key and ID unreadable.
func (m *Memory) DamageRow(r persist.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[nameOf(&r)] = true
}

// Commit implements persist.PersistenceService.
func (m *Memory) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	outcomes, err := m.store.Commit(ctx, units)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range outcomes {
		if outcomes[i].Err == nil {
			m.written(&units[i])
		}
	}
	return outcomes, err
}

// written notes that a unit's values are whole.
func (m *Memory) written(u *persist.Unit) {
	if u.Delete {
		m.removed(u.Key)
	}
	if u.Record != nil {
		delete(m.records, u.Key)
	}
	for _, op := range u.Rows {
		delete(m.rows, rowName{u.Key, op.Kind, op.ID})
	}
}

// removed notes that an entity is gone with its rows.
func (m *Memory) removed(key persist.Key) {
	delete(m.records, key)
	for r := range m.rows {
		if r.Key == key {
			delete(m.rows, r)
		}
	}
}

// Import implements persist.Importer.
func (m *Memory) Import(ctx context.Context, b persist.Batch) error {
	if err := m.store.Import(ctx, b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken(&b)
	return nil
}

// taken notes that what a batch has is whole.
func (m *Memory) taken(b *persist.Batch) {
	for i := range b.Records {
		delete(m.records, b.Records[i].Key)
	}
	for i := range b.Changes {
		delete(m.changes, b.Changes[i].Position)
	}
	for i := range b.Rows {
		delete(m.rows, nameOf(&b.Rows[i]))
	}
}

func (m *Memory) damaged(key persist.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.records[key] {
		return nil
	}
	return fmt.Errorf("%s: %w: the test says so", key, snapshot.ErrCorrupt)
}

// Load implements persist.PersistenceService.
func (m *Memory) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	r, err := m.store.Load(ctx, key)
	if err != nil {
		return r, err
	}
	if err := m.damaged(key); err != nil {
		return snapshot.Record{}, err
	}
	return r, nil
}

// List implements persist.PersistenceService.
func (m *Memory) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	page, err := m.store.List(ctx, pod, o)
	for i, item := range page.Items {
		if err := m.damaged(persist.Key{Pod: pod, Name: item.Name}); err != nil {
			page.Items[i] = persist.Item{Name: item.Name, Err: err}
		}
	}
	return page, err
}

// Changes implements persist.PersistenceService.
func (m *Memory) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	changes, err := m.store.Changes(ctx, key, life, from, limit)
	return m.spoilChanges(changes), err
}

// NextLife implements persist.LifeFinder.
func (m *Memory) NextLife(ctx context.Context, key persist.Key, after uint64) (uint64, error) {
	return persist.NextLife(ctx, m.store, key, after)
}

// Log implements persist.PersistenceService.
func (m *Memory) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	changes, err := m.store.Log(ctx, after, limit)
	return m.spoilChanges(changes), err
}

func (m *Memory) spoilChanges(changes []persist.Change) []persist.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range changes {
		if m.changes[c.Position] {
			changes[i] = persist.Change{Position: c.Position, Key: c.Key, Life: c.Life, Revision: c.Revision, Event: c.Event,
				Err: fmt.Errorf("%s: position %d: %w: the test says so", c.Key, c.Position, snapshot.ErrCorrupt)}
		}
	}
	return changes
}

// Trim implements persist.PersistenceService.
func (m *Memory) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	return m.store.Trim(ctx, after, through, limit)
}

// Rows implements persist.PersistenceService.
func (m *Memory) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	rows, err := m.store.Rows(ctx, kind, after, limit)
	return m.spoilRows(rows), err
}

// RowsOf implements persist.PersistenceService.
func (m *Memory) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	rows, err := m.store.RowsOf(ctx, key)
	return m.spoilRows(rows), err
}

func (m *Memory) spoilRows(rows []persist.Row) []persist.Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range rows {
		if r := &rows[i]; m.rows[nameOf(r)] {
			r.Value, r.Err = nil, fmt.Errorf("%s: row %s %q: %w: the test says so", r.Key, r.Kind, r.ID, snapshot.ErrCorrupt)
		}
	}
	return rows
}

// Heads implements persist.Folder.
func (m *Memory) Heads(ctx context.Context, keys []persist.Key) ([]persist.Head, error) {
	heads, err := m.store.Heads(ctx, keys)
	for i := range heads {
		if heads[i].Exists {
			heads[i].Err = m.damaged(keys[i])
		}
	}
	return heads, err
}

// Fold implements persist.Folder.
func (m *Memory) Fold(ctx context.Context, f persist.Fold) error {
	if err := m.store.Fold(ctx, f); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range f.Deleted {
		m.removed(k)
	}
	for i := range f.RowsGone {
		delete(m.rows, nameOf(&f.RowsGone[i]))
	}
	m.taken(&f.Batch)
	return nil
}

// Mark implements persist.Folder.
func (m *Memory) Mark(ctx context.Context) (persist.Mark, error) { return m.store.Mark(ctx) }

// Pods implements persist.PersistenceService.
func (m *Memory) Pods(ctx context.Context) ([]string, error) { return m.store.Pods(ctx) }

// Position implements persist.PersistenceService.
func (m *Memory) Position(ctx context.Context) (uint64, error) { return m.store.Position(ctx) }

// Close implements persist.PersistenceService.
func (m *Memory) Close() error { return m.store.Close() }
