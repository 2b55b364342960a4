package actor_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

// deferring hands the promise of each ask to a channel.
func deferring(to chan *actor.Promise) actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		to <- ctx.Defer()
		return nil
	})
}

func TestGivenUpTellsAbandonedFromAnswered(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		asked := make(chan *actor.Promise, 1)
		r := spawn(t, sys, "", deferring(asked))
		ways := []struct {
			name  string
			ctx   func() (context.Context, context.CancelFunc)
			after func(p *actor.Promise, cancel context.CancelFunc)
			up    bool
		}{
			{"answered", background, func(p *actor.Promise, _ context.CancelFunc) { p.Complete(1) }, false},
			{"failed", background, func(p *actor.Promise, _ context.CancelFunc) { p.Fail(errTest) }, false},
			{"failed with a timeout of the answerer's", background, func(p *actor.Promise, _ context.CancelFunc) { p.Fail(actor.ErrTimeout) }, false},
			{"cancelled", func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) },
				func(_ *actor.Promise, cancel context.CancelFunc) { cancel() }, true},
			{"late", func() (context.Context, context.CancelFunc) {
				return sys.WithTimeout(context.Background(), time.Second) // it is sent before, on a busy machine too
			}, func(*actor.Promise, context.CancelFunc) {}, true},
		}
		for _, w := range ways {
			ctx, cancel := w.ctx()
			done := make(chan error, 1)
			sys.Go(func() {
				_, err := r.Ask(ctx, w.name)
				done <- err
			})
			until(t, sys, func() bool { return len(asked) == 1 })
			p := <-asked
			w.after(p, cancel)
			until(t, sys, func() bool { return len(done) == 1 })
			require.True(t, p.Done(), w.name)
			require.Equal(t, w.up, p.GivenUp(), w.name)
			require.False(t, p.Complete("late"), w.name)
			require.Equal(t, w.up, p.GivenUp(), "%s: for ever", w.name)
			cancel()
		}
		require.False(t, sys.NewPromise().GivenUp())
		p := sys.OnReply(func(any, error) {})
		p.Complete(1)
		require.False(t, p.GivenUp())
	})
}

func background() (context.Context, context.CancelFunc) { return context.Background(), func() {} }

// The limit of an ask without a deadline is kept by another clock.
func TestGivenUpAfterAskTimeout(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{AskTimeout: 16 * time.Millisecond})
	t.Cleanup(func() { stopSystem(t, sys) })
	asked := make(chan *actor.Promise, 1)
	_, err := spawn(t, sys, "", deferring(asked)).Ask(context.Background(), 1)
	require.ErrorIs(t, err, actor.ErrTimeout)
	require.True(t, (<-asked).GivenUp())
}

// What GivenUp says agrees with who won, the asker or the answer, whichever way
// the race goes and however early it is asked.
func TestGivenUpAgreesWithTheAskersOutcome(t *testing.T) {
	sys := realSystem(t)
	for range 2000 {
		ctx, cancel := context.WithCancel(context.Background())
		p := sys.NewPromise()
		var early, took bool
		var all sync.WaitGroup
		all.Go(func() {
			early = p.GivenUp()
			took = p.Complete(1)
		})
		all.Go(cancel)
		_, err := p.Wait(ctx)
		all.Wait()
		require.False(t, early && took, "given up, and yet answered")
		require.Equal(t, took, err == nil)
		require.Equal(t, !took, p.GivenUp())
	}
}

// Who has deferred an answer may look at the message again while another
// goroutine answers. (For the race detector.)
func TestAMessageMayBeReadWhileItIsAnswered(t *testing.T) {
	sys := realSystem(t)
	r := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		p := ctx.Defer()
		go p.Complete(msg)
		ctx.Message()
		ctx.Defer()
		return nil
	}))
	for n := range 2000 {
		require.Equal(t, n, ask(t, r, n))
	}
}

// A panic of who hears of an answer harms nobody, whoever answers: a handler, its
// failure, a stop that finds the ask in the mailbox.
func TestAPanicOfOnReplyIsLogged(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var calls atomic.Int32
		bad := func() *actor.Promise {
			return sys.OnReply(func(any, error) {
				calls.Add(1)
				panic("bad")
			})
		}
		r := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch msg {
			case "respond":
				ctx.Respond(1)
			case "fail":
				return errTest
			case "hold":
				ctx.Hold()
			}
			return nil
		}))
		for _, msg := range []any{"respond", "fail", "unanswered", "hold", "left", "poison"} {
			if msg == "poison" {
				msg = actor.PoisonPill{}
			}
			require.NoError(t, r.Post(actor.Message{Payload: msg, Reply: bad()}))
		}
		r.Stop()
		awaitStop(t, r)
		until(t, sys, func() bool { return calls.Load() == 6 })
	})
}

// sameAsAny is an error that says yes to whoever asks whether it is one of his.
type sameAsAny struct{}

func (sameAsAny) Error() string { return "mine" }
func (sameAsAny) As(any) bool   { return true }

func TestAnErrorComesBackAsItIsWhateverItSaysOfItself(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	r := spawn(t, sys, "", actor.PropsFunc(func(*actor.Context, any) error { return sameAsAny{} }))
	_, err := r.Ask(context.Background(), 1)
	require.Equal(t, sameAsAny{}, err)
	_, err = actor.Ask[int](context.Background(), sys.Select(r.Path()), 1)
	require.Equal(t, sameAsAny{}, err)
}
