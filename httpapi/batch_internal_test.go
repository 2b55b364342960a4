package httpapi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Equal conditions of a batch are one program, or one error.
func TestABatchCompilesAConditionOnce(t *testing.T) {
	b := newBatchConditions()
	for _, text := range []string{"state.n == 1", "(("} {
		f, err := b.compile(text)
		again, failed := b.compile(text)
		require.Same(t, f, again)
		if err != nil {
			require.Same(t, err, failed)
		}
		require.Len(t, b.known, 1)
		clear(b.known)
	}
}
