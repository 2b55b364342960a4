package pod_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestDeletedSourcedStaysDeleted: retention drops the events of an ended life
// before the change that ended it.
func TestDeletedSourcedStaysDeleted(t *testing.T) {
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(nil), pod.Config{Committer: persist.CommitterConfig{KeepChanges: 10}})
	defer x.close()
	noise := func() {
		for i := range 1500 {
			p := x.send("noise", fill{[]string{"n"}, 1})
			if i%100 == 99 {
				_, err := x.wait(p)
				x.must(err)
			}
		}
		x.exec.RunFor(time.Second)
	}
	_, err := x.ask("a", fill{ids("i", 3), 1})
	x.must(err)
	noise()
	_, err = x.ask("a", entity.Delete(entity.Condition{}))
	x.must(err)
	_, err = x.p.Get(t.Context(), "a")
	require.ErrorIs(t, err, entity.ErrNotFound)
	noise()
	left, err := store.Changes(t.Context(), persist.Key{Pod: "purses", Name: "a"}, 0, 0, 100)
	x.must(err)
	require.Empty(t, left)
	_, err = x.p.Get(t.Context(), "a")
	require.ErrorIs(t, err, entity.ErrNotFound, "it was deleted")
	_, err = x.ask("a", balance{})
	require.ErrorIs(t, err, entity.ErrNotFound, "it was deleted")
}

// TestDeletedWithoutRecordStaysDeleted: an unreadable entity is removed
// also if its record is lost and its events are there.
func TestDeletedWithoutRecordStaysDeleted(t *testing.T) {
	key := persist.Key{Pod: "purses", Name: "a"}
	for _, lost := range []string{"lost", "corrupt"} {
		t.Run(lost, func(t *testing.T) {
			store := persisttest.NewMemory()
			x := newTill(t, 1, store, purses(nil), pod.Config{})
			_, err := x.ask("a", fill{ids("i", 3), 1})
			x.must(err)
			x.kill()
			newer := purses(func(t *entity.Sourced[purse]) { delete(t.Events, "filled"); delete(t.Commands, "put") })
			if lost == "lost" {
				forceAway(t, store, key)
			} else {
				store.Damage(key)
			}
			x = newTill(t, 2, store, newer, pod.Config{})
			_, err = x.ask("a", balance{})
			require.ErrorIs(t, err, entity.ErrQuarantined)
			_, err = x.ask("a", entity.Delete(entity.Condition{}))
			x.must(err)
			x.exec.RunFor(time.Hour)
			_, err = x.ask("a", balance{})
			if !errors.Is(err, entity.ErrNotFound) {
				t.Errorf("after its deletion: %v", err)
			}
			x.close()
			x = newTill(t, 3, store, purses(nil), pod.Config{})
			v, err := x.ask("a", balance{})
			require.ErrorIs(t, err, entity.ErrNotFound, "revived with %v", v)
			x.close()
		})
	}
}

// TestFailedRebuildLeavesTheSnapshot: an entity whose snapshot is good stays in
// service when its old events are damaged.
func TestFailedRebuildLeavesTheSnapshot(t *testing.T) {
	key := persist.Key{Pod: "purses", Name: "a"}
	store := persisttest.NewMemory()
	x := newTill(t, 1, store, purses(nil), pod.Config{})
	_, err := x.ask("a", fill{ids("i", 7), 1})
	x.must(err)
	x.close()
	changes, err := store.Changes(t.Context(), key, 0, 0, 10)
	require.NoError(t, err)
	store.DamageChange(changes[2])
	x = newTill(t, 2, store, purses(nil), pod.Config{})
	defer x.close()
	_, err = x.ask("a", fill{ids("j", 1), 1})
	x.must(err)
	_, err = x.ask("a", entity.Rebuild())
	require.ErrorIs(t, err, entity.ErrQuarantined)
	x.get("a")
	_, err = x.ask("a", fill{ids("k", 1), 1})
	require.True(t, err == nil || len(x.pods.Quarantined()) == 1, "blocked, and not on the list")
}
