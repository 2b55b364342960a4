package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

const (
	prefer  = "Prefer"
	gaugeG  = "/v1/pods/gauges/entities/g"
	addG    = gaugeG + "/messages/add"
	stallG  = gaugeG + "/messages/stall"
	applied = "Preference-Applied"
)

type futureState struct {
	ID, Status, Pod, Name, Message, ETag string
	Created                              time.Time
	Expires                              *time.Time
	Result                               any
	Problem                              *httpapi.Problem
}

// future asks for a future, waiting for its end.
func (w *world) future(a answer) (s futureState) {
	w.t.Helper()
	a.is(202)
	require.Contains(w.t, a.header.Values(applied), "respond-async")
	location := a.header.Get("Location")
	a.into(&s)
	require.Equal(w.t, "/v1/futures/"+s.ID, location)
	s = futureState{}
	w.get(location + "?wait=60s").is(200).into(&s)
	return s
}

func TestRespondAsync(t *testing.T) {
	w := newWorld(t)
	done := w.future(w.post(addG, `{"n":3}`, prefer, "respond-async"))
	require.Equal(t, "done", done.Status)
	require.Equal(t, []string{"gauges", "g", "add"}, []string{done.Pod, done.Name, done.Message})
	require.Equal(t, w.get(gaugeG).etag(), done.ETag)
	require.NotNil(t, done.Result)
	require.WithinDuration(t, time.Now().Add(15*time.Minute), *done.Expires, time.Minute)
	reply := w.future(w.post(gaugeG+"/messages/take", `{"n":1}`, prefer, "foo, respond-async;x=1"))
	require.Equal(t, map[string]any{"left": 2.0, "text": "<a&b>", "half": 0.5}, reply.Result)

	refused := w.future(w.post(gaugeG+"/messages/refuse", ``, prefer, "respond-async"))
	require.Equal(t, "failed", refused.Status)
	require.Equal(t, httpapi.CodeRejected, refused.Problem.Code)
	require.Equal(t, httpapi.CodeHandlerFailed, w.future(w.post(gaugeG+"/messages/boom", ``, prefer, "respond-async")).Problem.Code)
	late := w.future(w.post(stallG+"?timeout=20ms", ``, prefer, "respond-async"))
	require.Equal(t, "expired", late.Status)
	require.Equal(t, httpapi.CodeOutcomeUnknown, late.Problem.Code)

	w.get("/v1/futures/none").is(404, "no_such_future")
	w.delete("/v1/futures/none").is(404, "no_such_future")
	w.get("/v1/futures/"+done.ID+"?wait=0").is(400, "bad_query")
	w.get("/v1/futures/"+done.ID+"?wait=2m").is(400, "bad_query")
	w.get("/v1/futures/"+done.ID, prefer, "wait=x").is(400, "bad_preference")
	w.delete("/v1/futures/" + done.ID).is(204)
	w.get("/v1/futures/"+done.ID).is(404, "no_such_future")
}

// What can be refused without the entity is never a future.
func TestNothingWrongIsAccepted(t *testing.T) {
	w := newWorld(t)
	w.docs()
	async := func(target, body string, headers ...string) answer {
		return w.post(target, body, append([]string{prefer, "respond-async"}, headers...)...)
	}
	async(addG, `{`).is(400, "malformed")
	async(addG, `{"n":"x"}`).is(400, "malformed")
	async(addG, `{"m":1}`).is(422, "unknown_field")
	async(gaugeG+"/messages/none", ``).is(404, "no_such_message")
	async("/v1/pods/none/entities/g/messages/add", ``).is(404, "no_such_pod")
	async("/v1/pods/gauges/entities/%00/messages/add", ``).is(400, "bad_name")
	async(addG, `{"n":1}`, "If-Match", "x").is(400, "bad_condition")
	async(addG+"?condition=((", `{"n":1}`).is(400, "bad_filter")
	async(addG+"?timeout=x", `{"n":1}`).is(400, "bad_query")
	async(addG, `{"n":1}`, idHeader, strings.Repeat("x", 201)).is(400, "bad_message_id")
	async(addG, `{"n":1}`, "Content-Type", "text/plain").is(415, "unsupported_media_type")
	async(addG, `{"n":1}`, prefer, "wait=-1").is(400, "bad_preference")
	w.get(gaugeG).is(404, "no_such_entity")
}

