package patterns_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// world is a system under the seeded executor, and what came of it. Everything
// runs on the test's goroutine.
type world struct {
	*rand.Rand // choices of the scenario, from the seed
	t          testing.TB
	exec       *actortest.Seeded
	sys        *actor.System
	asks       []*asked
	dead       []actor.ZombieMsg
}

// asked is an ask and how it ended.
type asked struct {
	msg   any
	v     any
	err   error
	ended int
}

func newWorld(t testing.TB, seed uint64) *world {
	exec := actortest.NewSeeded(seed)
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, exec: exec}
	w.sys = actor.NewSystem("seeded", actor.Config{Executor: exec})
	w.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { w.dead = append(w.dead, z) })
	return w
}

// oneWorld is for a test of one seed.
func oneWorld(t *testing.T) *world {
	w := newWorld(t, 1)
	t.Cleanup(w.close)
	return w
}

// underSeeds plays a scenario under 1,000 seeds, 100 where that takes long.
// PATTERNS_SEED=n plays only that one.
func underSeeds(t *testing.T, play func(w *world)) {
	first, seeds := uint64(1), uint64(1000)
	if raceEnabled || testing.Short() {
		seeds = 100
	}
	if s := os.Getenv("PATTERNS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		first, seeds = n, 1
	}
	for seed := first; seed < first+seeds; seed++ {
		w := newWorld(t, seed)
		done := false
		func() {
			defer func() {
				if !done {
					t.Logf("PATTERNS_SEED=%d go test ./actor/patterns -run '^%s$'", seed, t.Name())
				}
			}()
			play(w)
			w.close()
			done = true
		}()
	}
}

// close stops the system. Then every ask has ended, once.
func (w *world) close() {
	require.NoError(w.t, w.sys.Stop(context.Background()))
	w.exec.Run()
	w.exec.Close()
	for _, a := range w.asks {
		require.Equal(w.t, 1, a.ended, "the ask of %T %v", a.msg, a.msg)
	}
}

// ask asks without waiting.
func (w *world) ask(to actor.Target, msg any) *asked { return w.askFrom(to, msg, nil) }

func (w *world) askFrom(to actor.Target, msg any, sender *actor.Ref) *asked {
	a := &asked{msg: msg}
	w.asks = append(w.asks, a)
	reply := w.sys.OnReply(func(v any, err error) { a.v, a.err, a.ended = v, err, a.ended+1 })
	if err := to.Post(actor.Message{Payload: msg, Sender: sender, Reply: reply}); err != nil {
		reply.Fail(err)
	}
	return a
}

// answer asks and runs until there is an answer.
func (w *world) answer(to actor.Target, msg any) any {
	a := w.ask(to, msg)
	w.exec.RunUntil(func() bool { return a.ended > 0 })
	require.NoError(w.t, a.err, "the ask of %T %v", msg, msg)
	return a.v
}

func (w *world) spawn(name string, p actor.Props) *actor.Ref {
	r, err := w.sys.Spawn(name, p)
	require.NoError(w.t, err)
	return r
}

// later does f at some moment of the next d.
func (w *world) later(d time.Duration, f func()) {
	w.sys.After(time.Duration(w.Int64N(int64(d))), f)
}

// deadOf returns the dead letters whose message is of type T.
func deadOf[T any](w *world) (all []actor.ZombieMsg) {
	for _, z := range w.dead {
		if _, ok := z.Message.Payload.(T); ok {
			all = append(all, z)
		}
	}
	return all
}

// recorder is an actor that keeps whole messages.
type recorder struct {
	ref *actor.Ref
	got []actor.Message
}

func (w *world) recorder(name string) *recorder {
	r := &recorder{}
	r.ref = w.spawn(name, actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		r.got = append(r.got, ctx.Message())
		return nil
	}))
	return r
}

// of returns the payloads of type T that a recorder has got.
func of[T any](r *recorder) (all []T) {
	for _, m := range r.got {
		if v, ok := m.Payload.(T); ok {
			all = append(all, v)
		}
	}
	return all
}
