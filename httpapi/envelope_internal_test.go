package httpapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAnEnvelopeIsAsReflectionWritesIt: what is written by hand reads as the
// same.
func TestAnEnvelopeIsAsReflectionWritesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Envelope{
			Pod: rapid.StringMatching(`[a-z0-9._-]{1,8}`).Draw(t, "pod"), Name: rapid.String().Draw(t, "name"),
			Life: rapid.Uint64().Draw(t, "life"), Revision: rapid.Uint64().Draw(t, "revision"),
			Changed: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
			State:   json.RawMessage(`{"a":[1.50,"<&>"]}`),
		}
		got, err := e.append(nil)
		require.NoError(t, err)
		var back Envelope
		require.NoError(t, json.Unmarshal(got, &back), "%s", got)
		require.Equal(t, e, back)
	})
}