// What the entity would refuse before its handler begins is refused at once, with
// the answer that the request would have without the preference.
func TestNothingRefusedIsAccepted(t *testing.T) {
	w := newWorld(t)
	w.put("/v1/pods/docs", `{"type":"document","schema":{"type":"object","properties":{"n":{"type":"number"}}},"create":{"by":["merge"],"names":"room-.*"}}`).is(201)
	const docs = "/v1/pods/docs/entities/"
	old := w.post(docs+"room-1/messages/merge", `{"n":1}`).is(200).etag()
	tag := w.post(docs+"room-1/messages/merge", `{"n":2}`, idHeader, "1", "If-Match", old).is(200).etag()
	for _, r := range []struct {
		target, body string
		headers      []string
		status       int
		code         string
	}{
		{docs + "hall/messages/merge", `{}`, nil, 404, "no_such_entity"},
		{docs + "room-2/messages/set", `{"pointer":"/n","value":1}`, nil, 404, "no_such_entity"},
		{docs + "room-2/messages/remove", `{"pointer":"/n"}`, nil, 404, "no_such_entity"},
		{docs + "room-2/messages/merge", `{"n":"x"}`, nil, 422, "schema_violation"},
		{docs + "room-1/messages/merge", `{"n":"x"}`, nil, 422, "schema_violation"},
		{docs + "room-1/messages/remove", `{"pointer":"/m"}`, nil, 422, "rejected"},
		{docs + "room-1/messages/merge", `{"n":3}`, []string{"If-Match", old}, 412, "stale_revision"},
		{docs + "room-1/messages/merge", `{"n":3}`, []string{"If-None-Match", tag}, 412, "condition_failed"},
		{docs + "room-1/messages/merge", `{"n":3}`, []string{"If-Match", tag, "If-None-Match", "*"}, 412, "condition_failed"},
		{docs + "room-1/messages/merge?condition=state.n==9", `{"n":3}`, nil, 412, "condition_failed"},
		{docs + "room-2/messages/merge", `{"n":3}`, []string{"If-Match", "*"}, 412, "condition_failed"},
		{gaugeG + "/messages/take", `{"n":1}`, nil, 404, "no_such_entity"},
		{gaugeG + "/messages/total", ``, nil, 404, "no_such_entity"},
		{gaugeG + "/messages/add", `{"n":1}`, []string{"If-Match", `"1-1"`}, 412, "stale_revision"},
	} {
		want := w.post(r.target, r.body, r.headers...).is(r.status, r.code)
		for _, p := range []string{"respond-async", "respond-async, wait=5"} {
			got := w.post(r.target, r.body, append(r.headers[:len(r.headers):len(r.headers)], prefer, p)...).is(r.status, r.code)
			require.Equal(t, want.body, got.body, r.target)
			require.Empty(t, got.header.Get("Location"))
		}
	}
	require.Zero(t, w.api.KeptFutures())
	// A repeat has its first answer, whatever has become of the entity since.
	repeat := w.future(w.post(docs+"room-1/messages/merge", `{"n":2}`, idHeader, "1", "If-Match", old, prefer, "respond-async"))
	require.Equal(t, []string{"done", tag}, []string{repeat.Status, repeat.ETag})
	// A batch accepts nothing either: it always waits.
	batch := w.post("/v1/batch", `[{"pod":"docs","name":"hall","type":"merge","body":{}},{"pod":"docs","name":"room-1","type":"merge","body":{"n":"x"}}]`, prefer, "respond-async").is(200)
	var r httpapi.BatchResult
	batch.into(&r)
	require.Equal(t, []httpapi.Code{httpapi.CodeNoSuchEntity, httpapi.CodeSchemaViolation}, []httpapi.Code{r.Items[0].Problem.Code, r.Items[1].Problem.Code})
}

func TestFuturesOfRepeats(t *testing.T) {
	w := newWorld(t)
	first := w.future(w.post(addG, `{"n":3}`, prefer, "respond-async", idHeader, "1"))
	again := w.future(w.post(addG, `{"n":3}`, prefer, "respond-async", idHeader, "1"))
	require.NotEqual(t, first.ID, again.ID)
	require.Equal(t, first.Result, again.Result)
	require.Equal(t, first.ETag, again.ETag)
	w.post(addG, `{"n":4}`, prefer, "respond-async", idHeader, "1").is(422, "message_id_reused")
	require.Equal(t, `{"by":null,"total":3}`, sorted(w.get(gaugeG+"/state").body))
}

