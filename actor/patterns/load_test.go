package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// patience is for what happens at once, on a machine that has other things to do.
const patience = 2 * time.Minute

// busy is a system on the real executor.
type busy struct {
	*testing.T
	sys *actor.System
}

func newBusy(t *testing.T) *busy {
	b := &busy{t, actor.NewSystem("busy", actor.Config{Workers: 4, AskTimeout: patience})}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, b.sys.Stop(ctx))
	})
	return b
}

func (b *busy) spawn(name string, p actor.Props) *actor.Ref {
	r, err := b.sys.Spawn(name, p)
	require.NoError(b, err)
	return r
}

// counter is an actor that counts messages.
func (b *busy) counter() (*actor.Ref, *atomic.Int64) {
	n := new(atomic.Int64)
	return b.spawn("", actor.PropsFunc(func(*actor.Context, any) error {
		n.Add(1)
		return nil
	})), n
}

func (b *busy) eventually(cond func() bool, what string) {
	require.Eventually(b, cond, patience, time.Millisecond, what)
}

// senders has f called by four goroutines for the numbers up to n, each once.
func (b *busy) senders(n int, f func(i int)) {
	var wg sync.WaitGroup
	for s := range 4 {
		wg.Go(func() {
			for i := s; i < n; i += 4 {
				f(i)
			}
		})
	}
	wg.Wait()
}

func TestBusyPipeline(t *testing.T) {
	b := newBusy(t)
	plus := func(c *actor.Context, msg any) error {
		n := msg.(int)
		switch {
		case n == 13: // seven times
			return errTest
		case n%10 == 0: // later, and elsewhere
			reply, done := c.Defer(), func(context.Context) (any, error) { return nil, nil }
			c.PipeTo(c.Self(), func(ctx context.Context) (any, error) {
				reply.Complete(n + 1000)
				return done(ctx)
			})
			return nil
		}
		c.Respond(n + 1000)
		return nil
	}
	stage := actor.PropsFunc(func(c *actor.Context, msg any) error {
		if msg == nil {
			return nil // of its own PipeTo
		}
		return plus(c, msg)
	})
	props, err := patterns.Pipeline(patterns.PipelineConfig{Limit: 1 << 20},
		patterns.Stage{Props: stage},
		patterns.PipelineHub("hub", patterns.Stage{Props: stage}, patterns.Stage{Props: stage}),
		patterns.Stage{Props: stage})
	require.NoError(t, err)
	pipe := b.spawn("pipe", props)
	client, told := b.counter()
	var failed atomic.Int64
	b.senders(2000, func(i int) {
		if i%2 == 0 {
			pipe.TellFrom(i%100, client)
			return
		}
		v, err := pipe.Ask(context.Background(), i%100)
		if errors.Is(err, errTest) {
			failed.Add(1)
		} else if err != nil || v != i%100+3000 {
			t.Errorf("%d became %v, %v", i, v, err)
		}
	})
	b.eventually(func() bool { return told.Load() == 2000 }, "two ways for each that was told")
	require.EqualValues(t, 20, failed.Load())
}

func TestBusyPubSub(t *testing.T) {
	b := newBusy(t)
	bus := b.spawn("bus", patterns.PubSub(patterns.PubSubConfig{Backlog: -1}))
	steady, got := b.counter()
	ctx := context.Background()
	_, err := bus.Ask(ctx, patterns.Subscribe{Ref: steady, Type: reflect.TypeFor[int]()})
	require.NoError(t, err)
	b.senders(2000, func(i int) {
		if i%10 == 0 {
			fickle, _ := b.counter()
			bus.TellFrom(patterns.SubscribeTo[int](), fickle)
			defer fickle.Stop()
		}
		if _, err := bus.Ask(ctx, i); err != nil {
			t.Error(err)
		}
	})
	b.eventually(func() bool { return got.Load() == 2000 }, "all that was published")
}

func TestBusyRelays(t *testing.T) {
	b := newBusy(t)
	echo := b.spawn("echo", actor.PropsFunc(func(c *actor.Context, msg any) error { c.Respond(msg); return nil }))
	rate := patterns.Rate{Every: time.Millisecond, Burst: 50}
	relays := []*actor.Ref{
		b.spawn("one", patterns.ThrottlingRelay(patterns.RelayConfig{Rate: rate, To: echo})),
		b.spawn("keyed", patterns.KeyedThrottlingRelay(patterns.KeyedRelayConfig{Rate: rate, To: echo, Keys: 7})),
	}
	b.senders(2000, func(i int) {
		v, err := relays[i%2].Ask(context.Background(), patterns.Proxy{Key: fmt.Sprint(i % 5), Message: i})
		if err != nil || v != i {
			t.Errorf("%d became %v, %v", i, v, err)
		}
		if i%100 < 2 {
			relays[i%2].Tell(patterns.Pause{})
			relays[i%2].Tell(patterns.Continue{})
		}
	})
}

