package simulated

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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

// step is one of a plan: a room measures, so many things happen, or the process
// dies.
type step struct {
	room   string // "": none measures
	tenths int
	events int // 0: the process dies
}

func (s step) String() string {
	switch {
	case s.room != "":
		return fmt.Sprintf("%s measures %d", s.room, s.tenths)
	case s.events > 0:
		return fmt.Sprintf("%d things happen", s.events)
	}
	return "the process dies"
}

// plan makes the steps of a seed.
func plan(seed uint64) []step {
	rng := rand.New(rand.NewPCG(seed, 1))
	steps := make([]step, 20)
	for i := range steps {
		switch n := rng.IntN(20); {
		case n < 10:
			steps[i] = step{room: fmt.Sprintf("f%d-r%d", rng.IntN(2), rng.IntN(3)), tenths: 150 + rng.IntN(100)}
		case n < 19:
			steps[i] = step{events: 1 + rng.IntN(30)} // it need not come to rest
		}
	}
	return steps
}

// simulate carries out steps, lets everything come to rest, and returns what is
// wrong then, "" if nothing, and what happened.
func simulate(t *testing.T, typ entity.Type[Room], seed uint64, steps []step) (wrong string, log []string) {
	w := &world{t: t, typ: typ, seed: seed, rng: rand.New(rand.NewPCG(seed, 2)), store: persisttest.NewCrashStore()}
	w.store.Pause = w.sync
	w.start()
	for _, s := range steps {
		w.do(s)
	}
	w.exec.RunFor(time.Minute) // of virtual time: longer than any pause before a repetition
	wrong = w.check()
	w.crash()
	return wrong, w.log
}

// shrink drops steps for as long as what is left still fails.
func shrink(t *testing.T, typ entity.Type[Room], seed uint64, steps []step) []step {
	for i := len(steps) - 1; i >= 0; i-- {
		less := slices.Delete(slices.Clone(steps), i, i+1)
		if wrong, _ := simulate(t, typ, seed, less); wrong != "" {
			steps = less
		}
	}
	return steps
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

func (w *world) do(s step) {
	w.note("%v", s)
	switch {
	case s.room != "":
		require.NoError(w.t, w.rooms.Tell(context.Background(), s.room, Measured{s.tenths}))
	case s.events > 0:
		for range s.events {
			w.exec.Step()
		}
	default:
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
