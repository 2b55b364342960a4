package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/snapshot"
)

// No text is taken for longer than its canonical form is, and one in that form for
// as long as it is, but for its escapes.
func TestLeastJSONIsAtMostTheCanonicalLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{
			rapid.String().Draw(t, "key"): rapid.SliceOf(rapid.String()).Draw(t, "texts"),
			"\"\\\u2028":                  rapid.Float64().Draw(t, "number"),
		}
		text, err := json.MarshalIndent(value, rapid.StringMatching(`[ \t]*`).Draw(t, "prefix"), "\t ")
		require.NoError(t, err)
		canonical, err := snapshot.CanonicalJSON(text)
		require.NoError(t, err)
		require.LessOrEqual(t, leastJSON(text), len(canonical), "%s", text)
	})
	for _, text := range []string{`{}`, `[1,2.50,true,null,"a b"]`, `{"a":[[],{}]}`} {
		require.Equal(t, len(text), leastJSON([]byte(text)))
	}
	require.Equal(t, len(`["abc"]`), leastJSON([]byte(` [ "\u0061\n\"" ] `)))
	require.Equal(t, 2, leastJSON([]byte(`"\`)), "what is no JSON has some length, too")
}

// A line counts for the memory that it takes, which is mostly that of its values.
func TestALineCountsForItsMemory(t *testing.T) {
	text := `{"pod":"p","name":"n","state":{"a":"0000000000000000"}}`
	zeros := `{"pod":"p","name":"n","state":{"a":[0,0,0,0,0,0,0,0]}}`
	objects := `{"pod":"p","name":"n","state":{"a":{"a":{"a":{}}}}}}`
	require.Greater(t, lineMemory([]byte(text)), 2*len(text))
	require.Greater(t, lineMemory([]byte(zeros)), lineMemory([]byte(text)))
	require.Greater(t, lineMemory([]byte(objects)), lineMemory([]byte(zeros)))
}
