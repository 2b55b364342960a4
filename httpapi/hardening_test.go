package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// bomb is a reply whose own encoding panics.
type bomb struct{ Armed bool }

func (b bomb) MarshalJSON() ([]byte, error) {
	if b.Armed {
		panic("an odd reply")
	}
	return []byte(`"safe"`), nil
}

type (
	bombs struct{}
	arm   struct{}
)

// An answer that panics when it is written harms its own request alone: it is
// the handler's failure, also where no request waits for it.
func TestAnAnswerThatPanics(t *testing.T) {
	w := newWorld(t)
	_, err := pod.Start(w.pods, entity.Type[bombs]{Name: "bombs", Handlers: entity.Handlers[bombs]{
		"arm": entity.Reply(func(*entity.Context, *bombs, arm) (bomb, error) { return bomb{Armed: true}, nil }),
	}})
	require.NoError(t, err)
	const target = "/v1/pods/bombs/entities/b/messages/arm"
	w.post(target, ``).is(500, "handler_failed")
	ended := w.future(w.post(target, ``, prefer, "respond-async"))
	require.Equal(t, "failed", ended.Status)
	require.Equal(t, httpapi.CodeHandlerFailed, ended.Problem.Code)
	a := w.post("/v1/batch", `[{"pod":"bombs","name":"b","type":"arm"},{"pod":"gauges","name":"g","type":"add","body":{"n":1}}]`).is(200)
	require.Contains(t, a.body, "handler_failed")
	require.Contains(t, a.body, `"status":200`)
}

// A header that is not heeded is refused: a repeated deletion with the key of the
// first would end the life that has begun since.
func TestHeadersThatAreNotHeeded(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"n":1}`).is(201)
	w.delete(room, "Idempotency-Key", "k").is(400, "bad_message_id")
	w.delete(room, "Idempotency-Key", emptyHeader).is(400, "bad_message_id") // a script's variable was not set
	w.delete("/v1/pods/docs?cascade=true", "If-Match", emptyHeader).is(400, "bad_condition")
	w.delete("/v1/pods/docs?cascade=true", "If-None-Match", emptyHeader).is(400, "bad_condition")
	w.get(room).is(200)
	w.post("/v1/batch", `[]`, "Idempotency-Key", "k").is(400, "bad_message_id")
	w.put("/v1/pods/docs", `{"type":"document"}`, "If-Match", `"1-1"`).is(400, "bad_condition")
	w.delete("/v1/pods/docs?cascade=true", "If-None-Match", "*").is(400, "bad_condition")
	w.get(room).is(200)
	w.get("/v1/pods", "If-Match", `"1-1"`).is(200)
}

// Who sends a body with a deletion believes that it says something.
func TestDeletionsHaveNoBody(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"n":1}`).is(201)
	for _, target := range []string{room, room + "/state/n", "/v1/pods/docs?cascade=true", "/v1/quarantine/docs/room", "/v1/futures/none"} {
		w.do(http.MethodDelete, target, `{"if":{"match":"\"1-1\""}}`).is(400, "malformed")
		w.send(http.MethodDelete, target, struct{ io.Reader }{strings.NewReader(" ")}, "Content-Type", "application/json").is(400, "malformed") // of unknown length
	}
	w.get(room + "/state/n").is(200)
	w.send(http.MethodDelete, room+"/state/n", struct{ io.Reader }{strings.NewReader("")}).is(204)
	w.delete(room).is(204)
}

// Dead letters come one after the other to who accepts such a stream alone.
func TestDeadLettersAreAListForWhoTakesJSON(t *testing.T) {
	w := newWorld(t)
	for _, accept := range []string{"", "application/json", "application/json, text/event-stream;q=0", "text/event-stream, application/json", "text/event-stream;q=0", "*/*, text/event-stream", ";;"} {
		require.Equal(t, "application/json", w.get("/v1/deadletters", "Accept", accept).is(200).header.Get("Content-Type"), accept)
	}
}

