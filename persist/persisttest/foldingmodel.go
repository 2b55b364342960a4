package persisttest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// runFolding commits random units to a memory.Store and folds what became of
// them into the store, as a commit log does: in batches that have of each key
// the newest alone, with changes filed later than logged, and with batches
// folded again from an earlier one on, as after a crash. Whenever everything is
// folded the two must hold the same.
func runFolding(t *testing.T, fresh func(t *testing.T) Fixture) {
	if testing.Short() {
		t.Skip("the model test takes seconds")
	}
	first := newSuite(t, fresh)
	defer first.end()
	first.folder() // or the test is skipped
	rapid.Check(t, func(rt *rapid.T) {
		fix := fresh(t)
		model := memory.Open(memory.Config{})
		f := &foldingRun{
			modelRun: modelRun{Assertions: require.New(rt), rt: rt, t: t, ctx: context.Background(), store: model},
			fix:      fix, folder: fix.Store.(persist.Folder),
		}
		defer func() { _ = f.folder.Close() }()
		for _, what := range rapid.SliceOfN(rapid.SampledFrom([]string{"commit", "commit", "commit", "fold", "fold", "again", "trim", "reopen"}), 1, 30).Draw(rt, "steps") {
			switch what {
			case "commit":
				f.commit(rt)
			case "fold":
				f.fold(len(f.steps))
			case "again":
				f.again(rt)
			case "trim":
				f.trim(rt)
			case "reopen":
				f.reopen()
			}
		}
		f.fold(len(f.steps))
		f.file()
		f.Equal(everything(f.Assertions, model), everything(f.Assertions, f.folder))
		f.reopen()
		f.Equal(everything(f.Assertions, model), everything(f.Assertions, f.folder))
	})
}

// foldingRun is a run of the model test; its modelRun draws units that fit the
// model.
type foldingRun struct {
	modelRun
	fix    Fixture
	folder persist.Folder

	steps  []foldedUnit // what was committed since the last trim
	folded int          // so many are folded
	filed  int          // and of so many the changes are filed
}

// foldedUnit is a unit that was applied, with its final life and positions.
type foldedUnit struct {
	persist.Unit
	changes []persist.Change
}

func (f *foldingRun) reopen() {
	f.NoError(f.folder.Close())
	f.folder = f.fix.Reopen(f.t).(persist.Folder)
}

// commit commits units to the model and notes what became of them.
func (f *foldingRun) commit(rt *rapid.T) {
	units := make([]persist.Unit, rapid.IntRange(1, 6).Draw(rt, "units"))
	hoped := map[persist.Key]persist.Unit{}
	for i := range units {
		units[i] = f.unit(rt, hoped)
		f.removeRow(rt, &units[i])
	}
	after, err := f.store.Position(f.ctx)
	f.NoError(err)
	outcomes, err := f.store.Commit(f.ctx, units)
	f.NoError(err)
	log, err := f.store.Log(f.ctx, after, 1000)
	f.NoError(err)
	for i, o := range outcomes {
		if o.Err != nil || o.Position == 0 {
			continue
		}
		n := len(units[i].Changes)
		step := foldedUnit{Unit: units[i], changes: log[:n]}
		step.Life, log = o.Life, log[n:]
		f.steps = append(f.steps, step)
	}
}

// removeRow has a unit remove a row that there is, now and then: chance alone
// hardly meets one.
func (f *foldingRun) removeRow(rt *rapid.T, u *persist.Unit) {
	rows, err := f.store.RowsOf(f.ctx, u.Key)
	f.NoError(err)
	if u.Delete || len(rows) == 0 || rapid.Bool().Draw(rt, "keep the rows") {
		return
	}
	r := rapid.SampledFrom(rows).Draw(rt, "removed row")
	u.Rows = append(u.Rows, persist.RowOp{Kind: r.Kind, ID: r.ID, Delete: true})
}

// batch is what steps come to: of each key the newest alone.
func batch(steps []foldedUnit) (b persist.Fold) {
	deleted := map[persist.Key]bool{}
	records := map[persist.Key]persist.Stored{}
	rows := map[rowName]*persist.RowOp{}
	for _, s := range steps {
		if s.Delete {
			deleted[s.Key] = true
			delete(records, s.Key)
			for name := range rows {
				if name.Key == s.Key {
					delete(rows, name)
				}
			}
		}
		if s.Record != nil {
			r := *s.Record
			r.Life = s.Life
			records[s.Key] = persist.Stored{Key: s.Key, Record: r}
		}
		for i := range s.Rows {
			rows[rowName{s.Key, s.Rows[i].Kind, s.Rows[i].ID}] = &s.Rows[i]
		}
		b.Changes = append(b.Changes, s.changes...)
	}
	for k := range deleted {
		b.Deleted = append(b.Deleted, k)
	}
	for _, r := range records {
		b.Records = append(b.Records, r)
	}
	for name, op := range rows {
		r := persist.Row{Kind: name.kind, Key: name.Key, ID: name.id}
		if op.Delete {
			b.RowsGone = append(b.RowsGone, r)
			continue
		}
		r.Value = op.Value
		b.Rows = append(b.Rows, r)
	}
	slices.SortFunc(b.Deleted, func(x, y persist.Key) int { return strings.Compare(x.String(), y.String()) })
	slices.SortFunc(b.Records, func(x, y persist.Stored) int { return strings.Compare(x.Key.String(), y.Key.String()) })
	return b
}

