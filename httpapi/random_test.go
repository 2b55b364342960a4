package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

// randomFor is how long random requests go on: RANDOM_FOR in the environment, or
// as many as rapid makes.
const randomFor = "TWINSRV_RANDOM_FOR"

// Whatever is asked, in whatever order, the server has no fault of its own, every
// answer is one that the document names, and nothing is left behind.
func TestRandomRequests(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, p *pod.Config) {
		c.Heartbeat, c.MaxBody, c.MaxLine = 10*time.Millisecond, 4096, 4096
		p.Committer.KeepChanges = 50
		p.IdleAfter, p.MaxActive = 20*time.Millisecond, 5
	})
	w.stopStalling()
	w.docs()
	before := runtime.NumGoroutine()
	until := time.Now()
	if text := os.Getenv(randomFor); text != "" {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		until = until.Add(d)
	}
	asked, byStatus := 0, map[int]int{}
	for round := 0; round == 0 || time.Now().Before(until); round++ {
		rapid.Check(t, func(rt *rapid.T) {
			for range rapid.IntRange(1, 8).Draw(rt, "requests") {
				r := randomRequest().Draw(rt, "request")
				a := w.do(r.method, r.target, r.body, r.headers...)
				asked++
				byStatus[a.status]++
				if a.status >= 500 {
					require.Contains(t, []string{"handler_failed", "timed_out", "outcome_unknown"}, a.code, "%+v: %s", r, a.body)
				}
			}
		})
	}
	t.Logf("%d requests: %v", asked, byStatus)
	w.srv.Client().CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+10 }, eventually, tick, "goroutines are left behind")
	require.Zero(t, w.api.Watching())
}

type request struct {
	method, target, body string
	headers              []string
}

