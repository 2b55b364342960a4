package persisttest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

var (
	_ persist.PersistenceService = (*FaultStore)(nil)
	_ persist.Reopener           = (*FaultStore)(nil)
	_ persist.Importer           = (*FaultStore)(nil)
	_ persist.Backuper           = (*FaultStore)(nil)
)

// Fault is a way in which a commit goes wrong.
type Fault int

// The faults of a commit. The first four are of the whole call, the others of
// units.
const (
	// FailBefore applies nothing; the call fails with persist.ErrUnavailable.
	FailBefore Fault = iota + 1
	// UnknownApplied applies everything; the call fails with
	// persist.ErrUnknown, and the store must be reopened.
	UnknownApplied
	// UnknownLost applies nothing; the call fails with persist.ErrUnknown, and
	// the store must be reopened.
	UnknownLost
	// RefuseGroup applies nothing; the call fails with persist.ErrInvalid, as
	// when a store can only say that some unit's data is bad.
	RefuseGroup
	// RefuseUnit gives a unit the outcome persist.ErrInvalid; the others of the
	// call are applied.
	RefuseUnit
	// ConflictUnit gives a unit the outcome persist.ErrConflict; the others of
	// the call are applied.
	ConflictUnit
)

// FaultStore hands calls on to a store, except for those that it was told to
// spoil. Its methods are safe for concurrent use. It keeps no lock while the
// inner store or a hook runs.
type FaultStore struct {
	// Pause, if set, runs at the start of each commit that the store is open
	// for. When it fails nothing is applied and the commit fails with
	// persist.ErrUnavailable. It must be set before the first commit.
	Pause func(ctx context.Context) error

	inner persist.PersistenceService

	mu       sync.Mutex
	commits  int
	calls    map[int]Fault
	units    []*unitFault
	loads    []*loadFault
	imports  *importFault
	broken   error
	heals    bool
	closed   bool
	failOpen int
	reopens  int
}

type unitFault struct {
	match func(persist.Unit) bool
	fault Fault
}

type loadFault struct {
	match func(persist.Key) bool
	err   error
}

type importFault struct {
	err   error
	taken bool
}

// NewFaultStore returns a store around inner that does everything right until
// it is told otherwise. Closing it closes inner.
func NewFaultStore(inner persist.PersistenceService) *FaultStore {
	return &FaultStore{inner: inner, calls: map[int]Fault{}}
}

// OnCommit spoils the nth call of Commit, counted from 1 since the store was
// made. A fault of units is that of every unit of the call.
func (f *FaultStore) OnCommit(n int, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[n] = fault
}

// OnUnits spoils every commit that holds a unit which match says yes to, until
// remove is called. A fault of units is that of the matching ones.
func (f *FaultStore) OnUnits(match func(persist.Unit) bool, fault Fault) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := &unitFault{match, fault}
	f.units = append(f.units, u)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.units = slices.DeleteFunc(f.units, func(o *unitFault) bool { return o == u })
	}
}

// OnLoads makes Load fail with err (wrapped with the key) for the keys which
// match says yes to, and List show it, until remove is called.
func (f *FaultStore) OnLoads(match func(persist.Key) bool, err error) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &loadFault{match, err}
	f.loads = append(f.loads, l)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.loads = slices.DeleteFunc(f.loads, func(o *loadFault) bool { return o == l })
	}
}

// Break takes the store out of service until Reopen, as a commit of unknown
// outcome does.
func (f *FaultStore) Break() { f.breakDown(fmt.Errorf("broken by the test")) }

// FailReopens makes the next n calls of Reopen fail.
func (f *FaultStore) FailReopens(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failOpen = n
}

// Healing returns the store without its Reopen: from now on it stays in service
// after a commit of unknown outcome, as a database behind a network does.
func (f *FaultStore) Healing() persist.PersistenceService {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heals = true
	return struct{ persist.PersistenceService }{f}
}

// Commits returns how many calls of Commit there were.
func (f *FaultStore) Commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commits
}

