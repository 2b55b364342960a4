package persist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// TestJobsOutliveTheirManager: they are given out again, with higher attempts
// where they had begun, in their order; and what was at its last attempt is
// given up.
func TestJobsOutliveTheirManager(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Hour}
	ids := map[int]string{}
	again := errands{Slots: 2, MaxAttempts: 3}
	ref := b.manager(o, again)
	for n := range 5 {
		ids[n] = b.give(ref, errand{N: n})
	}
	for attempt := range 3 {
		b.exec.RunFor(time.Second)
		require.Equal(t, []begun{{ids[0], 0, attempt + 1}, {ids[1], 1, attempt + 1}}, o.begun)
		o.begun = nil
		ref.Stop()
		require.NoError(t, b.sys.AwaitStop(context.Background(), ref))
		require.Len(t, b.jobRows(), 5)
		ref = b.manager(o, again)
	}
	o.took = time.Second
	ids[5] = b.give(ref, errand{N: 5})
	b.exec.RunFor(time.Minute)
	require.Equal(t, []begun{{ids[2], 2, 1}, {ids[3], 3, 1}, {ids[4], 4, 1}, {ids[5], 5, 1}}, o.begun)
	require.Empty(t, b.jobRows())
	lost := map[string]bool{}
	for _, z := range o.letters {
		lost[z.Message.Payload.(persist.Job[errand]).ID] = true
		require.ErrorContains(t, z.Reason, "the last attempt did not end before the manager did")
	}
	require.Equal(t, map[string]bool{ids[0]: true, ids[1]: true}, lost)
	seen := map[string]bool{}
	for _, id := range ids {
		require.False(t, seen[id])
		seen[id] = true
	}
	b.close()
}

// TestAStoppedManagerAnswersEveryAsk: whatever its job is doing.
func TestAStoppedManagerAnswersEveryAsk(t *testing.T) {
	unknown := 0
	for seed := range uint64(100) {
		b := newBench(t, seed, persist.CommitterConfig{})
		o := &office{}
		ref := b.manager(o, errands{Slots: 2})
		if seed%4 > 0 {
			b.exec.RunFor(time.Second)
		}
		ends := map[int]error{}
		for n := range 10 {
			b.offer(ref, errand{N: n}, func(_ string, err error) { ends[n] = err })
			if n == 5 {
				b.exec.RunFor(time.Duration(seed%5) * time.Millisecond)
				ref.Stop()
			}
		}
		b.exec.RunFor(time.Minute)
		require.Len(t, ends, 10)
		for n := range 10 {
			if ends[n] != nil {
				require.ErrorIs(t, ends[n], actor.ErrStopped)
				if errors.Is(ends[n], persist.ErrUnknown) {
					unknown++
				}
			}
		}
		b.manager(o, errands{})
		b.exec.RunFor(time.Minute)
		for n := range 10 {
			if ends[n] == nil {
				require.NotEmpty(t, o.attempts(n))
			}
		}
		require.Empty(t, b.jobRows())
		b.close()
	}
	require.NotZero(t, unknown)
}

// TestTheLastManagerHasTheQueue: an earlier one, of another process perhaps,
// stops when it finds out, and what it did not take is answered.
func TestTheLastManagerHasTheQueue(t *testing.T) {
	for seed := range uint64(50) {
		b := newBench(t, seed, persist.CommitterConfig{})
		o := &office{took: time.Hour}
		first := b.manager(o, errands{Slots: 2})
		b.give(first, errand{N: 0})
		b.give(first, errand{N: 1})
		b.exec.RunFor(time.Second)
		second := b.manager(o, errands{Slots: 3})
		accepted, refused := 0, 0
		for n := range 4 {
			b.offer(first, errand{N: 2 + n}, func(_ string, err error) {
				if err == nil {
					accepted++
					return
				}
				refused++
				require.True(t, errors.Is(err, persist.ErrConflict) || errors.Is(err, persist.ErrUnknown) || errors.Is(err, actor.ErrStopped), "%v", err)
			})
		}
		b.exec.RunFor(10 * time.Second)
		require.Equal(t, 4, accepted+refused, "every ask ends")
		require.NoError(t, second.Tell(errand{N: 100}))
		if refused > 0 {
			require.NoError(t, b.sys.AwaitStop(context.Background(), first))
		}
		o.took = 0
		b.exec.RunFor(3 * time.Hour)
		require.Contains(t, o.numbers(), 100)
		require.Equal(t, []int{1, 2}, o.attempts(0), "seed %d", seed)
		n := len(sorted(o.numbers()))
		require.Equal(t, 3+accepted, n, "seed %d", seed)
		b.close()
	}
}

// pagedStore notes how many rows are asked for at a time.
type pagedStore struct {
	persist.PersistenceService
	pages, most int
}

func (s *pagedStore) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	rows, err := s.PersistenceService.Rows(ctx, kind, after, limit)
	s.pages++
	s.most = max(s.most, len(rows))
	return rows, err
}

func (s *pagedStore) RowsOf(context.Context, persist.Key) ([]persist.Row, error) {
	return nil, errors.New("all rows at once")
}

