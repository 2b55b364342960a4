package actors_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/internal/sim/actors"
)

// TestKeep: steps that are not kept are not carried out, and the others are the
// same as before.
func TestKeep(t *testing.T) {
	for seed := range uint64(20) {
		var all, none, half bytes.Buffer
		r := actors.Run(seed, nil, &all)
		require.Positive(t, r.Steps)
		require.Equal(t, r.Steps, strings.Count(all.String(), " step "), "seed %d", seed)
		actors.Run(seed, func(int) bool { return false }, &none)
		require.NotContains(t, none.String(), " step ")
		x := actors.Run(seed, func(step int) bool { return step%2 == 0 }, &half)
		require.Empty(t, x.Wrong)
		require.Equal(t, (r.Steps+1)/2, strings.Count(half.String(), " step "))
	}
}
