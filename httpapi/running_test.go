package httpapi_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func TestTokens(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{}`).is(201)
	w.api.SetTokens([]httpapi.Token{{Value: "secret", Write: true}, {Value: "look"}, {Value: ""}})
	const read, write = "Bearer look", "bearer  secret"
	a := w.get(room).is(401, "unauthorized")
	require.Equal(t, `Bearer realm="twinsrv"`, a.header.Get("WWW-Authenticate"))
	for _, bad := range []string{"Bearer", "Bearer ", "Bearer looks", "Basic look", "look", "Bearer secret\tx", "Bearer Look"} {
		a := w.get(room, "Authorization", bad).is(401, "unauthorized")
		require.Contains(t, a.header.Get("WWW-Authenticate"), "invalid_token")
	}
	w.get(room, "Authorization", read, "Authorization", read).is(401, "unauthorized")
	for target := range map[string]bool{room: true, room + "/state": true, "/v1/pods": true, "/openapi.json": true, "/metrics": true, "/v1/limits": true, "/v1/actors": true} {
		w.get(target).is(401, "unauthorized")
		w.get(target, "Authorization", read).is(200)
		w.get(target, "Authorization", write).is(200)
	}
	w.do(http.MethodHead, room, "").is(401)
	for _, a := range []answer{
		w.put(room+"/state", `{"a":1}`, "Authorization", read), w.patch(room+"/state", `{"a":1}`, "Authorization", read), w.delete(room, "Authorization", read),
		w.post(room+"/messages/merge", `{}`, "Authorization", read), w.put("/v1/pods/x", `{"type":"document"}`, "Authorization", read),
		w.post("/v1/batch", `[]`, "Authorization", read), w.post("/v1/import", ``, "Authorization", read, "Content-Type", lines),
		w.post("/v1/store/backup", ``, "Authorization", read), w.put(room+"/state/a", `1`, "Authorization", read),
	} {
		require.Contains(t, a.is(403, "read_only_token").header.Get("WWW-Authenticate"), "insufficient_scope")
	}
	require.Equal(t, `{}`, w.get(room+"/state", "Authorization", read).body)
	w.put(room+"/state", `{"a":1}`, "Authorization", write).is(200)
	w.get("/healthz").is(200)
	w.get("/readyz").is(200)

	w.api.SetTokens([]httpapi.Token{{Value: "new", Write: true}})
	w.get(room, "Authorization", write).is(401, "unauthorized")
	w.put(room+"/state", `{}`, "Authorization", "Bearer new").is(200)
	w.api.SetTokens([]httpapi.Token{})
	w.get(room, "Authorization", "Bearer new").is(401, "unauthorized")
	w.get(room, "Authorization", "Bearer ").is(401, "unauthorized")
	w.api.SetTokens(nil)
	w.get(room).is(200)
}

func TestReady(t *testing.T) {
	var missing error
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Ready = func() error { return missing } })
	require.JSONEq(t, `{"status":"ready","pods":1}`, w.get("/readyz").is(200).body)
	missing = errors.New("the store is being checked")
	require.Contains(t, w.get("/readyz").is(503, "not_ready").body, "is being checked")
	missing = nil
	w.store.FailReopens(1_000_000)
	remove := w.store.OnUnits(func(persist.Unit) bool { return true }, persisttest.UnknownLost)
	w.post(addG, `{"n":1}`).is(504)
	remove()
	w.get("/readyz").is(503, "store_unavailable")
	require.Contains(t, w.get("/metrics").body, "twinsrv_store_up 0")
	w.store.FailReopens(0)
	require.Eventually(t, func() bool { return w.get("/readyz").status == 200 }, eventually, tick)
}

// TestAStoreThatTakesNothingIsRead: what failed was not done, so that whatever the
// store shows is durable.
func TestAStoreThatTakesNothingIsRead(t *testing.T) {
	w := newWorld(t)
	w.post(addG, `{"n":1}`).is(200)
	w.store.FailReopens(1_000_000)
	defer w.store.OnUnits(func(persist.Unit) bool { return true }, persisttest.FailBefore)()
	for range 3 {
		w.post(addG, `{"n":1}`).is(503, "store_unavailable")
		w.get("/readyz").is(503, "store_unavailable")
		w.get(gaugeG).is(200)
		w.watch("/v1/watch")
	}
	require.Contains(t, w.get("/metrics").body, "twinsrv_store_up 0")
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.post(addG, `{"n":1}`).is(200)
	w.post(addG, `{`).is(400)
	w.post(gaugeG+"/messages/refuse", ``).is(422)
	w.watch("/v1/watch")
	a := w.get("/metrics").is(200)
	require.Contains(t, a.header.Get("Content-Type"), "text/plain")
	for _, line := range []string{
		`twinsrv_http_requests_total{operation="post-message",status="200"} 1`, `twinsrv_http_requests_total{operation="post-message",status="400"} 1`,
		`twinsrv_http_request_duration_seconds_count{operation="post-message"} 3`, `twinsrv_asks_total{outcome="ok"} 1`, `twinsrv_asks_total{outcome="rejected"} 1`,
		`twinsrv_entities{state="active"} 1`, `twinsrv_entities{state="quarantined"} 0`, `twinsrv_pods 2`, `twinsrv_watchers 1`, `twinsrv_store_up 1`,
		`twinsrv_mailbox_messages 0`, `twinsrv_futures{state="pending"} 0`, `twinsrv_asks_waiting 0`,
		`twinsrv_entities{state="activating"} 0`, `twinsrv_commit_units_total{outcome="failed"} 0`, `twinsrv_commit_units_queued 0`,
	} {
		require.Contains(t, a.body, "\n"+line+"\n")
	}
	for _, line := range []string{
		`twinsrv_actors \d+`, `twinsrv_commit_duration_seconds_count [1-9]\d*`, `twinsrv_commit_duration_seconds_bucket\{le="\+Inf"\} [1-9]\d*`,
		`twinsrv_commit_units_total\{outcome="applied"\} [1-9]\d*`, `twinsrv_commit_bytes_total [1-9]\d*`,
	} {
		require.Regexp(t, regexp.MustCompile(`(?m)^`+line+`$`), a.body)
	}
	require.Contains(t, a.body, "go_goroutines")
	require.NotContains(t, a.body, `operation="watch"}`, "a stream is no long request")
	other := newWorld(t) // two APIs share nothing
	require.NotContains(t, other.get("/metrics").body, `operation="post-message"`)
}

func TestLimits(t *testing.T) {
	var l httpapi.Limits
	newWorld(t).get("/v1/limits").is(200).into(&l)
	require.EqualValues(t, 1<<20, l.MaxBody)
	require.Equal(t, []float64{10, 60, 900, 15}, []float64{l.DefaultTimeout, l.MaxTimeout, l.FutureLife, l.Heartbeat})
	require.Equal(t, 1000, l.MaxLimit)
}

func TestActors(t *testing.T) {
	w := newWorld(t)
	w.post("/v1/pods/gauges/entities/a%2Fb/messages/add", `{"n":1}`).is(200)
	w.post("/v1/pods/gauges/entities/b/messages/stall?timeout=20ms", `{}`).is(504)
	w.post("/v1/pods/gauges/entities/b/messages/add?timeout=20ms", `{"n":1}`).is(504)
	all := func(query string) (items []httpapi.ActorLine) {
		for next := ""; ; {
			var list httpapi.ActorList
			w.get("/v1/actors?limit=1&cursor=" + next + query).is(200).into(&list)
			require.LessOrEqual(t, len(list.Items), 1)
			items = append(items, list.Items...)
			if next = list.Next; next == "" {
				return items
			}
		}
	}
	paths := func(items []httpapi.ActorLine) (out []string) {
		for _, i := range items {
			out = append(out, i.Path)
		}
		return out
	}
	deep := paths(all("&depth=100"))
	var want []string
	for r := range w.sys.Root().Tree() {
		want = append(want, r.Path())
	}
	require.Equal(t, want, deep)
	require.Contains(t, deep, "/user/pods/gauges/a%2Fb")
	for _, p := range paths(all("")) {
		require.LessOrEqual(t, strings.Count(p, "/"), 2)
	}
	below := all("&path=/user/pods/gauges&depth=1")
	require.Equal(t, []string{"/user/pods/gauges", "/user/pods/gauges/a%2Fb", "/user/pods/gauges/b"}, paths(below))
	require.Equal(t, 2, below[0].Children)
	require.Equal(t, 1, below[2].Mailbox)
	require.Equal(t, 1024, below[2].Capacity)
	w.get("/v1/actors?path=/user/none").is(404, "not_found")
	for _, q := range []string{"depth=0", "depth=101", "limit=0", "cursor=!"} {
		w.get("/v1/actors?"+q).is(400, "bad_query")
	}
}

func TestSchemaOfDocuments(t *testing.T) {
	w := newWorld(t)
	w.put("/v1/pods/docs", `{"type":"document","schema":{"type":"object","properties":{"celsius":{"type":"number","maximum":50}},"required":["celsius"]}}`).is(201)
	w.put(room+"/state", `{"celsius":20}`).is(201)
	for _, a := range []answer{
		w.put(room+"/state", `{"celsius":"warm"}`), w.patch(room+"/state", `{"celsius":51}`), w.put(room+"/state/celsius", `null`), w.patch(room+"/state/celsius", `99`),
		w.delete(room + "/state/celsius"), w.post(room+"/messages/merge", `{"celsius":null}`),
		w.patch(room+"/state", `[{"op":"remove","path":"/celsius"}]`, "Content-Type", jsonPatch),
	} {
		var p httpapi.Problem
		a.is(422, "schema_violation").into(&p)
		require.NotEmpty(t, p.Violations)
	}
	require.Equal(t, `{"celsius":20}`, w.get(room+"/state").body)
	w.put("/v1/pods/docs", `{"type":"document","schema":{"type":"nonsense"}}`).is(422, "bad_definition")
	require.Contains(t, w.get("/v1/pods/docs").body, `"maximum":50`)
}

// A condition that costs too much is refused. The race detector makes the little
// that it may cost take long.
func TestCostlyCondition(t *testing.T) {
	w := newWorld(t)
	w.docs()
	list := "[" + strings.Repeat("1,", 2000) + "1]"
	w.put(room+"/state", `{"l":`+list+`}`).is(201)
	w.put(room+"/state?condition=state.l.all(a,state.l.all(b,state.l.all(c,a==b+%26%26+b==c)))&timeout=60s", `{}`).is(422, "too_costly")
}
