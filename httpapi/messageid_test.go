package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const idHeader = "Idempotency-Key"

// same checks that a repeat was answered as the first message was.
func same(t *testing.T, first, repeat answer) {
	t.Helper()
	require.Equal(t, first.status, repeat.status, repeat.body)
	require.Equal(t, first.body, repeat.body)
	for _, h := range []string{"ETag", "Location", "Content-Type"} {
		require.Equal(t, first.header.Get(h), repeat.header.Get(h), h)
	}
}

func TestRepeatsHaveNoSecondEffect(t *testing.T) {
	w := newWorld(t)
	w.docs()
	const g = "/v1/pods/gauges/entities/g"
	asks := []func() answer{
		func() answer { return w.put(room+"/state", `{"a":1}`, idHeader, "create").is(201) },
		func() answer { return w.put(room+"/state", `{"a":2}`, idHeader, "replace").is(200) },
		func() answer { return w.patch(room+"/state", `{"b":3}`, idHeader, "patch").is(200) },
		func() answer {
			return w.post(room+"/messages/set", `{"pointer":"/c","value":4}`, idHeader, "set").is(200)
		},
		func() answer { return w.post(g+"/messages/add", `{"n":10}`, idHeader, "add").is(200) },
		func() answer { return w.post(g+"/messages/take", `{"n":3}`, idHeader, "take").is(200) },
		func() answer { return w.post(g+"/messages/refuse", ``, idHeader, "refuse").is(422, "rejected") },
	}
	var first []answer
	for _, ask := range asks {
		first = append(first, ask())
	}
	again := func() {
		for i, ask := range asks {
			same(t, first[i], ask())
		}
		require.Equal(t, `{"a":2,"b":3,"c":4}`, w.get(room+"/state").body)
		require.JSONEq(t, `{"total":7,"by":null}`, w.get(g+"/state").body)
	}
	again()
	w.patch(room+"/state", `{"x":1}`).is(200)
	w.patch(room+"/state", `{"x":null}`).is(200)
	again() // also when the entity has moved on
	w.close()
	w = newWorldOn(t, w.mem.Again(), true)
	again() // and after a restart

	// An id is the entity's: another one does not know it.
	w.put("/v1/pods/docs/entities/other/state", `{"a":1}`, idHeader, "create").is(201)
	// With the entity its answers are gone.
	w.delete(room).is(204)
	require.NotEqual(t, first[0].etag(), w.put(room+"/state", `{"a":1}`, idHeader, "create").is(201).etag())
}

func TestRepeatWithCondition(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{"a":1}`, "If-None-Match", "*", idHeader, "1").is(201).etag()
	w.put(room+"/state", `{"a":1}`, "If-None-Match", "*", idHeader, "1").is(201)
	changed := w.patch(room+"/state", `{"a":2}`, "If-Match", tag, idHeader, "2").is(200)
	same(t, changed, w.patch(room+"/state", `{"a":2}`, "If-Match", tag, idHeader, "2"))
	w.patch(room+"/state", `{"a":2}`, "If-Match", tag, idHeader, "3").is(412, "stale_revision")
}

func TestMessageIDOfAnotherMessage(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"a":1}`, idHeader, "1").is(201)
	w.put(room+"/state", `{"a":2}`, idHeader, "1").is(422, "message_id_reused")
	w.patch(room+"/state", `{"a":1}`, idHeader, "1").is(422, "message_id_reused")
	w.post(room+"/messages/merge", `{"a":1}`, idHeader, "1").is(422, "message_id_reused")
	require.Equal(t, `{"a":1}`, w.get(room+"/state").body)
}

func TestBadMessageIDs(t *testing.T) {
	w := newWorld(t)
	w.docs()
	const merge = room + "/messages/merge"
	w.put(room+"/state", `{}`, idHeader, strings.Repeat("é", 100)).is(201)
	for _, id := range []string{strings.Repeat("x", 201), "\xff"} {
		w.put(room+"/state", `{}`, idHeader, id).is(400, "bad_message_id")
		w.patch(room+"/state", `{}`, idHeader, id).is(400, "bad_message_id")
		w.post(merge, `{}`, idHeader, id).is(400, "bad_message_id")
	}
	w.post(merge, `{}`, idHeader, "1", idHeader, "1").is(400, "bad_message_id")
	w.post(merge, `{}`, idHeader, " ").is(400, "bad_message_id") // nothing is left of it
}
