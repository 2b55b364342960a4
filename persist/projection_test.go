package persist_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// history is what tally keeps of an entity: all that happened to it, in order.
func history(c persist.Change) string { return fmt.Sprintf("%d:%d ", c.Position, c.Revision) }

// tally appends each change to the entry of its entity, so that what comes
// twice, or in another order, or not at all, shows.
func tally(ctx context.Context, t *persist.Table, changes []persist.Change) error {
	for _, c := range changes {
		old, _, err := t.Get(ctx, c.Key.String())
		if err != nil {
			return err
		}
		t.Put(c.Key.String(), append(old, history(c)...))
	}
	return nil
}

// fold is what the table has to be by the journal.
func fold(t testing.TB, store persist.PersistenceService) map[string]string {
	changes, err := store.Log(context.Background(), 0, 1_000_000)
	require.NoError(t, err)
	m := map[string]string{}
	for _, c := range changes {
		m[c.Key.String()] += history(c)
	}
	return m
}

func scan(t testing.TB, r *persist.Running) map[string]string {
	m := map[string]string{}
	for after := ""; ; {
		page, err := r.Scan(context.Background(), "", after, 7)
		require.NoError(t, err)
		for _, e := range page {
			require.Greater(t, e.ID, after)
			m[e.ID] = string(e.Value)
			after = e.ID
		}
		if len(page) == 0 {
			return m
		}
	}
}

func (b *bench) project(p persist.Projection) *persist.Running {
	r, err := persist.StartProjection(b.committer, p)
	require.NoError(b.t, err)
	return r
}

// commit commits n changes of each entity of pod p.
func (b *bench) commit(n int, names ...string) {
	for _, name := range names {
		b.jot(name, n)
	}
	require.NoError(b.t, b.committer.Settle(context.Background()))
}

func (b *bench) end() uint64 {
	p, err := b.store.Position(context.Background())
	require.NoError(b.t, err)
	return p
}

func TestProjectionFollows(t *testing.T) {
	for seed := range uint64(20) {
		b := newBench(t, seed, persist.CommitterConfig{})
		ctx := context.Background()
		b.commit(40, "a", "b")
		r := b.project(persist.Projection{Name: "tally", Apply: tally, Batch: 1 + int(seed)})
		require.NoError(t, r.Wait(ctx, b.end()))
		require.Equal(t, fold(t, b.store), scan(t, r))
		for range 5 {
			b.commit(3, "c", "a")
			require.NoError(t, r.Wait(ctx, b.end()), "a writer finds what it has written")
			require.Equal(t, fold(t, b.store), scan(t, r))
		}
		require.Zero(t, r.Status().Lag)
		require.NoError(t, r.Err())

		_, err := persist.StartProjection(b.committer, persist.Projection{Name: "tally", Apply: tally})
		require.ErrorIs(t, err, persist.ErrProjectionRunning)
		require.NoError(t, r.Stop(ctx))
		b.commit(5, "d")
		require.ErrorIs(t, r.Wait(ctx, b.end()), persist.ErrProjectionStopped)
		r = b.project(persist.Projection{Name: "tally", Apply: tally, From: persist.FromNow()})
		require.NoError(t, r.Wait(ctx, b.end()), "it goes on where it was")
		require.Equal(t, fold(t, b.store), scan(t, r))
		b.close()
	}
}

// TestIdleProjectionIsIdle: it is woken, it does not look by itself, and its own
// commits do not wake it.
func TestIdleProjectionIsIdle(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	b.commit(10, "a")
	r := b.project(persist.Projection{Name: "tally", Apply: tally})
	require.NoError(t, r.Wait(context.Background(), b.end()))
	commits, before := b.store.Commits(), b.exec.Now()
	b.exec.Run()
	require.Equal(t, commits, b.store.Commits())
	require.Equal(t, before, b.exec.Now())
	b.commit(1, "a")
	b.exec.RunFor(time.Second)
	require.Equal(t, fold(t, b.store), scan(t, r))
	require.Equal(t, commits+2, b.store.Commits())
}

