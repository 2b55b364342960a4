package persist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// errand is a job of the tests.
type errand struct {
	N     int    `json:"n"`
	Way   string `json:"way"` // how its worker ends; "" is well
	Until int    `json:"until"`
}

// begun is an attempt that a worker has begun.
type begun struct {
	id         string
	n, attempt int
}

// office is what the workers of a test do, and what they have done. It outlives
// systems.
type office struct {
	begun    []begun
	now, max int // workers
	took     time.Duration
	letters  []actor.ZombieMsg
}

// clerk is a worker.
type clerk struct{ office *office }

type wellDone struct{}

func (c clerk) PreStart(*actor.Context) error {
	c.office.now++
	c.office.max = max(c.office.max, c.office.now)
	return nil
}

func (c clerk) PostStop(*actor.Context) { c.office.now-- }

func (c clerk) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case persist.Job[errand]:
		c.office.begun = append(c.office.begun, begun{m.ID, m.Payload.N, m.Attempt})
		if m.Payload.Until == 0 || m.Attempt < m.Payload.Until {
			switch m.Payload.Way {
			case "fails":
				return errors.New("on purpose")
			case "panics":
				panic("on purpose")
			case "is stopped":
				ctx.Self().Stop()
				return nil
			case "is poisoned":
				return ctx.Self().Tell(actor.PoisonPill{})
			case "hangs":
				return nil
			}
		}
		ctx.ScheduleOnce(c.office.took, ctx.Self(), wellDone{})
	case wellDone:
		ctx.StopSelf()
	}
	return nil
}

func (o *office) worker() actor.Props {
	return actor.PropsOf(func() actor.Actor { return clerk{o} })
}

// numbers returns those of the errands that were begun.
func (o *office) numbers() []int {
	var out []int
	for _, b := range o.begun {
		out = append(out, b.n)
	}
	return out
}

// lost returns the numbers of the errands that were given up.
func (o *office) lost() []int {
	var out []int
	for _, z := range o.letters {
		if j, ok := z.Message.Payload.(persist.Job[errand]); ok {
			out = append(out, j.Payload.N)
		}
	}
	return out
}

// attempts returns those at one errand.
func (o *office) attempts(n int) []int {
	var out []int
	for _, b := range o.begun {
		if b.n == n {
			out = append(out, b.attempt)
		}
	}
	return out
}

type errands = persist.PersistentServiceManager[errand]

// manager starts a manager of errands.
func (b *bench) manager(o *office, m errands) *actor.Ref {
	b.t.Helper()
	if m.Name == "" {
		m.Name = "errands"
	}
	if m.Worker.New == nil && m.Work == nil {
		m.Worker = o.worker()
	}
	if m.Committer == nil {
		m.Committer = b.committer
	}
	b.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { o.letters = append(o.letters, z) })
	ref, err := b.sys.Spawn("", m.Props())
	require.NoError(b.t, err)
	return ref
}

func (b *bench) give(ref *actor.Ref, e errand) string {
	b.t.Helper()
	id := ask[persist.JobAccepted](b, ref, e).ID
	require.NotEmpty(b.t, id)
	return id
}

// offer asks without waiting.
func (b *bench) offer(ref *actor.Ref, e errand, answered func(id string, err error)) {
	b.t.Helper()
	reply := b.sys.OnReply(func(v any, err error) {
		a, _ := v.(persist.JobAccepted)
		answered(a.ID, err)
	})
	require.NoError(b.t, ref.Post(actor.Message{Payload: e, Reply: reply}))
}

// jobRows returns the rows that the store has of all queues.
func (b *bench) jobRows() []persist.Row {
	b.t.Helper()
	rows, err := b.store.Rows(context.Background(), "job", nil, 1<<20)
	require.NoError(b.t, err)
	return rows
}