func TestBatchesAreRefusedAsSoonAsTheyAreTooLong(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"[" + strings.Repeat("1,", 1000) + "1]": "at most 1000", "null": "does not begin", `{}`: "does not begin", "[1": "array", "[] 1": "behind it", "": "array",
		"[" + strings.Repeat("1,", 1000) + "!": "at most 1000", // what follows is not looked at
	} {
		require.Contains(t, w.post("/v1/batch", text).is(400, "malformed").body, want)
	}
	w.post("/v1/batch", ` [ ] `).is(200)
}

// A token that is taken back ends the streams that it has opened.
func TestARevokedTokenEndsItsStreams(t *testing.T) {
	old, other := httpapi.Token{Value: "old"}, httpapi.Token{Value: "other", Write: true}
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Heartbeat = 10 * time.Millisecond })
	w.api.SetTokens([]httpapi.Token{old, other})
	streams := []*stream{w.watch("/v1/watch", "Authorization", "Bearer old"), w.watch("/v1/deadletters", "Authorization", "Bearer old")}
	stays := w.watch("/v1/watch", "Authorization", "Bearer other")
	w.api.SetTokens([]httpapi.Token{other})
	for _, s := range streams {
		require.Eventually(t, func() bool {
			e := s.any()
			return e.kind == "cut" && e.data["reason"] == "unauthorized"
		}, eventually, tick)
	}
	for range 3 {
		require.Equal(t, ":", beat(stays).comment)
	}
}

// What happens after a token was taken back is not sent any more, however long it
// is until the next heartbeat.
func TestARevokedTokenHearsOfNothingMore(t *testing.T) {
	old, other := httpapi.Token{Value: "old"}, httpapi.Token{Value: "other", Write: true}
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Heartbeat = time.Hour })
	w.api.SetTokens([]httpapi.Token{old, other})
	changes := w.watch("/v1/watch", "Authorization", "Bearer old")
	letters := w.watch("/v1/deadletters", "Authorization", "Bearer old")
	w.put("/v1/pods/docs", `{"type":"document"}`, "Authorization", "Bearer other").is(201)
	w.put(room+"/state", `{"n":1}`, "Authorization", "Bearer other").is(201)
	next := func(s *stream) event {
		for {
			if e := s.any(); e.kind != "" {
				return e
			}
		}
	}
	require.NotEqual(t, "cut", next(changes).kind, "it may hear of that")
	w.api.SetTokens([]httpapi.Token{other})
	w.put(room+"/state", `{"n":2}`, "Authorization", "Bearer other").is(200)
	e := next(changes)
	require.Equal(t, "cut", e.kind)
	require.Equal(t, "unauthorized", e.data["reason"])
	w.sys.DeadLetters().Publish(actor.ZombieMsg{To: "/user/x"})
	e = next(letters)
	require.Equal(t, "cut", e.kind)
	require.Equal(t, "unauthorized", e.data["reason"])
}

// beat skips the place where a stream begins.
func beat(s *stream) event {
	for {
		if e := s.any(); e.comment != "" {
			return e
		}
	}
}

// An import that brings nothing ends with the server's streams.
func TestAnImportOfNothingEnds(t *testing.T) {
	w := newWorld(t)
	c, err := net.Dial("tcp", w.srv.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	const first = `{"pod":"docs","name":"a","state":{}}` + "\n"
	_, err = fmt.Fprintf(c, "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n1\r\n\n\r\n",
		lines, len(first), first)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	status, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, status, "200")
	w.api.EndStreams()
	_, err = io.Copy(io.Discard, in) // it ends also while nothing more comes
	require.NoError(t, err)
}

