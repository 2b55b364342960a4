package actor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// recorder keeps what it gets; ask it "?" for all so far.
type recorder struct {
	got     []any
	special func(ctx *actor.Context, msg any) bool
}

func (r *recorder) Receive(ctx *actor.Context, msg any) error {
	if r.special != nil && r.special(ctx, msg) {
		return nil
	}
	if msg == "?" {
		ctx.Respond(append([]any{}, r.got...))
		return nil
	}
	r.got = append(r.got, msg)
	return nil
}

func (r *recorder) ReceiveSystem(ctx *actor.Context, msg any) error {
	if msg == "resume" {
		ctx.Resume()
		return nil
	}
	r.got = append(r.got, fmt.Sprint("system ", msg))
	return nil
}

func recorderProps(special func(ctx *actor.Context, msg any) bool) actor.Props {
	return actor.PropsOf(func() actor.Actor { return &recorder{special: special} })
}

func TestFailMailboxRefusesWhatIsTooMuch(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		p := recorderProps(nil)
		p.Mailbox = actor.Mailbox{Capacity: 3, Policy: actor.Fail}
		p.Held = true
		r := spawn(t, sys, "a", p)
		for i := range 3 {
			require.NoError(t, r.Tell(i))
		}
		require.ErrorIs(t, r.Tell(3), actor.ErrMailboxFull)
		require.ErrorIs(t, r.TryPost(actor.Message{Payload: 3}), actor.ErrMailboxFull)
		_, err := r.Ask(context.Background(), 3)
		require.ErrorIs(t, err, actor.ErrMailboxFull)
		require.Equal(t, 3, r.MailboxLen())

		r.TellSystem("hello")
		r.TellSystem("resume")
		until(t, sys, func() bool { return r.MailboxLen() == 0 })
		require.Equal(t, []any{"system hello", 0, 1, 2}, ask(t, r, "?"))
		require.NoError(t, r.Tell(4))
	})
}

func TestAFullMailboxTakesPoisonTerminatedAndTimers(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		other := spawn(t, sys, "other", recorderProps(nil))
		held := make(chan struct{}, 1)
		var got []any
		a := &holder{f: func(ctx *actor.Context, msg any) error {
			if msg == "begin" {
				ctx.Watch(other)
				require.NoError(t, ctx.Tell(ctx.Self(), "fills"))
				ctx.ScheduleOnce(time.Millisecond, ctx.Self(), "tick")
				ctx.Hold()
				held <- struct{}{}
				return nil
			}
			if x, ok := msg.(actor.Terminated); ok {
				msg = x.Ref
			}
			got = append(got, msg)
			return nil
		}}
		r := spawn(t, sys, "r", actor.Props{
			New:     func() actor.Actor { return a },
			Mailbox: actor.Mailbox{Capacity: 1, Policy: actor.Fail},
		})
		require.NoError(t, r.Tell("begin"))
		until(t, sys, func() bool { return len(held) == 1 })
		require.ErrorIs(t, r.Tell("too much"), actor.ErrMailboxFull)
		other.Stop()
		awaitStop(t, other)
		until(t, sys, func() bool { return r.MailboxLen() == 3 })
		require.NoError(t, r.Tell(actor.PoisonPill{}))
		r.TellSystem("resume")
		awaitStop(t, r)
		require.ElementsMatch(t, []any{"fills", other, "tick"}, got)
		require.Equal(t, "fills", got[0])
	})
}

// holder is a function that can be resumed from outside.
type holder struct {
	f func(ctx *actor.Context, msg any) error
}

func (h *holder) Receive(ctx *actor.Context, msg any) error { return h.f(ctx, msg) }
func (h *holder) ReceiveSystem(ctx *actor.Context, _ any) error {
	ctx.Resume()
	return nil
}

func TestHoldKeepsUserMessagesAndResumeGoesOnInOrder(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		r := spawn(t, sys, "a", recorderProps(func(ctx *actor.Context, msg any) bool {
			if msg == "hold" {
				ctx.Hold()
			}
			return false
		}))
		for _, m := range []any{1, 2, "hold", 3, 4} {
			require.NoError(t, r.Tell(m))
		}
		until(t, sys, func() bool { return r.MailboxLen() == 2 })
		r.TellSystem("while held")
		require.NoError(t, r.Tell(5))
		r.TellSystem("resume")
		require.Equal(t, []any{1, 2, "hold", "system while held", 3, 4, 5}, ask(t, r, "?"))
	})
}

// retiring retires whenever it can. Every message must reach one of its lives.
func retiring(seen *atomic.Int64, lastOf *sync.Map) func() actor.Props {
	return func() actor.Props {
		return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			m := msg.(numbered)
			if last, ok := lastOf.Load(m.from); ok && last.(int)+1 != m.n {
				panic(fmt.Sprintf("sender %d: %d after %d", m.from, m.n, last))
			}
			lastOf.Store(m.from, m.n)
			seen.Add(1)
			if ctx.Retire() && m.n%2 == 0 {
				// Retired, but not stopped yet: nothing may get in any more.
				_ = ctx.System().Sleep(context.Background(), time.Microsecond)
			}
			return nil
		})
	}
}

