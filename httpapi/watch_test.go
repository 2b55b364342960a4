package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// event is a server-sent event, or with an empty type what else stands in a
// stream: a comment, or an id alone.
type event struct {
	kind, id, comment string
	data              map[string]any
}

// stream is a stream of events that a test reads.
type stream struct {
	w      *world
	resp   *http.Response
	in     *bufio.Reader
	cancel context.CancelFunc
}

// watch begins a stream and reads its first comment.
func (w *world) watch(target string, headers ...string) *stream {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.srv.URL+target, nil)
	require.NoError(w.t, err)
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := w.srv.Client().Do(req)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(w.t, 200, resp.StatusCode)
	require.Equal(w.t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(w.t, "no-store", resp.Header.Get("Cache-Control"))
	w.contract.note(w.t, req, resp)
	s := &stream{w: w, resp: resp, in: bufio.NewReader(resp.Body), cancel: cancel}
	require.Contains(w.t, s.any().comment, "heartbeats")
	return s
}

// any returns the next part of the stream.
func (s *stream) any() (e event) {
	s.w.t.Helper()
	for {
		line, err := s.in.ReadString('\n')
		require.NoError(s.w.t, err)
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			return e
		case strings.HasPrefix(line, ":"):
			e.comment = line
		case name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			require.NoError(s.w.t, json.Unmarshal([]byte(value), &e.data))
		default:
			require.Fail(s.w.t, "a line of no event", line)
		}
	}
}

// next returns the next event.
func (s *stream) next() event {
	s.w.t.Helper()
	for {
		if e := s.any(); e.kind != "" {
			return e
		}
	}
}

// is checks the next event.
func (s *stream) is(kind, name string, revision int) event {
	s.w.t.Helper()
	e := s.next()
	require.Equal(s.w.t, []any{kind, name, float64(revision)}, []any{e.kind, e.data["name"], e.data["revision"]}, e)
	return e
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put("/v1/pods/more", `{"type":"document"}`).is(201)
	w.put(room+"/state", `{"n":0}`).is(201)
	all, one, docs := w.watch("/v1/watch"), w.watch(room+"/watch"), w.watch("/v1/pods/docs/watch?filter=state.n+%3C+5")
	named := w.watch("/v1/watch?pods=more,gauges")
	w.put(room+"/state", `{"n":1}`).is(200)
	w.put("/v1/pods/docs/entities/a%2Fb/state", `{"n":7}`).is(201)
	w.put("/v1/pods/more/entities/m/state", `{"n":1}`).is(201)
	w.put(room+"/state", `{"n":9}`).is(200)
	w.put(room+"/state", `{"n":10}`).is(200)
	w.delete(room).is(204)
	w.post("/v1/pods/gauges/entities/g/messages/add", `{"n":3}`).is(200)

	first := all.is("changed", "room", 2)
	require.Equal(t, map[string]any{"n": 1.0}, first.data["state"])
	require.Equal(t, "docs", first.data["pod"])
	require.Equal(t, fmt.Sprint(int(first.data["position"].(float64))), first.id)
	all.is("changed", "a/b", 1)
	all.is("changed", "m", 1)
	all.is("changed", "room", 3)
	all.is("changed", "room", 4)
	gone := all.is("deleted", "room", 5)
	g := all.is("changed", "g", 1)
	require.Equal(t, map[string]any{"total": 3.0, "by": nil}, g.data["state"])
	require.Equal(t, "add", g.data["type"])

	for _, r := range []int{2, 3, 4} {
		one.is("changed", "room", r)
	}
	one.is("deleted", "room", 5)
	docs.is("changed", "room", 2)
	docs.is("left", "room", 3)
	named.is("changed", "m", 1)
	named.is("changed", "g", 1)

	// Each place can be resumed from, by the query or by the header, which goes
	// before it.
	again := w.watch("/v1/watch?after=" + first.id)
	again.is("changed", "a/b", 1)
	last := w.watch("/v1/watch?after=0", "Last-Event-ID", gone.id)
	last.is("changed", "g", 1)
	w.watch("/v1/pods/docs/watch?after=0").is("changed", "room", 1)
	require.Equal(t, 7, w.api.Watching())

	w.get("/v1/pods/none/watch").is(404, "no_such_pod")
	w.get("/v1/pods/none/entities/a/watch").is(404, "no_such_pod")
	w.get("/v1/watch?pods=docs,none").is(404, "no_such_pod")
	w.get("/v1/watch?pods=").is(400, "bad_name")
	w.get("/v1/pods/docs/entities/%00/watch").is(400, "bad_name")
	w.get("/v1/watch?filter=((").is(400, "bad_filter")
	w.get("/v1/watch?after=x").is(400, "bad_query")
	w.get("/v1/watch?after=").is(400, "bad_query")
	w.get("/v1/watch", "Last-Event-ID", "x").is(400, "bad_query")
	w.get("/v1/watch?after=999999").is(404, "no_such_position")
	w.get("/v1/watch?limit=1").is(400, "bad_query")
}