// A client that is cut off before the first change of a new store goes on at its
// beginning.
func TestAWatchOfANewStoreSaysWhereItBegins(t *testing.T) {
	w := newWorldOn(t, persisttest.NewMemory(), false)
	first := w.watch("/v1/watch").any()
	require.Equal(t, "0", first.id)
	w.docs()
	w.put(room+"/state", `{"n":1}`).is(201)
	w.watch("/v1/watch?pods=docs,docs", "Last-Event-ID", "0").is("changed", "room", 1)
}

// The answers of a batch have room for so many bytes; of what has none the status
// is told.
func TestAnswersOfABatchAreBounded(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.MaxBody = 1000 })
	type (
		page struct{}
		read struct{}
		deny struct{}
	)
	text := strings.Repeat("x", 5000)
	_, err := pod.Start(w.pods, entity.Type[page]{Name: "pages", Handlers: entity.Handlers[page]{
		"read": entity.Reply(func(*entity.Context, *page, read) (string, error) { return text, nil }),
		"deny": entity.Reply(func(*entity.Context, *page, deny) (string, error) { return "", entity.Rejectf("%s", text) }),
	}})
	require.NoError(t, err)
	item := func(message string) string { return `{"pod":"pages","name":"p","type":"` + message + `"}` }
	var r httpapi.BatchResult
	a := w.post("/v1/batch", "["+strings.Join([]string{item("read"), item("deny"), item("read"), item("read"), item("deny")}, ",")+"]").is(200)
	a.into(&r)
	require.Less(t, len(a.body), 17_000)
	for i, want := range []struct {
		status, body, detail int
		omitted              bool
	}{{200, 5002, 0, false}, {422, 0, 5000, false}, {200, 5002, 0, false}, {200, 0, 0, true}, {422, 0, 0, true}} {
		got, detail := r.Items[i], 0
		if got.Problem != nil {
			detail = len(got.Problem.Detail)
		}
		require.Equal(t, []any{want.status, want.body, want.detail, want.omitted}, []any{got.Status, len(got.Body), detail, got.Omitted}, i)
	}
	require.Equal(t, 2, r.Failed)
}

// narrow is an answer whose client takes 16 KiB in the time that it has for a
// part, and no more.
type narrow struct {
	*httptest.ResponseRecorder
	left int
}

func (n *narrow) SetWriteDeadline(time.Time) error { n.left = 16 << 10; return nil }

func (n *narrow) SetReadDeadline(time.Time) error { return nil }

func (n *narrow) Write(b []byte) (int, error) {
	if len(b) > n.left {
		return 0, os.ErrDeadlineExceeded
	}
	n.left -= len(b)
	return n.ResponseRecorder.Write(b)
}

// A client that is slow and takes something is told that it is cut off, behind
// whole events.
func TestASlowReaderIsToldThatItIsCutOff(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 200_000))).is(201)
	w.put(room+"/state", `{}`).is(200)
	w.api.SetPatience(1) // everything is too slow
	n := &narrow{ResponseRecorder: newRecorder()}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/v1/watch?after=0", nil)
	w.api.ServeHTTP(n, r)
	events := strings.Split(n.Body.String(), "\n\n")
	require.Contains(t, events[len(events)-2], "event: cut\ndata: {\"reason\":\"slow\"")
	changed := 0
	for _, e := range events {
		if _, data, found := strings.Cut(e, "event: changed\ndata: "); found {
			require.True(t, json.Valid([]byte(data)))
			changed++
		}
	}
	require.Positive(t, changed)
}

// broken is an answer that panics when its body is written.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { panic("on purpose") }

// A panic behind the beginning of an answer cuts the connection, so that what has
// come does not look whole.
func TestAPanicBehindTheBeginningOfAnAnswer(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{"/v1/limits", "/v1/export", "/healthz"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+target, nil)
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { w.api.ServeHTTP(broken{newRecorder()}, r) }, target)
	}
	w.get("/v1/limits").is(200)
}

