package persist_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// bench is a committer on the seeded executor, before a store that can fail.
type bench struct {
	t         testing.TB
	exec      *actortest.Seeded
	sys       *actor.System
	store     *persisttest.FaultStore
	committer *persist.Committer
}

func newBench(t testing.TB, seed uint64, cfg persist.CommitterConfig) *bench {
	return newLoggedBench(t, seed, cfg, nil)
}

func newLoggedBench(t testing.TB, seed uint64, cfg persist.CommitterConfig, log *slog.Logger) *bench {
	b := &bench{t: t, exec: actortest.NewSeeded(seed), store: persisttest.NewFaultStore(persisttest.NewMemory())}
	b.sys = actor.NewSystem("bench", actor.Config{Executor: b.exec, Logger: log})
	b.store.Pause = func(ctx context.Context) error {
		return b.sys.Sleep(ctx, time.Duration(b.sys.Uint64()%3)*time.Millisecond)
	}
	b.committer = persist.NewCommitter(b.sys, b.store, cfg)
	return b
}

func (b *bench) close() {
	ctx, cancel := b.sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(b.t, b.committer.Close(ctx))
	require.NoError(b.t, b.sys.Stop(ctx))
	b.exec.Close()
}

// writer is one entity's activation: it writes revisions one after the other
// without waiting.
type writer struct {
	name    string
	lane    *persist.Lane
	next    uint64
	results []persist.Result
}

func (b *bench) writer(name string) *writer {
	w := &writer{name: name, next: 1}
	w.lane = b.committer.Lane(func(r []persist.Result) { w.results = append(w.results, r...) })
	return w
}

func unit(name string, revision uint64) persist.Unit {
	return persist.Unit{
		Key: persist.Key{Pod: "p", Name: name}, Expect: revision - 1,
		Record:  &snapshot.Record{Revision: revision, Reserved: revision, Codec: "json", State: []byte(fmt.Sprint(revision))},
		Changes: []persist.Change{{Revision: revision, Type: "written"}},
	}
}

func (w *writer) write() {
	w.lane.Submit(unit(w.name, w.next), w.next)
	w.next++
}

func (b *bench) revision(name string) uint64 {
	r, err := b.store.Load(context.Background(), persist.Key{Pod: "p", Name: name})
	if errors.Is(err, persist.ErrNotFound) {
		return 0
	}
	require.NoError(b.t, err)
	return r.Revision
}

// TestCommitterGroups: what queues while a commit runs is the next group.
func TestCommitterGroups(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	var all []*writer
	for i := range 50 {
		w := b.writer(fmt.Sprint(i))
		all = append(all, w)
		for range 20 {
			w.write()
		}
	}
	b.exec.RunFor(time.Second)
	require.LessOrEqual(t, b.store.Commits(), 2, "1,000 units need no more than two commits")
	for _, w := range all {
		require.Len(t, w.results, 20)
		for i, r := range w.results {
			require.NoError(t, r.Outcome.Err)
			require.EqualValues(t, i+1, r.Tag, "results come in the order of submission")
			require.Equal(t, w.results[0].Outcome.Life, r.Outcome.Life)
		}
		require.EqualValues(t, 20, b.revision(w.name))
	}
	f := b.committer.Figures()
	require.EqualValues(t, b.store.Commits(), f.Commits)
	require.EqualValues(t, 1000, f.Units)
	require.Greater(t, f.Bytes, uint64(1000*64))
	require.LessOrEqual(t, f.InStore, time.Second)
	classes := uint64(0)
	bound := time.Duration(0)
	for class, n := range f.Took {
		bound += time.Duration(n) * persist.CommitBound(class)
		classes += n
	}
	require.LessOrEqual(t, f.InStore, bound)
	require.Greater(t, 2*f.InStore+time.Duration(f.Commits)*time.Microsecond, bound-1)
	require.Equal(t, f.Commits, classes)
	require.EqualValues(t, 1000, f.Applied)
	require.Zero(t, f.Failed+f.Refused)
}

