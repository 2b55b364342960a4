package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const jsonPatch, mergePatch = "application/json-patch+json", "application/merge-patch+json"

func TestStateAtPointers(t *testing.T) {
	w := newWorld(t)
	w.docs()
	at := room + "/state/"
	w.get(at+"a").is(404, "no_such_entity")
	w.patch(at+"a", `{}`).is(404, "no_such_entity")
	w.delete(at+"a").is(404, "no_such_entity")
	made := w.put(at+"a/b", `{"c":[1,2.50,{"d":null}]}`).is(201)
	require.Equal(t, room, made.header.Get("Location"))
	require.Equal(t, `{"a":{"b":{"c":[1,2.50,{"d":null}]}}}`, w.get(room+"/state").body)
	for pointer, want := range map[string]string{"a": `{"b":{"c":[1,2.50,{"d":null}]}}`, "a/b/c/1": "2.50", "a/b/c/2/d": "null", "%61/b/c/0": "1"} {
		a := w.get(at + pointer).is(200)
		require.Equal(t, want, a.body)
		require.Equal(t, made.etag(), a.etag())
		w.get(at+pointer, "If-None-Match", made.etag()).is(304)
		w.get(at+pointer, "If-Match", `"1-9"`).is(412, "stale_revision")
	}
	for _, pointer := range []string{"b", "a/b/c/3", "a/b/c/-", "a/b/c/01", "a/b/c/x", "a/b/c/0/x", "", "a/", "a%2Fb"} {
		require.Contains(t, w.get(at+pointer).is(404, "no_such_value").body, "nothing stands at")
		w.delete(at+pointer).is(404, "no_such_value")
		w.patch(at+pointer, `{}`).is(404, "no_such_value")
	}
	for _, pointer := range []string{"~", "a/~2", "a~", "%FF", "%7E", "a/%C3%28", strings.Repeat("a/", 1000) + "a"} {
		w.get(at+pointer).is(400, "bad_pointer")
		w.put(at+pointer, `1`).is(400, "bad_pointer")
		w.patch(at+pointer, `{}`).is(400, "bad_pointer")
		w.delete(at+pointer).is(400, "bad_pointer")
	}

	tag := w.put(at+"a/b/c/-", `"last"`).is(200).etag()
	require.Equal(t, `"last"`, w.get(at+"a/b/c/3").body)
	require.Equal(t, tag, w.put(at+"a/b/c/3", `"last"`).is(200).etag(), "the same value keeps the revision")
	gone := w.delete(at+"a/b/c/0", "If-Match", tag).is(204)
	require.Empty(t, gone.body)
	require.NotEqual(t, tag, gone.etag())
	w.delete(at+"a/b/c/0", "If-Match", tag).is(412, "stale_revision")
	require.Equal(t, `[2.50,{"d":null},"last"]`, w.get(at+"a/b/c").body)
	w.put(at+"a/b/c/9", `1`).is(422, "rejected")
	w.delete(at+"a/b/c", "Content-Type", "application/json").is(204)
	w.do("DELETE", at+"a/b", `{}`).is(400, "malformed")

	w.put(room+"/state", `{"a":{"b":1,"c":{"d":2}},"l":[{"x":1}]}`).is(200)
	w.patch(at+"a", `{"b":null,"c":{"e":3}}`, "Content-Type", mergePatch).is(200)
	require.Equal(t, `{"a":{"c":{"d":2,"e":3}},"l":[{"x":1}]}`, w.get(room+"/state").body)
	w.patch(at+"a/c", `7`).is(200)
	w.patch(at+"a", `{`).is(400, "malformed")
	w.put(at+"a", `{`).is(400, "malformed")
	w.put(at+"a", ``).is(400, "malformed")
	w.patch(at+"a", `{}`, "Content-Type", jsonPatch).is(415, "unsupported_media_type")
	w.patch(at+"l/0", `{"y":2}`).is(200)
	require.Equal(t, `[{"x":1,"y":2}]`, w.get(at+"l").body)
	w.patch(at+"l/1", `{"y":2}`).is(404, "no_such_value")
	w.patch(at+"l", `[]`).is(200)
	w.patch(at+"a/c/d", `1`).is(404, "no_such_value")
	require.Equal(t, `{"a":{"c":7},"l":[]}`, w.get(room+"/state").body)

	// Of a typed pod the state can be read alone.
	const g = "/v1/pods/gauges/entities/g"
	w.post(g+"/messages/add", `{"n":3}`).is(200)
	require.Equal(t, "3", w.get(g+"/state/total").body)
	w.get(g+"/state/none").is(404, "no_such_value")
	w.put(g+"/state/total", `1`).is(405, "typed_state")
	w.patch(g+"/state/total", `1`).is(405, "typed_state")
	w.delete(g+"/state/total").is(405, "typed_state")

	// A repeat has no second effect.
	first := w.delete(at+"l", idHeader, "1").is(204)
	require.Equal(t, first.etag(), w.delete(at+"l", idHeader, "1").is(204).etag())
	same(t, w.put(at+"l/x", `1`, idHeader, "2").is(200), w.put(at+"l/x", `1`, idHeader, "2"))
	same(t, w.patch(at+"l", `{"y":1}`, idHeader, "3").is(200), w.patch(at+"l", `{"y":1}`, idHeader, "3"))
}

