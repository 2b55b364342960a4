package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

var errTest = errors.New("on purpose")

// work is a job for a laborer.
type work struct {
	id int
	do string
}

// done is what a laborer answers.
type done struct{ id int }

// laborer does what a job says. begun is told of each.
func laborer(begun func(ctx *actor.Context, j work)) actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		j, ok := msg.(work)
		if !ok {
			return msg.(actor.PipeFailed).Err
		}
		if begun != nil {
			begun(ctx, j)
		}
		switch j.do {
		case "answer":
			ctx.Respond(done{j.id})
		case "tell":
			return ctx.Tell(ctx.Sender(), done{j.id})
		case "later":
			p := ctx.Defer()
			ctx.ScheduleOnce(time.Minute, ctx.Self(), "unused")
			sys := ctx.System()
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) {
				if err := sys.Sleep(c, 100*time.Millisecond); err != nil {
					return nil, err
				}
				p.Complete(done{j.id})
				return nil, nil
			})
		case "fail":
			return errTest
		case "panic":
			panic(errTest)
		case "fail later":
			ctx.Defer()
			ctx.PipeTo(ctx.Self(), func(context.Context) (any, error) { return nil, errTest })
		case "leave":
			ctx.Defer()
			ctx.StopSelf()
		case "hang":
			ctx.Defer()
		}
		return nil
	})
}

func TestServiceManagerHasEachMessageHandledByAWorkerOfItsOwn(t *testing.T) {
	w := oneWorld(t)
	workers := map[*actor.Ref]int{}
	m := w.spawn("m", patterns.ServiceManager(laborer(func(ctx *actor.Context, _ work) { workers[ctx.Self()]++ }), patterns.ServiceConfig{}))
	client := w.recorder("client")
	for id := range 20 {
		require.NoError(t, m.TellFrom(work{id, "answer"}, client.ref))
		require.Equal(t, done{id}, w.answer(m, work{id, "answer"}))
	}
	w.exec.Run()
	require.Len(t, workers, 40)
	require.Empty(t, m.Children(), "workers end")
	require.Len(t, of[done](client), 20)
	for _, got := range client.got {
		require.Same(t, m, got.Sender, "the answer seems to come from the manager")
	}
	require.Empty(t, w.dead)
	require.Equal(t, patterns.State{Capacity: 10_000, Passed: 40}, w.answer(m, patterns.Status{}))
}

func TestServiceManagerPassesOnWhatAWorkerTellsItsSender(t *testing.T) {
	w := oneWorld(t)
	m := w.spawn("m", patterns.ServiceManager(actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		for n := range 3 {
			ctx.Tell(ctx.Sender(), n)
		}
		ctx.Tell(ctx.Sender(), patterns.Pause{}) // not for the manager
		ctx.Respond("end")
		return nil
	}), patterns.ServiceConfig{}))
	client := w.recorder("client")
	require.NoError(t, m.TellFrom("begin", client.ref))
	w.exec.Run()
	require.Len(t, client.got, 5)
	for i, want := range []any{0, 1, 2, patterns.Pause{}, "end"} {
		require.Equal(t, want, client.got[i].Payload)
		require.Same(t, m, client.got[i].Sender)
	}
	require.False(t, w.answer(m, patterns.Status{}).(patterns.State).Paused)
}

func TestServiceManagerHowAJobEnds(t *testing.T) {
	for do, want := range map[string]struct {
		asked error
		told  error // of the dead letter
	}{
		"answer":     {nil, nil},
		"later":      {nil, nil},
		"nothing":    {actor.ErrNoReply, nil},
		"leave":      {actor.ErrNoReply, nil},
		"fail":       {errTest, errTest},
		"panic":      {errTest, errTest},
		"fail later": {errTest, errTest},
	} {
		t.Run(do, func(t *testing.T) {
			w := oneWorld(t)
			m := w.spawn("m", patterns.ServiceManager(laborer(nil), patterns.ServiceConfig{Slots: 1}))
			client := w.recorder("client")
			require.NoError(t, m.TellFrom(work{1, do}, client.ref))
			a := w.ask(m, work{2, do})
			w.exec.RunFor(time.Second)
			require.Equal(t, 1, a.ended)
			require.ErrorIs(t, a.err, want.asked)
			dead := deadOf[work](w)
			if want.told == nil {
				require.Empty(t, dead)
			} else {
				require.Len(t, dead, 1)
				require.ErrorIs(t, dead[0].Reason, want.told)
				require.Equal(t, m.Path(), dead[0].To)
			}
			if want.asked == nil {
				require.Equal(t, done{2}, a.v)
				require.Equal(t, []done{{1}}, of[done](client))
			} else {
				require.Empty(t, client.got)
			}
			require.Empty(t, m.Children(), "the slot is free")
			require.Zero(t, w.answer(m, patterns.Status{}).(patterns.State).Active)
		})
	}
}