func TestWatchBeats(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Heartbeat = 10 * time.Millisecond })
	w.docs()
	s := w.watch("/v1/pods/docs/watch?filter=false")
	require.NotEmpty(t, s.any().id, "where it begins")
	require.Equal(t, ":", s.any().comment)
	w.put(room+"/state", `{"n":1}`).is(201)
	w.put(room+"/state", `{"n":2}`).is(200)
	// What the filter passes over moves the place on.
	require.Eventually(t, func() bool { return s.any().id == "4" }, eventually, tick)
}

func TestWatchGap(t *testing.T) {
	w := newWorld(t, func(_ *httpapi.Config, p *pod.Config) { p.Committer.KeepChanges = 10 })
	w.docs()
	for i := range 1100 { // history goes in portions
		w.put(room+"/state", fmt.Sprintf(`{"n":%d}`, i))
	}
	require.Eventually(t, func() bool {
		changes, err := w.mem.Log(t.Context(), 0, 1)
		return err == nil && changes[0].Position > 2
	}, eventually, tick)
	s := w.watch("/v1/watch?after=2")
	gap := s.next()
	require.Equal(t, "gap", gap.kind)
	require.EqualValues(t, 2, gap.data["from"])
	require.Equal(t, gap.id, fmt.Sprint(int(gap.data["to"].(float64))))
	next := s.next()
	require.Equal(t, "changed", next.kind)
	require.Greater(t, next.data["position"], gap.data["to"])
	var d httpapi.PodDescription
	w.get("/v1/pods/docs").is(200).into(&d)
	require.EqualValues(t, 10, d.History.Changes)
	require.Positive(t, d.History.Dropped)
	w.get(room+"/state?revision=3").is(410, "revision_dropped")
	var history httpapi.HistoryList
	w.get(room + "/history?limit=1").is(200).into(&history)
	require.True(t, history.Dropped)
	require.Equal(t, history.Items[0].Revision, history.Oldest.Revision)
	require.Equal(t, history.Items[0].Life, history.Oldest.Life)
	w.put("/v1/pods/docs/entities/new/state", `{}`).is(201)
	require.NotContains(t, w.get("/v1/pods/docs/entities/new/history").is(200).body, "oldest")
	w.get(room+"/state?at=2001-01-01T00:00:00Z").is(410, "revision_dropped")
}

func TestWatchersAreBounded(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.MaxWatchers = 2 })
	first, _ := w.watch("/v1/watch"), w.watch("/v1/deadletters")
	over := w.get("/v1/watch").is(429, "too_many_watchers")
	require.Equal(t, "1", over.header.Get("Retry-After"))
	w.get("/v1/deadletters", "Accept", "text/event-stream").is(429, "too_many_watchers")
	first.cancel()
	require.Eventually(t, func() bool { return w.api.Watching() == 1 }, eventually, tick)
	w.watch("/v1/watch")
}

// The filters of all watches are bounded by their bytes, which are free again
// however a watch ends.
func TestFiltersOfWatchesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.api.SetWatchFilters(25)
	free := func() {
		t.Helper()
		require.Eventually(t, func() bool { return w.api.WatchFilters() == 0 && w.api.Watching() == 0 }, eventually, tick)
	}
	const filter = "?filter=state.n==1" // of 10 bytes
	first, second := w.watch("/v1/watch"+filter), w.watch("/v1/pods/docs/watch"+filter)
	require.Equal(t, 20, w.api.WatchFilters())
	over := w.get(room+"/watch"+filter).is(429, "too_many_watchers")
	require.Equal(t, "1", over.header.Get("Retry-After"))
	require.Contains(t, over.body, "a shorter one or without")
	w.watch("/v1/watch").cancel() // without a filter there is room
	w.watch("/v1/watch?filter=true").cancel()
	first.cancel()
	second.cancel()
	free()

	w.get("/v1/watch?filter=state.n==").is(400, "bad_filter")
	w.get("/v1/watch"+filter+"&after=999999999999").is(404, "no_such_position")
	w.get("/v1/pods/docs/watch"+filter+"&after=x").is(400, "bad_query")
	free()
	w.watch("/v1/watch" + filter)
	w.api.EndStreams()
	free()
}

