package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

func TestPods(t *testing.T) {
	w := newWorld(t)
	made := w.put("/v1/pods/docs", `{"type":"document","durability":"async:50ms","create":{"by":["set"],"names":"r[0-9]+"}}`).is(201)
	require.Equal(t, "/v1/pods/docs", made.header.Get("Location"))
	require.JSONEq(t, `{"name":"docs","type":"document","durability":"async:50ms","create":{"by":["set"],"names":"r[0-9]+"},
		"messages":[{"name":"merge","kind":"on","creates":false},{"name":"patch","kind":"on","creates":false},{"name":"remove","kind":"on","creates":false},{"name":"set","kind":"on","creates":true}],"history":{"changes":1000000,"dropped":0,"position":2}}`, made.body)
	require.Equal(t, made.body, w.get("/v1/pods/docs").is(200).body)
	require.Equal(t, made.body, w.put("/v1/pods/docs", `{"type":"document","durability":"async:50ms","create":{"by":["set"],"names":"r[0-9]+"}}`).is(200).body)

	w.put("/v1/pods/docs/entities/x/state", `{}`).is(404, "no_such_entity") // the pattern refuses it
	w.post("/v1/pods/docs/entities/r1/messages/merge", `{}`).is(404, "no_such_entity")
	w.put("/v1/pods/docs/entities/r1/state", `{"a":1}`).is(201)
	w.put("/v1/pods/docs/entities/r1/state", `{"a":1}`).is(200)
	w.post("/v1/pods/docs/entities/r1/messages/merge", `{"a":2}`).is(200)

	changed := w.put("/v1/pods/docs", `{"type":"document"}`).is(200)
	require.Contains(t, changed.body, `"durability":"sync"`)
	w.post("/v1/pods/docs/entities/x/messages/merge", `{"a":1}`).is(200)

	for body, code := range map[string]string{
		`{}`: "bad_definition", `{"type":"typed"}`: "bad_definition", `{"type":"document","durability":"never"}`: "bad_definition",
		`{"type":"document","create":{"by":["nope"]}}`: "bad_definition", `{"type":"document","create":{"names":"("}}`: "bad_definition",
		`{"type":"document","kind":1}`: "unknown_field", `{"type":"document","create":{"from":1}}`: "unknown_field",
	} {
		w.put("/v1/pods/more", body).is(422, code)
	}
	w.put("/v1/pods/more", `{"type":7}`).is(400, "malformed")
	w.get("/v1/pods/more").is(404, "no_such_pod")

	require.Contains(t, w.delete("/v1/pods/docs").is(409, "pod_not_empty").body, "?cascade=true deletes them with it")
	w.delete("/v1/pods/docs?cascade=perhaps").is(400, "bad_query")
	w.delete("/v1/pods/docs?cascade=false").is(409, "pod_not_empty")
	w.get("/v1/pods/docs/entities/r1").is(200)
	w.delete("/v1/pods/docs?cascade=true").is(204)
	w.get("/v1/pods/docs").is(404, "no_such_pod")
	w.get("/v1/pods/docs/entities/r1").is(404, "no_such_pod")
	w.docs()
	require.Equal(t, `{"items":[]}`, w.get("/v1/pods/docs/entities").is(200).body)
	w.delete("/v1/pods/docs").is(204)
}