// TestProjectionStarts: from zero, now, a position, and for some pods alone.
func TestProjectionStarts(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	ctx := context.Background()
	b.commit(10, "a")
	var seen []uint64
	note := func(_ context.Context, _ *persist.Table, changes []persist.Change) error {
		for _, c := range changes {
			seen = append(seen, c.Revision)
		}
		return nil
	}
	for name, want := range map[string][]uint64{"now": {11}, "position": {9, 10, 11}, "pod": nil, "zero": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}} {
		seen = nil
		p := persist.Projection{Name: name, Apply: note}
		switch name {
		case "now":
			p.From = persist.FromNow()
		case "position":
			p.From = persist.FromPosition(8)
		case "pod":
			p.Pods = []string{"other"}
		case "zero":
			p.From = persist.FromZero()
		}
		r := b.project(p)
		b.commit(1, "a")
		require.NoError(t, r.Wait(ctx, b.end()))
		require.NoError(t, r.Stop(ctx))
		if name == "zero" || name == "position" { // the others were started when the journal was longer
			require.Subset(t, seen, want)
			continue
		}
		require.Len(t, seen, len(want), name)
	}
	for _, p := range []persist.Projection{{Apply: note}, {Name: "x"}, {Name: strings.Repeat("x", 2000), Apply: note}} {
		_, err := persist.StartProjection(b.committer, p)
		require.ErrorIs(t, err, persist.ErrInvalid)
	}
}

// TestProjectionPassesOver: what a projection does not want costs no commit of
// its own each time, and is not read again for ever.
func TestProjectionPassesOver(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	ctx := context.Background()
	p := persist.Projection{Name: "some", Pods: []string{"other"}, Apply: func(context.Context, *persist.Table, []persist.Change) error {
		return errors.New("it is not for me")
	}}
	r := b.project(p)
	b.commit(5000, "a")
	require.NoError(t, r.Wait(ctx, b.end()))
	commits := b.store.Commits()
	for range 20 {
		b.commit(1, "a")
		b.exec.RunFor(time.Second)
	}
	require.Equal(t, commits+20, b.store.Commits())
	require.NoError(t, r.Stop(ctx))
	rec, err := b.store.Load(ctx, persist.Key{Pod: "$projections", Name: "some"})
	require.NoError(t, err)
	require.Contains(t, string(rec.State), fmt.Sprint(r.Position()), "a stop saves the cursor")
	require.GreaterOrEqual(t, r.Position(), uint64(5020))
}

// TestFailingApply is reported and tried again, and leaves nothing behind.
func TestFailingApply(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{MinBackoff: time.Second, MaxBackoff: 10 * time.Second})
	defer b.close()
	ctx := context.Background()
	mode, calls := "error", 0
	b.store.OnUnits(func(u persist.Unit) bool {
		return slices.ContainsFunc(u.Rows, func(r persist.RowOp) bool { return r.ID == "large\x01" })
	}, persisttest.RefuseUnit)
	r := b.project(persist.Projection{Name: "tally", Apply: func(ctx context.Context, tb *persist.Table, changes []persist.Change) error {
		calls++
		if err := tally(ctx, tb, changes); err != nil {
			return err
		}
		switch mode {
		case "error":
			return errors.New("on purpose")
		case "panic":
			panic("on purpose")
		case "id":
			tb.Put("a\x00b", nil)
		case "large":
			tb.Put("large", nil)
		}
		return nil
	}})
	b.commit(10, "a")
	for _, mode = range []string{"error", "panic", "id", "large"} {
		calls = 0
		b.exec.RunFor(time.Minute)
		s := r.Status()
		require.Error(t, s.Err, mode)
		require.Equal(t, s.Err, r.Err())
		require.Greater(t, s.Failures, 2)
		require.Greater(t, calls, 2)
		require.Less(t, calls, 20, "with growing pauses")
		require.False(t, s.NextTry.IsZero())
		require.GreaterOrEqual(t, s.Lag, uint64(10))
		require.Empty(t, scan(t, r))
		b.commit(1, "a") // which does not wake it before its time
		short, cancel := b.sys.WithTimeout(ctx, time.Second)
		require.Error(t, r.Wait(short, b.end()))
		cancel()
	}
	mode = "well"
	require.NoError(t, r.Wait(ctx, b.end()))
	require.NoError(t, r.Err())
	require.Equal(t, fold(t, b.store), scan(t, r))
}

// TestProjectionSplitsLargeTables: a batch that makes more than a unit takes is
// applied in parts.
func TestProjectionSplitsLargeTables(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	largest := 0
	b.store.OnUnits(func(u persist.Unit) bool { largest = max(largest, len(u.Rows)); return false }, persisttest.RefuseUnit)
	b.commit(60, "a")
	r := b.project(persist.Projection{Name: "wide", Apply: func(_ context.Context, tb *persist.Table, changes []persist.Change) error {
		for _, c := range changes {
			for i := range 300 {
				tb.Put(fmt.Sprintf("%d-%d", c.Position, i), []byte("x"))
			}
		}
		return nil
	}})
	require.NoError(t, r.Wait(context.Background(), 60))
	require.LessOrEqual(t, largest, 4096)
	n := 0
	for after := ""; ; {
		page, err := r.Scan(context.Background(), "", after, 5000)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		n += len(page)
		after = page[len(page)-1].ID
	}
	require.Equal(t, 60*300, n)
}

