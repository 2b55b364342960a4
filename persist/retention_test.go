package persist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// skewed is a seeded executor whose clock is off by what a test says, as a
// wall clock can be; its timers are right.
type skewed struct {
	*actortest.Seeded
	off time.Duration
}

func (s *skewed) Now() time.Time { return s.Seeded.Now().Add(s.off) }

// aging is a bench with a clock that can jump.
type aging struct {
	*bench
	clock   *skewed
	writers map[string]*writer
}

func newAging(t testing.TB, store persist.PersistenceService, cfg persist.CommitterConfig) *aging {
	clock := &skewed{Seeded: actortest.NewSeeded(1)}
	b := &bench{t: t, exec: clock.Seeded, store: persisttest.NewFaultStore(store)}
	b.sys = actor.NewSystem("aging", actor.Config{Executor: clock})
	b.committer = persist.NewCommitter(b.sys, b.store, cfg)
	return &aging{bench: b, clock: clock, writers: map[string]*writer{}}
}

// write commits n changes at the clock's time.
func (a *aging) write(name string, n int) {
	a.writeWith(name, n, func(*persist.Change) {})
}

func (a *aging) writeWith(name string, n int, edit func(*persist.Change)) {
	w := a.writers[name]
	if w == nil {
		w = a.writer(name)
		a.writers[name] = w
	}
	for range n {
		u := unit(w.name, w.next)
		u.Changes[0].Time = a.sys.Now()
		edit(&u.Changes[0])
		w.lane.Submit(u, w.next)
		w.next++
	}
	ctx, cancel := a.sys.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(a.t, a.committer.Settle(ctx))
}

func (a *aging) kept() int { return len(a.changes(0)) }

func (a *aging) changes(after uint64) []persist.Change {
	c, err := a.store.Log(context.Background(), after, 100_000)
	require.NoError(a.t, err)
	return c
}

// TestJournalStaysInItsWindow: old changes are dropped while records stay.
func TestJournalStaysInItsWindow(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{MaxUnits: 100, KeepChanges: 2000})
	defer b.close()
	w := b.writer("x")
	for range 10_000 {
		w.write()
	}
	b.exec.RunFor(time.Minute)
	changes, err := b.store.Log(context.Background(), 0, 10_000)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(changes), 1950, "positions that are no changes count too")
	require.Less(t, len(changes), 2000+2*1024+200)
	require.EqualValues(t, 10_000, changes[len(changes)-1].Revision)
	require.EqualValues(t, 10_000, b.revision("x"))
}

// TestWhatWasNeverThereIsNotDropped: a store whose positions begin high has lost
// nothing as long as its changes are fewer than are kept.
func TestWhatWasNeverThereIsNotDropped(t *testing.T) {
	ctx := context.Background()
	a := newAging(t, memory.Open(memory.Config{FirstPosition: 1 << 40}), persist.CommitterConfig{KeepChanges: 2000})
	a.write("x", 1500)
	a.exec.RunFor(time.Minute)
	through, err := persist.TrimmedThrough(ctx, a.store)
	require.NoError(t, err)
	require.Zero(t, through)
	require.Equal(t, 1500, a.kept())
	a.write("x", 4000)
	a.exec.RunFor(time.Minute)
	through, err = persist.TrimmedThrough(ctx, a.store)
	require.NoError(t, err)
	require.Less(t, through, a.changes(0)[0].Position)
	require.Less(t, a.kept(), 2000+2*1024)
	a.close()
}

// TestWindowIsKeptUnderLoad: the journal does not outgrow its window while
// commits go on without a pause, nor after a restart.
func TestWindowIsKeptUnderLoad(t *testing.T) {
	a := newAging(t, persisttest.NewMemory(), persist.CommitterConfig{MaxUnits: 500, KeepChanges: 3000})
	for range 15 {
		a.write("x", 1000)
		a.exec.RunFor(time.Millisecond)
		require.Less(t, a.kept(), 3000+3*1024)
	}
	require.NoError(t, a.committer.Close(context.Background()))
	a.committer = persist.NewCommitter(a.sys, a.store, persist.CommitterConfig{KeepChanges: 100})
	a.writers["x"].lane = a.committer.Lane(func([]persist.Result) {})
	u := unit("y", 1)
	a.committer.Lane(func([]persist.Result) {}).Submit(u, nil)
	a.exec.RunFor(time.Minute)
	require.Less(t, a.kept(), 100+1100, "after a restart it begins again")
	a.close()
}