// TestJobsHaveWorkersOfTheirOwn: so many at a time, in order, and nothing is
// left of them.
func TestJobsHaveWorkersOfTheirOwn(t *testing.T) {
	for seed := range uint64(50) {
		b := newBench(t, seed, persist.CommitterConfig{})
		o := &office{took: time.Second}
		ref := b.manager(o, errands{Slots: 3})
		ids := map[string]bool{}
		for n := range 20 {
			b.offer(ref, errand{N: n}, func(id string, err error) {
				require.NoError(t, err)
				ids[id] = true
			})
		}
		b.exec.RunFor(500 * time.Millisecond)
		require.Len(t, ids, 20, "they are accepted before they are done")
		require.Len(t, o.begun, 3)
		require.Len(t, b.jobRows(), 20)
		b.exec.RunFor(time.Minute)
		require.Equal(t, 3, o.max)
		require.Zero(t, o.now)
		require.Len(t, o.begun, 20)
		for i, n := range o.numbers() {
			require.Less(t, max(i-n, n-i), 3, "seed %d: they begin in order, but for those that begin at once", seed)
		}
		for _, g := range o.begun {
			require.True(t, ids[g.id])
			require.Equal(t, 1, g.attempt)
		}
		require.Empty(t, b.jobRows())
		require.Empty(t, o.letters)
		b.close()
	}
}

// TestJobsBeginInOrder: exactly, where there is one slot.
func TestJobsBeginInOrder(t *testing.T) {
	for seed := range uint64(50) {
		b := newBench(t, seed, persist.CommitterConfig{})
		o := &office{took: time.Duration(seed%4) * time.Millisecond}
		ref := b.manager(o, errands{Slots: 1})
		var want []int
		for n := range 50 {
			b.tell(ref, errand{N: n})
			want = append(want, n)
			b.exec.RunFor(time.Duration(b.sys.Uint64()%4) * time.Millisecond)
		}
		b.exec.RunFor(time.Minute)
		require.Equal(t, want, o.numbers(), "seed %d", seed)
		b.close()
	}
}

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

// TestFailedJobsAreTriedAgain: with growing pauses and attempts, however their
// worker ended, and then given up for all to see.
func TestFailedJobsAreTriedAgain(t *testing.T) {
	for way, want := range map[string]string{
		"fails": "on purpose", "panics": "on purpose", "is stopped": "did not stop itself: stopped",
		"is poisoned": "did not stop itself: poison pill", "hangs": "longer than 10s",
	} {
		t.Run(way, func(t *testing.T) {
			b := newBench(t, 3, persist.CommitterConfig{})
			o := &office{}
			ref := b.manager(o, errands{Slots: 1, MaxAttempts: 4, MinBackoff: time.Minute, MaxBackoff: 3 * time.Minute, Timeout: 10 * time.Second})
			id := b.give(ref, errand{N: 1, Way: way})
			b.give(ref, errand{N: 2, Way: way, Until: 3})
			b.give(ref, errand{N: 3})
			b.exec.RunFor(55 * time.Second)
			require.Equal(t, []int{1, 2, 3}, o.numbers(), "a job that failed holds nobody up")
			b.exec.RunFor(65 * time.Second)
			require.Equal(t, []int{1, 2}, o.attempts(1))
			b.exec.RunFor(140 * time.Second) // two minutes, and time for hanging
			require.Equal(t, []int{1, 2, 3}, o.attempts(1))
			require.Empty(t, o.letters)
			require.Len(t, b.jobRows(), 1)
			b.exec.RunFor(time.Hour)
			require.Equal(t, []int{1, 2, 3, 4}, o.attempts(1))
			require.Equal(t, []int{1, 2, 3}, o.attempts(2), "the third went well")
			require.Equal(t, []int{1}, o.attempts(3))
			require.Empty(t, b.jobRows())

			require.Len(t, o.letters, 1)
			require.ErrorContains(t, o.letters[0].Reason, "$queues/errands: job "+id+" is given up after 4 attempts: ")
			require.ErrorContains(t, o.letters[0].Reason, want)
			lost := o.letters[0].Message.Payload.(persist.Job[errand])
			require.Equal(t, id, lost.ID)
			require.Equal(t, 4, lost.Attempt)
			require.Equal(t, errand{N: 1, Way: way}, lost.Payload)
			b.close()
		})
	}
}