// fold folds what was committed up to a step, in one batch or in several, and
// files some of the changes that are in the log by then.
func (f *foldingRun) fold(to int) {
	for f.folded < to {
		part := rapid.IntRange(1, to-f.folded).Draw(f.rt, "part")
		b := batch(f.steps[f.folded : f.folded+part])
		f.folded += part
		upTo := rapid.IntRange(min(f.filed, f.folded), f.folded).Draw(f.rt, "filed")
		if upTo > f.filed {
			b.Filed = changesOf(f.steps[f.filed:upTo])
			f.filed = upTo
		}
		b.Mark = persist.Mark{Log: 1, Through: uint64(f.folded)}
		if last, err := f.store.Position(f.ctx); f.folded == len(f.steps) && err == nil {
			b.Position = last
		}
		f.NoError(f.folder.Fold(f.ctx, b))
	}
}

// file files what is left to be.
func (f *foldingRun) file() {
	f.NoError(f.folder.Fold(f.ctx, persist.Fold{Filed: changesOf(f.steps[f.filed:f.folded])}))
	f.filed = f.folded
}

// again goes back to an earlier step and folds everything from there on anew.
func (f *foldingRun) again(rt *rapid.T) {
	to := f.folded
	f.folded = rapid.IntRange(0, f.folded).Draw(rt, "back to")
	f.filed = min(f.filed, rapid.IntRange(0, f.folded).Draw(rt, "and filed to"))
	f.fold(to)
}

// trim folds everything and trims both alike; what is to be filed may be left.
func (f *foldingRun) trim(rt *rapid.T) {
	f.fold(len(f.steps))
	last, err := f.store.Position(f.ctx)
	f.NoError(err)
	through := uint64(rapid.IntRange(0, int(last)).Draw(rt, "through"))
	if rapid.Bool().Draw(rt, "filed before") {
		f.file()
	}
	want, err := f.store.Trim(f.ctx, 0, through, 1000)
	f.NoError(err)
	got, err := f.folder.Trim(f.ctx, 0, through, 1000)
	f.NoError(err)
	f.Equal(want.Dropped, got.Dropped)
	f.steps = f.steps[f.filed:]
	f.filed, f.folded = 0, len(f.steps)
	f.file()
	f.steps, f.filed, f.folded = nil, 0, 0
}

func changesOf(steps []foldedUnit) (changes []persist.Change) {
	for _, s := range steps {
		for _, c := range s.changes {
			c.Data = nil
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b persist.Change) int { return cmp.Compare(a.Position, b.Position) })
	return changes
}

// all is what a store holds.
type all struct {
	records  map[persist.Key]persist.Item
	heads    []persist.Head
	changes  map[persist.Key][]persist.Change
	log      []persist.Change
	rows     []persist.Row
	position uint64
}

func everything(a *require.Assertions, s persist.Folder) all {
	ctx := context.Background()
	out := all{records: map[persist.Key]persist.Item{}, changes: map[persist.Key][]persist.Change{}}
	var keys []persist.Key
	for _, pod := range modelPods {
		page, err := s.List(ctx, pod, persist.ListOptions{Limit: 1000})
		a.NoError(err)
		for _, item := range page.Items {
			out.records[persist.Key{Pod: pod, Name: item.Name}] = item
		}
		for _, name := range modelNames {
			k := persist.Key{Pod: pod, Name: name}
			keys = append(keys, k)
			changes, err := s.Changes(ctx, k, 0, 0, 1000)
			a.NoError(err)
			out.changes[k] = dataOrNil(changes)
		}
	}
	var err error
	out.heads, err = s.Heads(ctx, keys)
	a.NoError(err)
	out.log, err = s.Log(ctx, 0, 10_000)
	a.NoError(err)
	out.log = dataOrNil(out.log)
	out.rows, err = s.Rows(ctx, "", nil, 10_000)
	a.NoError(err)
	out.position, err = s.Position(ctx)
	a.NoError(err)
	return out
}