// Reopens returns how many calls of Reopen there were.
func (f *FaultStore) Reopens() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopens
}

func (f *FaultStore) breakDown(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.heals {
		f.broken = fmt.Errorf("%w until it is reopened, after: %v", persist.ErrUnavailable, cause)
	}
}

func (f *FaultStore) down() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// Reopen implements persist.Reopener.
func (f *FaultStore) Reopen(ctx context.Context) error {
	f.mu.Lock()
	f.reopens++
	if f.closed {
		f.mu.Unlock()
		return fmt.Errorf("%w: it was closed", persist.ErrUnavailable)
	}
	if f.failOpen > 0 {
		f.failOpen--
		f.mu.Unlock()
		return fmt.Errorf("%w: reopen fails as the test says", persist.ErrUnavailable)
	}
	f.mu.Unlock()
	if r, ok := f.inner.(persist.Reopener); ok {
		if err := r.Reopen(ctx); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = nil
	return nil
}

// plan decides what a commit suffers: a fault of the call, or faults of units.
func (f *FaultStore) plan(units []persist.Unit) (call Fault, each []Fault) {
	f.mu.Lock()
	f.commits++
	fault, scripted := f.calls[f.commits]
	matchers := slices.Clone(f.units)
	f.mu.Unlock()
	each = make([]Fault, len(units))
	note := func(i int, fault Fault) {
		if fault < RefuseUnit {
			if call == 0 {
				call = fault
			}
		} else if each[i] == 0 {
			each[i] = fault
		}
	}
	for i, u := range units {
		if scripted {
			note(i, fault)
		}
		for _, m := range matchers {
			if m.match(u) {
				note(i, m.fault)
			}
		}
	}
	return call, each
}

// Commit implements persist.PersistenceService.
func (f *FaultStore) Commit(ctx context.Context, units []persist.Unit) ([]persist.Outcome, error) {
	call, each := f.plan(units)
	if err := f.down(); err != nil {
		return nil, err
	}
	if f.Pause != nil {
		if err := f.Pause(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", persist.ErrUnavailable, err)
		}
	}
	switch call {
	case FailBefore:
		return nil, fmt.Errorf("%w: the test says so", persist.ErrUnavailable)
	case RefuseGroup:
		return nil, fmt.Errorf("%w: some unit, the test says", persist.ErrInvalid)
	case UnknownLost, UnknownApplied:
		if call == UnknownApplied {
			if _, err := f.spoil(ctx, units, each); err != nil {
				return nil, err
			}
		}
		err := fmt.Errorf("%w: the test says so", persist.ErrUnknown)
		f.breakDown(err)
		return nil, err
	}
	return f.spoil(ctx, units, each)
}

// spoil commits the units without a fault of their own.
func (f *FaultStore) spoil(ctx context.Context, units []persist.Unit, each []Fault) ([]persist.Outcome, error) {
	outcomes := make([]persist.Outcome, len(units))
	var sound []persist.Unit
	var at []int
	for i, u := range units {
		switch each[i] {
		case RefuseUnit:
			outcomes[i].Err = fmt.Errorf("%s: %w: the test says so", u.Key, persist.ErrInvalid)
		case ConflictUnit:
			outcomes[i].Err = fmt.Errorf("%s: %w: the test says so", u.Key, persist.ErrConflict)
		default:
			sound, at = append(sound, u), append(at, i)
		}
	}
	done, err := f.inner.Commit(ctx, sound)
	if err != nil {
		return nil, err
	}
	for i, o := range done {
		outcomes[at[i]] = o
	}
	return outcomes, nil
}

// spoiled returns the error that loading a key has to fail with.
func (f *FaultStore) spoiled(key persist.Key) error {
	f.mu.Lock()
	loads := slices.Clone(f.loads)
	f.mu.Unlock()
	for _, l := range loads {
		if l.match(key) {
			return fmt.Errorf("%s: %w: the test says so", key, l.err)
		}
	}
	return nil
}

// Load implements persist.PersistenceService.
func (f *FaultStore) Load(ctx context.Context, key persist.Key) (snapshot.Record, error) {
	if err := f.down(); err != nil {
		return snapshot.Record{}, err
	}
	if err := f.spoiled(key); err != nil {
		return snapshot.Record{}, err
	}
	return f.inner.Load(ctx, key)
}

// List implements persist.PersistenceService.
func (f *FaultStore) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	if err := f.down(); err != nil {
		return persist.Page{}, err
	}
	page, err := f.inner.List(ctx, pod, o)
	for i, item := range page.Items {
		if err := f.spoiled(persist.Key{Pod: pod, Name: item.Name}); err != nil {
			page.Items[i] = persist.Item{Name: item.Name, Err: err}
		}
	}
	return page, err
}