// TestJobsThatAreFunctions: Work may block, and fails as workers do.
func TestJobsThatAreFunctions(t *testing.T) {
	b := newBench(t, 3, persist.CommitterConfig{})
	o := &office{}
	ref := b.manager(o, errands{Slots: 2, MaxAttempts: 3, Timeout: time.Minute, Work: func(ctx context.Context, j persist.Job[errand]) error {
		o.now++
		defer func() { o.now-- }()
		o.max = max(o.max, o.now)
		o.begun = append(o.begun, begun{j.ID, j.Payload.N, j.Attempt})
		switch j.Payload.Way {
		case "fails":
			return errors.New("on purpose")
		case "panics":
			panic("on purpose")
		case "hangs":
			return b.sys.Sleep(ctx, time.Hour)
		}
		return b.sys.Sleep(ctx, time.Second)
	}})
	for n, way := range []string{"", "fails", "panics", "hangs", ""} {
		b.give(ref, errand{N: n, Way: way})
	}
	b.exec.RunFor(time.Hour)
	for n, want := range [][]int{{1}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1}} {
		require.Equal(t, want, o.attempts(n))
	}
	require.Equal(t, []int{1, 2, 3}, sorted(o.lost()))
	require.Equal(t, 2, o.max)
	require.Zero(t, o.now, "work ends with its worker")
	require.Empty(t, b.jobRows())
	b.close()
}

// TestJobsAreBounded: more than may wait are refused, and room comes back.
func TestJobsAreBounded(t *testing.T) {
	for seed := range uint64(20) {
		b := newBench(t, seed, persist.CommitterConfig{})
		o := &office{took: time.Second}
		ref := b.manager(o, errands{Slots: 2, Queue: 3})
		accepted, refused := 0, 0
		for n := range 10 {
			b.offer(ref, errand{N: n}, func(_ string, err error) {
				if err == nil {
					accepted++
					return
				}
				refused++
				require.ErrorIs(t, err, actor.ErrMailboxFull)
				require.ErrorContains(t, err, "$queues/errands")
			})
		}
		b.exec.RunFor(500 * time.Millisecond)
		require.Equal(t, 5, accepted, "two that begin and three that wait")
		require.Equal(t, 5, refused)
		b.exec.RunFor(time.Minute)
		require.Equal(t, []int{0, 1, 2, 3, 4}, sorted(o.numbers()))
		b.give(ref, errand{N: 10, Way: "fails"})
		b.exec.RunFor(time.Millisecond * 100)
		for n := range 4 { // the one that failed waits, too
			b.give(ref, errand{N: 11 + n})
		}
		_, err := ref.Ask(context.Background(), errand{N: 15})
		require.ErrorIs(t, err, actor.ErrMailboxFull)
		b.close()
	}
}

// TestJobsWithoutAQueue: there may be none that waits.
func TestJobsWithoutAQueue(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Second}
	ref := b.manager(o, errands{Slots: 2, Queue: -1})
	b.give(ref, errand{N: 1})
	b.give(ref, errand{N: 2, Way: "fails", Until: 2})
	b.exec.RunFor(10 * time.Millisecond)
	b.give(ref, errand{N: 3}) // in the place of the one that waits for its second attempt
	_, err := ref.Ask(context.Background(), errand{N: 4})
	var full *actor.FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, ref, full.Ref)
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{1, 2, 3, 2}, o.numbers())
	b.close()
}

// TestPausedJobsWait: they are taken, and none begins until it goes on.
func TestPausedJobsWait(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	o := &office{took: time.Second}
	ref := b.manager(o, errands{Slots: 2, Queue: 5})
	state := func(msg any) patterns.State { return ask[patterns.State](b, ref, msg) }
	require.Equal(t, patterns.State{Capacity: 5}, state(patterns.Status{}))
	b.give(ref, errand{N: 1})
	b.give(ref, errand{N: 2, Way: "fails", Until: 2})
	b.exec.RunFor(100 * time.Millisecond)
	require.Equal(t, patterns.State{Paused: true, Capacity: 5, Active: 1, Waiting: 1, Passed: 2}, state(patterns.Pause{}))
	for n := range 4 {
		b.give(ref, errand{N: 3 + n})
	}
	_, err := ref.Ask(context.Background(), errand{N: 7})
	require.ErrorIs(t, err, actor.ErrMailboxFull)
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{1, 2}, o.numbers())
	require.Len(t, b.jobRows(), 5, "what had begun has ended")
	require.Equal(t, patterns.State{Paused: true, Capacity: 5, Waiting: 5, Passed: 2, Refused: 1}, state(patterns.Status{}))
	b.tell(ref, patterns.Status{}, patterns.Pause{}) // nobody wants to know
	require.False(t, state(patterns.Continue{}).Paused)
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{1, 2, 2, 3, 4, 5, 6}, o.numbers())
	require.Equal(t, patterns.State{Capacity: 5, Passed: 7, Refused: 1}, state(patterns.Status{}))
	require.Len(t, o.letters, 1)
	b.close()
}

