package persist_test

import (
	"context"
	"errors"
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

func TestBadManagersOfJobs(t *testing.T) {
	work := func(context.Context, persist.Job[errand]) error { return nil }
	upgrades := snapshot.Upgrades{2: func(map[string]any) error { return nil }}
	for want, props := range map[string]actor.Props{
		"neither a Worker nor Work": errands{Name: "a"}.Props(),
		"set one of them":           errands{Name: "a", Work: work, Worker: (&office{}).worker()}.Props(),
		"name has 0 bytes":          errands{Work: work}.Props(),
		"it has no service":         errands{Name: "a", Work: work}.Props(),
		"the upgrade from schema version 2 would never run":                              errands{Name: "a", Work: work, Schema: 2, Upgrades: upgrades}.Props(),
		"start tills/t: its Upgrades: the upgrade from schema version 2 would never run": persist.PersistentConfig{Schema: 2, Upgrades: upgrades}.Props(func() persist.PersistentActor { return &till{} }),
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
