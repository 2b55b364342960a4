package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// find asks a query and returns the names of what it found.
func (w *world) find(target string) (names []string, r httpapi.QueryResult) {
	w.t.Helper()
	w.get(target).is(200).into(&r)
	for _, i := range r.Items {
		var e struct{ Name string }
		require.NoError(w.t, json.Unmarshal(i, &e))
		names = append(names, e.Name)
	}
	return names, r
}

func rooms(t *testing.T) *world {
	w := newWorld(t)
	w.put("/v1/pods/docs", `{"type":"document","index":["state.floor"]}`).is(201)
	for i, s := range []string{
		`{"celsius":20.5,"floor":"a"}`, `{"celsius":23,"floor":"b"}`, `{"celsius":19,"floor":"a"}`, `{"floor":"b"}`, `{"celsius":"warm","floor":"c"}`, `{"celsius":23,"floor":"a"}`,
	} {
		w.put(fmt.Sprintf("/v1/pods/docs/entities/r%d/state", i), s).is(201)
	}
	w.post(addG, `{"n":23}`).is(200)
	return w
}

func TestQuery(t *testing.T) {
	w := rooms(t)
	const entities = "/v1/pods/docs/entities?"
	esc := url.QueryEscape
	names, r := w.find(entities + "filter=" + esc(`state.celsius > 20.0 && name.startsWith("r")`))
	require.Equal(t, []string{"r0", "r1", "r5"}, names)
	require.Nil(t, r.Count)
	require.Contains(t, string(r.Items[0]), `"state":{"celsius":20.5,"floor":"a"}`)
	names, _ = w.find(entities + "filter=" + esc(`state.floor == "a"`) + "&sort=-state.celsius,name")
	require.Equal(t, []string{"r5", "r0", "r2"}, names)
	names, r = w.find(entities + "filter=" + esc(`has(state.floor)`) + "&prefix=r&limit=2&count=true")
	require.Equal(t, []string{"r0", "r1"}, names)
	require.Equal(t, 6, *r.Count)

	_, r = w.find(entities + `select=name,state.celsius&limit=1`)
	require.JSONEq(t, `{"name":"r0","state":{"celsius":20.5}}`, string(r.Items[0]))
	_, r = w.find(entities + "select=" + esc(`state["odd, name"],revision`) + "&limit=1")
	require.JSONEq(t, `{"revision":1}`, string(r.Items[0]))

	var all []string
	for next := ""; ; {
		names, r := w.find(entities + "sort=state.celsius&limit=2&cursor=" + next)
		all = append(all, names...)
		if next = r.Next; next == "" {
			break
		}
	}
	require.Equal(t, []string{"r3", "r2", "r0", "r1", "r5", "r4"}, all)

	_, r = w.find(entities + "group=state.floor&aggregate=" + esc("avg(state.celsius),max(state.celsius),count(state.celsius)"))
	require.Empty(t, r.Items)
	text, err := json.Marshal(r.Groups)
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"by":{"state.floor":"a"},"count":3,"values":{"avg(state.celsius)":20.833333333333332,"max(state.celsius)":23,"count(state.celsius)":3}},
		{"by":{"state.floor":"b"},"count":2,"values":{"avg(state.celsius)":23,"max(state.celsius)":23,"count(state.celsius)":1}},
		{"by":{"state.floor":"c"},"count":1,"values":{"max(state.celsius)":"warm","count(state.celsius)":1}}]`, string(text))
	_, r = w.find(entities + "group=&aggregate=" + esc("sum(state.celsius)"))
	require.Len(t, r.Groups, 1)
	require.Equal(t, 6, r.Groups[0].Count)

	names, _ = w.find("/v1/entities?filter=" + esc("state.total == 23 || state.celsius == 23"))
	require.Equal(t, []string{"r1", "r5", "g"}, names)
	names, _ = w.find("/v1/entities?pods=gauges,docs&sort=-pod,-name&limit=2")
	require.Equal(t, []string{"g", "r5"}, names)

	post := w.post("/v1/pods/docs/query", `{"filter":"state.floor == \"a\"","sort":["-state.celsius"],"select":["name"],"limit":2,"count":true}`).is(200)
	require.JSONEq(t, `{"items":[{"name":"r5"},{"name":"r0"}],"next":`+mustJSON(nextOf(t, post.body))+`,"count":3}`, post.body)
	rest := w.post("/v1/pods/docs/query", `{"filter":"state.floor == \"a\"","sort":["-state.celsius"],"select":["name"],"limit":2,"cursor":`+mustJSON(nextOf(t, post.body))+`}`).is(200)
	require.JSONEq(t, `{"items":[{"name":"r2"}]}`, rest.body)
	require.Contains(t, w.post("/v1/query", `{"pods":["gauges"],"group":{"aggregate":["sum(state.total)"]}}`).is(200).body, `"sum(state.total)":23`)
	require.Contains(t, w.post("/v1/query", `{}`).is(200).body, `"name":"r0"`)
	w.post("/v1/query", `{"filter":""}`).is(400, "bad_filter") // as in a URL
	w.post("/v1/pods/docs/query", `{"filter":""}`).is(400, "bad_filter")

	// A token that reads may ask with POST.
	w.api.SetTokens([]httpapi.Token{{Value: "look"}})
	w.post("/v1/query", `{}`, "Authorization", "Bearer look").is(200)
	w.post("/v1/pods/docs/query", `{}`, "Authorization", "Bearer look").is(200)
}

func nextOf(t *testing.T, body string) string {
	var r struct{ Next string }
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	return r.Next
}

func TestBadQueries(t *testing.T) {
	w := rooms(t)
	many := strings.Repeat("state.a,", 200) + "state.a"
	for _, q := range []string{
		"limit=0&filter=true", "count=perhaps", "cursor=x&sort=name", "aggregate=median(state.a)", "aggregate=avg", "aggregate=avg(state.a", "group=state.a&sort=name",
		"group=state.a&limit=1", "filter=true&filter=true", "select=", "sort=&filter=true", "select=" + many, "sort=" + many, "group=" + many, "aggregate=" + strings.ReplaceAll(many, "state.a", "sum(state.a)"), "filtre=true",
	} {
		w.get("/v1/pods/docs/entities?"+q).is(400, "bad_query")
		w.get("/v1/entities?"+q).is(400, "bad_query")
	}
	for _, q := range []string{"filter=state.a+%3E", "filter=", "filter=nobody", "select=nobody", "sort=state..a", "sort=-", "group=state[", "aggregate=sum(x)", "select=state.a,"} {
		w.get("/v1/pods/docs/entities?"+q).is(400, "bad_filter")
		w.get("/v1/entities?"+q).is(400, "bad_filter")
	}
	for q, of := range map[string]string{
		"select=name,state..b": `select: \"state..b\": line 1, column`, "sort=name,-state..b": `sort: \"state..b\": line 1`,
		"group=name,state..b": `group: \"state..b\": line 1`, "aggregate=sum(name),avg(state..b)": `aggregate: \"avg(state..b)\": line 1`,
	} {
		require.Contains(t, w.get("/v1/pods/docs/entities?"+q).is(400, "bad_filter").body, of)
	}
	var p httpapi.Problem
	w.post("/v1/pods/docs/query", `{"filter":"true &&\n  state.a >"}`).is(400, "bad_filter").into(&p)
	require.Equal(t, 2, p.Line)
	require.Positive(t, p.Column)
	w.post("/v1/pods/docs/query", `{"pods":["docs"]}`).is(400, "malformed")
	w.post("/v1/pods/docs/query", `[]`).is(400, "malformed")
	w.post("/v1/query", `{"filtre":"true"}`).is(422, "unknown_field")
	w.post("/v1/query", `{"limit":0}`).is(400, "bad_query")
	w.post("/v1/query", `{"limit":1001}`).is(400, "bad_query")
	w.post("/v1/query", `{"pods":["none"]}`).is(404, "no_such_pod")
	w.get("/v1/entities?pods=none").is(404, "no_such_pod")
	w.get("/v1/entities?pods=").is(400, "bad_name")
	w.get("/v1/pods/none/entities?filter=true").is(404, "no_such_pod")
	w.post("/v1/pods/none/query", `{}`).is(404, "no_such_pod")
	w.post("/v1/query", `{}`, "Content-Type", "text/plain").is(415, "unsupported_media_type")
}

