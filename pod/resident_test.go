package pod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestStoppedBeforeItBegan: an entity whose actor is stopped by hand before it
// has run does not count as being in memory.
func TestStoppedBeforeItBegan(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{IdleAfter: -1})
	defer w.close()
	p := w.send("x", add{"1"})
	ref, err := w.sys.Lookup("/user/pods/ledgers/x")
	w.must(err)
	ref.Stop()
	_, _ = w.wait(p)
	_, err = w.ask("x", add{"2"})
	w.must(err)
	w.exec.RunFor(time.Second)
	require.Equal(t, 1, w.pods.Active())
}