func TestWatchesEnd(t *testing.T) {
	w := newWorld(t)
	w.docs()
	a, b := w.watch("/v1/watch"), w.watch("/v1/deadletters")
	w.api.EndStreams()
	cut := a.next()
	require.Equal(t, "cut", cut.kind)
	require.Equal(t, "stopping", cut.data["reason"])
	for _, s := range []*stream{a, b} {
		if s == b {
			require.Equal(t, "stopping", s.next().data["reason"])
		}
		_, err := s.in.ReadByte()
		require.Error(t, err)
	}
	w.get("/readyz").is(503, "stopping")
	require.Eventually(t, func() bool { return w.api.Watching() == 0 }, eventually, tick)
}

// A client that takes nothing is cut off, and nobody else notices.
func TestWatchOfSlowReader(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.api.SetPatience(50 * time.Millisecond)
	w.watch("/v1/watch") // and does not read on
	text := strings.Repeat("x", 100_000)
	n := 0
	require.Eventually(t, func() bool {
		n++
		w.put(room+"/state", fmt.Sprintf(`{"n":%d,"text":%q}`, n, text))
		return w.api.Watching() == 0
	}, eventually, tick)
}

func TestDeadLetters(t *testing.T) {
	w := newWorld(t)
	var list httpapi.DeadLetterList
	w.get("/v1/deadletters").is(200).into(&list)
	before := list.Count
	s := w.watch("/v1/deadletters")
	for i := range 3 {
		w.sys.DeadLetters().Publish(actor.ZombieMsg{To: fmt.Sprint("/user/x", i), Message: actor.Message{Payload: 7}, Reason: persist.ErrUnknown})
	}
	e := s.next()
	require.Equal(t, "deadletter", e.kind)
	run, number, _ := strings.Cut(e.id, "-")
	require.Equal(t, fmt.Sprint(before+1), number)
	at := func(n uint64) string { return fmt.Sprint(run, "-", n) }
	require.Equal(t, []any{"/user/x0", "int", "outcome unknown"}, []any{e.data["to"], e.data["message"], e.data["reason"]})
	w.get("/v1/deadletters?limit=2").is(200).into(&list)
	require.Equal(t, before+3, list.Count)
	require.Len(t, list.Items, 2)
	require.Equal(t, "/user/x2", list.Items[1].To)
	w.get("/v1/deadletters?limit=0").is(400, "bad_query")
	resumed := w.watch("/v1/deadletters", "Last-Event-ID", at(before+2))
	require.Equal(t, "/user/x2", resumed.next().data["to"])
	for _, bad := range []string{"x", "7", run, run + "-", run + "-x", "-"} {
		w.get("/v1/deadletters", "Accept", "text/event-stream", "Last-Event-ID", bad).is(400, "bad_query")
	}
	for range 1200 {
		w.sys.DeadLetters().Publish(actor.ZombieMsg{To: "/user/y", Message: actor.Message{Payload: 7}})
	}
	gap := w.watch("/v1/deadletters", "Last-Event-ID", at(before+2)).next()
	require.Equal(t, "gap", gap.kind)
	require.EqualValues(t, before+3, gap.data["from"])
	require.Equal(t, "dropped", gap.data["reason"])
	// Each run of the server counts anew, so a number alone says nothing.
	for _, other := range []string{"ANOTHER0-1", at(1_000_000)} {
		again := w.watch("/v1/deadletters", "Last-Event-ID", other)
		gap := again.next()
		require.Equal(t, []any{"gap", "restarted", at(0)}, []any{gap.kind, gap.data["reason"], gap.id})
		require.Equal(t, "dropped", again.next().data["reason"])
	}
}