func sorted(n []int) []int {
	seen := map[int]bool{}
	for _, i := range n {
		seen[i] = true
	}
	var out []int
	for i := range 1 << 10 {
		if seen[i] {
			out = append(out, i)
		}
	}
	return out
}

// TestSendersHearOfTheirJobs: also those that do not ask.
func TestSendersHearOfTheirJobs(t *testing.T) {
	b := newBench(t, 3, persist.CommitterConfig{})
	o := &office{}
	ref := b.manager(o, errands{})
	var got []any
	sender, err := b.sys.Spawn("sender", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if e, ok := msg.(errand); ok {
			return ctx.Tell(ref, e)
		}
		require.Equal(t, ref, ctx.Sender())
		got = append(got, msg)
		return nil
	}))
	require.NoError(t, err)
	b.tell(sender, errand{N: 1})
	b.exec.RunFor(time.Second)
	require.IsType(t, persist.JobAccepted{}, got[0])
	stop := b.store.OnUnits(func(persist.Unit) bool { return true }, persisttest.FailBefore)
	b.tell(sender, errand{N: 2})
	b.exec.RunFor(time.Second)
	require.Len(t, got, 2)
	refused := got[1].(persist.JobRefused)
	require.Equal(t, errand{N: 2}, refused.Payload)
	require.ErrorIs(t, refused.Err, persist.ErrUnavailable)
	require.Len(t, o.letters, 1, "and a dead letter of it")
	require.Equal(t, sender, o.letters[0].Message.Sender)
	stop()
	b.tell(ref, errand{N: 3}) // from nobody
	b.exec.RunFor(time.Minute)
	require.Equal(t, []int{1, 3}, o.numbers())

	_, err = ref.Ask(context.Background(), "no errand")
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "a string is no job; it takes persist_test.errand")
	b.tell(ref, "no errand")
	b.exec.RunFor(time.Second)
	require.Len(t, o.letters, 3)
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

