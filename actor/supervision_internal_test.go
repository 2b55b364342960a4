package actor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pauses grow to the longest that there may be, whatever that is, and never shrink.
func TestPausesDoNotOverflow(t *testing.T) {
	for _, s := range []*Strategy{
		{MaxBackoff: math.MaxInt64},
		{MinBackoff: time.Hour, MaxBackoff: math.MaxInt64},
		{MinBackoff: 3 * time.Second, MaxBackoff: 10 * time.Second},
		{},
	} {
		before := time.Duration(0)
		for n := range 100 {
			pause := s.wait(n)
			require.GreaterOrEqual(t, pause, before)
			before = pause
		}
		require.Equal(t, s.wait(100), before)
		require.Equal(t, max(s.MaxBackoff, time.Second), before)
	}
}