// Changes implements persist.PersistenceService.
func (f *FaultStore) Changes(ctx context.Context, key persist.Key, life, from uint64, limit int) ([]persist.Change, error) {
	if err := f.down(); err != nil {
		return nil, err
	}
	return f.inner.Changes(ctx, key, life, from, limit)
}

// NextLife implements persist.LifeFinder.
func (f *FaultStore) NextLife(ctx context.Context, key persist.Key, after uint64) (uint64, error) {
	if err := f.down(); err != nil {
		return 0, err
	}
	return persist.NextLife(ctx, f.inner, key, after)
}

// Log implements persist.PersistenceService.
func (f *FaultStore) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	if err := f.down(); err != nil {
		return nil, err
	}
	return f.inner.Log(ctx, after, limit)
}

// Trim implements persist.PersistenceService.
func (f *FaultStore) Trim(ctx context.Context, after, through uint64, limit int) (persist.Trimmed, error) {
	if err := f.down(); err != nil {
		return persist.Trimmed{}, err
	}
	return f.inner.Trim(ctx, after, through, limit)
}

// Rows implements persist.PersistenceService.
func (f *FaultStore) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if err := f.down(); err != nil {
		return nil, err
	}
	return f.inner.Rows(ctx, kind, after, limit)
}

// RowsOf implements persist.PersistenceService.
func (f *FaultStore) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	if err := f.down(); err != nil {
		return nil, err
	}
	return f.inner.RowsOf(ctx, key)
}

// Pods implements persist.PersistenceService.
func (f *FaultStore) Pods(ctx context.Context) ([]string, error) {
	if err := f.down(); err != nil {
		return nil, err
	}
	return f.inner.Pods(ctx)
}

// Position implements persist.PersistenceService.
func (f *FaultStore) Position(ctx context.Context) (uint64, error) {
	if err := f.down(); err != nil {
		return 0, err
	}
	return f.inner.Position(ctx)
}

// OnImports makes Import fail with err, before or after the inner store has
// taken the batch, until remove is called.
func (f *FaultStore) OnImports(err error, taken bool) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := &importFault{err, taken}
	f.imports = fault
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.imports == fault {
			f.imports = nil
		}
	}
}

// Import implements persist.Importer. It is refused when the inner store does
// not.
func (f *FaultStore) Import(ctx context.Context, b persist.Batch) error {
	if err := f.down(); err != nil {
		return err
	}
	inner, ok := f.inner.(persist.Importer)
	if !ok {
		return fmt.Errorf("%w: the store inside cannot import", persist.ErrInvalid)
	}
	f.mu.Lock()
	fault := f.imports
	f.mu.Unlock()
	if fault == nil || fault.taken {
		if err := inner.Import(ctx, b); err != nil || fault == nil {
			return err
		}
	}
	return fmt.Errorf("%w: the test says so", fault.err)
}

// Backup implements persist.Backuper. It fails when the inner store does not.
func (f *FaultStore) Backup(ctx context.Context, w io.Writer) error {
	if err := f.down(); err != nil {
		return err
	}
	inner, ok := f.inner.(persist.Backuper)
	if !ok {
		return fmt.Errorf("the store inside cannot write a backup")
	}
	return inner.Backup(ctx, w)
}

// Close implements persist.PersistenceService.
func (f *FaultStore) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	return f.inner.Close()
}
