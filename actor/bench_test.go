package actor_test

import (
	"context"
	"sync"
	"testing"

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
