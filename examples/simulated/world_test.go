package simulated

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// world is one run: a store, and the process that is using it. All of it is on
// the test's goroutine, and all that is by chance comes from the seed.
type world struct {
	t     *testing.T
	typ   entity.Type[Room]
	seed  uint64
	rng   *rand.Rand
	store *persisttest.CrashStore
	log   []string

	// These are of the process, and new after a crash.
	number uint64
	exec   *actortest.Seeded
	sys    *actor.System
	pods   *pod.Pods
	rooms  *pod.Handle[Room]
	floors *pod.Handle[Floor]
}

// simulate runs so many steps of a seed's plan, lets everything come to rest,
// and returns what is wrong then, "" if nothing, and what happened.
func simulate(t *testing.T, typ entity.Type[Room], seed uint64, steps int) (wrong string, log []string) {
	w := &world{t: t, typ: typ, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), store: persisttest.NewCrashStore()}
	w.store.Pause = w.sync
	w.start()
	for range steps {
		w.step()
	}
	w.exec.RunFor(time.Minute) // of virtual time: longer than any pause before a repetition
	wrong = w.check()
	w.crash()
	return wrong, w.log
}

// start begins a process on what the store holds.
func (w *world) start() {
	w.number++
	w.exec = actortest.NewSeeded(w.seed<<8 + w.number)
	w.sys = actor.NewSystem("campus", actor.Config{Executor: w.exec, Logger: slog.New(slog.DiscardHandler)})
	var err error
	w.pods, err = pod.Open(w.sys, w.store, pod.Config{})
	require.NoError(w.t, err)
	w.pods.OnChange(func(c persist.Change) { w.note("%s has revision %d", c.Key, c.Revision) })
	w.floors, err = pod.Start(w.pods, Floors)
	require.NoError(w.t, err)
	w.rooms, err = pod.Start(w.pods, w.typ)
	require.NoError(w.t, err)
}

// crash ends the process where it stands. First the store: nothing that the end
// of the executor still sets free can be written.
func (w *world) crash() {
	w.store = w.store.Crash(w.seed<<8 + w.number)
	w.exec.Close()
}

// sync takes up to ten milliseconds.
func (w *world) sync(ctx context.Context) error {
	return w.sys.Sleep(ctx, time.Duration(w.rng.IntN(10_000))*time.Microsecond)
}

// step does one thing: a room measures, time passes, or the process dies.
func (w *world) step() {
	switch n := w.rng.IntN(10); {
	case n < 6:
		room, tenths := fmt.Sprintf("f%d-r%d", w.rng.IntN(2), w.rng.IntN(3)), 150+w.rng.IntN(100)
		w.note("%s measures %d", room, tenths)
		require.NoError(w.t, w.rooms.Tell(context.Background(), room, Measured{tenths}))
	case n < 9:
		for range w.rng.IntN(30) { // it need not come to rest
			w.exec.Step()
		}
	default:
		w.note("the process dies")
		w.crash()
		w.start()
	}
}

// check compares the floors with their rooms.
func (w *world) check() string {
	ctx := context.Background()
	want := map[string]Floor{}
	rooms, _, err := w.rooms.List(ctx, persist.ListOptions{})
	require.NoError(w.t, err)
	for _, r := range rooms {
		f := want[floorOf(r.Name)]
		want[floorOf(r.Name)] = Floor{f.Rooms + 1, f.Tenths + r.State.Tenths}
	}
	floors, _, err := w.floors.List(ctx, persist.ListOptions{})
	require.NoError(w.t, err)
	got := map[string]Floor{}
	for _, f := range floors {
		got[f.Name] = f.State
	}
	for _, name := range []string{"f0", "f1"} { // not by the maps, which have no order
		if got[name] != want[name] {
			return fmt.Sprintf("floor %s has %+v, its rooms come to %+v", name, got[name], want[name])
		}
	}
	return ""
}

func (w *world) note(format string, args ...any) {
	at := w.exec.Now().Sub(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	w.log = append(w.log, fmt.Sprintf("process %d %10v  ", w.number, at)+fmt.Sprintf(format, args...))
}
