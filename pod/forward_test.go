package pod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestForwardedAfterAnAnswer: an actor that answers an ask and then forwards it
// to an entity has the entity handle it.
func TestForwardedAfterAnAnswer(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	front, err := w.sys.Spawn("front", actor.PropsFunc(func(c *actor.Context, msg any) error {
		c.Respond("noted")
		return w.h.Ref("x").Post(actor.Message{Payload: msg, Reply: c.Defer()})
	}))
	w.must(err)
	p := w.sys.NewPromise()
	w.must(front.TryPost(actor.Message{Payload: add{"a"}, Reply: p}))
	v, err := w.wait(p)
	w.must(err)
	require.Equal(t, "noted", v)
	w.exec.RunFor(time.Second)
	require.Equal(t, []string{"a"}, w.log("x"))
}
