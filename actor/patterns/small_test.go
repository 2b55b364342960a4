package patterns_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

func TestLog(t *testing.T) {
	exec := actortest.NewSeeded(1)
	defer exec.Close()
	var out bytes.Buffer
	drop := func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	sys := actor.NewSystem("test", actor.Config{
		Executor: exec,
		Logger:   slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: drop})),
	})
	probe := actortest.NewProbe(t, sys, "probe")
	log, err := sys.Spawn("log", patterns.Log(slog.LevelInfo))
	require.NoError(t, err)
	quiet, err := sys.Spawn("quiet", patterns.Log(slog.LevelDebug))
	require.NoError(t, err)
	probe.Send(log, warm{7})
	require.NoError(t, quiet.Tell("hidden"))
	v, err := log.Ask(t.Context(), "hello")
	require.NoError(t, err)
	require.Equal(t, "hello", v, "so it can be a stage")
	exec.Run()
	require.Zero(t, probe.Len())
	require.Equal(t, `level=INFO msg=message type=patterns_test.warm message="warm 7" sender=/user/probe actor=/user/log
level=INFO msg=message type=string message=hello sender="" actor=/user/log
`, out.String())
	require.NoError(t, sys.Stop(t.Context()))
}

func TestNull(t *testing.T) {
	w := oneWorld(t)
	null := w.spawn("null", patterns.Null())
	client := w.recorder("client")
	null.TellFrom("x", client.ref)
	a := w.ask(null, "x")
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrNoReply)
	require.Empty(t, client.got)
	require.Empty(t, w.dead)
}

// Log and Null among others, in every order.
func TestLogAndNullUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		pipe := w.pipeline(patterns.PipelineConfig{}, stages("a")[0],
			patterns.Stage{Name: "log", Props: patterns.Log(slog.LevelInfo)},
			patterns.PipelineHub("both", append(stages("b"), patterns.Stage{Name: "null", Props: patterns.Null()})...))
		client := w.recorder("client")
		for id := range 5 {
			w.later(time.Second, func() { pipe.TellFrom(parcel{id: id}, client.ref) })
		}
		w.exec.Run()
		require.Len(w.t, client.got, 5)
		for _, p := range of[parcel](client) {
			require.Equal(w.t, "ab", p.trail)
		}
		require.Empty(w.t, w.dead)
	})
}

func TestPipelineBuilder(t *testing.T) {
	w := oneWorld(t)
	builder := w.spawn("builder", patterns.PipelineBuilder(patterns.PipelineConfig{}))
	for _, s := range stages("a", "b") {
		builder.Tell(s)
	}
	require.Nil(t, w.answer(builder, patterns.PipelineHub("h", stages("c", "d")...)))
	twice := w.ask(builder, stages("c")[0])
	w.exec.Run()
	require.ErrorIs(t, twice.err, actor.ErrInvalid)
	strange := w.ask(builder, "a stage")
	w.exec.Run()
	require.ErrorIs(t, strange.err, actor.ErrInvalid)
	pipe := w.spawn("pipe", w.answer(builder, patterns.Build{}).(actor.Props))
	require.Contains(t, []string{"abc", "abd"}, w.answer(pipe, parcel{}).(parcel).trail)
	w.exec.Run()
	require.True(t, builder.Stopped())

	// A stage that was told and cannot be is what Build fails with.
	builder = w.spawn("another", patterns.PipelineBuilder(patterns.PipelineConfig{}))
	client := w.recorder("client")
	builder.Tell(patterns.Stage{Name: "a"})
	builder.Tell(stages("b")[0])
	builder.TellFrom(patterns.Build{}, client.ref)
	w.exec.Run()
	require.ErrorIs(t, client.got[0].Payload.(error), actor.ErrInvalid)

	builder = w.spawn("large", patterns.PipelineBuilder(patterns.PipelineConfig{}))
	for range patterns.MaxStages {
		builder.Tell(patterns.Stage{Props: post()})
	}
	a := w.ask(builder, patterns.Stage{Props: post()})
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrInvalid)
}

// Builders at work at the same time: each builds what it was told, in order.
func TestPipelineBuilderUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		want := map[*actor.Ref]string{}
		var order []*actor.Ref
		for b := range 3 {
			builder := w.spawn(fmt.Sprint("builder-", b), patterns.PipelineBuilder(patterns.PipelineConfig{}))
			order = append(order, builder)
			maker := func() {
				for range 1 + w.IntN(5) {
					s := stages(string(rune('a' + len(want[builder]))))[0]
					want[builder] += s.Name
					builder.Tell(s)
				}
			}
			w.later(time.Second, maker)
			w.later(time.Second, maker)
		}
		w.sys.After(time.Second, func() {
			for _, b := range order {
				w.ask(b, patterns.Build{})
			}
		})
		w.exec.Run()
		for i, b := range order {
			require.NoError(w.t, w.asks[i].err)
			pipe := w.spawn("", w.asks[i].v.(actor.Props))
			a := w.ask(pipe, parcel{})
			w.exec.RunUntil(func() bool { return a.ended > 0 })
			require.Equal(w.t, want[b], a.v.(parcel).trail)
		}
	})
}

// Proxies by way of several actors come to where they are going, once and in
// order.
func TestProxyUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		to := w.timed("to")
		var between []*actor.Ref
		for range 3 {
			between = append(between, w.spawn("", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				return msg.(patterns.Proxy).Pass(ctx)
			})))
		}
		n := 0
		for range 20 {
			via := between[w.IntN(2)]
			w.later(time.Millisecond, func() {
				n++
				l := letter{via.Name(), n}
				var p patterns.Proxy
				if w.IntN(2) == 0 { // by way of two
					p = patterns.Proxy{To: between[2], Message: patterns.Proxy{To: to.ref, Message: l}}
				} else {
					p = patterns.Proxy{To: to.ref, Message: letter{"direct" + via.Name(), n}}
				}
				w.ask(via, p)
			})
		}
		w.exec.Run()
		require.Len(w.t, to.got, 20)
		last := map[string]int{}
		for _, m := range to.got {
			l := m.Payload.(letter)
			require.Greater(w.t, l.n, last[l.key])
			last[l.key] = l.n
		}
		for _, a := range w.asks {
			require.NoError(w.t, a.err)
		}
	})
}
