package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

const room = "/v1/pods/docs/entities/room"

func TestCreatedReplacedPatchedDeleted(t *testing.T) {
	w := newWorld(t)
	w.docs()
	made := w.put(room+"/state", `{"a":1}`).is(201)
	require.Equal(t, room, made.header.Get("Location"))
	var ack struct{ Life, Revision uint64 }
	made.into(&ack)
	require.EqualValues(t, 1, ack.Revision)
	require.Equal(t, fmt.Sprintf(`"%d-1"`, ack.Life), made.etag())

	replaced := w.put(room+"/state", `{"a":2}`).is(200)
	require.Equal(t, fmt.Sprintf(`"%d-2"`, ack.Life), replaced.etag())
	require.Empty(t, replaced.header.Get("Location"))

	patched := w.patch(room+"/state", `{"b":{"c":3},"a":null}`, "Content-Type", "application/merge-patch+json").is(200)
	require.Equal(t, fmt.Sprintf(`"%d-3"`, ack.Life), patched.etag())
	w.patch(room+"/state", `{"d":4}`, "Content-Type", "application/json; charset=utf-8").is(200)
	require.JSONEq(t, `{"b":{"c":3},"d":4}`, w.get(room+"/state").is(200).body)

	handled := w.post(room+"/messages/set", `{"pointer":"/b/c","value":5}`).is(200)
	handled.into(&ack)
	require.EqualValues(t, 5, ack.Revision)
	require.Equal(t, fmt.Sprintf(`"%d-5"`, ack.Life), handled.etag())

	gone := w.delete(room).is(204)
	require.Empty(t, gone.body)
	w.get(room).is(404, "no_such_entity")
	w.delete(room).is(404, "no_such_entity")
	w.put(room+"/state", `{}`).is(201)
}

func TestUnchangedKeepsItsETag(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{"a":1,"b":2}`).is(201).etag()
	// At revision 1 a replacement by the same state and a creation look alike.
	same := w.put(room+"/state", `{"b":2,"a":1}`).is(200)
	require.Equal(t, tag, same.etag())
	require.Equal(t, tag, w.patch(room+"/state", `{"a":1}`).is(200).etag())
	require.Equal(t, tag, w.post(room+"/messages/merge", `{}`).is(200).etag())
	require.Equal(t, tag, w.get(room).is(200).etag())
}

func TestEnvelope(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{"a":"<&>"}`).is(201).etag()
	a := w.get(room).is(200)
	require.Equal(t, tag, a.etag())
	require.Contains(t, a.body, `"state":{"a":"<&>"}`, "the state passes as it is")
	var e map[string]any
	a.into(&e)
	require.Len(t, e, 6)
	require.Equal(t, "docs", e["pod"])
	require.Equal(t, "room", e["name"])
	require.NotEmpty(t, e["changed"])
	require.Equal(t, `{"a":"<&>"}`, w.get(room+"/state").is(200).body)

	w.post("/v1/pods/gauges/entities/g/messages/add", `{"n":3}`).is(200)
	require.JSONEq(t, `{"total":3,"by":null}`, w.get("/v1/pods/gauges/entities/g/state").is(200).body)

	head := w.do(http.MethodHead, room, "").is(200)
	require.Equal(t, tag, head.etag())
	require.Empty(t, head.body)
	w.do(http.MethodHead, "/v1/pods/docs/entities/none", "").is(404)
}

func TestReplies(t *testing.T) {
	w := newWorld(t)
	const g = "/v1/pods/gauges/entities/g/messages/"
	w.post(g+"total", ``).is(404, "no_such_entity") // a query creates nothing
	w.post(g+"take", `{"n":1}`).is(404, "no_such_entity")
	w.post(g+"add", `{"n":3}`).is(200)
	taken := w.post(g+"take", `{"n":1}`).is(200)
	require.Equal(t, `{"left":2,"text":"<a&b>","half":0.5}`, taken.body)
	require.Equal(t, "application/json", taken.header.Get("Content-Type"))
	require.Equal(t, "2", w.post(g+"total", ``).is(200).body)
	require.Equal(t, "2", w.post(g+"total", `{}`).is(200).body)
}