func TestRetireLosesAndReordersNothing(t *testing.T) {
	run := func(t *testing.T, sys *actor.System, senders, each int, dispatch func(func())) (lives int64) {
		var seen, created atomic.Int64
		var lastOf sync.Map
		props := retiring(&seen, &lastOf)
		pod := spawn(t, sys, "", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
		var pending atomic.Int64
		pending.Store(int64(senders))
		for from := range senders {
			dispatch(func() {
				defer pending.Add(-1)
				var c *actor.Ref
				for n := 1; n <= each; n++ {
					m := actor.Message{Payload: numbered{from, n}}
					for c == nil || c.TryPost(m) != nil {
						var isNew bool
						var err error
						c, isNew, err = pod.EnsureChild("x", props)
						if err != nil {
							t.Error(err)
							return
						}
						if isNew {
							created.Add(1)
						}
					}
					if n%5 == 0 {
						_ = sys.Sleep(context.Background(), 50*time.Microsecond)
					}
				}
			})
		}
		until(t, sys, func() bool { return pending.Load() == 0 && seen.Load() == int64(senders*each) })
		require.Zero(t, sys.DeadLetters().Count())
		return created.Load()
	}
	t.Run("real", func(t *testing.T) {
		sys := realSystem(t)
		var lives int64
		for round := 0; lives <= 10 && round < 10; round++ { // a busy machine may need more than one
			lives += run(t, sys, 4, 1000, sys.Go)
		}
		require.Greater(t, lives, int64(10), "retiring never raced with sending")
	})
	t.Run("seeded", func(t *testing.T) {
		var lives int64
		for seed := range uint64(200) {
			exec := actortest.NewSeeded(seed)
			sys := actor.NewSystem("test", actor.Config{Executor: exec})
			lives += run(t, sys, 3, 10, sys.Go)
			stopSystem(t, sys)
			exec.Close()
		}
		require.Greater(t, lives, int64(400))
	})
}

func TestRetireRefusesWhileMessagesWait(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var could []bool
		r := spawn(t, sys, "a", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch msg {
			case "queued":
				_ = ctx.Tell(ctx.Self(), "next")
				could = append(could, ctx.Retire())
			case "next":
				_ = ctx.Stash()
				could = append(could, ctx.Retire())
				ctx.Become(func(ctx *actor.Context, msg any) error {
					could = append(could, ctx.Retire(), ctx.Self().Stopped())
					return nil
				})
				ctx.UnstashAll()
			}
			return nil
		}))
		require.NoError(t, r.Tell("queued"))
		awaitStop(t, r)
		require.Equal(t, []bool{false, false, true, true}, could)
		require.ErrorIs(t, r.TryPost(actor.Message{Payload: 1}), actor.ErrStopped)
	})
}

func TestSystemMessagesGoFirst(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		entered, leave := sys.NewWaiter(), sys.NewWaiter()
		r := spawn(t, sys, "a", recorderProps(func(ctx *actor.Context, msg any) bool {
			if msg == "block" {
				entered.Wake()
				_ = leave.Wait(context.Background())
			}
			return false
		}))
		require.NoError(t, r.Tell("block"))
		require.NoError(t, entered.Wait(context.Background()))
		require.NoError(t, r.Tell(1))
		r.TellSystem("x")
		leave.Wake()
		require.Equal(t, []any{"block", "system x", 1}, ask(t, r, "?"))
	})
}

// holdable holds its mailbox and lets go of it by messages of TellSystem.
type holdable struct{ seen []int } // how many waited when a system message came

func (h *holdable) Receive(*actor.Context, any) error { return nil }

func (h *holdable) ReceiveSystem(c *actor.Context, msg any) error {
	h.seen = append(h.seen, c.Self().MailboxLen())
	if msg == "hold" {
		c.Hold()
	} else {
		c.Resume()
	}
	return nil
}

// A message that found its actor at rest is in progress, but where a signal goes
// ahead of it, it waits.
func TestAMessageThatASignalOvertakesIsCounted(t *testing.T) {
	for seed := range uint64(20) {
		sys, _ := seededSystem(t, seed)
		h := &holdable{}
		r := spawn(t, sys, "a", actor.PropsOf(func() actor.Actor { return h }))
		until(t, sys, func() bool { return r.Load() == 0 })

		require.NoError(t, r.Tell("waits"))
		require.Zero(t, r.MailboxLen())
		require.Equal(t, 1, r.Load())
		r.TellSystem("hold")
		until(t, sys, func() bool { return len(h.seen) == 1 && r.Load() == 1 })
		require.Equal(t, 1, r.MailboxLen(), "it is held")
		require.NoError(t, r.Tell("too"))
		require.Equal(t, 2, r.MailboxLen())

		r.TellSystem("resume")
		until(t, sys, func() bool { return r.Load() == 0 })
		require.Zero(t, r.MailboxLen())
		require.Equal(t, []int{1, 2}, h.seen)
	}
}