func TestPointersAreDecodedOnce(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"a/b":1,"a":{"b":2},"~":3,"%2F":4,"":5,"é":6," ":7,"~1":8,"..":9,"c":{"":{"":10}},"a%2Fb":11,"-":12}`).is(201)
	for pointer, want := range map[string]string{
		"a~1b": "1", "a%2Fb": "1", "a%7E1b": "1", "a/b": "2", "~0": "3", "%7E0": "3", "%252F": "4", "": "5", "%C3%A9": "6", "%20": "7", "~01": "8", "..": "9", "%2E%2E": "9",
		"c//": "10", "a%252Fb": "11", "-": "12",
	} {
		require.Equal(t, want, w.get(room+"/state/"+pointer).is(200).body, pointer)
		w.put(room+"/state/"+pointer, want).is(200)
		w.patch(room+"/state/"+pointer, want).is(200)
	}
	require.Contains(t, w.get(room).body, `"revision":1,`, "none of it was another value")
}

// Any path of tokens leads to the value that was put there.
func TestAnyPointerRoundTrips(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{}`).is(201)
	rapid.Check(t, func(rt *rapid.T) {
		var path strings.Builder
		for range rapid.IntRange(1, 4).Draw(rt, "tokens") {
			token := rapid.StringOfN(rapid.SampledFrom([]rune("a/~%.é -0\x00\n\"")), 0, 6, -1).Draw(rt, "token")
			if rapid.Bool().Draw(rt, "pointer's escapes") {
				token = strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
			} else {
				token = strings.ReplaceAll(token, "~", "~0")
			}
			path.WriteString("/" + escapeAll(token))
		}
		value := fmt.Sprint(rapid.Int32().Draw(rt, "value"))
		w.put(room+"/state", `{}`).is(200)
		w.put(room+"/state"+path.String(), value).is(200)
		require.Equal(t, value, w.get(room+"/state"+path.String()).is(200).body)
		w.delete(room + "/state" + path.String()).is(204)
		w.get(room+"/state"+path.String()).is(404, "no_such_value")
	})
}

func TestJSONPatch(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.patch(room+"/state", `[]`, "Content-Type", jsonPatch).is(404, "no_such_entity")
	tag := w.put(room+"/state", `{"a":1.0,"l":[1,2]}`).is(201).etag()
	w.patch(room+"/state", `[{"op":"test","path":"/a","value":1},{"op":"add","path":"/l/-","value":3},{"op":"move","from":"/a","path":"/b"}]`, "Content-Type", jsonPatch+"; charset=utf-8").is(200)
	require.Equal(t, `{"b":1.0,"l":[1,2,3]}`, w.get(room+"/state").body)
	w.patch(room+"/state", `[{"op":"remove","path":"/b"},{"op":"test","path":"/l/0","value":9}]`, "Content-Type", jsonPatch).is(422, "rejected")
	w.patch(room+"/state", `[{"op":"remove","path":""}]`, "Content-Type", jsonPatch).is(422, "rejected")
	w.patch(room+"/state", `{"op":"remove"}`, "Content-Type", jsonPatch).is(400, "malformed")
	w.patch(room+"/state", `[]`, "Content-Type", jsonPatch, "If-Match", tag).is(412, "stale_revision")
	w.patch(room+"/state", `[]`).is(400, "malformed")
	require.Equal(t, `{"b":1.0,"l":[1,2,3]}`, w.get(room+"/state").body)
}

func TestConditionsInCEL(t *testing.T) {
	w := newWorld(t)
	w.docs()
	const warm = "?condition=state.celsius+%3E+21.0"
	state := room + "/state"
	w.put(state+warm, `{"celsius":30}`).is(412, "condition_failed") // what is not there meets none
	w.patch(state+warm, `{"celsius":30}`).is(404, "no_such_entity")
	w.delete(room+warm).is(404, "no_such_entity")
	w.put(state, `{"celsius":20}`).is(201)
	cold := w.put(state+warm, `{"celsius":30}`).is(412, "condition_failed")
	require.Contains(t, cold.body, "state.celsius")
	for _, a := range []answer{
		w.patch(state+warm, `{"b":1}`), w.patch(state+warm, `[]`, "Content-Type", jsonPatch), w.put(state+"/b"+warm, `1`), w.patch(state+"/celsius"+warm, `1`),
		w.delete(state + "/celsius" + warm), w.post(room+"/messages/merge"+warm, `{"b":1}`), w.delete(room + warm),
	} {
		a.is(412, "condition_failed")
	}
	w.put(state+"?condition=state.celsius<21.0+%26%26+name=='room'+%26%26+pod=='docs'+%26%26+revision==1", `{"celsius":30}`).is(200)
	w.patch(state+warm, `{"b":1}`).is(200)
	w.patch(state+"/b"+warm, `2`).is(200)
	w.delete(state + "/b" + warm).is(204)
	w.post(room+"/messages/merge"+warm, `{"b":1}`, "If-Match", `"1-1"`).is(412, "stale_revision")

	for _, bad := range []string{"state.celsius+%3E", "1", "nobody", "((", ""} {
		for _, a := range []answer{w.put(state+"?condition="+bad, `{}`), w.post(room+"/messages/merge?condition="+bad, `{}`), w.delete(room + "?condition=" + bad)} {
			a.is(400, "bad_filter")
			var p struct{ Line, Column int }
			a.into(&p)
			require.Equal(t, 1, p.Line, a.body)
			require.Positive(t, p.Column)
		}
	}
	w.put(state+warm+"&cond=x", `{}`).is(400, "bad_query")
	w.put(state+warm+"&condition=true", `{}`).is(400, "bad_query")
	w.get(room+warm).is(400, "bad_query") // reads have none

	const g = "/v1/pods/gauges/entities/g/messages/add"
	w.post(g, `{"n":3}`).is(200)
	w.post(g+"?condition=state.total==3", `{"n":1}`).is(200)
	w.post(g+"?condition=state.total==3", `{"n":1}`).is(412, "condition_failed")
	w.delete(room + warm).is(204)
}
