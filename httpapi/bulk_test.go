package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

const lines = "application/x-ndjson"

func linesOf[T any](t *testing.T, body string) (out []T) {
	t.Helper()
	for line := range strings.Lines(body) {
		var v T
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		out = append(out, v)
	}
	return out
}

func TestExportAndImport(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put("/v1/pods/more", `{"type":"document","create":{"by":["set"]}}`).is(201)
	for i := range 1203 {
		w.put(fmt.Sprintf("/v1/pods/docs/entities/%%2F%d/state", i), fmt.Sprintf(`{"i":%d.0}`, i)).is(201)
	}
	w.put("/v1/pods/more/entities/a/state", `{"a":"<"}`).is(201)
	w.post(addG, `{"n":3}`).is(200)
	whole := w.get("/v1/export").is(200)
	require.Equal(t, lines, whole.header.Get("Content-Type"))
	all := linesOf[httpapi.Line](t, whole.body)
	require.Len(t, all, 3+1205+1)
	require.Equal(t, "docs", all[0].Pod)
	require.Equal(t, "document", all[0].Definition.Type)
	require.Equal(t, httpapi.Line{End: true, Entities: 1205}, all[len(all)-1])
	require.Equal(t, "gauges", all[1204].Pod)
	for i := 1; i < 1204; i++ {
		require.NotEmpty(t, all[i].State)
		require.NotZero(t, all[i].Life)
		require.Less(t, all[i-1].Name, all[i].Name)
	}
	// It goes on behind any line.
	for _, i := range []int{0, 1, 600, 1203, 1204, 1205, len(all) - 2} {
		rest := linesOf[httpapi.Line](t, w.get("/v1/export?cursor="+all[i].Cursor).is(200).body)
		require.Equal(t, all[i+1:len(all)-1], rest[:len(rest)-1])
	}
	some := linesOf[httpapi.Line](t, w.get("/v1/export?pods=more,docs,more").is(200).body)
	require.Len(t, some, 2+1204+1)
	w.get("/v1/export?pods=none").is(404, "no_such_pod")
	w.get("/v1/export?pods=%00").is(400, "bad_name")
	w.get("/v1/export?cursor=!").is(400, "bad_query")

	to := newWorld(t)
	bring := func() []httpapi.ImportedLine {
		return linesOf[httpapi.ImportedLine](t, to.post("/v1/import", whole.body, "Content-Type", lines).is(200).body)
	}
	results := bring()
	require.Len(t, results, len(all))
	require.Equal(t, httpapi.ImportedLine{End: true, Lines: len(all) - 1, Failed: 1}, results[len(all)-1])
	typed := 0
	for i, r := range results[:len(all)-1] {
		require.Equal(t, i+1, r.Line)
		require.Equal(t, all[i].Name, r.Name)
		if all[i].Pod == "gauges" && all[i].Name != "" {
			require.Equal(t, httpapi.CodeTypedState, r.Code)
			typed++
		} else if all[i].Definition == nil {
			require.Equal(t, 201, r.Status, r)
		}
	}
	require.Equal(t, 1, typed)
	require.Equal(t, `{"a":"<"}`, to.get("/v1/pods/more/entities/a/state").is(200).body)
	require.Contains(t, to.get("/v1/pods/more").is(200).body, `"by":["set"]`)
	tag := to.get("/v1/pods/docs/entities/%2F7").is(200).etag()
	for _, r := range bring()[1:1204] { // the same again changes nothing
		require.Equal(t, 200, r.Status)
	}
	require.Equal(t, tag, to.get("/v1/pods/docs/entities/%2F7").is(200).etag())
}