// TestJobsAreReadInPages: those of the queue and no others, whatever is beside
// them.
func TestJobsAreReadInPages(t *testing.T) {
	for _, waiting := range []int{0, 1, 31, 32, 33, 3000} {
		b := newBench(t, 1, persist.CommitterConfig{})
		o, none := &office{took: time.Hour}, &office{took: time.Hour}
		for i, name := range []string{"a", "b", "c"} {
			ref := b.manager(none, errands{Name: name, Slots: 1})
			for n := range waiting {
				b.tell(ref, errand{N: i*100_000 + n})
			}
			b.exec.RunFor(time.Minute)
			ref.Stop()
		}
		b.exec.RunFor(time.Minute)
		s := &pagedStore{PersistenceService: b.store}
		b.committer = persist.NewCommitter(b.sys, s, persist.CommitterConfig{})
		o.took = 0
		b.manager(o, errands{Name: "b", Slots: 50})
		b.exec.RunFor(time.Hour)
		require.Len(t, o.begun, waiting)
		for i, g := range o.begun {
			require.Less(t, max(100_000+i-g.n, g.n-100_000-i), 50)
		}
		require.LessOrEqual(t, s.most, 1024)
		require.Len(t, b.jobRows(), 2*waiting)
		b.close()
	}
}

// TestUnreadableJobsHoldNobodyUp: they stay in the store.
func TestUnreadableJobsHoldNobodyUp(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	memory := persisttest.NewMemory()
	b.store = persisttest.NewFaultStore(memory)
	b.committer = persist.NewCommitter(b.sys, b.store, persist.CommitterConfig{})
	o := &office{took: time.Hour}
	ref := b.manager(o, errands{Slots: 1, Schema: 3})
	for n := range 6 {
		b.give(ref, errand{N: n})
	}
	ref.Stop()
	b.exec.RunFor(time.Second)
	rows := b.jobRows()
	memory.DamageRow(rows[1])
	record, err := snapshot.Parse(rows[2].Value)
	require.NoError(t, err)
	record.Schema = 4
	newer := record.Append(nil)
	record.Schema, record.Codec = 3, "another"
	queue, err := b.store.Load(context.Background(), rows[2].Key)
	require.NoError(t, err)
	_, err = b.store.Commit(context.Background(), []persist.Unit{{Key: rows[2].Key, Life: queue.Life, Expect: queue.Revision, Rows: []persist.RowOp{
		{Kind: "job", ID: rows[2].ID, Value: newer}, {Kind: "job", ID: rows[3].ID, Value: record.Append(nil)}, {Kind: "job", ID: rows[4].ID, Value: []byte("no job")},
	}}})
	require.NoError(t, err)

	o.took, o.begun = 0, nil
	ref = b.manager(o, errands{Slots: 1, Schema: 3})
	b.give(ref, errand{N: 6})
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{0, 5, 6}, o.numbers())
	require.Empty(t, o.letters)
	var left []string
	for _, r := range b.jobRows() {
		left = append(left, r.ID)
	}
	require.Equal(t, []string{rows[1].ID, rows[2].ID, rows[3].ID, rows[4].ID}, left)
	b.close()
}

// TestUnreadableJobsWaitForAnotherVersion: a program that cannot read a job uses
// up none of its attempts, however often it is started.
func TestUnreadableJobsWaitForAnotherVersion(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Hour}
	run := func(m errands) {
		ref := b.manager(o, m)
		b.exec.RunFor(time.Minute)
		ref.Stop()
		b.exec.RunFor(time.Minute)
	}
	ref := b.manager(o, errands{Slots: 1, Schema: 2})
	for n := range 3 {
		b.give(ref, errand{N: n})
	}
	ref.Stop()
	b.exec.RunFor(time.Minute)
	o.begun, o.took = nil, 0
	for range 4 {
		run(errands{Schema: 1, MaxAttempts: 3})
	}
	require.Empty(t, o.begun)
	require.Len(t, b.jobRows(), 3)
	run(errands{Schema: 2, MaxAttempts: 3})
	require.Equal(t, []int{2}, o.attempts(0))
	require.Equal(t, []int{1}, o.attempts(1))
	require.Equal(t, []int{1}, o.attempts(2))
	require.Empty(t, o.letters)
	require.Empty(t, b.jobRows())
	b.close()
}

// TestJobsOfEarlierVersions: they are upgraded, and read in the codec that they
// were written with.
func TestJobsOfEarlierVersions(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Hour}
	ref := b.manager(o, errands{Slots: 1})
	b.give(ref, errand{N: 1})
	b.give(ref, errand{N: 2})
	ref.Stop()
	b.exec.RunFor(time.Second)
	o.begun, o.took = nil, 0
	ref = b.manager(o, errands{Slots: 1, Codec: snapshot.JSON(), Schema: 1, Upgrades: snapshot.Upgrades{0: func(state map[string]any) error {
		state["n"] = int64(40)
		return nil
	}}})
	b.give(ref, errand{N: 3})
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{40, 40, 3}, o.numbers())
	b.close()
}
