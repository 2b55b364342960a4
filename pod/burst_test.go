package pod_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

const (
	burstSenders  = 8
	burstMessages = 1000
	burstNames    = 50
)

// burst is what one sender sends: every name gets messages of every sender, in
// an order of the sender's own.
type burst struct {
	name     string
	msg      any
	id       string
	accepted bool // what the sender was told
	err      error
	promise  *actor.Promise
}

func burstOf(sender int) []*burst {
	var out []*burst
	for i := range burstMessages / burstSenders {
		n := i*burstSenders + sender
		id := fmt.Sprintf("%d.%d", sender, i)
		b := &burst{name: fmt.Sprintf("e%d", (i*7+sender*3)%burstNames), id: id}
		switch n % 5 {
		case 0:
			b.msg = refuse{id}
		case 1:
			b.msg = peek{}
		default:
			b.msg = add{id}
		}
		out = append(out, b)
	}
	return out
}

// check compares what the senders were told with what the entities hold.
func checkBurst(t testing.TB, h *pod.Handle[ledger], sent [][]*burst) {
	t.Helper()
	page, err := h.Pod.List(context.Background(), persist.ListOptions{Limit: 1000})
	require.NoError(t, err)
	require.Equal(t, burstNames, len(page.Items))
	for _, i := range page.Items {
		v, err := h.Get(context.Background(), i.Name)
		require.NoError(t, err)
		total := 0
		for _, s := range sent {
			var all, accepted []string
			for _, b := range s {
				if b.name != i.Name {
					continue
				}
				all = append(all, b.id)
				if b.accepted {
					accepted = append(accepted, b.id)
				}
			}
			require.Equal(t, append([]string{}, accepted...), only(v.State.Log, all), "entity %s holds what a sender was acknowledged, once, in its order", i.Name)
			total += len(accepted)
		}
		require.Len(t, v.State.Log, total)
		require.EqualValues(t, total, v.Revision, "each accepted message is one revision")
	}
}

func outcome(t testing.TB, b *burst) {
	switch b.msg.(type) {
	case add:
		require.NoError(t, b.err, "add %s to %s", b.id, b.name)
		b.accepted = true
	case refuse:
		var rejected *entity.RejectedError
		require.ErrorAs(t, b.err, &rejected)
	case peek:
		if b.err != nil {
			require.ErrorIs(t, b.err, entity.ErrNotFound, "a query before the entity exists")
		}
	}
}

func TestBurstToAbsentNames(t *testing.T) {
	sys := actor.NewSystem("burst", actor.Config{})
	store := persisttest.NewMemory()
	pods, err := pod.Open(sys, store, pod.Config{})
	require.NoError(t, err)
	h, err := pod.Start(pods, ledgers(nil))
	require.NoError(t, err)

	sent := make([][]*burst, burstSenders)
	var wg sync.WaitGroup
	for s := range burstSenders {
		sent[s] = burstOf(s)
		wg.Go(func() { sendBurst(sys, h, sent[s]) })
	}
	wg.Wait()
	for _, s := range sent {
		for _, b := range s {
			outcome(t, b)
		}
	}
	checkBurst(t, h, sent)
	require.NoError(t, pods.Close(context.Background()))
	require.NoError(t, sys.Stop(context.Background()))
}

// sendBurst sends everything before it waits for anything.
func sendBurst(sys *actor.System, h *pod.Handle[ledger], sent []*burst) {
	for _, b := range sent {
		b.promise = sys.NewPromise()
		if b.err = h.Ref(b.name).Post(actor.Message{Payload: b.msg, Reply: b.promise}); b.err != nil {
			b.promise.Fail(b.err)
		}
	}
	for _, b := range sent {
		_, b.err = b.promise.Wait(context.Background())
	}
}

func TestBurstToAbsentNamesUnderSeeds(t *testing.T) {
	forSeeds(t, 1000, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed, persisttest.NewCrashStore(), ledgers(nil), pod.Config{})
		defer w.close()
		sent := make([][]*burst, burstSenders)
		done := 0
		for s := range burstSenders {
			sent[s] = burstOf(s)
			w.sys.Go(func() { sendBurst(w.sys, w.h, sent[s]); done++ })
		}
		require.True(t, w.exec.RunUntil(func() bool { return done == burstSenders }))
		for _, s := range sent {
			for _, b := range s {
				outcome(t, b)
			}
		}
		checkBurst(t, w.h, sent)
	})
}