func TestImportOfBadLines(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.MaxLine = 200 })
	w.docs()
	body := strings.Join([]string{
		`{"pod":"docs","name":"a","state":{}}`, `nonsense`, ``, `{"pod":"none","name":"a","state":{}}`, `{"pod":"docs","name":"","state":{}}`,
		`{"pod":"docs","name":"a","state":[]}`, `{"pod":"docs","name":"a"}`, `{"pod":"docs","name":"a","sate":{}}`,
		`{"pod":"docs","name":"long","state":{"a":"` + strings.Repeat("x", 200_000) + `"}}`, `{"pod":"docs","name":"a","quarantined":"so"}`,
		`{"pod":"DOCS","definition":{"type":"document"}}`, `{"pod":"new","definition":{"type":"nonsense"}}`, "  \r",
		`{"pod":"docs","name":"b","state":{"last":true}}`,
	}, "\n")
	var got []string
	for _, r := range linesOf[httpapi.ImportedLine](t, w.post("/v1/import", body, "Content-Type", lines).is(200).body) {
		got = append(got, fmt.Sprintf("%d %d %s", r.Line, r.Status, r.Code))
	}
	require.Equal(t, []string{
		"1 201 ", "2 400 malformed", "4 404 no_such_pod", "5 400 bad_name", "6 400 malformed", "7 400 malformed", "8 422 unknown_field",
		"9 413 body_too_large", "10 503 quarantined", "11 400 bad_name", "12 422 bad_definition", "14 201 ", "0 0 ",
	}, got)
	require.Equal(t, `{"last":true}`, w.get("/v1/pods/docs/entities/b/state").body)
	w.post("/v1/import", `{}`).is(415, "unsupported_media_type")
	require.Equal(t, "{\"end\":true}\n", w.post("/v1/import", ``, "Content-Type", lines).is(200).body)
}

// Results come while the body is still being sent, and a body that breaks off has
// no end.
func TestImportStreams(t *testing.T) {
	w := newWorld(t)
	w.docs()
	body, send := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.srv.URL+"/v1/import", body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", lines)
	answered := make(chan struct{})
	var resp *http.Response
	go func() {
		defer close(answered)
		resp, err = w.srv.Client().Do(req) //nolint:bodyclose // it is closed below
	}()
	_, failed := io.WriteString(send, `{"pod":"docs","name":"a","state":{}}`+"\n")
	require.NoError(t, failed)
	<-answered
	require.NoError(t, err)
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range 3 {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, `"status":20`)
		_, err = fmt.Fprintf(send, `{"pod":"docs","name":"a","state":{"i":%d}}`+"\n", i)
		require.NoError(t, err)
	}
	_ = send.CloseWithError(io.ErrUnexpectedEOF)
	rest, err := io.ReadAll(in)
	require.Error(t, err)
	require.NotContains(t, string(rest), `"end"`)
}

func TestExportOfQuarantined(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorldOn(t, mem, true)
	w.docs()
	for _, name := range []string{"a", "b", "c"} {
		w.put("/v1/pods/docs/entities/"+name+"/state", `{}`).is(201)
	}
	w.close()
	mem = mem.Again()
	mem.Damage(persist.Key{Pod: "docs", Name: "b"})
	w = newWorldOn(t, mem, true)
	all := linesOf[httpapi.Line](t, w.get("/v1/export?pods=docs").is(200).body)
	require.Len(t, all, 5)
	require.NotEmpty(t, all[2].Quarantined)
	require.Equal(t, httpapi.Line{End: true, Entities: 2, Skipped: 1}, all[4])
}