func TestLists(t *testing.T) {
	w := newWorld(t)
	w.docs()
	for i := range 25 {
		w.put(fmt.Sprintf("/v1/pods/docs/entities/%c%02d/state", 'a'+i%2, i), fmt.Sprintf(`{"i":%d}`, i)).is(201)
		w.put(fmt.Sprintf("/v1/pods/p%02d", i), `{"type":"document"}`).is(201)
	}
	type page struct {
		Items []struct {
			Name  string
			State struct{ I int }
		}
		Next string
	}
	all := func(target string) (names []string) {
		for next := ""; ; {
			var p page
			w.get(target + "&cursor=" + next).is(200).into(&p)
			require.LessOrEqual(t, len(p.Items), 4)
			for _, i := range p.Items {
				names = append(names, i.Name)
			}
			if next = p.Next; next == "" {
				require.IsIncreasing(t, names)
				return names
			}
		}
	}
	require.Len(t, all("/v1/pods/docs/entities?limit=4"), 25)
	odd := all("/v1/pods/docs/entities?limit=4&prefix=b")
	require.Len(t, odd, 12)
	require.True(t, strings.HasPrefix(odd[0], "b"))
	require.Len(t, all("/v1/pods?limit=4"), 27)
	require.Empty(t, all("/v1/pods/docs/entities?limit=4&prefix=%FF"))
	var p page
	w.get("/v1/pods/docs/entities").is(200).into(&p)
	require.Len(t, p.Items, 25)
	require.Equal(t, 0, p.Items[0].State.I)
	for _, target := range []string{"/v1/pods/docs/entities", "/v1/pods", "/v1/quarantine"} {
		for _, q := range []string{"limit=0", "limit=-1", "limit=1001", "limit=ten", "limit=", "limit=1e2", "limit=%zz", "cursor=!", "cursor=%FF", "cursor=AAEC_w", "a=b;c=d"} {
			w.get(target+"?"+q).is(400, "bad_query")
		}
		w.get(target + "?limit=1000").is(200)
	}
}

// Numbers keep their text, wherever they pass.
func TestNumbersKeepTheirText(t *testing.T) {
	w := newWorld(t)
	w.docs()
	const state = `{"big":2523232323232323232,"exp":1.222e-11,"long":0.10000000000000000000000000001,"neg":-0,"one":1.0,"up":1E+400}`
	w.put(room+"/state", state).is(201)
	require.Equal(t, state, w.get(room+"/state").body)
	require.Contains(t, w.get(room).body, `"state":`+state)
	require.Contains(t, w.get("/v1/pods/docs/entities").body, `"state":`+state)
	w.patch(room+"/state", `{"one":null,"z":[123456789012345678901234567890]}`).is(200)
	require.Contains(t, w.get(room+"/state").body, `"z":[123456789012345678901234567890]`)
	w.post(room+"/messages/set", `{"pointer":"/z/0","value":1.00}`).is(200)
	require.Contains(t, w.get(room+"/state").body, `"z":[1.00]`)
	w.close()

	again := newWorldOn(t, w.mem.Again(), true)
	require.Contains(t, again.get(room+"/state").is(200).body, `"exp":1.222e-11`)
	again.close()
}

func TestHostAndOrigin(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Hosts = []string{"twins.example"} })
	self := strings.TrimPrefix(w.srv.URL, "http://")
	for _, host := range []string{self, "localhost", "LocalHost:80", "127.0.0.1", "127.8.9.1:1", "[::1]:8080", "[::1]", "localhost.", "twins.example:99", "Twins.Example"} {
		w.get("/healthz", "Host", host).is(200)
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1", "[2001:db8::1]:80", "127.0.0.1.evil.example", "xlocalhost", "0.0.0.0"} {
		w.get("/healthz", "Host", host).is(403, "forbidden_host")
		w.put("/v1/pods/docs", `{"type":"document"}`, "Host", host).is(403, "forbidden_host")
	}
	for _, origin := range []string{"http://evil.example", "null", "http://localhost:1", "https://evil.example:80", "file://", "http://" + self + ".evil.example", "x"} {
		w.get("/v1/pods", "Origin", origin).is(403, "forbidden_origin")
		w.put("/v1/pods/docs", `{"type":"document"}`, "Origin", origin).is(403, "forbidden_origin")
	}
	w.get("/v1/pods/docs").is(404)
	w.put("/v1/pods/docs", `{"type":"document"}`, "Origin", w.srv.URL).is(201)

	open := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.AnyHost = true })
	open.get("/healthz", "Host", "twins.example").is(200)
	open.get("/healthz", "Host", "twins.example", "Origin", "http://evil.example").is(403, "forbidden_origin")
}

