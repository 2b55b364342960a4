package httpapi_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConditions(t *testing.T) {
	w := newWorld(t)
	w.docs()
	state := room + "/state"
	w.put(state, `{"a":1}`, "If-Match", "*").is(412, "condition_failed")
	w.put(state, `{"a":1}`, "If-Match", `"1-1"`).is(412, "stale_revision")
	w.get(room).is(404)
	one := w.put(state, `{"a":1}`, "If-None-Match", "*").is(201).etag()
	w.put(state, `{"a":2}`, "If-None-Match", "*").is(412, "condition_failed")
	w.patch(state, `{"a":2}`, "If-None-Match", "*").is(412, "condition_failed")
	w.post(room+"/messages/merge", `{"a":2}`, "If-None-Match", "*").is(412, "condition_failed")
	two := w.put(state, `{"a":2}`, "If-Match", one).is(200).etag()
	require.NotEqual(t, one, two)

	for _, stale := range []string{one, `"0-0"`, `"any"`, `""`, `W/` + two, one + ", W/" + two} {
		w.put(state, `{"a":9}`, "If-Match", stale).is(412, "stale_revision")
		w.patch(state, `{"a":9}`, "If-Match", stale).is(412, "stale_revision")
		w.post(room+"/messages/merge", `{"a":9}`, "If-Match", stale).is(412, "stale_revision")
		w.delete(room, "If-Match", stale).is(412, "stale_revision")
		w.get(room, "If-Match", stale).is(412, "stale_revision")
		w.get(state, "If-Match", stale).is(412, "stale_revision")
	}
	for _, hit := range []string{two, "*", one + "," + two, ` "a,b" ,, ` + two, one + ", " + two} {
		require.Equal(t, two, w.put(state, `{"a":2}`, "If-Match", hit).is(200).etag())
		require.Equal(t, two, w.patch(state, `{"a":2}`, "If-Match", hit).is(200).etag())
		w.get(room, "If-Match", hit).is(200)
	}
	w.put(state, `{"a":2}`, "If-Match", one, "If-Match", two).is(200) // two lines are one list

	for _, same := range []string{two, `W/` + two, "*", one + ", W/" + two} {
		a := w.get(room, "If-None-Match", same).is(http.StatusNotModified)
		require.Empty(t, a.body)
		require.Equal(t, two, a.etag())
		require.Equal(t, two, w.get(state, "If-None-Match", same).is(http.StatusNotModified).etag())
		w.put(state, `{"a":9}`, "If-None-Match", same).is(412, "condition_failed")
	}
	w.get(room, "If-None-Match", one).is(200)
	w.put("/v1/pods/docs/entities/other/state", `{}`, "If-None-Match", one).is(201)
	w.put(state, `{"a":2}`, "If-None-Match", one).is(200)

	for _, bad := range []string{"1-1", `"1-1`, `1-1"`, `"1-1" "1-2"`, `*, "1-1"`, `w/"1-1"`, ",", " ", `"1 1"`} {
		for _, header := range []string{"If-Match", "If-None-Match"} {
			w.put(state, `{"a":9}`, header, bad).is(400, "bad_condition")
			w.get(room, header, bad).is(400, "bad_condition")
			w.delete(room, header, bad).is(400, "bad_condition")
			w.post(room+"/messages/merge", `{"a":9}`, header, bad).is(400, "bad_condition")
		}
	}
	w.patch("/v1/pods/docs/entities/none/state", `{}`, "If-Match", "*").is(404, "no_such_entity")
	w.delete("/v1/pods/docs/entities/none", "If-Match", "*").is(404, "no_such_entity")
	require.Equal(t, two, w.get(room).etag())
	w.delete(room, "If-Match", two).is(204)
	require.NotEqual(t, one, w.put(state, `{"a":1}`).is(201).etag(), "another life has other tags")
	w.put(state, `{"a":3}`, "If-Match", one).is(412, "stale_revision")
}

// Of writers that all saw the same revision exactly one writes.
func TestOneWriterWins(t *testing.T) {
	w := newWorld(t)
	w.docs()
	tag := w.put(room+"/state", `{"n":0}`).is(201).etag()
	for range 20 {
		var won atomic.Int32
		var next atomic.Value
		each(8, func(i int) {
			req, _ := http.NewRequest(http.MethodPut, w.srv.URL+room+"/state", body(fmt.Sprintf(`{"n":%q}`, tag+fmt.Sprint(i))))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("If-Match", tag)
			resp, err := w.srv.Client().Do(req)
			if err != nil {
				return
			}
			resp.Body.Close()
			if resp.StatusCode == 200 {
				won.Add(1)
				next.Store(resp.Header.Get("ETag"))
			}
		})
		require.EqualValues(t, 1, won.Load())
		tag = next.Load().(string)
	}
}

// Of concurrent PUTs of one new name, one creates; and a PUT says 201 exactly
// as often as there are lives.
func TestPutTellsCreatedFromReplaced(t *testing.T) {
	w := newWorld(t)
	w.docs()
	for round := range 20 {
		target := fmt.Sprintf("%s/v1/pods/docs/entities/n%d/state", w.srv.URL, round)
		var created, replaced, odd atomic.Int32
		each(8, func(int) {
			req, _ := http.NewRequest(http.MethodPut, target, body(`{"same":true}`))
			req.Header.Set("Content-Type", "application/json")
			resp, err := w.srv.Client().Do(req)
			if err != nil {
				odd.Add(1)
				return
			}
			resp.Body.Close()
			switch resp.StatusCode {
			case 201:
				created.Add(1)
			case 200:
				replaced.Add(1)
			default:
				odd.Add(1)
			}
		})
		require.EqualValues(t, 1, created.Load(), "they all write the same state: the revision does not tell")
		require.EqualValues(t, 7, replaced.Load())
		require.Zero(t, odd.Load())
	}
}

func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