func TestMalformedAndUnknown(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{}`).is(201)
	const g = "/v1/pods/gauges/entities/g/messages/"
	for _, body := range []string{`{`, `{"n":1`, `nonsense`, `{"n":1}{}`, `{"n":1,"n":2}`, "{\"n\":\"\xff\"}", `{"n":"text"}`, `{"n":1.5}`, `[]`, `null`, `7`, `"x"`} {
		w.post(g+"add", body).is(400, "malformed")
	}
	w.post(g+"add", `{"n":1,"m":2}`).is(422, "unknown_field")
	w.post(g+"add", strings.Repeat("[", 400_000)).is(400, "malformed")
	for _, body := range []string{`{`, `[]`, `null`, `7`, `{"a":1}x`, `{"a":1,"a":1}`, strings.Repeat(`{"a":`, 100_000)} {
		w.put(room+"/state", body).is(400, "malformed")
		w.patch(room+"/state", body).is(400, "malformed")
		w.put("/v1/pods/docs", body).is(400, "malformed")
	}
	for _, a := range []answer{w.put(room+"/state", ``), w.put(room+"/state", "\n"), w.patch(room+"/state", ``), w.post(room+"/messages/merge", ``), w.put("/v1/pods/docs", ``), w.post("/v1/query", ``)} {
		require.Contains(t, a.is(400, "malformed").body, "the body is empty, and must be JSON")
	}
	w.post(room+"/messages/set", `{"pointer":7}`).is(400, "malformed")
	w.post(room+"/messages/set", `{"pointer":"/a","valeu":7}`).is(422, "unknown_field")
	w.get("/v1/pods/gauges/entities/g").is(404, "no_such_entity") // nothing came of any of it
	require.Equal(t, `{}`, w.get(room+"/state").body)
}

func TestNothingThere(t *testing.T) {
	w := newWorld(t)
	w.docs()
	for _, target := range []string{"/v1/pods/nope", "/v1/pods/nope/entities", "/v1/pods/nope/entities/a", "/v1/pods/nope/entities/a/state"} {
		w.get(target).is(404, "no_such_pod")
	}
	w.put("/v1/pods/nope/entities/a/state", `{}`).is(404, "no_such_pod")
	w.patch("/v1/pods/nope/entities/a/state", `{}`).is(404, "no_such_pod")
	w.delete("/v1/pods/nope/entities/a").is(404, "no_such_pod")
	w.delete("/v1/pods/nope").is(404, "no_such_pod")
	w.post("/v1/pods/nope/entities/a/messages/merge", `{}`).is(404, "no_such_pod")
	w.get(room).is(404, "no_such_entity")
	w.get(room+"/state").is(404, "no_such_entity")
	require.Contains(t, w.patch(room+"/state", `{"a":1}`).is(404, "no_such_entity").body, "only one that is there can be changed so")
	w.get(room).is(404, "no_such_entity") // PATCH creates nothing
	w.post(room+"/messages/remove", `{"pointer":"/a"}`).is(404, "no_such_entity")
	require.Contains(t, w.post(room+"/messages/nope", `{}`).is(404, "no_such_message").body, `pod docs knows merge, patch, remove, set, not \"nope\"`)
	w.post(room+"/messages/", `{}`).is(404, "no_such_message")
	for _, target := range []string{"/v1", "/explorer/none.js", "/explorer/index.html", "/explorer/static", "/explorer/%2e%2e", "/explorer/doc.go", "/index.html", "/v1/", "/v1/pods/docs/", "/v1/pods/docs/nope", room + "/", room + "/nope", "/V1/pods", "/v1/quarantine/", "/v1//pods", "/v1/./pods", "/openapi.yaml", "/docs", "/schemas/Ack.json", "/favicon.ico", "/v1/pods/docs/entities/a/b"} {
		w.get(target).is(404, "not_found")
	}
}

func TestMethodNotAllowed(t *testing.T) {
	w := newWorld(t)
	w.docs()
	for target, allow := range map[string]string{
		room: "OPTIONS, DELETE, GET, HEAD", room + "/state": "OPTIONS, GET, HEAD, PATCH, PUT",
		"/v1/pods": "OPTIONS, GET, HEAD", room + "/messages/set": "OPTIONS, POST", "/healthz": "OPTIONS, GET, HEAD",
	} {
		a := w.do("PROPFIND", target, "").is(405, "method_not_allowed")
		require.ElementsMatch(t, strings.Split(allow, ", "), strings.Split(a.header.Get("Allow"), ", "), target)
	}
	w.post("/v1/pods/docs", `{}`).is(405, "method_not_allowed")
	w.delete(room+"/state").is(405, "method_not_allowed")
	w.get(room+"/messages/set").is(405, "method_not_allowed")
	for target, says := range map[string]string{
		room: "goes to …/state", "/v1/pods/docs/entities": "creates it", "/v1/pods": "declares a pod", "/v1/pods/docs": "declares a pod",
	} {
		require.Contains(t, w.post(target, `{}`).is(405, "method_not_allowed").body, says, target)
	}
	require.NotEmpty(t, w.do(http.MethodOptions, room, "").is(204).header.Get("Allow"))

	const typed = "/v1/pods/gauges/entities/g/state"
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		a := w.do(method, typed, `{"total":1}`).is(405, "typed_state")
		require.Equal(t, "OPTIONS, GET, HEAD", a.header.Get("Allow"))
	}
	for target, allow := range map[string]string{
		typed: "OPTIONS, GET, HEAD", typed + "/total": "OPTIONS, GET, HEAD",
		room + "/state": "OPTIONS, GET, HEAD, PATCH, PUT", room + "/state/a": "OPTIONS, GET, HEAD, DELETE, PATCH, PUT",
	} {
		a := w.do(http.MethodOptions, target, "").is(204)
		require.ElementsMatch(t, strings.Split(allow, ", "), strings.Split(a.header.Get("Allow"), ", "), target)
	}
	w.get("/v1/pods/gauges/entities/g").is(404, "no_such_entity")
}

func TestBodies(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.MaxBody = 1000 })
	w.docs()
	fits := `{"a":"` + strings.Repeat("x", 1000-8) + `"}`
	w.put(room+"/state", fits).is(201)
	for _, target := range []string{room + "/state", "/v1/pods/docs"} {
		w.put(target, fits+" ").is(413, "body_too_large")
		w.send(http.MethodPut, target, io.MultiReader(strings.NewReader(fits+" ")), "Content-Type", "application/json").is(413, "body_too_large")
	}
	w.post(room+"/messages/merge", fits+" ").is(413, "body_too_large")
	w.patch(room+"/state", fits+" ").is(413, "body_too_large")

	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "application/jsonx", "nonsense/", ";"} {
		w.patch(room+"/state", `{}`, "Content-Type", typ).is(415, "unsupported_media_type")
		w.put(room+"/state", `{}`, "Content-Type", typ).is(415, "unsupported_media_type")
		w.post(room+"/messages/merge", `{}`, "Content-Type", typ).is(415, "unsupported_media_type")
		w.put("/v1/pods/docs", `{}`, "Content-Type", typ).is(415, "unsupported_media_type")
	}
	require.Equal(t, "application/merge-patch+json, application/json-patch+json, application/json",
		w.patch(room+"/state", `{}`, "Content-Type", "text/plain").header.Get("Accept"))
	w.put(room+"/state", `{}`, "Content-Type", "application/merge-patch+json").is(415, "unsupported_media_type")
	require.Contains(t, w.put(room+"/state", `{}`, "Content-Type", "").is(415, "unsupported_media_type").body,
		"the body has no type; send it with the header Content-Type: application/json")
	w.put(room+"/state", `{}`, "Content-Encoding", "gzip").is(415, "unsupported_media_type")
	w.put(room+"/state", `{}`, "Content-Type", "Application/JSON;charset=UTF-8").is(200)
}

