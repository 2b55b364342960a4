package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A PUT of a state that the schema forbids is refused also when the state is so
// already; what changes a part may leave the rest as it is, and a message that
// changes nothing is none of the schema's business.
func TestPutOfWhatTheSchemaForbids(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"n":"x"}`).is(201)
	w.put("/v1/pods/docs", `{"type":"document","schema":{"properties":{"n":{"type":"number"}}}}`).is(200)
	before := w.get(room).is(200)
	w.put(room+"/state", `{"n":"x"}`).is(422, "schema_violation")
	w.put(room+"/state", `{"n":"x"}`, prefer, "wait=1").is(422, "schema_violation")
	w.put(room+"/state/n", `"x"`).is(200)
	w.patch(room+"/state", `{"n":"x"}`).is(200)
	require.Equal(t, before.body, w.get(room).is(200).body)
	w.put(room+"/state", `{"n":1}`).is(200)
	w.put(room+"/state", `{"n":1}`).is(200)
}

// What a body of a document is not is said in the words of JSON.
func TestPatchesThatAreNone(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{}`).is(201)
	for body, is := range map[string]string{"null": "null", "[]": "an array", `"x"`: "a string", "1": "a number", "true": "a boolean"} {
		a := w.patch(room+"/state", body).is(400, "malformed")
		require.Contains(t, a.body, "the whole is "+is+", and must be an object")
	}
	for _, body := range []string{"null", "{}", "1", "[1]"} {
		require.NotContains(t, w.patch(room+"/state", body, "Content-Type", jsonPatch).is(400, "malformed").body, "entity.")
	}
}
