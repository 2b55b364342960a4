package actor

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of those that watch, and stop without a word, hardly more are kept than of those that
// go on, and none of these is lost.
func TestWatchersThatHaveStoppedAreDropped(t *testing.T) {
	k := &rare{}
	var live []*Ref
	for i := range 10_000 {
		r := &Ref{}
		k.addWatcher(r)
		if i%100 == 0 {
			live = append(live, r)
		} else {
			r.set(ending)
		}
		require.LessOrEqual(t, len(k.watchers), 4*len(live)+16)
	}
	for _, r := range live {
		require.Contains(t, k.watchers, r)
	}
}

// Of a watcher that has stopped nothing is kept but its Ref, also by whom it watches.
func TestStoppedWatchersHoldNothing(t *testing.T) {
	sys := NewSystem("watchers", Config{})
	defer func() { require.NoError(t, sys.Stop(context.Background())) }()
	target, err := sys.Spawn("target", PropsFunc(func(*Context, any) error { return nil }))
	require.NoError(t, err)
	const n = 20
	var freed atomic.Int64
	var watchers []*Ref
	for range n {
		held := new([1024]byte)
		runtime.AddCleanup(held, func(int) { freed.Add(1) }, 0)
		w, err := sys.Spawn("", PropsOf(func() Actor {
			return ActorFunc(func(c *Context, _ any) error {
				c.Watch(target)
				c.Respond(held[0])
				return nil
			})
		}))
		require.NoError(t, err)
		_, err = w.Ask(context.Background(), "watch")
		require.NoError(t, err)
		watchers = append(watchers, w)
	}
	for _, w := range watchers {
		w.Stop()
		require.NoError(t, sys.AwaitStop(context.Background(), w))
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return freed.Load() >= n-2 // the workers may have some of the last in hand
	}, waitTest, tickTest)
	runtime.KeepAlive(target)
}
