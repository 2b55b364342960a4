//go:build !mutants

package mutant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// TestOff: without the build tag there are no faults, whatever is asked for.
func TestOff(t *testing.T) {
	for _, m := range mutant.All() {
		t.Setenv(mutant.Variable, string(m.Name))
		require.False(t, mutant.On(m.Name), m.Name)
	}
}
