package actortest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// failed stands in for a test that is expected to fail.
type failed struct {
	testing.TB
	msg string
}

func (f *failed) Helper() {}
func (f *failed) Fatalf(format string, _ ...any) {
	f.msg = format
	panic(f)
}

func mustFail(t *testing.T, f func()) {
	t.Helper()
	defer func() { _, ok := recover().(*failed); require.True(t, ok, "the expectation should have failed") }()
	f()
}

func TestProbe(t *testing.T) {
	seeded, _ := start(t, 1)
	onClock := actor.NewSystem("real", actor.Config{})
	defer func() { require.NoError(t, onClock.Stop(context.Background())) }()
	for _, sys := range []*actor.System{seeded, onClock} {
		p := actortest.NewProbe(&failed{TB: t}, sys, "probe")
		r := spawn(t, sys, "r", func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
		p.Send(r, 1)
		p.Send(r, 2)
		p.Expect(1)
		mustFail(t, func() { p.Expect(3) })
		p.Send(r, 4)
		mustFail(t, func() { p.ExpectNone(100 * time.Millisecond) })
		p.ExpectNone(time.Millisecond)
		p.Watch(r)
		r.Stop()
		require.NoError(t, p.ExpectTerminated(r))
		p.Do(func(ctx *actor.Context) { _ = ctx.Tell(ctx.Self(), "x") })
		require.Equal(t, "x", p.Next())
		require.Zero(t, p.Len())
		require.Empty(t, p.Payloads())
		mustFail(t, func() { actortest.NewProbe(&failed{TB: t}, sys, "probe") })

		// A test can answer an ask later.
		reply := sys.NewPromise()
		require.NoError(t, p.Ref().Post(actor.Message{Payload: "asked", Reply: reply}))
		m := p.NextMessage()
		require.Equal(t, "asked", m.Payload)
		m.Reply.Complete("answered")
		v, err := reply.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, "answered", v)
	}
	p := actortest.NewProbe(&failed{TB: t}, seeded, "patient")
	mustFail(t, func() { p.Next() })
}