func randomRequest() *rapid.Generator[request] {
	return rapid.Custom(func(rt *rapid.T) request {
		from := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		podName := from("pod", "docs", "docs", "gauges", "gauges", "more", "none", "%00", "UP", "..")
		name := from("name", "a", "b", "a%2Fb", "%C3%A9", "a", "%00", "..", "%FF", "", url.PathEscape(rapid.StringN(1, 5, -1).Draw(rt, "any name")))
		entity := "/v1/pods/" + podName + "/entities/" + name
		pointer := from("pointer", "a", "a/b", "l/0", "l/-", "", "~1", "~", "%FF", "a%2Fb")
		text := from("json", `{}`, `{"a":1}`, `{"a":{"b":[1,2.50]},"l":[]}`, `{"n":1}`, `{"n":-3}`, `[]`, `null`, `7`, `"x"`, `{`, ``, `{"a":1,"a":2}`, `{"pointer":"/a","value":1}`, `{"pointer":"/a"}`,
			`[{"op":"add","path":"/a","value":1}]`, `[{"op":"test","path":"/a","value":1}]`, `{"type":"document"}`, strings.Repeat("[", 3000), `{"t":"`+strings.Repeat("x", 5000)+`"}`,
			`{"filter":"state.a > 0","sort":["-state.a"],"count":true}`, `{"group":{"by":["state.a"],"aggregate":["sum(state.n)"]}}`,
			`[{"pod":"docs","name":"a","type":"merge","body":{"a":2}},{"pod":"gauges","name":"a","type":"add","body":{"n":1}},7]`,
			`{"pod":"docs","name":"c","state":{"a":1}}`+"\n"+`{"pod":"gauges","name":"a","state":{}}`+"\nx\n")
		parameters := []string{
			"", "", "", "timeout=5s", "timeout=x", "condition=state.a%3D%3D1", "condition=((", "limit=2", "limit=0", "cursor=YQ", "cursor=!", "prefix=a", "filter=state.a%3E0", "filter=x",
			"select=name,state.a", "sort=-state.a", "count=true", "group=state.a&aggregate=sum(state.n)", "revision=1", "revision=99", "revision=x", "at=2001-01-01T00:00:00Z", "at=2100-01-01T00:00:00Z",
			"from=1&to=2", "earlier=true", "life=1", "path=state.n&from=2020-01-01T00:00:00Z&width=10000h", "path=state.n&from=2020-01-01T00:00:00Z&width=1ns", "pods=docs", "pods=none", "discard=true", "cascade=true", "depth=9",
			"wait=10ms", "nonsense=1", "%zz", "a=1;b",
		}
		pods := "/v1/pods/" + podName
		method, target, _ := strings.Cut(from("operation",
			"GET "+entity, "DELETE "+entity, "GET "+entity+"/state", "PUT "+entity+"/state", "PUT "+entity+"/state", "PATCH "+entity+"/state",
			"GET "+entity+"/state/"+pointer, "PUT "+entity+"/state/"+pointer, "PATCH "+entity+"/state/"+pointer, "DELETE "+entity+"/state/"+pointer,
			"GET "+entity+"/history", "GET "+entity+"/history/buckets", "POST "+entity+"/rebuild", "GET "+entity+"/nothing",
			"POST "+entity+"/messages/"+from("message", "merge", "set", "remove", "patch", "add", "add", "take", "total", "refuse", "fail", "boom", "odd", "stall", "none", "%00"),
			"POST "+entity+"/messages/"+from("usual message", "merge", "add"), "PUT "+pods, "GET "+pods, "DELETE "+pods, "GET "+pods+"/entities", "POST "+pods+"/query",
			"GET /v1/pods", "GET /v1/entities", "POST /v1/query", "POST /v1/batch", "POST /v1/import", "GET /v1/export", "GET /v1/actors", "GET /v1/deadletters", "GET /v1/limits",
			"GET /v1/futures/none", "DELETE /v1/futures/none", "GET /v1/quarantine", "GET /v1/quarantine/"+podName+"/"+name, "DELETE /v1/quarantine/"+podName+"/"+name,
			"GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json", "GET /reference", "POST /v1/store/backup", "GET /", "GET /v1/x",
		), " ")
		if rapid.IntRange(0, 15).Draw(rt, "another method") == 0 {
			method = from("method", "GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND")
		}
		if q := from("parameter", parameters...); q != "" && rapid.Bool().Draw(rt, "with parameter") {
			target += "?" + q
		}
		r := request{method: method, target: target}
		if r.method != http.MethodGet && r.method != http.MethodHead {
			r.body = text
			r.headers = append(r.headers, "Content-Type", from("type", "application/json", "application/json", "application/json", "application/json", jsonPatch, mergePatch, lines, "text/plain", "x"))
		}
		if rapid.Bool().Draw(rt, "plain") {
			return r
		}
		r.headers = append(r.headers,
			"If-Match", from("If-Match", "", "", "", "", "*", `"1-1"`, "x"), "If-None-Match", from("If-None-Match", "", "", "", "", "*", `"1-1"`, "x"),
			"Idempotency-Key", from("id", "", "", "", "1", "2", strings.Repeat("x", 201)), prefer, from("prefer", "", "", "", "respond-async", "wait=5", "wait=x", "respond-async, wait=1"),
			"Accept", from("accept", "", "application/json", "*/*"), "Authorization", from("token", "", "", "Bearer x"), "Origin", from("origin", "", "", "", "", "", "http://evil.example"))
		return r
	})
}

// A stream that a random client leaves leaves nothing behind.
func TestRandomStreams(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Heartbeat = time.Millisecond })
	w.docs()
	rapid.Check(t, func(rt *rapid.T) {
		target := rapid.SampledFrom([]string{"/v1/watch", "/v1/watch?after=0", "/v1/pods/docs/watch?filter=state.n%3E2", room + "/watch", "/v1/deadletters"}).Draw(rt, "stream")
		s := w.watch(target)
		for range rapid.IntRange(0, 5).Draw(rt, "writes") {
			w.put(room+"/state", fmt.Sprintf(`{"n":%d}`, rapid.IntRange(0, 5).Draw(rt, "n")))
		}
		for range rapid.IntRange(0, 3).Draw(rt, "reads") {
			s.any()
		}
		s.cancel()
		_ = s.resp.Body.Close()
	})
	require.Eventually(t, func() bool { return w.api.Watching() == 0 }, eventually, tick)
}
