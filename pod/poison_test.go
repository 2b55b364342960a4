package pod_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// fewAtATime makes groups small, so that commits of one entity are in flight
// one behind the other.
func fewAtATime(n int) pod.Config {
	return pod.Config{Committer: persist.CommitterConfig{MaxUnits: n}}
}

// TestPoisonedActivation: commit k fails while k+1 … k+20 are queued behind it.
func TestPoisonedActivation(t *testing.T) {
	faults := map[string]persisttest.Fault{
		"fails": persisttest.FailBefore, "unknown and applied": persisttest.UnknownApplied,
		"unknown and lost": persisttest.UnknownLost, "refused": persisttest.RefuseUnit,
		"conflict": persisttest.ConflictUnit, "group refused": persisttest.RefuseGroup,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 100, func(t *testing.T, seed uint64) { poisoned(t, seed, fault) })
		})
	}
}

func poisoned(t *testing.T, seed uint64, fault persisttest.Fault) {
	faults := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, seed, faults, ledgers(nil), fewAtATime(1+int(seed%7)))
	defer w.close()
	_, err := w.ask("x", add{"first"})
	w.must(err)

	const bad = 5 // the revision whose commit goes wrong
	spent := false
	faults.OnUnits(func(u persist.Unit) bool {
		hit := !spent && u.Key.Name == "x" && u.Expect == bad-1
		return hit
	}, fault)
	sent := ids("m", 25)
	promises := make([]*actor.Promise, len(sent))
	for i, id := range sent {
		promises[i] = w.send("x", add{id})
	}
	var acked, unknown []string
	for i, p := range promises {
		ack, err := w.wait(p)
		switch {
		case err == nil:
			acked = append(acked, sent[i])
			require.EqualValues(t, len(acked)+1, ack.(entity.Ack).Revision)
		case len(acked)+1 == i+1 && i == bad-2: // the guilty one or one of its group
			unknown = append(unknown, sent[i])
		}
	}
	require.Less(t, len(acked), bad-1, "nothing from the failed commit on is acknowledged: %v", acked)
	spent = true

	var log []string
	require.Eventually(t, func() bool { // virtual time passes while the store reopens
		w.exec.RunFor(10 * time.Second)
		v, err := w.ask("x", peek{})
		if err == nil {
			log = v.([]string)
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, len(log), 1+len(acked))
	require.Equal(t, append([]string{"first"}, acked...), log[:1+len(acked)], "what was acknowledged is there")
	if fault != persisttest.UnknownApplied {
		require.Len(t, log, 1+len(acked), "and nothing else: %v", log)
	} else {
		require.Equal(t, append([]string{"first"}, sent[:len(log)-1]...), log, "an unknown commit may be there, whole")
	}
	require.Equal(t, log, w.log("x"), "the view is the durable state")

	ack, err := w.ask("x", add{"after"})
	w.must(err)
	require.EqualValues(t, len(log)+1, ack.(entity.Ack).Revision, "the entity goes on from the durable state")
	require.Equal(t, append(log, "after"), w.log("x"))
	_ = unknown
}

// TestPoisonReleasesNothing: effects of a turn whose commit fails, and of the
// turns computed on it, reach nobody.
func TestPoisonReleasesNothing(t *testing.T) {
	forSeeds(t, 200, func(t *testing.T, seed uint64) {
		faults := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, faults, ledgers(nil), fewAtATime(2))
		defer w.close()
		_, err := w.ask("x", add{"first"})
		w.must(err)
		stop := faults.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "x" && u.Expect == 3 }, persisttest.RefuseUnit)
		acked := 0
		var promises []*actor.Promise
		for i := range 10 {
			promises = append(promises, w.send("x", tally{Name: "y", ID: fmt.Sprint(i)}))
		}
		for _, p := range promises {
			if _, err := w.wait(p); err == nil {
				acked++
			}
		}
		stop()
		w.exec.RunFor(time.Minute)
		require.Equal(t, 2, acked)
		require.Equal(t, ids("", 2), w.log("y"))
	})
}

// TestOneBadUnitHarmsItselfAlone: a store that refuses whole groups for one
// unit's data gets them halved until the guilty unit stands alone.
func TestOneBadUnitHarmsItselfAlone(t *testing.T) {
	forSeeds(t, 100, func(t *testing.T, seed uint64) {
		faults := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, faults, ledgers(nil), pod.Config{})
		defer w.close()
		faults.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "e7" }, persisttest.RefuseGroup)
		promises := map[string]*actor.Promise{}
		for _, name := range ids("e", 32) {
			promises[name] = w.send(name, add{name})
		}
		for _, name := range ids("e", 32) {
			_, err := w.wait(promises[name])
			if name == "e7" {
				require.ErrorIs(t, err, persist.ErrInvalid)
				continue
			}
			w.must(err)
			require.Equal(t, []string{name}, w.log(name))
		}
		_, err := w.h.Get(context.Background(), "e7")
		require.ErrorIs(t, err, entity.ErrNotFound)
	})
}
