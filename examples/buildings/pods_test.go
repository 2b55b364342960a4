package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the example's pods on a store until the test ends, or until stop
// is called.
func start(t *testing.T, store persist.PersistenceService) (h pods, stop func()) {
	t.Helper()
	sys := actor.NewSystem("test", actor.Config{})
	all, err := pod.Open(sys, store, pod.Config{})
	require.NoError(t, err)
	for _, d := range definitions {
		_, err := all.Start(t.Context(), d)
		require.NoError(t, err)
	}
	h, err = findPods(all)
	require.NoError(t, err)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, all.Close(ctx))
		require.NoError(t, store.Close())
		require.NoError(t, sys.Stop(ctx))
	}
	t.Cleanup(stop)
	return h, stop
}

func startInMemory(t *testing.T) pods {
	t.Helper()
	h, _ := start(t, persisttest.NewMemory())
	return h
}