func TestBusyReapers(t *testing.T) {
	b := newBusy(t)
	host := b.spawn("host", patterns.Null())
	total := 0
	for i := range 20 {
		total += i
		_, err := host.Spawn("", actor.PropsFunc(func(c *actor.Context, msg any) error {
			if msg != "count" {
				return nil
			}
			reply := c.Defer()
			c.PipeTo(c.Self(), func(context.Context) (any, error) {
				reply.Complete(i)
				return nil, nil
			})
			return nil
		}))
		require.NoError(t, err)
	}
	sum := func(_ any, r patterns.Reaped) (any, error) {
		n := 0
		for _, v := range patterns.ValuesOf[int](r) {
			n += v
		}
		if !r.Complete {
			n = -1
		}
		return n, nil
	}
	var reapers []*actor.Ref
	for range 3 {
		r, err := host.Spawn("", patterns.ReapTransform(patterns.ReapTransformConfig{Transform: sum, Timeout: patience}))
		require.NoError(t, err)
		reapers = append(reapers, r)
	}
	plain, err := host.Spawn("plain", patterns.Reaper(patterns.ReaperConfig{Timeout: patience}))
	require.NoError(t, err)
	b.senders(400, func(i int) {
		if i%4 == 0 { // one that comes and goes
			r, err := host.Spawn("", patterns.Reaper(patterns.ReaperConfig{}))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Stop()
		}
		if i%5 == 0 {
			r, err := actor.Ask[patterns.Reaped](context.Background(), plain, patterns.Reap{Message: "count", Children: host})
			if err != nil || !r.Complete || len(r.Results) != 20 {
				t.Errorf("%d: %v, %v", i, r, err)
			}
			return
		}
		n, err := actor.Ask[int](context.Background(), reapers[i%3], "count")
		if err != nil || n != total {
			t.Errorf("%d: %d, %v", i, n, err)
		}
	})
	// Deadlines and answers that meet.
	b.senders(200, func(i int) {
		_, err := actor.Ask[patterns.Reaped](context.Background(), plain,
			patterns.Reap{Message: "count", Children: host, Timeout: time.Duration(i) * time.Microsecond})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestBusyYesNo(t *testing.T) {
	b := newBusy(t)
	var others, answers atomic.Int64
	desk := b.spawn("desk", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch msg.(type) {
		case question:
			child, err := ctx.Spawn("", patterns.DelegatedYesNo(patterns.YesNoConfig{}))
			if err != nil {
				return err
			}
			ctx.DelegateTo(child)
			ctx.Respond(nil)
		case actor.DelegationEnded:
			answers.Add(1)
		case int:
			others.Add(1)
		}
		return nil
	}))
	for range 50 {
		_, err := desk.Ask(context.Background(), question{})
		require.NoError(t, err)
		b.senders(20, func(i int) {
			desk.Tell(i)
			if i == 10 {
				desk.Tell("yes")
			}
		})
		b.eventually(func() bool { return others.Load() == 20 && answers.Load() == 1 }, "each once")
		others.Store(0)
		answers.Store(0)
	}
	require.Zero(t, b.sys.DeadLetters().Count())
}

func TestBusyFutures(t *testing.T) {
	b := newBusy(t)
	echo := b.spawn("echo", actor.PropsFunc(func(c *actor.Context, msg any) error { c.Respond(msg); return nil }))
	s := patterns.NewCompletionService(b.sys, patterns.Config{Limit: 2, Waiting: 3, Timeout: patience})
	defer s.Close()
	b.senders(4000, func(i int) {
		f, err := s.Start(context.Background(), echo, i, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if v, err := f.Wait(context.Background()); err != nil || v != i {
			t.Errorf("%d became %v, %v", i, v, err)
		}
		if i%100 == 0 {
			s.Pause()
			s.Continue()
		}
	})
	require.Zero(t, s.Status().Active+s.Status().Waiting)
	require.EqualValues(t, 4000, s.Status().Passed)
}

// Who sees the end of a future finds room for another.
func TestBusyFuturesMakeRoom(t *testing.T) {
	b := newBusy(t)
	echo := b.spawn("echo", actor.PropsFunc(func(c *actor.Context, msg any) error { c.Respond(msg); return nil }))
	s := patterns.NewCompletionService(b.sys, patterns.Config{Limit: 4, Timeout: patience})
	defer s.Close()
	b.senders(20_000, func(i int) {
		f, err := s.Start(context.Background(), echo, i, 0)
		if err == nil {
			_, err = f.Wait(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
}
