package httpapi_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/httpapi/webpage"
)

// The explorer is served from both of its addresses without a token, is read anew
// only when it is another, and is no way around the checks of requests.
func TestExplorer(t *testing.T) {
	w := newWorld(t)
	w.api.SetTokens([]httpapi.Token{{Value: "secret", Write: true}})
	root := w.get("/").is(200)
	require.Equal(t, root.body, w.get("/explorer").is(200).body)
	files := regexp.MustCompile(`(?:src|href)="(explorer/[^"]+)"`).FindAllStringSubmatch(root.body, -1)
	require.NotEmpty(t, files)
	targets := []string{"/", "/explorer"}
	for _, f := range files {
		targets = append(targets, "/"+f[1])
	}
	for _, target := range targets {
		a := w.get(target).is(200)
		require.Equal(t, webpage.Policy, a.header.Get("Content-Security-Policy"), target)
		require.Equal(t, "no-cache", a.header.Get("Cache-Control"))
		require.Empty(t, w.get(target, "If-None-Match", a.etag()).is(304).body)
		require.Equal(t, a.body, w.get(target, "If-None-Match", `"x"`).is(200).body)
		head := w.do(http.MethodHead, target, "").is(200)
		require.Empty(t, head.body)
		require.Equal(t, a.etag(), head.etag())
		w.post(target, `{}`, "Authorization", "Bearer secret").is(405, "method_not_allowed")
		w.get(target, "Host", "evil.example").is(403, "forbidden_host")
		w.get(target, "Origin", "http://evil.example").is(403, "forbidden_origin")
		w.get(target+"?x=1").is(400, "bad_query")
	}
	w.get("/explorer/none.js").is(404, "not_found")
	w.get("/v1/pods").is(401, "unauthorized")
	require.Equal(t, []string{"/explorer", "/explorer/{file}"}, slices.Sorted(maps.Keys(only(w.contract.Paths, "/explorer"))))
}

// The reference page has a copy in the browser that is asked for again.
func TestReferenceIsReadAnewWhenItIsAnother(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{"/reference", "/reference/reference.js", "/reference/reference.css"} {
		w.get(target, "If-None-Match", w.get(target).is(200).etag()).is(304)
	}
}

// Figures of pods count what is acknowledged, and dead letters.
func TestFiguresOfPods(t *testing.T) {
	w := newWorld(t)
	w.docs()
	figures := func() map[string]*httpapi.PodFigures {
		var list httpapi.PodList
		w.get("/v1/pods?figures=true").is(200).into(&list)
		out := map[string]*httpapi.PodFigures{}
		for _, p := range list.Items {
			out[p.Name] = p.Figures
		}
		return out
	}
	require.Equal(t, httpapi.PodFigures{}, *figures()["docs"])
	w.put(room+"/state", `{"a":1}`).is(201)
	w.put(room+"/state", `{"a":1}`).is(200) // changes nothing
	w.post(room+"/messages/remove", `{"pointer":"/b"}`).is(422)
	w.delete(room).is(204)
	w.post(addG, `{"n":1}`).is(200)
	require.Eventually(t, func() bool { return figures()["docs"].Changes == 2 && figures()["gauges"].Changes == 1 }, eventually, tick)
	require.NotContains(t, w.get("/v1/pods").is(200).body, "figures")
	w.get("/v1/pods?figures=x").is(400, "bad_query")
	require.Equal(t, uint64(0), figures()["gauges"].DeadLetters)
	w.post(gaugeG+"/messages/take", `{"n":1}`).is(200)
	w.post("/v1/pods/gauges/entities/none/messages/take", `{"n":1}`).is(404) // is asked, and answered
}
