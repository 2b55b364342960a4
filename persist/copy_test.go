package persist_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// fill commits random units: creations, changes with and without events, rows,
// deletions, second lives.
func fill(t require.TestingT, store persist.PersistenceService, seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 4))
	type state struct{ life, revision uint64 }
	live := map[persist.Key]state{}
	for i := range n {
		k := persist.Key{Pod: []string{"p", "q", "$pods"}[rng.IntN(3)], Name: fmt.Sprintf("e%d\xff", rng.IntN(8))}
		s := live[k]
		u := persist.Unit{Key: k, Life: s.life, Expect: s.revision}
		if s.revision > 0 && rng.IntN(8) == 0 {
			u.Delete = true
			u.Changes = []persist.Change{{Revision: s.revision + 1, Type: "deleted", Time: time.Unix(int64(i), 7)}}
		} else {
			state := make([]byte, rng.IntN(300))
			u.Record = &snapshot.Record{Revision: s.revision + 1, Reserved: s.revision + 1, Changed: time.Unix(int64(i), 9).UTC(), Schema: uint32(rng.IntN(3)), Codec: "json", State: state}
			for j := range rng.IntN(4) {
				u.Rows = append(u.Rows, persist.RowOp{Kind: []string{"outbox", "view"}[j%2], ID: fmt.Sprint(rng.IntN(9)), Value: make([]byte, rng.IntN(50)), Delete: rng.IntN(3) == 0})
			}
			if rng.IntN(4) > 0 {
				u.Changes = []persist.Change{{Revision: s.revision + 1, Type: "t", Codec: "json", Time: time.Unix(int64(i), 3), Data: state, Event: rng.IntN(3) == 0}}
			}
		}
		o, err := store.Commit(context.Background(), []persist.Unit{u})
		require.NoError(t, err)
		require.NoError(t, o[0].Err)
		live[k] = state{o[0].Life, s.revision + 1}
		if u.Delete {
			delete(live, k)
		}
	}
	_, err := store.Trim(context.Background(), 0, uint64(n/4), n)
	require.NoError(t, err)
}

// flaky is a store that fails every call behind the first n.
type flaky struct {
	persist.PersistenceService
	left *int
}

func (f flaky) call() error {
	*f.left--
	if *f.left < 0 {
		return fmt.Errorf("%w: the test cuts it off", persist.ErrUnavailable)
	}
	return nil
}

func (f flaky) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	if err := f.call(); err != nil {
		return persist.Page{}, err
	}
	o.Limit = min(o.Limit, 3) // many pages
	return f.PersistenceService.List(ctx, pod, o)
}

func (f flaky) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.PersistenceService.Rows(ctx, kind, after, limit)
}

func (f flaky) Log(ctx context.Context, after uint64, limit int) ([]persist.Change, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.PersistenceService.Log(ctx, after, limit)
}

// Import applies a part of the batch before it fails.
func (f flaky) Import(ctx context.Context, b persist.Batch) error {
	im := f.PersistenceService.(persist.Importer)
	if err := f.call(); err != nil {
		_ = im.Import(ctx, persist.Batch{Records: b.Records[:len(b.Records)/2], Rows: b.Rows[len(b.Rows)/2:], Changes: b.Changes[:len(b.Changes)/3]})
		return err
	}
	return im.Import(ctx, b)
}

// whole is everything that a store holds.
func whole(t require.TestingT, s persist.PersistenceService) []any {
	ctx := context.Background()
	var all []any
	pods, err := s.Pods(ctx)
	require.NoError(t, err)
	for _, p := range pods {
		page, err := s.List(ctx, p, persist.ListOptions{Limit: 10_000})
		require.NoError(t, err)
		require.False(t, page.More)
		all = append(all, p, page.Items)
	}
	rows, err := s.Rows(ctx, "", nil, 100_000)
	require.NoError(t, err)
	changes, err := s.Log(ctx, 0, 100_000)
	require.NoError(t, err)
	return append(all, rows, changes)
}

// isEmpty says that a store holds nothing, also no change of a record that is
// gone: a source may have no pods and still a log.
func isEmpty(t require.TestingT, s persist.PersistenceService) bool {
	for _, part := range whole(t, s) {
		if reflect.ValueOf(part).Len() > 0 {
			return false
		}
	}
	return true
}

// TestCopyIsWhole: over random data and random interruptions, between kinds of
// stores, the copy holds what the source does.
func TestCopyIsWhole(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		open := func(kind string) persist.PersistenceService {
			if kind == "memory" {
				return persisttest.NewMemory()
			}
			n++
			s, err := bolt.Open(filepath.Join(dir, fmt.Sprint(n)), bolt.Config{})
			require.NoError(rt, err)
			return s
		}
		kinds := rapid.SampledFrom([]string{"memory", "memory", "memory", "memory", "memory", "memory", "memory", "memory", "bolt"})
		from, to := open(kinds.Draw(rt, "from")), open(kinds.Draw(rt, "to"))
		defer func() { require.NoError(rt, errors.Join(from.Close(), to.Close())) }()
		fill(rt, from, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 150).Draw(rt, "units"))
		attempts := rapid.IntRange(0, 4).Draw(rt, "interruptions")
		for range attempts {
			left := rapid.IntRange(1, 12).Draw(rt, "calls")
			_, err := persist.Copy(ctx, flaky{from, &left}, flaky{to, &left}, persist.CopyOptions{})
			if err == nil {
				break
			}
			require.ErrorIs(rt, err, persist.ErrUnavailable)
		}
		var last persist.CopyProgress
		left := 1 << 30
		if unfinished, err := persist.CopyUnfinished(ctx, to); err == nil && !unfinished && !isEmpty(rt, to) {
			require.Equal(rt, whole(rt, from), whole(rt, to), "an attempt came to the end")
			return
		}
		report, err := persist.Copy(ctx, flaky{from, &left}, flaky{to, &left}, persist.CopyOptions{Progress: func(p persist.CopyProgress) { last = p }})
		require.NoError(rt, err)
		require.Equal(rt, whole(rt, from), whole(rt, to))
		require.Equal(rt, report.Counts, last.Counts)
		before, err := from.Position(ctx)
		require.NoError(rt, err)
		after, err := to.Position(ctx)
		require.NoError(rt, err)
		require.GreaterOrEqual(rt, after, before)
	})
}