// TestChangesAge: what is older than KeepFor goes, also when nothing is
// committed for long, and also after a restart.
func TestChangesAge(t *testing.T) {
	const keep = 10 * 24 * time.Hour
	store := persisttest.NewMemory()
	a := newAging(t, store, persist.CommitterConfig{KeepFor: keep})
	a.write("x", 3000)
	a.exec.RunFor(5 * 24 * time.Hour)
	a.write("x", 10)
	require.Equal(t, 3010, a.kept())
	a.exec.RunFor(5*24*time.Hour - 2*time.Hour)
	require.Equal(t, 3010, a.kept())
	a.exec.RunFor(4 * time.Hour)
	require.Equal(t, 10, a.kept(), "an idle store ages")
	a.exec.RunFor(4 * 24 * time.Hour)
	require.Equal(t, 10, a.kept())

	require.NoError(t, a.committer.Close(context.Background()))
	a.committer = persist.NewCommitter(a.sys, a.store, persist.CommitterConfig{KeepFor: keep})
	a.exec.RunFor(12 * time.Hour)
	require.Equal(t, 10, a.kept())
	a.exec.RunFor(24 * time.Hour)
	require.Zero(t, a.kept(), "nobody had to commit anything")

	before := a.exec.Now()
	a.exec.Run()
	require.Equal(t, before, a.exec.Now(), "nothing is left that grows old, and no timer runs")
	delete(a.writers, "x")
	w := a.writer("z")
	a.writers["z"] = w
	a.write("z", 1)
	require.Equal(t, 1, a.kept())
	a.exec.RunFor(11 * 24 * time.Hour)
	require.Zero(t, a.kept(), "it begins again with the next change")
	a.close()
	require.EqualValues(t, 3010, a.revision("x"), "records stay")
}

// TestLongAbsence: after a month without the program the journal shrinks in
// steps, to what it keeps.
func TestLongAbsence(t *testing.T) {
	const keep = 10 * 24 * time.Hour
	a := newAging(t, persisttest.NewMemory(), persist.CommitterConfig{})
	a.write("x", 50)
	require.NoError(t, a.committer.Close(context.Background()))
	a.exec.RunFor(60 * 24 * time.Hour)
	a.committer = persist.NewCommitter(a.sys, a.store, persist.CommitterConfig{KeepFor: keep})
	delete(a.writers, "x")
	a.exec.RunFor(12 * time.Hour)
	require.Equal(t, 50, a.kept(), "the time that passed without it is believed slowly")
	a.exec.RunFor(2 * 24 * time.Hour)
	require.Zero(t, a.kept())
	a.close()
}

// TestJumpingClock: a clock that is far off for a moment drops little, whether
// or not something is committed meanwhile, and also around a restart.
func TestJumpingClock(t *testing.T) {
	const keep, day = 10 * 24 * time.Hour, 24 * time.Hour
	for _, off := range []time.Duration{20 * 365 * day, -20 * 365 * day} {
		for _, meanwhile := range []string{"nothing", "commit", "restart"} {
			t.Run(fmt.Sprint(off, meanwhile), func(t *testing.T) {
				a := newAging(t, persisttest.NewMemory(), persist.CommitterConfig{KeepFor: keep})
				for range 8 {
					a.write("x", 10)
					a.exec.RunFor(day)
				}
				require.Equal(t, 80, a.kept())
				a.clock.off = off
				switch meanwhile {
				case "commit":
					a.write("x", 10)
				case "restart":
					require.NoError(t, a.committer.Close(context.Background()))
					a.committer = persist.NewCommitter(a.sys, a.store, persist.CommitterConfig{KeepFor: keep})
					a.writers = map[string]*writer{}
				}
				a.exec.RunFor(2 * time.Hour)
				a.clock.off = 0
				require.GreaterOrEqual(t, a.kept(), 70, "all but what is beyond 16 times the length of the jump")
				a.write("y", 10)
				a.exec.RunFor(day)
				require.GreaterOrEqual(t, a.kept(), 80)
				a.exec.RunFor(11 * day)
				require.Zero(t, a.kept(), "what was written with a wrong time goes with its neighbours")
				a.close()
			})
		}
	}
}

