package actor_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

func stopSystem(tb testing.TB, sys *actor.System) {
	tb.Helper()
	ctx, cancel := sys.WithTimeout(context.Background(), waitLong)
	defer cancel()
	require.NoError(tb, sys.Stop(ctx))
}

func BenchmarkTell(b *testing.B) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer stopSystem(b, sys)
	done := make(chan struct{})
	n := 0
	ref, err := sys.Spawn("sink", actor.PropsFunc(func(*actor.Context, any) error {
		if n++; n == b.N {
			close(done)
		}
		return nil
	}))
	require.NoError(b, err)
	msg := any("x")
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_ = ref.Tell(msg)
	}
	<-done
}

func BenchmarkTellFromEight(b *testing.B) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer stopSystem(b, sys)
	done := make(chan struct{})
	const senders = 8
	per := b.N/senders + 1
	n := 0
	ref, err := sys.Spawn("sink", actor.PropsFunc(func(*actor.Context, any) error {
		if n++; n == per*senders {
			close(done)
		}
		return nil
	}))
	require.NoError(b, err)
	msg := any("x")
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for range per {
				_ = ref.Tell(msg)
			}
		})
	}
	wg.Wait()
	<-done
}

func BenchmarkPingPong(b *testing.B) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer stopSystem(b, sys)
	done := make(chan struct{})
	n := 0
	echo := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		return ctx.Tell(ctx.Sender(), msg)
	})
	pong, err := sys.Spawn("pong", echo)
	require.NoError(b, err)
	ping, err := sys.Spawn("ping", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if n++; n > b.N {
			close(done)
			return nil
		}
		return ctx.Tell(pong, msg)
	}))
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	_ = ping.Tell("x")
	<-done
}

func BenchmarkAsk(b *testing.B) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer stopSystem(b, sys)
	ref, err := sys.Spawn("echo", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		ctx.Respond(msg)
		return nil
	}))
	require.NoError(b, err)
	ctx := context.Background()
	msg := any("x")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ref.Ask(ctx, msg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSpawnStop(b *testing.B) {
	sys := actor.NewSystem("bench", actor.Config{})
	defer stopSystem(b, sys)
	props := actor.PropsFunc(func(*actor.Context, any) error { return nil })
	b.ReportAllocs()
	for b.Loop() {
		ref, err := sys.Spawn("", props)
		if err != nil {
			b.Fatal(err)
		}
		ref.Stop()
	}
}

// BenchmarkAskBesideBlockedHandlers asks an actor while as many others' handlers
// block; ms-to-block is how long it took until all of those had begun.
func BenchmarkAskBesideBlockedHandlers(b *testing.B) {
	for _, blocked := range []int{0, 64, 512, 4000} {
		b.Run(strconv.Itoa(blocked), func(b *testing.B) {
			sys := actor.NewSystem("bench", actor.Config{})
			defer stopSystem(b, sys)
			var begun sync.WaitGroup
			begun.Add(blocked)
			leave := make(chan struct{})
			defer close(leave)
			blocker := actor.PropsFunc(func(*actor.Context, any) error {
				begun.Done()
				<-leave
				return nil
			})
			begin := time.Now()
			for range blocked {
				r, err := sys.Spawn("", blocker)
				require.NoError(b, err)
				require.NoError(b, r.Tell("x"))
			}
			begun.Wait()
			took := time.Since(begin)
			echo, err := sys.Spawn("echo", actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil }))
			require.NoError(b, err)
			msg := any("x")
			for b.Loop() {
				_, _ = echo.Ask(context.Background(), msg)
			}
			b.ReportMetric(float64(took.Milliseconds()), "ms-to-block")
		})
	}
}