func TestCopyRefuses(t *testing.T) {
	ctx := context.Background()
	from, to := persisttest.NewMemory(), persisttest.NewMemory()
	fill(t, from, 1, 100)
	fill(t, to, 2, 5)
	_, err := persist.Copy(ctx, from, to, persist.CopyOptions{})
	require.ErrorIs(t, err, persist.ErrNotEmpty)

	_, err = persist.Copy(ctx, from, struct{ persist.PersistenceService }{persisttest.NewMemory()}, persist.CopyOptions{})
	require.ErrorIs(t, err, persist.ErrNoImporter)

	half, left := persisttest.NewMemory(), 6
	_, err = persist.Copy(ctx, from, flaky{half, &left}, persist.CopyOptions{})
	require.Error(t, err)
	_, err = persist.Copy(ctx, half, persisttest.NewMemory(), persist.CopyOptions{})
	require.ErrorContains(t, err, "not finished")
	unfinished, err := persist.CopyUnfinished(ctx, half)
	require.NoError(t, err)
	require.True(t, unfinished)
	other := persisttest.NewMemory()
	fill(t, other, 3, 100)
	_, err = persist.Copy(ctx, other, half, persist.CopyOptions{})
	require.ErrorIs(t, err, persist.ErrNotEmpty, "another source")
	report, err := persist.Copy(ctx, from, half, persist.CopyOptions{})
	require.NoError(t, err)
	require.True(t, report.Resumed)
	require.Len(t, report.Digest, 64)
	unfinished, err = persist.CopyUnfinished(ctx, half)
	require.NoError(t, err)
	require.False(t, unfinished)

	half, left = persisttest.NewMemory(), 6
	_, err = persist.Copy(ctx, from, flaky{half, &left}, persist.CopyOptions{})
	require.Error(t, err)
	_, err = from.Commit(ctx, []persist.Unit{unit("new", 1)})
	require.NoError(t, err)
	_, err = persist.Copy(ctx, from, half, persist.CopyOptions{})
	require.ErrorIs(t, err, persist.ErrNotEmpty, "the source has changed since")
}

// forgetful loses a row of every import.
type forgetful struct{ *persisttest.Memory }

func (f forgetful) Import(ctx context.Context, b persist.Batch) error {
	if len(b.Changes) > 0 {
		b.Changes = b.Changes[1:]
	}
	return f.Memory.Import(ctx, b)
}

func TestCopyVerifies(t *testing.T) {
	from := persisttest.NewMemory()
	fill(t, from, 1, 100)
	_, err := persist.Copy(context.Background(), from, forgetful{persisttest.NewMemory()}, persist.CopyOptions{})
	require.ErrorIs(t, err, persist.ErrNotCopied)
}

// damageSome damages a record with rows, another's row, and a change.
func damageSome(t *testing.T, m *persisttest.Memory) (record persist.Key, row persist.Row, change persist.Change) {
	ctx := context.Background()
	rows, err := m.Rows(ctx, "", nil, 1000)
	require.NoError(t, err)
	record = rows[0].Key
	for _, r := range rows {
		if r.Key != record {
			row = r
		}
	}
	changes, err := m.Log(ctx, 0, 1000)
	require.NoError(t, err)
	change = changes[len(changes)/2]
	m.Damage(record)
	m.DamageRow(row)
	m.DamageChange(change)
	return record, row, change
}

func TestCopyOfDamagedStore(t *testing.T) {
	ctx := context.Background()
	from := persisttest.NewMemory()
	fill(t, from, 5, 200)
	record, row, change := damageSome(t, from)
	_, err := persist.Copy(ctx, from, persisttest.NewMemory(), persist.CopyOptions{})
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	require.ErrorContains(t, err, record.String(), "it says which")

	to := persisttest.NewMemory()
	for left := 2; ; left++ { // with an interruption at every point
		n := left
		report, err := persist.Copy(ctx, from, flaky{to, &n}, persist.CopyOptions{SkipUnreadable: true})
		if err != nil {
			continue
		}
		require.Equal(t, 3, report.SkippedCount)
		require.Equal(t, persist.UnreadableRecord, report.Skipped[0].Kind)
		require.Equal(t, record, report.Skipped[0].Key)
		require.Equal(t, row.Key, report.Skipped[1].Key)
		require.Equal(t, change.Position, report.Skipped[2].Position)
		break
	}
	_, err = to.Load(ctx, record)
	require.ErrorIs(t, err, persist.ErrNotFound)
	left, err := to.RowsOf(ctx, record)
	require.NoError(t, err)
	require.Empty(t, left, "no row without its entity")
	checked, err := persist.Check(ctx, to, persist.CheckOptions{Pods: []string{"p", "q"}})
	require.NoError(t, err)
	require.True(t, checked.OK(), "%v", checked.Problems)
}