// TestEventsStay: retention goes on behind the events that it must keep.
func TestEventsStay(t *testing.T) {
	for _, cfg := range []persist.CommitterConfig{{KeepChanges: 1000}, {KeepFor: time.Hour}} {
		a := newAging(t, persisttest.NewMemory(), cfg)
		a.writeWith("events", 3000, func(c *persist.Change) { c.Event = true })
		a.write("states", 5000)
		a.exec.RunFor(3 * time.Hour)
		a.write("states", 1)
		a.exec.RunFor(time.Minute)
		events := 0
		changes := a.changes(0)
		for _, c := range changes {
			if c.Event {
				events++
			}
		}
		require.Equal(t, 3000, events)
		require.Less(t, len(changes), 3000+1000+1100)
		a.close()
	}
}

// TestEventsOfAnEndedLifeGoBeforeItsEnd: some that retention had passed while it
// went on may stay behind later ones, but none stays behind the change that ended
// it: they alone would make the entity again.
func TestEventsOfAnEndedLifeGoBeforeItsEnd(t *testing.T) {
	a := newAging(t, persisttest.NewMemory(), persist.CommitterConfig{KeepFor: time.Hour})
	defer a.close()
	event := func(c *persist.Change) { c.Event = true }
	revisions := func() (out []uint64) {
		for _, c := range a.changes(0) {
			if c.Event {
				out = append(out, c.Revision)
			}
		}
		return out
	}
	a.writeWith("account", 2, event)
	a.exec.RunFor(90 * time.Minute)
	a.writeWith("account", 2, event)
	a.exec.RunFor(40 * time.Minute)
	require.Equal(t, []uint64{1, 2, 3, 4}, revisions(), "the life goes on")
	w := a.writers["account"]
	w.lane.Submit(persist.Unit{
		Key: persist.Key{Pod: "p", Name: "account"}, Expect: 4, Delete: true,
		Changes: []persist.Change{{Revision: 5, Type: "deleted", Time: a.sys.Now(), Event: true}},
	}, 5)
	holes := false
	for range 120 {
		a.exec.RunFor(time.Minute)
		a.write("other", 1) // so that there is always something that grows old
		left := revisions()
		if len(left) > 0 {
			require.Equal(t, uint64(5), left[len(left)-1])
		}
		holes = holes || len(left) == 3
	}
	require.True(t, holes, "the middle was seen to go first")
	require.Empty(t, revisions())
}

// TestFailedTrimIsTriedAgain and holds up no commit.
func TestFailedTrimIsTriedAgain(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{MaxUnits: 100, KeepChanges: 100})
	stop := b.store.OnUnits(func(u persist.Unit) bool { return u.Key.Pod == "$journal" }, persisttest.RefuseUnit)
	w := b.writer("x")
	for range 5000 {
		w.write()
	}
	b.exec.RunFor(time.Minute)
	require.EqualValues(t, 5000, b.revision("x"))
	changes, err := b.store.Log(context.Background(), 0, 10_000)
	require.NoError(t, err)
	require.Len(t, changes, 5000, "nothing is dropped that was not marked")
	stop()
	b.exec.RunFor(time.Minute)
	changes, err = b.store.Log(context.Background(), 0, 10_000)
	require.NoError(t, err)
	require.Less(t, len(changes), 1200, "without a further commit")
	b.close()
}