func TestCommitterBoundsItsGroups(t *testing.T) {
	for name, cfg := range map[string]persist.CommitterConfig{"units": {MaxUnits: 10}, "bytes": {MaxBytes: 1000}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, cfg)
			defer b.close()
			w := b.writer("x")
			for range 100 {
				w.write()
			}
			b.exec.RunFor(time.Minute)
			require.GreaterOrEqual(t, b.store.Commits(), 10)
			require.EqualValues(t, 100, b.revision("x"))
		})
	}
}

// TestPoisonedLane: under random faults each unit gets one outcome, in order;
// after the first failure of a lane all others fail; and what is stored is what
// was applied, with at most one unknown beyond it.
func TestPoisonedLane(t *testing.T) {
	faults := []persisttest.Fault{
		persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost,
		persisttest.RefuseUnit, persisttest.ConflictUnit, persisttest.RefuseGroup,
	}
	for seed := range uint64(500) {
		cfg := persist.CommitterConfig{MaxUnits: 1 + int(seed%40)}
		b := newBench(t, seed, cfg)
		if seed%2 == 1 { // a store that goes on by itself after an unknown outcome
			b.committer = persist.NewCommitter(b.sys, b.store.Healing(), cfg)
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		fault := faults[rng.IntN(len(faults))]
		name, at := fmt.Sprint(rng.IntN(5)), uint64(rng.IntN(20))
		stop := b.store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == name && u.Expect == at }, fault)
		var all []*writer
		for i := range 5 {
			all = append(all, b.writer(fmt.Sprint(i)))
		}
		for range 100 {
			all[rng.IntN(5)].write()
			if rng.IntN(10) == 0 {
				b.exec.RunFor(time.Duration(rng.IntN(5)) * time.Millisecond)
			}
		}
		b.exec.RunFor(time.Minute)
		stop()
		failures := 0
		for _, w := range all {
			checkLane(t, b, w, fault, seed)
			for _, r := range w.results {
				if r.Outcome.Err != nil {
					failures++
				}
			}
		}
		f := b.committer.Figures()
		require.EqualValues(t, failures, f.Failed+f.Refused)
		require.Zero(t, f.Queued)
		b.close()
	}
}

func checkLane(t *testing.T, b *bench, w *writer, fault persisttest.Fault, seed uint64) {
	t.Helper()
	require.EqualValues(t, w.next-1, len(w.results), "seed %d: every unit has its outcome", seed)
	applied, unknown := uint64(0), uint64(0)
	failed := false
	for i, r := range w.results {
		require.EqualValues(t, i+1, r.Tag)
		switch {
		case r.Outcome.Err == nil:
			require.False(t, failed, "seed %d: applied behind a failure", seed)
			applied++
		case errors.Is(r.Outcome.Err, persist.ErrUnknown):
			unknown++
			failed = true
		default:
			failed = true
		}
	}
	stored := b.revision(w.name)
	require.GreaterOrEqual(t, stored, applied, "seed %d", seed)
	require.LessOrEqual(t, stored, applied+unknown, "seed %d", seed)
	if fault != persisttest.UnknownApplied {
		require.Equal(t, applied, stored, "seed %d", seed)
	}
}

// TestDownStoreFailsFast: while the store is being reopened units are refused
// at once, and it serves again once it is open.
func TestDownStoreFailsFast(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{MinBackoff: time.Second, MaxBackoff: 4 * time.Second})
	defer b.close()
	b.store.FailReopens(2)
	b.store.OnCommit(1, persisttest.UnknownLost)
	w := b.writer("a")
	w.write()
	b.exec.RunFor(100 * time.Millisecond)
	require.Len(t, w.results, 1)
	require.ErrorIs(t, w.results[0].Outcome.Err, persist.ErrUnknown)
	require.Error(t, b.committer.Down())

	w = b.writer("b")
	w.write()
	b.exec.RunFor(100 * time.Millisecond)
	require.Len(t, w.results, 1, "refused without waiting for the store")
	require.ErrorIs(t, w.results[0].Outcome.Err, persist.ErrUnavailable)
	require.NotErrorIs(t, w.results[0].Outcome.Err, persist.ErrUnknown)

	b.exec.RunFor(10 * time.Second)
	require.NoError(t, b.committer.Down())
	require.Equal(t, 3, b.store.Reopens(), "tried with growing pauses until it worked")
	w = b.writer("c")
	w.write()
	b.exec.RunFor(time.Second)
	require.NoError(t, w.results[0].Outcome.Err)
}