func TestPreferWait(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, "wait=5", w.post(addG, `{"n":3}`, prefer, "wait=5").is(200).header.Get(applied))
	w.post(stallG+"?timeout=30ms", ``, prefer, "wait=60").is(504, "outcome_unknown") // the smaller one holds
	begun := time.Now()
	w.post(addG+"?timeout=60s", `{"n":1}`, prefer, "wait=1").is(504, "outcome_unknown")
	require.Less(t, time.Since(begun), 50*time.Second)
	w.post(addG, `{"n":1}`, prefer, "wait=0").is(400, "bad_preference")
	w.get(gaugeG, prefer, "wait=x").is(400, "bad_preference")

	// Together they wait so long before they give a future.
	a := w.post(addG, `{"n":1}`, prefer, "respond-async, wait=1").is(202)
	require.Equal(t, []string{"wait=1", "respond-async"}, a.header.Values(applied))
	var pending futureState
	w.get(a.header.Get("Location")).is(200).into(&pending)
	require.Equal(t, "pending", pending.Status)
	require.Nil(t, pending.Expires)
	w.get(a.header.Get("Location"), prefer, "wait=1").is(200).into(&pending)
	require.Equal(t, "pending", pending.Status)

	cancelled := w.post(addG, `{"n":1}`, prefer, "respond-async").is(202).header.Get("Location")
	w.delete(cancelled).is(204)
	w.get(cancelled).is(200).into(&pending)
	require.Equal(t, "cancelled", pending.Status)
	require.Equal(t, httpapi.CodeOutcomeUnknown, pending.Problem.Code)
	w.stopStalling()
	require.Equal(t, "done", w.future(a).Status)
	at := w.post(addG, `{"n":1}`, prefer, "respond-async, wait=60").is(200)
	require.Equal(t, "wait=60", at.header.Get(applied))
	require.NotEmpty(t, at.etag())
}

func TestFuturesAreBounded(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.MaxWaiting = 3 })
	for i := range 3 {
		w.post(fmt.Sprintf("/v1/pods/gauges/entities/g%d/messages/stall", i), ``, prefer, "respond-async").is(202)
	}
	w.post("/v1/pods/gauges/entities/g9/messages/stall", ``, prefer, "respond-async").is(503, "overloaded")
}

// What futures failed with is held no longer than results of as many bytes.
func TestFailedFuturesAreBounded(t *testing.T) {
	w := newWorld(t)
	type (
		page struct{}
		deny struct{}
	)
	why := strings.Repeat("x", 1<<20)
	_, err := pod.Start(w.pods, entity.Type[page]{Name: "pages", Handlers: entity.Handlers[page]{
		"deny": entity.Reply(func(*entity.Context, *page, deny) (string, error) { return "", entity.Rejectf("%s", why) }),
	}})
	require.NoError(t, err)
	for range 70 {
		ended := w.post("/v1/pods/pages/entities/p/messages/deny", ``, prefer, "respond-async").is(202).header.Get("Location")
		require.Eventually(t, func() bool { return w.api.PendingFutures() == 0 }, eventually, time.Millisecond)
		w.get(ended).is(200)
	}
	require.Equal(t, 64, w.api.KeptFutures())
}

// When there are too many, those that have ended longest ago go; those that are
// waited for stay.
func TestOldFuturesGo(t *testing.T) {
	w := newWorld(t)
	w.api.KeepFutures(3)
	pending := w.post(stallG, ``, prefer, "respond-async").is(202).header.Get("Location")
	var ended []string
	for range 4 {
		ended = append(ended, w.future(w.post("/v1/pods/gauges/entities/h/messages/add", `{"n":1}`, prefer, "respond-async")).ID)
	}
	require.Equal(t, 3, w.api.KeptFutures())
	w.get("/v1/futures/"+ended[1]).is(404, "no_such_future")
	w.get("/v1/futures/" + ended[3]).is(200)
	w.get(pending).is(200)
	for range 2 {
		w.post(stallG, ``, prefer, "respond-async").is(202)
	}
	w.post(stallG, ``, prefer, "respond-async").is(503, "overloaded")
	w.get(pending).is(200)
}
