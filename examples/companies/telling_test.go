package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A headline is answered when all of its companies have answered, with the first
// error if there is one.
func TestTelling(t *testing.T) {
	e := startInMemory(t)
	for _, fails := range []bool{false, true} {
		told := &telling{left: 3, of: 3, answer: e.System().NewPromise()}
		told.answered("A", nil)
		if fails {
			told.answered("B", errors.New("no"))
		} else {
			told.answered("B", nil)
		}
		require.False(t, told.answer.Done())
		told.answered("C", nil)
		v, err := told.answer.Wait(t.Context())
		if fails {
			require.EqualError(t, err, "tell B: no")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, delivered{companies: 3}, v)
	}
}