func TestHandlersThatRefuseAndFail(t *testing.T) {
	w := newWorld(t)
	const g = "/v1/pods/gauges/entities/g"
	a := w.post(g+"/messages/refuse", `{}`).is(422, "rejected")
	require.Contains(t, a.body, "not today")
	w.post(g+"/messages/fail", `{}`).is(500, "handler_failed")
	w.get(g).is(404, "no_such_entity")
	tag := w.post(g+"/messages/add", `{"n":1}`).is(200).etag()
	for range 100 {
		w.post(g+"/messages/fail", `{}`).is(500, "handler_failed")
		w.post(g+"/messages/boom", `{}`).is(500, "handler_failed")
		w.post(g+"/messages/refuse", `{}`).is(422, "rejected")
	}
	require.Equal(t, tag, w.get(g).is(200).etag())
	w.post(g+"/messages/odd", `{}`).is(500, "handler_failed") // a reply that is no JSON
	w.docs()
	w.put(room+"/state", `{"a":1}`).is(201)
	w.post(room+"/messages/set", `{"pointer":"a","value":1}`).is(422, "rejected")
	w.post(room+"/messages/set", `{"pointer":"","value":1}`).is(422, "rejected")
	w.post(room+"/messages/remove", `{"pointer":"/b"}`).is(422, "rejected")
}

