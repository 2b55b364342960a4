package actors_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/internal/sim/actors"
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

// first is the first seed.
func first(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("FIRST")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "FIRST is the first seed that is run")
	return n
}

// TestSeeds: nothing that is promised is broken, under any seed.
func TestSeeds(t *testing.T) {
	from := first(t)
	for seed := from; seed < from+seeds(t); seed++ {
		if r := actors.Run(seed, nil, nil); len(r.Wrong) > 0 {
			var log bytes.Buffer
			actors.Run(seed, nil, &log)
			t.Fatalf("seed %d: %s\n%s", seed, r.Wrong, &log)
		}
	}
}

// TestSameSeedSameRun: a seed decides everything.
func TestSameSeedSameRun(t *testing.T) {
	for seed := range seeds(t) {
		one, two := actors.Run(seed, nil, nil), actors.Run(seed, nil, nil)
		require.Equal(t, one, two, "seed %d", seed)
	}
}