func TestDocument(t *testing.T) {
	w := newWorld(t)
	a := w.get("/openapi.json").is(200)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(w.contract.OpenAPI, "3.1."))
	want := map[string][]string{
		"/healthz": {"get"}, "/readyz": {"get"}, "/metrics": {"get"}, "/openapi.json": {"get"},
		"/reference": {"get"}, "/reference/reference.js": {"get"}, "/reference/reference.css": {"get"}, "/": {"get"}, "/explorer": {"get"}, "/explorer/{file}": {"get"}, "/v1/limits": {"get"}, "/v1/actors": {"get"}, "/v1/deadletters": {"get"},
		"/v1/store/backup": {"post"}, "/v1/export": {"get"}, "/v1/import": {"post"}, "/v1/batch": {"post"}, "/v1/futures/{id}": {"delete", "get"},
		"/v1/entities": {"get"}, "/v1/query": {"post"}, "/v1/pods/{pod}/query": {"post"}, "/v1/watch": {"get"}, "/v1/pods/{pod}/watch": {"get"}, "/v1/pods/{pod}/entities/{name}/watch": {"get"}, "/v1/pods": {"get"},
		"/v1/pods/{pod}/entities/{name}/state/{pointer}": {"delete", "get", "patch", "put"},
		"/v1/pods/{pod}/entities/{name}/history":         {"get"}, "/v1/pods/{pod}/entities/{name}/history/buckets": {"get"},
		"/v1/quarantine": {"get"}, "/v1/quarantine/{pod}/{name}": {"delete", "get"}, "/v1/quarantine/{pod}/{name}/retry": {"post"},
		"/v1/pods/{pod}": {"delete", "get", "put"}, "/v1/pods/{pod}/entities": {"get"},
		"/v1/pods/{pod}/entities/{name}": {"delete", "get"}, "/v1/pods/{pod}/entities/{name}/state": {"get", "patch", "put"},
		"/v1/pods/{pod}/entities/{name}/messages/{type}": {"post"}, "/v1/pods/{pod}/entities/{name}/rebuild": {"post"},
	}
	bodiless := []string{"backup", "retry-quarantined", "rebuild-entity"}
	got := map[string][]string{}
	seen := map[string]bool{}
	for path, methods := range w.contract.Paths {
		for _, method := range []string{"delete", "get", "patch", "post", "put"} {
			op, ok := methods[method]
			if !ok || strings.Contains(op.OperationID, "/") { // of one pod
				continue
			}
			got[path] = append(got[path], method)
			require.NotEmpty(t, op.OperationID)
			writes := (method == "put" || method == "post" || method == "patch") && !slices.Contains(bodiless, op.OperationID)
			require.Equal(t, writes, op.RequestBody != nil, op.OperationID)
			identified := writes && !slices.Contains([]string{"put-pod", "import", "batch", "post-query", "post-query-pods"}, op.OperationID) || op.OperationID == "delete-value"
			require.Equal(t, identified, op.has("header", "Idempotency-Key"), op.OperationID)
			for _, r := range op.Responses {
				for _, code := range r.codes() {
					seen[code] = true
				}
			}
			if strings.HasSuffix(path, "/buckets") {
				require.True(t, op.requires("path"), "it is refused without")
			}
			for _, name := range []string{"pod", "name", "type", "pointer", "id", "file"} {
				require.Equal(t, strings.Contains(path, "{"+name+"}"), op.has("path", name))
			}
		}
	}
	require.Equal(t, want, got)
	for _, code := range httpapi.Codes() {
		if code != httpapi.CodeNotFound && code != httpapi.CodeMethodNotAllowed { // no operation answers with these
			require.True(t, seen[string(code)], "no operation documents %s", code)
		}
	}
	require.NotContains(t, a.body, "$schema")
	var whole map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &whole))
	resolveRefs(t, whole, whole)
	require.Equal(t, http.StatusInternalServerError, httpapi.Code("made up").Status())
}

// resolveRefs checks that every $ref leads somewhere.
func resolveRefs(t *testing.T, root map[string]any, v any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			var at any = root
			for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				m, ok := at.(map[string]any)
				require.True(t, ok, ref)
				at = m[part]
			}
			require.NotNil(t, at, ref)
		}
		for _, x := range v {
			resolveRefs(t, root, x)
		}
	case []any:
		for _, x := range v {
			resolveRefs(t, root, x)
		}
	}
}

func (o operationInDoc) requires(name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p parameterInDoc) bool { return p.Name == name && p.Required })
}

func (o operationInDoc) has(in, name string) bool {
	for _, p := range o.Parameters {
		if p.In == in && p.Name == name {
			return true
		}
	}
	return false
}
