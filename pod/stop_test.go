package pod_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

type (
	vanish struct{} // a handler that leaves by Goexit
	fickle struct{ Text string }
)

// MarshalText panics for one text.
func (f fickle) MarshalText() ([]byte, error) {
	if f.Text == "panic" {
		panic("on purpose")
	}
	return []byte(f.Text), nil
}

// UnmarshalText takes any text.
func (f *fickle) UnmarshalText(b []byte) error { f.Text = string(b); return nil }

// TestStoppedActorsFollowOneAnother: entities whose actors are stopped, or
// restarted, in the middle of their commits go on from what became durable: no
// writer meets a conflict, nothing acknowledged is lost or doubled.
func TestStoppedActorsFollowOneAnother(t *testing.T) {
	forSeeds(t, 300, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), fewAtATime(3))
		defer w.close()
		if seed%3 == 0 { // a watcher that panics harms nobody
			n := 0
			w.pods.OnChange(func(persist.Change) {
				if n++; n%7 == 0 {
					panic("on purpose")
				}
			})
		}
		var promises []*actor.Promise
		var sent []string
		for i := range 60 {
			id := fmt.Sprint(i)
			sent = append(sent, id)
			promises = append(promises, w.send("x", add{id}))
			switch w.sys.Uint64() % 6 {
			case 0:
				for _, c := range children(w) {
					c.Stop()
				}
			case 1:
				w.exec.RunFor(time.Duration(w.sys.Uint64()%4) * time.Millisecond)
			case 2:
				for range w.sys.Uint64() % 20 {
					w.exec.Step()
				}
			}
		}
		var acked, unknown []string
		for i, p := range promises {
			_, err := w.wait(p)
			switch {
			case err == nil:
				acked = append(acked, sent[i])
			case errors.Is(err, persist.ErrUnknown):
				unknown = append(unknown, sent[i])
			default:
				require.ErrorIs(t, err, actor.ErrStopped)
			}
		}
		w.exec.RunFor(time.Minute)
		ack, err := w.ask("x", add{"last"})
		w.must(err)
		log := w.log("x")
		require.EqualValues(t, len(log), ack.(entity.Ack).Revision)
		require.Equal(t, append(acked, "last"), only(log, append(acked, "last")))
		require.Equal(t, log, append(only(log, append(acked, unknown...)), "last"))
		require.Equal(t, log, only(append(sent, "last"), log), "in order, and once")
	})
}

// TestHandlersThatLeaveAreFailures: Goexit in a handler, and a panic while the
// state is encoded, are answered at once and change nothing.
func TestHandlersThatLeaveAreFailures(t *testing.T) {
	type odd struct {
		F fickle `json:"f"`
	}
	sys := actor.NewSystem("odd", actor.Config{})
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{})
	require.NoError(t, err)
	h, err := pod.Start(pods, entity.Type[odd]{Name: "odd", Handlers: entity.Handlers[odd]{
		"fickle": entity.On(func(_ *entity.Context, o *odd, m fickle) error { o.F = m; return nil }),
		"vanish": entity.On(func(*entity.Context, *odd, vanish) error { runtime.Goexit(); return nil }),
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = h.Ask(ctx, "x", fickle{"a"})
	require.NoError(t, err)
	_, err = h.Ask(ctx, "x", vanish{})
	require.ErrorContains(t, err, "Goexit")
	_, err = h.Ask(ctx, "x", fickle{"b"})
	require.NoError(t, err)
	ref := h.Ref("x")
	spec := h.Spec()
	m, err := spec.Parse("fickle", []byte(`"panic"`))
	require.NoError(t, err)
	_, err = actor.Ask[any](ctx, ref, m)
	var failed *entity.HandlerError
	require.ErrorAs(t, err, &failed)
	v, err := h.Get(ctx, "x")
	require.NoError(t, err)
	require.Equal(t, "b", v.State.F.Text)
	require.EqualValues(t, 2, v.Revision)
	require.NoError(t, pods.Close(context.Background()))
	require.NoError(t, sys.Stop(context.Background()))
}