// hangingStore is a store whose listings hang on request, as long as their
// context lasts.
type hangingStore struct {
	persist.PersistenceService
	hangs atomic.Bool
}

func (s *hangingStore) List(ctx context.Context, pod string, o persist.ListOptions) (persist.Page, error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return persist.Page{}, fmt.Errorf("%w: %w", persist.ErrUnavailable, ctx.Err())
	}
	return s.PersistenceService.List(ctx, pod, o)
}

func TestQueryOutOfTime(t *testing.T) {
	mem := persisttest.NewMemory()
	store := &hangingStore{PersistenceService: mem}
	w := newWorldIn(t, mem, store, true)
	w.docs()
	store.hangs.Store(true)
	w.get("/v1/pods/docs/entities?filter=true&timeout=10ms").is(504, "timed_out")
	w.get("/v1/pods/docs/entities?timeout=10ms").is(504, "timed_out")
	w.post("/v1/query?timeout=10ms", `{}`).is(504, "timed_out")
}

func TestQueryOfQuarantined(t *testing.T) {
	w := rooms(t)
	w.close()
	mem := w.mem.Again()
	mem.Damage(persist.Key{Pod: "docs", Name: "r1"})
	w = newWorldOn(t, mem, true)
	names, r := w.find("/v1/pods/docs/entities?filter=has(state.floor)")
	require.Equal(t, []string{"r0", "r2", "r3", "r4", "r5"}, names)
	require.Equal(t, 1, r.Unreadable)
	require.Equal(t, "r1", r.Quarantined[0].Name)
	require.IsType(t, &persisttest.Memory{}, mem)
}
