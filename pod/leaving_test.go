package pod_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// T6: a message behind a barrier when the entity is stopped.
func TestBarrierIsAnsweredOnStop(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, time.Second) }
	b := w.send("x", add{"b"})
	d := w.send("x", unconditional())
	w.exec.RunFor(100 * time.Millisecond)
	for _, c := range children(w) {
		c.Stop()
	}
	w.exec.RunFor(30 * time.Second)
	require.True(t, b.Done())
	require.True(t, d.Done(), "the deletion's asker is never answered")
}

// T7: Goexit in the turn after Init.
func TestGoexitAfterInit(t *testing.T) {
	sys := actor.NewSystem("odd", actor.Config{})
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{})
	require.NoError(t, err)
	type odd struct{ N int }
	h, err := pod.Start(pods, entity.Type[odd]{Name: "odd",
		Init: func(context.Context, string) (odd, error) { return odd{1}, nil },
		Handlers: entity.Handlers[odd]{
			"vanish": entity.On(func(*entity.Context, *odd, vanish) error { runtime.Goexit(); return nil }),
		}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = h.Ask(ctx, "x", vanish{})
	require.NotErrorIs(t, err, actor.ErrTimeout)
	require.NoError(t, pods.Close(context.Background()))
	require.NoError(t, sys.Stop(context.Background()))
}

// T10: a record beyond the bound.
func TestLargerThanTheBound(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorld(t, 1, mem, ledgers(nil), pod.Config{})
	_, err := w.ask("x", add{strings.Repeat("x", 2000)})
	w.must(err)
	w.close()
	w = newWorld(t, 2, mem, ledgers(func(d *entity.Type[ledger]) {
		d.Handlers["crash"] = entity.On(func(_ *entity.Context, l *ledger, m crash) error {
			l.Log[0] = l.Log[0][:len(l.Log[0])/4*3]
			l.By = nil
			return nil
		})
	}), pod.Config{MaxState: 1000})
	defer w.close()
	_, err = w.h.Get(bg, "x")
	w.must(err)
	_, err = w.ask("x", peek{})
	w.must(err)
	_, err = w.ask("x", touch{"t"})
	require.NoError(t, err, "it changes nothing")
	_, err = w.ask("x", crash{})
	require.NoError(t, err, "it shrinks")
}

// T15: succession over a slot that was stopped before it had loaded.
func TestSuccessionOverAnEmptySlot(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	defer w.kill()
	_, err := w.ask("x", add{"a"})
	w.must(err)
	store.Pause = func(ctx context.Context) error { return w.sys.Sleep(ctx, 5*time.Second) }
	b := w.send("x", add{"b"})
	w.exec.RunFor(100 * time.Millisecond)
	stop := func() {
		for _, c := range children(w) {
			c.Stop()
		}
		w.exec.RunFor(100 * time.Millisecond)
	}
	stop() // A1, with b in flight
	c := w.send("x", add{"c"})
	w.exec.RunFor(100 * time.Millisecond)
	stop()
	stop()
	w.exec.RunFor(time.Minute)
	t.Log(w.wait(b))
	_, err = w.wait(c)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, w.log("x"))
}

// T20: a watcher, and a reply's own UnmarshalText, that leave by Goexit.
func TestLeavingWhileReleasing(t *testing.T) {
	sys := actor.NewSystem("odd", actor.Config{})
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{})
	require.NoError(t, err)
	type odd struct{ N int }
	h, err := pod.Start(pods, entity.Type[odd]{Name: "odd", Handlers: entity.Handlers[odd]{
		"add": entity.On(func(_ *entity.Context, o *odd, m add) error { o.N++; return nil }),
		"leave": entity.Reply(func(_ *entity.Context, o *odd, m touch) (map[string]leaver, error) {
			o.N++
			return map[string]leaver{"a": {}}, nil
		}),
	}})
	require.NoError(t, err)
	var n atomic.Int64
	cancel := pods.OnChange(func(persist.Change) {
		if n.Add(1) == 2 {
			runtime.Goexit()
		}
	})
	defer cancel()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for range 4 {
		_, err := h.Ask(ctx, "x", add{"a"})
		require.NotErrorIs(t, err, actor.ErrTimeout)
	}
	_, err = h.Ask(ctx, "x", touch{})
	require.NotErrorIs(t, err, actor.ErrTimeout)
	require.NoError(t, pods.Close(context.Background()))
	require.NoError(t, sys.Stop(context.Background()))
}

type leaver struct{}

func (leaver) MarshalText() ([]byte, error) { return []byte("x"), nil }

func (*leaver) UnmarshalText([]byte) error { runtime.Goexit(); return nil }