// A pod that is named twice is watched once.
func TestAPodThatIsWatchedTwice(t *testing.T) {
	w := newWorld(t)
	w.docs()
	other, s := w.watch("/v1/pods/docs/watch"), w.watch("/v1/watch?pods=docs,gauges,docs")
	for i := range 3 {
		w.put(room+"/state", fmt.Sprintf(`{"n":%d}`, i))
		other.is("changed", "room", i+1)
		s.is("changed", "room", i+1)
	}
	s.cancel()
	require.Eventually(t, func() bool { return w.api.Watching() == 1 }, eventually, tick)
	w.put(room+"/state", `{}`).is(200)
	other.is("changed", "room", 4)
	require.Equal(t, 1, w.pods.Watchers())
}

// Over a store that fails every stream goes on, or ends and says so; none hangs.
func TestStreamsOverAFailingStore(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Heartbeat = 10 * time.Millisecond })
	w.docs()
	for i := range 3 {
		w.put(fmt.Sprintf("/v1/pods/docs/entities/%d/state", i), `{"n":1}`).is(201)
	}
	streams := []*stream{w.watch("/v1/watch"), w.watch("/v1/pods/docs/watch?filter=state.n+%3E+1"), w.watch("/v1/pods/docs/entities/0/watch"), w.watch("/v1/deadletters")}
	for _, s := range streams {
		beat(s)
	}
	// A full disk refuses commits, and can be read.
	remove := w.store.OnUnits(func(persist.Unit) bool { return true }, persisttest.FailBefore)
	line := `{"pod":"docs","name":"0","state":{"n":2}}` + "\n"
	got := w.bring(line + `{"pod":"new","definition":{"type":"document"}}` + "\n" + line)
	for _, l := range got[:3] {
		require.Equal(t, []any{503, httpapi.CodeStoreUnavailable}, []any{l.Status, l.Code})
	}
	require.Equal(t, httpapi.ImportedLine{End: true, Lines: 3, Failed: 3}, got[3])
	require.Contains(t, w.get("/v1/export").is(200).body, `{"end":true,"entities":3}`)
	failed := w.post("/v1/pods/docs/entities/0/messages/merge", `{"n":3}`, prefer, "respond-async")
	if failed.status == 202 {
		require.Equal(t, "failed", w.future(failed).Status)
	} else {
		failed.is(503, "store_unavailable")
	}
	remove()
	require.Eventually(t, func() bool { return w.put("/v1/pods/docs/entities/0/state", `{"n":2}`).status == 200 }, eventually, tick)
	for _, s := range streams[:3] {
		s.is("changed", "0", 2)
	}
	// A store that is gone cannot be read either.
	gone := w.watch("/v1/watch")
	w.store.FailReopens(1_000_000)
	w.store.Break()
	w.get("/v1/watch?after=0").is(503, "store_unavailable")
	w.get("/v1/export").is(503, "store_unavailable")
	w.get("/v1/pods/docs/entities/none/history").is(503, "store_unavailable")
	require.Equal(t, httpapi.CodeStoreUnavailable, w.bring(`{"pod":"docs","name":"9","state":{}}`)[0].Code)
	for _, s := range streams {
		beat(s)
	}
	gone.cancel()
	require.Eventually(t, func() bool { return w.api.Watching() == len(streams) }, eventually, tick)
	w.store.FailReopens(0)
	require.Eventually(t, func() bool { return w.put("/v1/pods/docs/entities/0/state", `{"n":4}`).status == 200 }, eventually, tick)
	for _, s := range streams[:3] {
		require.Equal(t, map[string]any{"n": 4.0}, s.next().data["state"])
	}
	w.store.FailReopens(1_000_000)
	w.store.Break()
	w.api.EndStreams()
	for _, s := range streams {
		require.Equal(t, "stopping", s.next().data["reason"])
	}
	require.Eventually(t, func() bool { return w.api.Watching() == 0 }, eventually, tick)
	w.store.FailReopens(0)
}