func TestServiceManagerQueue(t *testing.T) {
	w := oneWorld(t)
	var begun []int
	m := w.spawn("m", patterns.ServiceManager(
		laborer(func(_ *actor.Context, j work) { begun = append(begun, j.id) }),
		patterns.ServiceConfig{Slots: 2, Queue: 3}))
	state := func() patterns.State { return w.answer(m, patterns.Status{}).(patterns.State) }
	var asks []*asked
	for id := range 6 {
		asks = append(asks, w.ask(m, work{id, "hang"}))
		w.exec.Run()
	}
	require.NoError(t, m.Tell(work{6, "hang"}))
	w.exec.Run()
	require.Equal(t, []int{0, 1}, begun)
	require.Equal(t, patterns.State{Waiting: 3, Capacity: 3, Active: 2, Passed: 2, Refused: 2}, state())
	var full *actor.FullError
	require.ErrorAs(t, asks[5].err, &full)
	require.Equal(t, &actor.FullError{Ref: m, Capacity: 3}, full)
	require.Len(t, deadOf[work](w), 2, "what overflows is reported")

	// A worker that is stopped from outside frees its slot; what waits is next.
	m.Children()[0].Stop()
	w.exec.Run()
	require.Equal(t, []int{0, 1, 2}, begun)
	require.ErrorIs(t, asks[0].err, actor.ErrStopped)

	require.True(t, w.answer(m, patterns.Pause{}).(patterns.State).Paused)
	for _, child := range m.Children() {
		child.Stop()
	}
	w.exec.Run()
	require.Len(t, begun, 3, "paused")
	require.Equal(t, patterns.State{Paused: true, Waiting: 2, Capacity: 3, Passed: 3, Refused: 2}, state())
	asks = append(asks, w.ask(m, work{7, "hang"}))
	w.exec.Run()
	require.Equal(t, 3, state().Waiting, "what comes in waits")
	require.NoError(t, m.Tell(patterns.Continue{}))
	w.exec.Run()
	require.Equal(t, []int{0, 1, 2, 3, 4}, begun, "in order")

	// When the manager stops, every ask ends.
	m.Stop()
	w.exec.Run()
	for _, a := range asks[3:5] {
		require.ErrorIs(t, a.err, actor.ErrStopped)
	}
	require.ErrorIs(t, asks[6].err, actor.ErrStopped)
	require.Len(t, deadOf[work](w), 3, "what waited is a dead letter")
}

func TestServiceManagerWithoutAQueue(t *testing.T) {
	w := oneWorld(t)
	m := w.spawn("m", patterns.ServiceManager(laborer(nil), patterns.ServiceConfig{Slots: 1, Queue: -1}))
	w.ask(m, work{1, "hang"})
	second := w.ask(m, work{2, "hang"})
	w.exec.Run()
	require.ErrorIs(t, second.err, actor.ErrMailboxFull)
}

// A worker that took its message over and never answers does not keep its slot.
func TestServiceManagerTimeout(t *testing.T) {
	w := oneWorld(t)
	m := w.spawn("m", patterns.ServiceManager(laborer(nil), patterns.ServiceConfig{Slots: 1, Timeout: 10 * time.Second}))
	begun := w.sys.Now()
	quick := w.ask(m, work{1, "later"})
	w.exec.Run()
	require.NoError(t, quick.err)
	require.Less(t, w.sys.Now().Sub(begun), time.Second, "no timer is left")
	hangs := w.ask(m, work{2, "hang"})
	require.NoError(t, m.TellFrom(work{3, "hang"}, w.recorder("client").ref))
	next := w.ask(m, work{4, "answer"})
	w.exec.RunFor(9 * time.Second)
	require.Zero(t, hangs.ended)
	w.exec.RunFor(2 * time.Second)
	require.ErrorIs(t, hangs.err, actor.ErrTimeout)
	require.Zero(t, next.ended)
	w.exec.RunFor(10 * time.Second)
	require.Equal(t, done{4}, next.v)
	require.Empty(t, m.Children())
	require.Len(t, deadOf[work](w), 1)
	require.ErrorIs(t, deadOf[work](w)[0].Reason, actor.ErrTimeout)
}

func TestServiceManagerNeedsAWorker(t *testing.T) {
	w := oneWorld(t)
	_, err := w.sys.Spawn("m", patterns.ServiceManager(actor.Props{}, patterns.ServiceConfig{}))
	require.ErrorIs(t, err, actor.ErrInvalid)
}