func TestNoAnswerInTime(t *testing.T) {
	w := newWorld(t)
	const g = "/v1/pods/gauges/entities/g"
	w.post(g+"/messages/stall?timeout=30ms", `{}`).is(504, "outcome_unknown")
	for _, d := range []string{"", "0", "0s", "-1s", "5", "61s", "1h", "soon", "%zz", "NaN"} {
		w.post(g+"/messages/stall?timeout="+d, `{}`).is(400, "bad_query")
	}
	w.stopStalling()
	w.post(g+"/messages/add?timeout=60s", `{"n":1}`).is(200)
	require.Equal(t, `{"by":null,"total":2}`, sorted(w.get(g+"/state").is(200).body), "the late one was handled all the same")
}

func TestFullMailboxAndFullServer(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, p *pod.Config) { p.Mailbox, c.MaxWaiting = 1, 3 })
	const g = "/v1/pods/gauges/entities/g/messages/"
	w.post(g+"stall?timeout=50ms", `{}`).is(504, "outcome_unknown")
	w.post(g+"add?timeout=50ms", `{"n":1}`).is(504, "outcome_unknown")
	full := w.post(g+"add?timeout=50ms", `{"n":1}`).is(429, "mailbox_full")
	require.Equal(t, "1", full.header.Get("Retry-After"))
	waiting := make(chan struct{}, 3)
	for i := range 3 {
		go func() {
			target := fmt.Sprintf("%s/v1/pods/gauges/entities/g%d/messages/stall", w.srv.URL, i)
			for status := 503; status == 503; { // the asking below takes up room, too
				resp, err := w.srv.Client().Post(target, "application/json", nil)
				if err != nil {
					break
				}
				resp.Body.Close()
				status = resp.StatusCode
			}
			waiting <- struct{}{}
		}()
	}
	require.Eventually(t, func() bool { return w.post("/v1/pods/gauges/entities/h/messages/total", ``).status == 503 }, eventually, tick)
	over := w.post("/v1/pods/gauges/entities/h/messages/total", ``).is(503, "overloaded")
	require.Equal(t, "1", over.header.Get("Retry-After"))
	w.get("/v1/pods").is(200)
	w.stopStalling()
	for range 3 {
		<-waiting
	}
}

