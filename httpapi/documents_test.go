package httpapi_test

import (
	"strings"
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

// What may be a body of its own may be one in the line of an import, and in a
// batch: an export of the deepest state can be imported.
func TestTheDeepestStateIsImported(t *testing.T) {
	nested := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", nested(1001)).is(400, "malformed")
	w.put(room+"/state", nested(1000)).is(201)
	exported := w.get("/v1/export?pods=docs").is(200).body

	to := newWorld(t)
	done := to.bring(exported)
	require.Zero(t, done[len(done)-1].Failed)
	require.Equal(t, nested(1000), to.get(room+"/state").is(200).body)
	require.Equal(t, 400, to.bring(`{"pod":"docs","name":"x","state":` + nested(1001) + `}`)[0].Status)
	batch := func(levels int) string {
		return to.post("/v1/batch", `[{"pod":"docs","name":"y","type":"merge","body":`+nested(levels)+`}]`).is(200).body
	}
	require.Contains(t, batch(1000), `"status":200`)
	require.Contains(t, batch(1001), "nests deeper than")
}