// Whatever jobs do, and whoever is paused or stopped meanwhile: each job is
// handled once, or is a dead letter, and there are never too many workers.
func TestServiceManagerUnderSeeds(t *testing.T) {
	dos := []string{"answer", "answer", "tell", "later", "nothing", "fail", "panic", "fail later", "leave", "hang"}
	underSeeds(t, func(w *world) {
		cfg := patterns.ServiceConfig{Slots: 1 + w.IntN(4), Queue: 1 + w.IntN(20), Timeout: time.Duration(w.IntN(3)) * 70 * time.Millisecond}
		handled := map[int]int{}
		var m *actor.Ref
		m = w.spawn("m", patterns.ServiceManager(laborer(func(_ *actor.Context, j work) {
			handled[j.id]++
			live := 0
			for _, child := range m.Children() {
				if !child.Stopped() {
					live++
				}
			}
			require.LessOrEqual(w.t, live, cfg.Slots)
		}), cfg))
		clients := []*recorder{w.recorder("a"), w.recorder("b")}
		told := map[int]string{}
		id := 0
		for range 30 {
			id++
			j := work{id, dos[w.IntN(len(dos))]}
			if ask := w.IntN(2) == 0; ask {
				if j.do == "tell" {
					j.do = "answer"
				}
				w.later(time.Second, func() { w.ask(m, j) })
			} else {
				told[id] = j.do
				from := clients[w.IntN(2)].ref
				w.later(time.Second, func() { m.TellFrom(j, from) })
			}
		}
		for range w.IntN(3) {
			w.later(time.Second, func() { m.Tell(patterns.Pause{}) })
			w.later(2*time.Second, func() { m.Tell(patterns.Continue{}) })
		}
		stopped := w.IntN(3) == 0
		if stopped {
			w.later(2*time.Second, m.Stop)
		} else {
			w.sys.After(2*time.Second, func() { m.Tell(patterns.Continue{}) })
		}
		for range 100 { // so that what hangs gives way
			w.later(4*time.Second, func() {
				if c := m.Children(); len(c) > 0 {
					c[0].Stop()
				}
			})
		}
		w.exec.Run()
		if !stopped {
			state := w.answer(m, patterns.Status{}).(patterns.State)
			require.Zero(w.t, state.Waiting)
			require.EqualValues(w.t, id, state.Passed+state.Refused)
		}
		dead := map[int]int{}
		for _, z := range deadOf[work](w) {
			dead[z.Message.Payload.(work).id]++
		}
		for n := 1; n <= id; n++ {
			require.LessOrEqual(w.t, handled[n], 1)
			require.LessOrEqual(w.t, dead[n], 2, "once by the manager, once by a worker that took no more")
			require.Positive(w.t, handled[n]+dead[n], "job %d is lost", n)
		}
		answers := map[int]int{}
		for _, c := range clients {
			for _, got := range c.got {
				require.Same(w.t, m, got.Sender)
				answers[got.Payload.(done).id]++
			}
		}
		for n := range answers {
			require.Equal(w.t, 1, answers[n])
			require.Equal(w.t, 1, handled[n])
		}
		for n, do := range told {
			if handled[n] == 1 && !stopped && (do == "answer" || do == "tell") {
				require.Equal(w.t, 1, answers[n], "the answer to job %d (%s)", n, do)
			}
		}
	})
}

// A million jobs go through ten slots, none lost and none twice. PATTERNS_JOBS
// is another number.
func TestManyJobsThroughTenSlots(t *testing.T) {
	jobs := 1_000_000
	if testing.Short() || raceEnabled {
		jobs = 100_000
	}
	if s := os.Getenv("PATTERNS_JOBS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		jobs = n
	}
	sys := actor.NewSystem("many", actor.Config{AskTimeout: 10 * time.Minute}) // an answer that comes late is a dead letter
	seen := make([]atomic.Int32, jobs)
	var working, most atomic.Int32
	worker := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		n := working.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		id := msg.(int)
		seen[id].Add(1)
		if id%3 == 0 && id%1000 != 0 {
			ctx.Respond(id)
		}
		working.Add(-1)
		if id%1000 == 0 {
			return fmt.Errorf("job %d: %w", id, errTest)
		}
		return nil
	})
	m, err := sys.Spawn("m", patterns.ServiceManager(worker, patterns.ServiceConfig{Slots: 10, Queue: jobs}))
	require.NoError(t, err)
	var answers atomic.Int64
	client, err := sys.Spawn("client", actor.PropsFunc(func(*actor.Context, any) error {
		answers.Add(1)
		return nil
	}))
	require.NoError(t, err)
	const senders = 4
	for s := range senders {
		sys.Go(func() {
			for id := s; id < jobs; id += senders {
				m.TellFrom(id, client)
			}
		})
	}
	var state patterns.State
	require.Eventually(t, func() bool {
		v, err := actor.Ask[patterns.State](context.Background(), m, patterns.Status{})
		state = v
		return err == nil && state.Passed == uint64(jobs) && state.Active == 0
	}, 5*time.Minute, 5*time.Millisecond)
	for id := range seen {
		if n := seen[id].Load(); n != 1 {
			t.Fatalf("job %d was done %d times", id, n)
		}
	}
	require.LessOrEqual(t, most.Load(), int32(10))
	require.Zero(t, state.Refused)
	failing := (jobs + 999) / 1000
	thirds, both := (jobs+2)/3, (jobs+2999)/3000
	require.EqualValues(t, failing, sys.DeadLetters().Count(), "those that failed, and no others")
	require.Eventually(t, func() bool { return answers.Load() == int64(thirds-both) }, time.Minute, time.Millisecond)
	require.NoError(t, sys.Stop(context.Background()))
}