func TestBatch(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{"n":0}`).is(201).etag()
	item := func(pod, name, typ, more string) string {
		return fmt.Sprintf(`{"pod":%q,"name":%q,"type":%q%s}`, pod, name, typ, more)
	}
	a := w.post("/v1/batch", "["+strings.Join([]string{
		item("gauges", "g", "add", `,"body":{"n":3}`),
		item("gauges", "g", "take", `,"body":{"n":1}`),
		item("gauges", "g", "total", ``),
		item("gauges", "g", "refuse", ``),
		item("gauges", "g", "fail", ``),
		item("gauges", "none", "take", `,"body":{"n":1}`),
		item("gauges", "g", "none", ``),
		item("none", "g", "add", ``),
		item("gauges", "", "add", ``),
		item("docs", "room", "merge", `,"body":{"n":1},"if":{"match":`+mustJSON(tag)+`},"id":"1"`),
		item("docs", "room", "merge", `,"body":{"n":2},"if":{"match":`+mustJSON(tag)+`}`),
		item("docs", "room", "merge", `,"body":{"n":2},"if":{"condition":"state.n == 9"}`),
		item("docs", "room", "merge", `,"body":{"n":2},"if":{"noneMatch":"*"}`),
		item("docs", "room", "merge", `,"body":{"n":2},"if":{"condition":"(("}`),
		item("docs", "room", "merge", `,"body":{"n":2},"if":{"match":"x"}`),
		item("docs", "room", "merge", `,"body":{"n":2},"id":"1"`),
		item("docs", "room", "merge", `,"body":7`),
		item("docs", "room", "merge", `,"bdy":7`),
		item("docs", "room", "merge", `,"body":{},"id":`+mustJSON(strings.Repeat("x", 201))),
		item("docs", "room", "merge", `,"body":{},"id":""`),
		item("docs", "room", "merge", `,"body":{},"if":{"match":""}`),
		item("docs", "room", "merge", `,"body":{},"if":{"noneMatch":""}`),
		item("docs", "room", "merge", `,"body":{},"if":{"condition":""}`),
		item("docs", "room", "merge", `,"body":{},"if":{"condition":null},"id":null`),
		`7`,
	}, ",")+"]").is(200)
	var r httpapi.BatchResult
	a.into(&r)
	var got []string
	for _, i := range r.Items {
		one := fmt.Sprint(i.Status)
		if i.Problem != nil {
			require.Equal(t, i.Status, i.Problem.Status)
			one += " " + string(i.Problem.Code)
		}
		got = append(got, one)
	}
	require.Equal(t, []string{
		"200", "200", "200", "422 rejected", "500 handler_failed", "404 no_such_entity", "404 no_such_message", "404 no_such_pod", "400 bad_name",
		"200", "412 stale_revision", "412 condition_failed", "412 condition_failed", "400 bad_filter", "400 bad_condition", "422 message_id_reused",
		"400 malformed", "422 unknown_field", "400 bad_message_id", "400 bad_message_id", "400 bad_condition", "400 bad_condition", "400 bad_filter", "200", "400 malformed",
	}, got)
	require.Equal(t, 20, r.Failed)
	require.Equal(t, "2", string(r.Items[2].Body), "those to one entity are handled in their order")
	require.Equal(t, w.get(room).etag(), r.Items[9].ETag)

	many := strings.Repeat(item("gauges", "h", "add", `,"body":{"n":1}`)+",", 999) + item("gauges", "h", "total", "")
	w.post("/v1/batch", "["+many+"]").is(200).into(&r)
	require.Zero(t, r.Failed)
	require.Equal(t, "999", string(r.Items[999].Body))
	require.Contains(t, w.post("/v1/batch", "["+many+","+many+"]").is(400, "malformed").body, "1000")
	w.post("/v1/batch", `{}`).is(400, "malformed")
	w.post("/v1/batch", `[]`, "Content-Type", "text/plain").is(415, "unsupported_media_type")
	require.Equal(t, `{"items":[],"failed":0}`, w.post("/v1/batch", `[]`).is(200).body)
	w.post("/v1/batch?timeout=x", `[]`).is(400, "bad_query")
	w.post("/v1/batch", `["`+strings.Repeat("x", 17<<20)+`"]`).is(413, "body_too_large")

	w.post("/v1/batch?timeout=50ms", "["+item("gauges", "i", "stall", "")+","+item("gauges", "j", "add", `,"body":{"n":1}`)+"]").is(200).into(&r)
	require.Equal(t, httpapi.CodeOutcomeUnknown, r.Items[0].Problem.Code)
	require.Equal(t, 200, r.Items[1].Status)
}

// A client that does not take an export is cut off, and sees no end.
func TestExportToSlowClient(t *testing.T) {
	var log logged
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.docs()
	text := strings.Repeat("x", 900_000)
	for i := range 30 {
		w.put(fmt.Sprintf("/v1/pods/docs/entities/%d/state", i), fmt.Sprintf(`{"text":%q}`, text)).is(201)
	}
	w.api.SetPatience(50 * time.Millisecond)
	resp, err := w.srv.Client().Get(w.srv.URL + "/v1/export")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "an export was cut off") }, eventually, tick)
	rest, err := io.ReadAll(resp.Body)
	require.Error(t, err)
	require.NotContains(t, string(rest), `"end"`)
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