// TestGapIsExplicit: what retention dropped is not passed over in silence, also
// when the projection did not run, or begins late.
func TestGapIsExplicit(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{KeepChanges: 1000})
	ctx := context.Background()
	r := b.project(persist.Projection{Name: "tally", Apply: tally})
	b.commit(10, "a")
	require.NoError(t, r.Wait(ctx, b.end()))
	require.NoError(t, r.Stop(ctx))
	b.commit(9000, "a")
	b.exec.RunFor(time.Minute)
	require.NoError(t, b.committer.Close(ctx))
	b.committer = persist.NewCommitter(b.sys, b.store, persist.CommitterConfig{KeepChanges: 1000})

	r = b.project(persist.Projection{Name: "tally", Apply: tally})
	err := r.Wait(ctx, b.end())
	require.ErrorIs(t, err, persist.ErrGap)
	require.ErrorContains(t, err, "behind position 10 ")
	require.True(t, r.Status().NextTry.IsZero())
	b.commit(1, "b")
	b.exec.RunFor(time.Minute)
	require.EqualValues(t, 10, r.Position(), "it stands until somebody decides")
	require.NoError(t, r.Stop(ctx))

	var gaps []string
	p := persist.Projection{Name: "tally", Apply: tally, Gap: func(from, to uint64) error {
		gaps = append(gaps, fmt.Sprint(from, "-", to))
		return nil
	}}
	r = b.project(p)
	require.NoError(t, r.Wait(ctx, b.end()))
	require.Len(t, gaps, 1)
	kept := fold(t, b.store)
	table := scan(t, r)
	require.True(t, strings.HasSuffix(table["p/a"], kept["p/a"]))
	require.Equal(t, kept["p/b"], table["p/b"])
	require.NoError(t, r.Stop(ctx))
	r = b.project(p)
	b.commit(1, "b")
	require.NoError(t, r.Wait(ctx, b.end()))
	require.Len(t, gaps, 1, "it is told once")

	p.Name, p.Gap = "fresh", func(uint64, uint64) error { return errors.New("no") }
	fresh := b.project(p)
	require.ErrorIs(t, fresh.Wait(ctx, b.end()), persist.ErrGap, "from zero is from zero")
	p.Name, p.Gap, p.From = "now", nil, persist.FromNow()
	now := b.project(p)
	require.NoError(t, now.Wait(ctx, b.end()))
	b.close()
}

// TestDamagedChange stops the projection at its position, or is skipped.
func TestDamagedChange(t *testing.T) {
	memory := persisttest.NewMemory()
	b := newBench(t, 1, persist.CommitterConfig{})
	b.store = persisttest.NewFaultStore(memory)
	b.committer = persist.NewCommitter(b.sys, b.store, persist.CommitterConfig{})
	defer b.close()
	ctx := context.Background()
	b.commit(10, "a")
	changes, err := b.store.Log(ctx, 0, 100)
	require.NoError(t, err)
	want := fold(t, b.store)
	memory.DamageChange(changes[4])
	memory.DamageChange(changes[5])
	r := b.project(persist.Projection{Name: "tally", Apply: tally})
	err = r.Wait(ctx, b.end())
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	require.ErrorContains(t, err, "position 5 ")
	require.EqualValues(t, 4, r.Position(), "what is before it is applied")
	require.NoError(t, r.Stop(ctx))
	var skipped []uint64
	r = b.project(persist.Projection{Name: "tally", Apply: tally, OnDamaged: func(c persist.Change) error {
		skipped = append(skipped, c.Position)
		return nil
	}})
	require.NoError(t, r.Wait(ctx, b.end()))
	require.Equal(t, []uint64{5, 6}, skipped)
	require.Equal(t, strings.Replace(want["p/a"], history(changes[4])+history(changes[5]), "", 1), scan(t, r)["p/a"])
}