// Who may not read does not learn what there is.
func TestTokensComeFirst(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.api.SetTokens([]httpapi.Token{{Value: "look"}})
	unreadable := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	unreadable.URL.Path, unreadable.URL.RawPath = "/v1/pods/%zz", "/v1/pods/%zz"
	rec := newRecorder()
	w.api.ServeHTTP(rec, unreadable)
	require.Equal(t, 401, rec.Code)
	for _, r := range []struct {
		method, target, code string
		status               int
	}{
		{"GET", "/v1/nothing", "not_found", 404}, {"GET", "/v1/pods/none", "no_such_pod", 404}, {"GET", room, "no_such_entity", 404}, {"GET", "/v1/pods/docs/entities/%00", "bad_name", 400},
		{"PROPFIND", room, "method_not_allowed", 405}, {"GET", room + "/messages/merge", "method_not_allowed", 405}, {"GET", "/v1/pods?nonsense=1", "bad_query", 400},
		{"PUT", "/v1/pods/none/entities/a/state", "read_only_token", 403}, {"DELETE", "/v1/pods/none", "read_only_token", 403}, {"GET", room + "/state/~", "bad_pointer", 400},
	} {
		w.do(r.method, r.target, "").is(401, "unauthorized")
		w.do(r.method, r.target, "", "Authorization", "Bearer look").is(r.status, r.code)
	}
	w.get("/readyz").is(200)
}

// Requests that no handler sees are answered with problems as well.
func TestRequestsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	for request, want := range map[string]struct {
		status int
		detail string
	}{
		"GET /v1/pods/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n":               {400, "percent-encoded"},
		"GET /v1/pods HTTP/1.1\r\n\r\n":                                      {400, "missing required Host header"},
		"GET /v1/pods HTTP/1.1\r\nHost: localhost\r\nx y: 1\r\n\r\n":         {400, "invalid header name"},
		"GET /v1/pods/docs/entities/a%2 HTTP/1.1\r\nHost: localhost\r\n\r\n": {400, "percent-encoded"},
		"nonsense\r\n\r\n": {400, "the request cannot be read"},
		"GET /v1/pods HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20+16<<10) + "\r\n\r\n": {431, "are too long"},
		"GET /v1/pods HTTP/3.0\r\nHost: localhost\r\n\r\n":                                                 {505, "unsupported protocol version"},
		"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: foo\r\n\r\n":                     {501, "Unsupported transfer encoding"},
	} {
		c, err := net.Dial("tcp", w.srv.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(c, request)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, request)
		var p httpapi.Problem
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&p))
		require.NoError(t, resp.Body.Close())
		require.NoError(t, c.Close())
		require.Equal(t, []any{want.status, want.status, "application/problem+json", httpapi.CodeMalformed}, []any{resp.StatusCode, p.Status, resp.Header.Get("Content-Type"), p.Code})
		require.Contains(t, p.Detail, want.detail)
	}
	w.get("/v1/pods?limit=%zz").is(400, "bad_query")
	w.get("/v1/pods/docs/entities/a/state/%FF").is(400, "bad_pointer")
}

// JSON is in UTF-8, and a body that says otherwise is not taken for it.
func TestCharsets(t *testing.T) {
	w := newWorld(t)
	w.docs()
	for _, charset := range []string{"iso-8859-1", "utf-16", "latin1"} {
		require.Contains(t, w.put(room+"/state", `{}`, "Content-Type", "application/json; charset="+charset).is(415, "unsupported_media_type").body, charset)
		w.post("/v1/import", `{}`, "Content-Type", lines+"; charset="+charset).is(415, "unsupported_media_type")
	}
	w.put(room+"/state", `{}`, "Content-Type", "application/json; charset=us-ascii").is(201)
	w.put(room+"/state", `{}`, "Content-Type", `application/json; charset="UTF-8"`).is(200)
}