// TestSelfHealingStoreStaysInService: a store that needs no reopening is asked
// again at once.
func TestSelfHealingStoreStaysInService(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	b.committer = persist.NewCommitter(b.sys, b.store.Healing(), persist.CommitterConfig{})
	b.store.OnCommit(1, persisttest.UnknownApplied)
	w := b.writer("a")
	w.write()
	b.exec.RunFor(time.Second)
	require.ErrorIs(t, w.results[0].Outcome.Err, persist.ErrUnknown)
	w = b.writer("b")
	w.write()
	b.exec.RunFor(time.Second)
	require.NoError(t, w.results[0].Outcome.Err)
	require.EqualValues(t, 1, b.revision("a"))
}

// TestCloseFinishesWhatIsQueued: and refuses what comes later.
func TestCloseFinishesWhatIsQueued(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{MaxUnits: 3})
	w := b.writer("x")
	for range 30 {
		w.write()
	}
	b.close()
	require.EqualValues(t, 30, b.revision("x"))
	require.Len(t, w.results, 30)
}

func TestClosedCommitterRefuses(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	require.NoError(t, b.committer.Close(context.Background()))
	w := b.writer("x")
	w.write()
	b.exec.RunFor(time.Second)
	require.ErrorIs(t, w.results[0].Outcome.Err, persist.ErrUnavailable)
}

// TestReopenedStoreThatRefusesWrites: reopening it succeeds and proves nothing.
// The pauses grow until it takes a unit, and begin anew from there.
func TestReopenedStoreThatRefusesWrites(t *testing.T) {
	var log bytes.Buffer
	b := newLoggedBench(t, 1, persist.CommitterConfig{MinBackoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second}, slog.New(slog.NewTextHandler(&log, nil)))
	defer b.close()
	heal := b.store.OnUnits(func(u persist.Unit) bool { return u.Key.Name != "refused" }, persisttest.FailBefore)
	conflict := b.store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "refused" }, persisttest.ConflictUnit)
	defer conflict()
	n, refused := 0, 0
	for ; n < 6000; n++ { // a minute
		if b.committer.Down() == nil { // that a unit conflicts does not show that any can be written
			b.writer("refused").write()
			b.exec.RunFor(5 * time.Millisecond)
		}
		w := b.writer(fmt.Sprint(n))
		w.write()
		b.exec.RunFor(10 * time.Millisecond)
		require.Len(t, w.results, 1, "it fails fast")
		require.ErrorIs(t, w.results[0].Outcome.Err, persist.ErrUnavailable)
		if b.committer.Down() != nil {
			refused++
		}
	}
	require.Greater(t, refused, n*95/100, "it is down while it takes nothing")
	require.Less(t, b.store.Commits(), 60)
	require.Less(t, strings.Count(log.String(), "\n"), 80)

	heal()
	b.exec.RunFor(6 * time.Second)
	require.NoError(t, b.committer.Down())
	w := b.writer("a")
	w.write()
	b.exec.RunFor(time.Second)
	require.NoError(t, w.results[0].Outcome.Err)
	b.store.OnCommit(b.store.Commits()+1, persisttest.FailBefore)
	b.writer("b").write()
	b.exec.RunFor(100 * time.Millisecond)
	require.NoError(t, b.committer.Down(), "a store that was well is tried again soon")
}