// TestRebuild empties the table in steps and starts over, also when it is
// interrupted, and whatever had stopped the projection.
func TestRebuild(t *testing.T) {
	for seed := range uint64(2) {
		b := newBench(t, seed, persist.CommitterConfig{})
		ctx := context.Background()
		var names []string
		for i := range 2500 {
			names = append(names, fmt.Sprint(i))
		}
		b.commit(1, names...)
		version := "old "
		p := persist.Projection{Name: "tally", Batch: 2000, Apply: func(_ context.Context, t *persist.Table, changes []persist.Change) error {
			for _, c := range changes {
				t.Put(version+c.Key.Name, []byte("x"))
			}
			return nil
		}}
		r := b.project(p)
		require.NoError(t, r.Wait(ctx, b.end()))
		other := b.project(persist.Projection{Name: "tally2", Apply: tally})
		require.NoError(t, other.Wait(ctx, b.end()))
		version = "new "
		r.Rebuild()
		if seed%2 == 1 {
			require.True(t, b.exec.RunUntil(func() bool { return r.Status().Rebuilding }))
			b.exec.RunFor(time.Duration(seed) * time.Millisecond)
			require.NoError(t, r.Stop(ctx))
			r = b.project(p)
		}
		require.NoError(t, r.Wait(ctx, b.end()))
		old, err := r.Scan(ctx, "old ", "", 10)
		require.NoError(t, err)
		require.Empty(t, old)
		fresh, err := r.Scan(ctx, "new ", "", 10_000)
		require.NoError(t, err)
		require.Len(t, fresh, 2500)
		require.Equal(t, fold(t, b.store), scan(t, other), "another's table is its own")
		b.close()
	}
}

// TestUnreadableCursor stops the projection; Rebuild starts over.
func TestUnreadableCursor(t *testing.T) {
	memory := persisttest.NewMemory()
	b := newBench(t, 1, persist.CommitterConfig{})
	b.committer = persist.NewCommitter(b.sys, memory, persist.CommitterConfig{})
	b.store = persisttest.NewFaultStore(memory)
	defer b.close()
	ctx := context.Background()
	b.commit(10, "a")
	r := b.project(persist.Projection{Name: "tally", Apply: tally})
	require.NoError(t, r.Wait(ctx, b.end()))
	require.NoError(t, r.Stop(ctx))
	memory.Damage(persist.Key{Pod: "$projections", Name: "tally"})
	r = b.project(persist.Projection{Name: "tally", Apply: tally})
	require.ErrorIs(t, r.Wait(ctx, b.end()), snapshot.ErrCorrupt)
	r.Rebuild()
	require.NoError(t, r.Wait(ctx, b.end()))
	require.Equal(t, fold(t, b.store), scan(t, r))
}

func TestTableEntries(t *testing.T) {
	b := newBench(t, 1, persist.CommitterConfig{})
	defer b.close()
	ctx := context.Background()
	ids := []string{"\x01", "a", "a\x01", "a\x01b", "a\x02", "ab", "b", "ü", "日"}
	step := 0
	r := b.project(persist.Projection{Name: "t", Apply: func(ctx context.Context, tb *persist.Table, _ []persist.Change) error {
		step++
		switch step {
		case 1:
			for _, id := range ids {
				tb.Put(id, []byte(id))
				v, found, err := tb.Get(ctx, id)
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, id, string(v))
			}
			tb.Put("gone", nil)
			tb.Delete("gone")
			_, found, err := tb.Get(ctx, "gone")
			require.NoError(t, err)
			require.False(t, found)
		case 2:
			tb.Delete("a\x01")
			_, found, err := tb.Get(ctx, "a\x01")
			require.NoError(t, err)
			require.False(t, found, "what it deleted is not there for it")
			v, found, err := tb.Get(ctx, "a")
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "a", string(v))
			tb.Put("empty", nil)
		}
		return nil
	}})
	b.commit(1, "x")
	require.NoError(t, r.Wait(ctx, b.end()))
	for _, id := range ids {
		v, found, err := r.Get(ctx, id)
		require.NoError(t, err)
		require.True(t, found, "%q", id)
		require.Equal(t, id, string(v))
	}
	all := func(prefix, after string) (out []string) {
		page, err := r.Scan(ctx, prefix, after, 100)
		require.NoError(t, err)
		for _, e := range page {
			out = append(out, e.ID)
		}
		return out
	}
	require.Equal(t, ids, all("", ""))
	require.Equal(t, ids[2:], all("", "a"))
	require.Equal(t, ids[1:6], all("a", ""))
	require.Equal(t, ids[2:4], all("a\x01", ""))
	require.Equal(t, ids[5:6], all("a", "a\x02"))
	require.Empty(t, all("c", ""))
	b.commit(1, "x")
	require.NoError(t, r.Wait(ctx, b.end()))
	_, found, err := r.Get(ctx, "a\x01")
	require.NoError(t, err)
	require.False(t, found)
	v, found, err := r.Get(ctx, "empty")
	require.NoError(t, err)
	require.True(t, found)
	require.Empty(t, v)
	_, _, err = r.Get(ctx, "")
	require.ErrorIs(t, err, persist.ErrInvalid)
}

