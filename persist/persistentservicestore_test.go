package persist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// TestJobsAreDurableBeforeTheyAreAccepted: and their attempts before they begin.
func TestJobsAreDurableBeforeTheyAreAccepted(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Second}
	attempts := func() (all []uint64) {
		for _, r := range b.jobRows() {
			row, err := snapshot.Parse(r.Value)
			require.NoError(t, err)
			all = append(all, row.Revision)
		}
		return all
	}
	worker := actor.PropsOf(func() actor.Actor {
		return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
			if _, ok := msg.(persist.Job[errand]); ok {
				require.EqualValues(t, 1, attempts()[0], "the attempt is counted before it begins")
			}
			return clerk{o}.Receive(ctx, msg)
		})
	})
	ref := b.manager(o, errands{Slots: 1, Worker: worker})
	accepted := 0
	for n := range 3 {
		b.offer(ref, errand{N: n}, func(id string, err error) {
			require.NoError(t, err)
			accepted++
			require.GreaterOrEqual(t, len(b.jobRows()), accepted)
		})
	}
	b.exec.RunFor(500 * time.Millisecond)
	require.Equal(t, 3, accepted)
	require.Equal(t, []uint64{1, 0, 0}, attempts())
	b.exec.RunFor(time.Second)
	require.Equal(t, []uint64{1, 0}, attempts(), "what is done is removed")
	b.exec.RunFor(time.Minute)
	require.Len(t, o.begun, 3)
	b.close()
}

// TestManyJobsGoInOneCommit: and each is one row, of a unit that has nothing of
// the others.
func TestManyJobsGoInOneCommit(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Hour}
	ref := b.manager(o, errands{Slots: 1})
	b.give(ref, errand{N: -1})
	figures, commits := b.committer.Figures(), b.store.Commits()
	accepted := 0
	for n := range 1000 {
		b.offer(ref, errand{N: 100 + n%100}, func(_ string, err error) {
			require.NoError(t, err)
			accepted++
		})
	}
	b.exec.RunFor(10 * time.Second)
	require.Equal(t, 1000, accepted)
	after := b.committer.Figures()
	require.LessOrEqual(t, b.store.Commits()-commits, 3, "what comes while a commit is under way goes with the next")
	require.EqualValues(t, 1000, after.Units-figures.Units)
	each := (after.Bytes - figures.Bytes) / 1000
	require.Less(t, each, uint64(300))

	before := b.committer.Figures()
	b.give(ref, errand{N: 100})
	require.EqualValues(t, 1, b.committer.Figures().Units-before.Units)
	require.InDelta(t, each, b.committer.Figures().Bytes-before.Bytes, 8, "a thousand that wait do not make it dearer")
	b.close()
}

// TestAFailingStoreLosesNoJobs: whatever a commit suffers, what is accepted is
// done and every ask ends.
func TestAFailingStoreLosesNoJobs(t *testing.T) {
	faults := []persisttest.Fault{
		persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost,
		persisttest.RefuseUnit, persisttest.ConflictUnit, persisttest.RefuseGroup,
	}
	for seed := range uint64(300) {
		b := newBench(t, seed, persist.CommitterConfig{MaxUnits: 1 + int(seed%7), MinBackoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond})
		o := &office{took: 5 * time.Millisecond}
		fault := faults[seed%6]
		for range 6 {
			b.store.OnCommit(1+int(b.sys.Uint64()%40), fault)
		}
		b.store.FailReopens(int(seed % 3))
		ref := b.manager(o, errands{Slots: 2, MaxAttempts: 100})
		ends := map[int]error{}
		for n := range 30 {
			b.offer(ref, errand{N: n}, func(_ string, err error) { ends[n] = err })
			b.exec.RunFor(time.Duration(b.sys.Uint64()%8) * time.Millisecond)
		}
		b.exec.RunFor(time.Hour)
		require.Len(t, ends, 30, "seed %d: every ask ends", seed)
		refused := 0
		for n := range 30 {
			switch attempts := o.attempts(n); {
			case (fault == persisttest.RefuseUnit || fault == persisttest.RefuseGroup) && slices.Contains(o.lost(), n):
				require.NoError(t, ends[n])
				require.Empty(t, attempts, "seed %d: the store refused to count its attempt", seed)
			case ends[n] == nil:
				require.Equal(t, []int{1}, attempts, "seed %d: errand %d", seed, n)
			case errors.Is(ends[n], persist.ErrUnknown):
				refused++
				require.Empty(t, attempts, "it is withdrawn")
			default:
				refused++
				require.Empty(t, attempts, "seed %d: errand %d: %v", seed, n, ends[n])
			}
		}
		require.Less(t, refused, 30)
		if fault == persisttest.ConflictUnit {
			require.Zero(t, refused, "seed %d: the queue was its own all the time", seed)
		}
		require.Empty(t, b.jobRows(), "seed %d", seed)
		require.Zero(t, b.committer.Figures().Queued)
		b.close()
	}
}

// TestABadJobHarmsItselfAlone: also when it is in one commit with others.
func TestABadJobHarmsItselfAlone(t *testing.T) {
	for seed := range uint64(50) {
		b := newBench(t, seed, persist.CommitterConfig{MinBackoff: time.Millisecond})
		o := &office{}
		b.store.OnUnits(func(u persist.Unit) bool {
			return len(u.Rows) == 1 && strings.Contains(string(u.Rows[0].Value), "a bad way")
		}, persisttest.RefuseUnit)
		ref := b.manager(o, errands{Slots: 2})
		ends := map[int]error{}
		for n := range 20 {
			e := errand{N: n}
			if n == 7 {
				e.Way = "a bad way"
			}
			b.offer(ref, e, func(_ string, err error) { ends[n] = err })
		}
		b.exec.RunFor(time.Minute)
		for n := range 20 {
			if n == 7 {
				require.ErrorIs(t, ends[n], persist.ErrInvalid)
				continue
			}
			require.NoError(t, ends[n])
			require.Equal(t, []int{1}, o.attempts(n))
		}
		b.close()
	}
}

// TestAJobThatCannotBeginIsGivenUp: where the store never takes the row that
// counts its attempt.
func TestAJobThatCannotBeginIsGivenUp(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Second}
	b.store.OnUnits(func(u persist.Unit) bool {
		if len(u.Rows) == 0 || !strings.Contains(string(u.Rows[0].Value), "a bad way") {
			return false
		}
		row, err := snapshot.Parse(u.Rows[0].Value)
		return err == nil && row.Revision > 0
	}, persisttest.RefuseUnit)
	ref := b.manager(o, errands{Slots: 1})
	b.give(ref, errand{N: 1})
	b.give(ref, errand{N: 2, Way: "a bad way"})
	b.give(ref, errand{N: 3})
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{1, 3}, o.numbers())
	require.Equal(t, []int{2}, o.lost())
	require.ErrorIs(t, o.letters[0].Reason, persist.ErrInvalid)
	require.Empty(t, b.jobRows())
	b.close()
}

// TestJobsWaitForTheStore: a manager that starts while the store is down takes
// what comes when it is back.
func TestJobsWaitForTheStore(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{}
	b.store.Break()
	ref := b.manager(o, errands{})
	var ends []error
	b.offer(ref, errand{N: 1}, func(_ string, err error) { ends = append(ends, err) })
	b.exec.RunFor(time.Second)
	require.Empty(t, ends)
	require.NoError(t, b.store.Reopen(context.Background()))
	b.exec.RunFor(time.Minute)
	require.Equal(t, []error{nil}, ends)
	require.Equal(t, []int{1}, o.numbers())
	b.close()
}