// What does not hold is named, also beside a list of revisions that does.
func TestWhichConditionDoesNotHold(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{}`).is(201).etag()
	w.put(room+"/state", `{"a":1}`, "If-Match", tag, "If-None-Match", "*").is(412, "condition_failed")
	w.put(room+"/state", `{"a":1}`, "If-Match", tag, "If-None-Match", tag).is(412, "condition_failed")
	w.put(room+"/state?condition=state.a==1", `{"a":1}`, "If-Match", tag).is(412, "condition_failed")
	w.delete(room, "If-Match", tag, "If-None-Match", "*").is(412, "condition_failed")
	w.put(room+"/state", `{"a":1}`, "If-Match", `"1-9"`, "If-None-Match", `"1-8"`).is(412, "stale_revision")
	w.put("/v1/pods/docs/entities/none/state", `{"a":1}`, "If-Match", tag).is(412, "stale_revision")
	w.get(room, "If-Match", `"1-9"`).is(412, "stale_revision")
}

// A query that groups has groups, even none.
func TestNoGroups(t *testing.T) {
	w := newWorld(t)
	w.docs()
	require.JSONEq(t, `{"items":[],"groups":[]}`, w.get("/v1/pods/docs/entities?group=state.a&filter=false").is(200).body)
	require.JSONEq(t, `{"items":[],"groups":[{"count":0}]}`, w.get("/v1/pods/docs/entities?aggregate=sum(state.a)&filter=false").is(200).body)
	require.NotContains(t, w.get("/v1/pods/docs/entities?filter=false").is(200).body, "groups")
}

// The server is not ready before its eager entities are in memory.
func TestReadyBehindEagerEntities(t *testing.T) {
	mem := persisttest.NewMemory()
	eager := gauges(nil)
	eager.Eager = true
	first := newWorldOn(t, mem, true)
	first.post(addG, `{"n":1}`).is(200)
	first.close()
	w := newWorldOn(t, mem, false)
	remove := w.store.OnLoads(func(k persist.Key) bool { return k.Pod == "gauges" }, persist.ErrUnavailable)
	_, err := pod.Start(w.pods, eager)
	require.NoError(t, err)
	require.Contains(t, w.get("/readyz").is(503, "not_ready").body, "gauges")
	remove()
	require.Eventually(t, func() bool { return w.get("/readyz").status == 200 }, eventually, tick)
}

// The cursor of one list is none of another.
func TestCursorsBelongToTheirList(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put("/v1/pods/more", `{"type":"document"}`).is(201)
	for _, name := range []string{"a", "b", "c"} {
		for _, p := range []string{"docs", "more"} {
			w.put("/v1/pods/"+p+"/entities/"+name+"/state", `{}`).is(201)
			w.put("/v1/pods/"+p+"/entities/"+name+"/state", `{"n":1}`).is(200)
		}
	}
	lists := []string{
		"/v1/pods?limit=1", "/v1/pods/docs/entities?limit=1", "/v1/pods/more/entities?limit=1", "/v1/pods/docs/entities?sort=name&limit=1", "/v1/actors?limit=1",
		"/v1/pods/docs/entities/a/history?limit=1", "/v1/pods/docs/entities/b/history?limit=1", "/v1/export?pods=docs",
	}
	var cursors []string
	for _, l := range lists {
		var page struct{ Next, Cursor string }
		text, _, _ := strings.Cut(w.get(l).is(200).body, "\n")
		require.NoError(t, json.Unmarshal([]byte(text), &page))
		require.NotEmpty(t, page.Next+page.Cursor, l)
		cursors = append(cursors, page.Next+page.Cursor)
	}
	for i, l := range lists {
		for j, cursor := range cursors {
			if i == j {
				w.get(l + "&cursor=" + cursor).is(200)
			} else {
				w.get(l+"&cursor="+cursor).is(400, "bad_query")
			}
		}
	}
}
