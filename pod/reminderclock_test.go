package pod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// wrongClock is an executor whose time of day can be set.
type wrongClock struct {
	*actortest.Seeded
	ahead time.Duration
}

func (c *wrongClock) Now() time.Time { return c.Seeded.Now().Add(c.ahead) }

// TestRemindersWhenTheClockIsSet: whether it is set forward or back, a reminder
// comes within a minute of its time of day, and not before.
func TestRemindersWhenTheClockIsSet(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	clock := &wrongClock{Seeded: actortest.NewSeeded(1)}
	w := &desk{world: &world{t: t, seed: 1, exec: clock.Seeded, store: store, sys: actor.NewSystem("test", actor.Config{Executor: clock})}}
	var err error
	w.pods, err = pod.Open(w.sys, store, pod.Config{IdleAfter: time.Second})
	w.must(err)
	w.d, err = pod.Start(w.pods, diaries()["sync"])
	w.must(err)
	const hour = 3600
	w.tell("a", plan{Name: "far", At: 100 * hour, Ring: ring{ID: "x"}})
	w.tell("a", plan{Name: "near", At: hour / 2, Ring: ring{ID: "y"}})

	w.until(10)
	clock.ahead = 100 * time.Hour // both have gone by
	store.OnCommit(store.Commits()+1, persisttest.FailBefore)
	w.until(75)
	require.ElementsMatch(t, []string{"x 360000", "y 1800"}, w.log("a"))

	w.tell("b", plan{Name: "r", At: 100*hour + 300, Ring: ring{ID: "z"}})
	clock.ahead = 0 // and it was wrong
	w.tell("b", plan{Name: "far", At: 5 * hour, Ring: ring{ID: "x"}})
	w.tell("b", plan{Name: "near", At: 120, Ring: ring{ID: "y"}})
	w.until(119)
	require.Empty(t, w.log("b"))
	w.until(121)
	require.Equal(t, []string{"y 120"}, w.log("b"))
	w.until(5*hour - 1)
	require.Equal(t, []string{"y 120"}, w.log("b"))
	w.until(5*hour + 60)
	require.Equal(t, []string{"y 120", "x 18000"}, w.log("b"))
	w.close()
}