// TestAFailingStoreLosesNoJobs: whatever a commit suffers, what is accepted is
// done and every ask ends.
func TestAFailingStoreLosesNoJobs(t *testing.T) {
	faults := []persisttest.Fault{
		persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost,
		persisttest.RefuseUnit, persisttest.ConflictUnit, persisttest.RefuseGroup,
	}
	for seed := range uint64(300) {
		b := newBench(t, seed, persist.CommitterConfig{MaxUnits: 1 + int(seed%7), MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond})
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

func TestBadManagersOfJobs(t *testing.T) {
	work := func(context.Context, persist.Job[errand]) error { return nil }
	for want, props := range map[string]actor.Props{
		"neither a Worker nor Work": errands{Name: "a"}.Props(),
		"set one of them":           errands{Name: "a", Work: work, Worker: (&office{}).worker()}.Props(),
		"name has 0 bytes":          errands{Work: work}.Props(),
		"it has no service":         errands{Name: "a", Work: work}.Props(),
		"is unexported": persist.PersistentServiceManager[struct{ n int }]{
			Name: "a", Work: func(context.Context, persist.Job[struct{ n int }]) error { return nil },
		}.Props(),
	} {
		b := newBench(t, 1, persist.CommitterConfig{})
		var failures []error
		cancel := b.sys.Events().Subscribe(func(e actor.Event) {
			if e.Reason != nil {
				failures = append(failures, e.Reason)
			}
		})
		ref, err := b.sys.Spawn("m", props)
		require.NoError(t, err)
		b.exec.RunFor(time.Minute)
		require.True(t, ref.Stopped())
		require.NotEmpty(t, failures)
		require.ErrorContains(t, failures[0], want)
		cancel()
		b.close()
	}
}

// touchy is a job that cannot always be encoded.
type touchy struct{ Way way }

type way string

func (w way) MarshalText() ([]byte, error) {
	if w == "panics" {
		panic("on purpose")
	}
	return []byte(w), nil
}

func (w *way) UnmarshalText(text []byte) error {
	*w = way(text)
	return nil
}

// TestAJobThatCannotBeEncoded: it is refused, and the others are done.
func TestAJobThatCannotBeEncoded(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	var done []way
	ref, err := b.sys.Spawn("", persist.PersistentServiceManager[touchy]{Name: "t", Slots: 1, Committer: b.committer, Work: func(_ context.Context, j persist.Job[touchy]) error {
		done = append(done, j.Payload.Way)
		return nil
	}}.Props())
	require.NoError(t, err)
	b.tell(ref, touchy{"a"})
	_, err = ref.Ask(context.Background(), touchy{"panics"})
	var panicked *actor.PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorContains(t, err, "$queues/t")
	b.tell(ref, touchy{"b"})
	b.exec.RunFor(time.Minute)
	require.Equal(t, []way{"a", "b"}, done)
	require.EqualValues(t, 2, ask[patterns.State](b, ref, patterns.Status{}).Passed, "it was not restarted")
	b.close()
}

// TestJobsUseTheDefaultService: where the manager names none.
func TestJobsUseTheDefaultService(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	b.committer.MakeDefault()
	o := &office{}
	ref, err := b.sys.Spawn("m", errands{Name: "errands", Worker: o.worker()}.Props())
	require.NoError(t, err)
	b.give(ref, errand{N: 1})
	b.exec.RunFor(time.Second)
	require.Equal(t, []int{1}, o.numbers())
	b.close()
}

// TestJobsOverCrashes: what was accepted is done at least once, each attempt has
// a higher number, and what was not is done or not; over crashes of the machine
// at any moment.
func TestJobsOverCrashes(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() || raceEnabled {
		seeds = 100
	}
	repeated := 0
	for seed := range seeds {
		repeated += jobsOverCrashes(t, seed)
	}
	require.Greater(t, repeated, int(seeds/4), "crashes meet jobs at work")
}

func jobsOverCrashes(t *testing.T, seed uint64) (repeated int) {
	store := persisttest.NewCrashStore()
	o := &office{}
	accepted, offered := map[int]string{}, 0
	for life := range uint64(6) {
		b := newBench(t, seed*10+life, persist.CommitterConfig{MaxUnits: 1 + int(seed%9)})
		store.Pause = func(ctx context.Context) error {
			return b.sys.Sleep(ctx, time.Duration(b.sys.Uint64()%4)*time.Millisecond)
		}
		b.committer = persist.NewCommitter(b.sys, store, persist.CommitterConfig{MaxUnits: 1 + int(seed%9)})
		o.took, o.now = time.Duration(seed%6)*time.Millisecond, 0
		ref := b.manager(o, errands{Slots: 1 + int(seed%4), MaxAttempts: 100, MinBackoff: time.Millisecond})
		for range 12 {
			n := offered
			offered++
			e := errand{N: n}
			if n%4 == 0 {
				e.Way, e.Until = "fails", 2
			}
			b.offer(ref, e, func(id string, err error) {
				if err == nil {
					accepted[n] = id
				}
			})
			b.exec.RunFor(time.Duration(b.sys.Uint64()%5) * time.Millisecond)
		}
		if life == 5 {
			b.exec.RunFor(time.Hour)
			b.store = persisttest.NewFaultStore(store)
			require.Empty(t, b.jobRows(), "seed %d", seed)
			require.Empty(t, o.letters)
			b.close()
			break
		}
		store = store.Crash(seed + life)
		b.exec.Close() // nobody hears of what was under way
	}
	require.Greater(t, len(accepted), 20)
	byID := map[string][]int{}
	for n := range offered {
		attempts := o.attempts(n)
		for i := 1; i < len(attempts); i++ {
			require.Greater(t, attempts[i], attempts[i-1], "seed %d: errand %d", seed, n)
			repeated++
		}
		if id, ok := accepted[n]; ok {
			require.NotEmpty(t, attempts, "seed %d: errand %d was accepted as %s and never begun", seed, n, id)
			byID[id] = append(byID[id], n)
		}
	}
	for id, numbers := range byID {
		require.Len(t, numbers, 1, "seed %d: job %s", seed, id)
	}
	for _, g := range o.begun {
		if id, ok := accepted[g.n]; ok {
			require.Equal(t, id, g.id, fmt.Sprint(seed))
		}
	}
	return repeated
}