func TestStoreFaults(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{"a":1}`).is(201).etag()
	remove := w.store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "room" }, persisttest.RefuseUnit)
	w.put(room+"/state", `{"a":2}`).is(422, "store_refused")
	remove()
	remove = w.store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "room" }, persisttest.ConflictUnit)
	w.put(room+"/state", `{"a":2}`).is(409, "conflict")
	remove()
	require.Equal(t, tag, w.get(room).is(200).etag())

	w.store.FailReopens(1_000_000)
	remove = w.store.OnUnits(func(persist.Unit) bool { return true }, persisttest.UnknownLost)
	w.put(room+"/state", `{"a":2}`).is(504, "outcome_unknown")
	remove()
	down := w.put("/v1/pods/docs/entities/other/state", `{}`).is(503, "store_unavailable")
	require.Equal(t, "1", down.header.Get("Retry-After"))
	w.get("/healthz").is(503, "store_unavailable")
	w.put("/v1/pods/more", `{"type":"document"}`).is(503, "store_unavailable")
	require.Contains(t, down.body, "nothing was changed")
	for _, read := range []answer{w.get("/v1/pods/docs/entities/absent"), w.get("/v1/pods/docs/entities"), w.post("/v1/pods/docs/query", `{"filter":"state.a > 1"}`)} {
		require.Contains(t, read.is(503, "store_unavailable").body, "the store cannot be read at the moment; try again")
	}
	w.store.FailReopens(0)
	require.Eventually(t, func() bool { return w.get("/healthz").status == 200 }, eventually, tick)
	require.Eventually(t, func() bool { return w.put(room+"/state", `{"a":3}`).status == 200 }, eventually, tick)
	require.Equal(t, `{"a":3}`, w.get(room+"/state").is(200).body)
}

func TestReadOnlyPods(t *testing.T) {
	mem := persisttest.NewMemory()
	first := newWorldOn(t, mem, true)
	first.post("/v1/pods/gauges/entities/g/messages/add", `{"n":4}`).is(200)
	first.delete("/v1/pods/gauges").is(409, "pod_read_only")
	first.put("/v1/pods/gauges", `{"type":"document"}`).is(409, "pod_exists")
	first.close()

	w := newWorldOn(t, mem, false)
	var p httpapi.PodDescription
	w.get("/v1/pods/gauges").is(200).into(&p)
	require.True(t, p.ReadOnly)
	require.JSONEq(t, `{"total":4,"by":null}`, w.get("/v1/pods/gauges/entities/g/state").is(200).body)
	w.get("/v1/pods/gauges/entities").is(200)
	w.post("/v1/pods/gauges/entities/g/messages/add", `{"n":4}`).is(409, "pod_read_only")
	w.delete("/v1/pods/gauges/entities/g").is(409, "pod_read_only")
	w.put("/v1/pods/gauges/entities/g/state", `{}`).is(405, "typed_state")
	w.delete("/v1/pods/gauges").is(409, "pod_read_only")
}

func TestStopping(t *testing.T) {
	w := newWorld(t)
	w.docs()
	require.NoError(t, w.pods.Close(t.Context()))
	a := w.put(room+"/state", `{}`).is(503, "stopping")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	w.put("/v1/pods/more", `{"type":"document"}`).is(503, "stopping")
	w.api.Close()
	w.post("/v1/pods/gauges/entities/g/messages/add", `{"n":4}`).is(503, "stopping")
}

// A panic below the handlers is the server's fault, is answered and ends
// nothing.
func TestPanicInTheServer(t *testing.T) {
	api := httpapi.New(newWorld(t).pods, httpapi.Config{})
	defer api.Close()
	w := newRecorder()
	r, err := http.NewRequest(http.MethodGet, "http://localhost/healthz", nil)
	require.NoError(t, err)
	r.URL = nil // what no server hands out
	api.ServeHTTP(w, r)
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), `"code":"internal"`)
}