// TestProjectionSurvivesAll: over random commits, faults, crashes and restarts,
// the table is the fold of the journal: nothing twice, nothing missing.
func TestProjectionSurvivesAll(t *testing.T) {
	faults := []persisttest.Fault{persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost, persisttest.RefuseUnit, persisttest.ConflictUnit}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		exec := actortest.NewSeeded(seed)
		sys := actor.NewSystem("crash", actor.Config{Executor: exec})
		crash := persisttest.NewCrashStore()
		crash.Pause = func(ctx context.Context) error {
			return sys.Sleep(ctx, time.Duration(sys.Uint64()%4)*time.Millisecond)
		}
		ctx := context.Background()
		for range 6 {
			b := &bench{t: t, exec: exec, sys: sys, store: persisttest.NewFaultStore(crash)}
			b.committer = persist.NewCommitter(sys, b.store, persist.CommitterConfig{MaxUnits: 1 + rng.IntN(30)})
			p := persist.Projection{Name: "tally", Apply: tally, Batch: 1 + rng.IntN(20), Pods: []string{"p"}}
			r := b.project(p)
			stop := b.store.OnUnits(func(u persist.Unit) bool { return rng.IntN(40) == 0 }, faults[rng.IntN(len(faults))])
			for range 10 + rng.IntN(30) {
				b.jot(fmt.Sprint(rng.IntN(4)), 1+rng.IntN(5))
				exec.RunFor(time.Duration(rng.IntN(8)) * time.Millisecond)
				if rng.IntN(20) == 0 {
					require.NoError(t, r.Stop(ctx))
					r = b.project(p)
				}
			}
			if rng.IntN(2) == 0 {
				crash = crash.Crash(rng.Uint64())
				require.NoError(t, b.committer.Close(ctx))
				continue
			}
			stop()
			exec.RunFor(time.Minute)
			require.NoError(t, r.Wait(ctx, b.end()), "seed %d", seed)
			require.Equal(t, fold(t, b.store), scan(t, r), "seed %d", seed)
			require.NoError(t, b.committer.Close(ctx))
		}
		require.NoError(t, sys.Stop(ctx))
		exec.Close()
	}
}

// jot queues changes of an entity as it is stored now, without waiting.
func (b *bench) jot(name string, n int) {
	r, err := b.store.Load(context.Background(), persist.Key{Pod: "p", Name: name})
	if err != nil && !errors.Is(err, persist.ErrNotFound) {
		return
	}
	w := b.writer(name)
	for i := range n {
		u := unit(name, r.Revision+uint64(i)+1)
		u.Life = r.Life
		w.lane.Submit(u, nil)
	}
}

// TestProjectionOnWorkers: with goroutines in earnest, a writer that waits finds
// what it wrote.
func TestProjectionOnWorkers(t *testing.T) {
	ctx := context.Background()
	sys := actor.NewSystem("real", actor.Config{})
	store := persisttest.NewMemory()
	c := persist.NewCommitter(sys, store, persist.CommitterConfig{KeepFor: time.Hour})
	r, err := persist.StartProjection(c, persist.Projection{Name: "tally", Apply: tally})
	require.NoError(t, err)
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() {
			results := make(chan persist.Outcome, 1)
			lane := c.Lane(func(r []persist.Result) { results <- r[0].Outcome })
			errs <- func() error {
				for rev := range uint64(50) {
					lane.Submit(unit(fmt.Sprint(i), rev+1), nil)
					o := <-results
					if err := errors.Join(o.Err, r.Wait(ctx, o.Position)); err != nil {
						return err
					}
					v, _, err := r.Get(ctx, fmt.Sprint("p/", i))
					if err != nil || !strings.HasSuffix(string(v), fmt.Sprintf("%d:%d ", o.Position, rev+1)) {
						return fmt.Errorf("%w: read %q after writing %d", err, v, rev+1)
					}
				}
				return nil
			}()
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.Equal(t, fold(t, store), scan(t, r))
	require.NoError(t, r.Stop(ctx))
	require.NoError(t, c.Close(ctx))
	require.NoError(t, sys.Stop(ctx))
}
