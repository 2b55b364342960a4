package actor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATrackerNeverForgetsTooEarlyAndStaysSmall(t *testing.T) {
	var tr tracker
	now := time.Unix(0, 0)
	var all []time.Time
	for i := range 10_000 {
		now = now.Add(time.Duration(i%7) * time.Millisecond)
		exact := 0
		for _, at := range all {
			if now.Sub(at) < time.Second {
				exact++
			}
		}
		got := tr.count(now, time.Second)
		require.GreaterOrEqual(t, got, exact)
		if exact <= tracked/2 {
			require.LessOrEqual(t, got, exact+tracked)
		}
		tr.add(now)
		all = append(all, now)
		if len(all) > 1000 {
			all = all[500:]
		}
		require.LessOrEqual(t, cap(tr.bursts), 2*tracked)
	}
	require.Zero(t, tr.count(now.Add(time.Second), time.Second))
}
