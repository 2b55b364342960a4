package sim_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/internal/sim"
)

// seeds is how many seeds the tests run unless SEEDS says otherwise.
func seeds(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SEEDS")
	if text == "" {
		return 300 / raceDivisor
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "SEEDS is how many seeds are run")
	return n
}

// TestSeeds: nothing that is promised is broken, under any seed.
func TestSeeds(t *testing.T) {
	for seed := range seeds(t) {
		if r := sim.Run(seed, nil, nil); len(r.Wrong) > 0 {
			var log bytes.Buffer
			sim.Run(seed, nil, &log)
			t.Fatalf("seed %d: %s\n%s", seed, r.Wrong, &log)
		}
	}
}

// TestSameSeedSameRun: a seed decides everything.
func TestSameSeedSameRun(t *testing.T) {
	for seed := range seeds(t) / 4 {
		var one, two bytes.Buffer
		a, b := sim.Run(seed, nil, &one), sim.Run(seed, nil, &two)
		require.Equal(t, one.String(), two.String(), "seed %d", seed)
		a.Unproven, b.Unproven = 0, 0 // how long a history takes to judge is the machine's
		require.Equal(t, a, b, "seed %d", seed)
	}
}
