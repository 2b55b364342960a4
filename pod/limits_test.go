package pod_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestStatesAreBounded: a message that would make the state too large is
// refused, with any durability, and changes nothing.
func TestStatesAreBounded(t *testing.T) {
	for name, edit := range map[string]func(*entity.Type[ledger]){"sync": nil, "async": async} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, persisttest.NewMemory(), ledgers(edit), pod.Config{MaxState: 1000})
			defer w.close()
			_, err := w.ask("x", add{strings.Repeat("x", 2000)})
			require.ErrorIs(t, err, persist.ErrInvalid)
			_, err = w.h.Get(context.Background(), "x")
			require.ErrorIs(t, err, entity.ErrNotFound)
			_, err = w.ask("x", add{strings.Repeat("x", 200)})
			w.must(err)
			_, err = w.ask("x", add{strings.Repeat("y", 800)})
			require.ErrorIs(t, err, persist.ErrInvalid)
			ack, err := w.ask("x", add{"z"})
			w.must(err)
			require.EqualValues(t, 2, ack.(entity.Ack).Revision)
		})
	}
}

// TestLargeStatesInFlightAreBounded: an entity with a large state does not put
// hundreds of copies of it before everybody else's commits.
func TestLargeStatesInFlightAreBounded(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.close()
	_, err := w.ask("hog", add{strings.Repeat("x", 1<<20)})
	w.must(err)
	largest, bytes := 0, 0
	store.OnUnits(func(u persist.Unit) bool {
		bytes += len(u.Record.State)
		return false
	}, persisttest.FailBefore)
	store.Pause = func(ctx context.Context) error {
		largest, bytes = max(largest, bytes), 0
		return w.sys.Sleep(ctx, time.Millisecond)
	}
	var promises []*actor.Promise
	for i := range 200 {
		promises = append(promises, w.send("hog", add{fmt.Sprint(i)}))
	}
	w.exec.RunUntil(func() bool { return promises[20].Done() })
	commits := store.Commits()
	_, err = w.ask("small", add{"a"})
	w.must(err)
	require.LessOrEqual(t, store.Commits()-commits, 4, "a small entity waits for a few commits only")
	for _, p := range promises {
		_, err := w.wait(p)
		w.must(err)
	}
	require.LessOrEqual(t, largest, 12<<20)
}

// TestAbandonedMessagesAreNotHandled: what nobody waits for any more when its
// turn comes is skipped.
func TestAbandonedMessagesAreNotHandled(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
	defer w.close()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	given := w.send("x", add{"b"})
	ctx, cancel := w.sys.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = given.Wait(ctx)
	require.ErrorIs(t, err, actor.ErrTimeout)
	_, err = w.ask("x", add{"c"})
	w.must(err)
	require.Equal(t, []string{"a", "c"}, w.log("x"))
}

// TestEmptyCreationListIsKept: a pod in which nothing creates stays so over a
// restart.
func TestEmptyCreationListIsKept(t *testing.T) {
	store := persisttest.NewMemory()
	ctx := context.Background()
	for round := range 2 {
		w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
		if round == 0 {
			_, _, _, err := w.pods.Declare(ctx, "shut", pod.Definition{Type: "document", Create: pod.CreateDefinition{By: []string{}}})
			w.must(err)
		}
		shut, err := w.pods.Pod("shut")
		w.must(err)
		require.Equal(t, []string{}, shut.Definition().Create.By)
		_, err = shut.Ask(ctx, "x", entity.Merge{"a": 1})
		require.ErrorIs(t, err, entity.ErrNotFound)
		w.close()
	}
}

// TestRefusedDropDisturbsNobody: writers do not notice that somebody tries to
// delete a pod that is not empty.
func TestRefusedDropDisturbsNobody(t *testing.T) {
	forSeeds(t, 30, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.close()
		ctx := context.Background()
		docs, _, _, err := w.pods.Declare(ctx, "docs", documentPod(""))
		w.must(err)
		_, err = docs.Ask(ctx, "x", entity.Merge{"n": 0})
		w.must(err)
		var failed []error
		writing := true
		w.sys.Go(func() {
			for i := range 50 {
				if _, err := docs.Ask(ctx, "x", entity.Merge{"n": i}); err != nil {
					failed = append(failed, err)
				}
			}
			writing = false
		})
		for writing {
			require.ErrorIs(t, w.pods.Drop(ctx, "docs", false), pod.ErrNotEmpty)
			w.exec.Step()
		}
		require.Empty(t, failed)
	})
}

// TestDamagedDefinition: a pod whose definition cannot be read is listed and
// read-only, everything else runs, and it serves again once it is declared.
func TestDamagedDefinition(t *testing.T) {
	store := persisttest.NewMemory()
	ctx := context.Background()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	for _, name := range []string{"good", "bad"} {
		p, _, _, err := w.pods.Declare(ctx, name, documentPod(""))
		w.must(err)
		_, err = p.Ask(ctx, "x", entity.Merge{"a": 1})
		w.must(err)
	}
	w.close()
	store.Damage(persist.Key{Pod: "$pods", Name: "bad"})
	w = newWorld(t, 2, store, ledgers(nil), pod.Config{})
	good, err := w.pods.Pod("good")
	w.must(err)
	_, err = good.Ask(ctx, "x", entity.Merge{"a": 2})
	w.must(err)
	bad, err := w.pods.Pod("bad")
	w.must(err)
	v, err := bad.Get(ctx, "x")
	w.must(err)
	state, err := v.JSON()
	w.must(err)
	require.JSONEq(t, `{"a":1}`, string(state))
	_, err = bad.Ask(ctx, "x", entity.Merge{"a": 2})
	require.ErrorIs(t, err, pod.ErrReadOnly)
	require.Len(t, w.pods.Quarantined(), 1)
	require.Equal(t, "bad", w.pods.Quarantined()[0].Pod)
	bad, _, changed, err := w.pods.Declare(ctx, "bad", documentPod(""))
	w.must(err)
	require.True(t, changed)
	require.Empty(t, w.pods.Quarantined())
	_, err = bad.Ask(ctx, "x", entity.Merge{"a": 2})
	w.must(err)
	w.close()
	w = newWorld(t, 3, store, ledgers(nil), pod.Config{})
	defer w.close()
	require.Empty(t, w.pods.Quarantined())
}

// TestReadsOutliveAStoreThatIsAway: what is in memory can be read while the
// store is being reopened, also after a commit of unknown outcome.
func TestReadsOutliveAStoreThatIsAway(t *testing.T) {
	faults := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, faults, ledgers(nil), pod.Config{})
	defer w.close()
	for _, name := range []string{"x", "y"} {
		_, err := w.ask(name, add{"a"})
		w.must(err)
	}
	faults.FailReopens(20)
	faults.OnCommit(faults.Commits()+1, persisttest.UnknownLost)
	_, err := w.ask("x", add{"b"})
	require.ErrorIs(t, err, persist.ErrUnknown)
	for range 3 {
		require.Equal(t, []string{"a"}, w.log("x"))
		require.Equal(t, []string{"a"}, w.log("y"))
		_, err = w.ask("x", add{"c"})
		require.ErrorIs(t, err, persist.ErrUnavailable)
	}
	w.exec.RunFor(5 * time.Minute)
	_, err = w.ask("x", add{"d"})
	w.must(err)
	require.Equal(t, []string{"a", "d"}, w.log("x"))
}
