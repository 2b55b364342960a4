//go:build mutants

package mutant

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOn: with the build tag the environment chooses one fault or none, and a
// name that is not there is not taken for none.
func TestOn(t *testing.T) {
	for _, m := range All() {
		require.Equal(t, os.Getenv(Variable) == string(m.Name), On(m.Name))
		require.Equal(t, m.Name, chosen(string(m.Name)))
	}
	require.Empty(t, chosen(""))
	require.PanicsWithValue(t, `TWINSRV_MUTANT=ack-before-syncs: there is no such fault; there are: `+list(), func() { chosen("ack-before-syncs") })
}

func list() (s string) {
	for i, m := range All() {
		if i > 0 {
			s += ", "
		}
		s += string(m.Name)
	}
	return s
}
