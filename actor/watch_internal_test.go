package actor

import (
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
