package httpapi_test

import (
	"fmt"
	"math"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
)

func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.get(room+"/history").is(404, "no_such_entity")
	var tags []string
	for i := range 5 {
		tags = append(tags, w.put(room+"/state", fmt.Sprintf(`{"celsius":%d.50}`, i)).etag())
	}
	var list httpapi.HistoryList
	w.get(room + "/history").is(200).into(&list)
	require.Len(t, list.Items, 5)
	require.Equal(t, `{"celsius":0.50}`, string(list.Items[0].State))
	require.Equal(t, "set", list.Items[0].Type)
	require.Greater(t, list.Items[1].Position, list.Items[0].Position)
	w.get(room + "/history?from=2&to=3").is(200).into(&list)
	require.Len(t, list.Items, 2)
	require.EqualValues(t, 2, list.Items[0].Revision)

	var seen []uint64
	for next := ""; ; {
		list = httpapi.HistoryList{}
		w.get(room + "/history?limit=2&cursor=" + next).is(200).into(&list)
		for _, i := range list.Items {
			seen = append(seen, i.Revision)
		}
		if next = list.Next; next == "" {
			break
		}
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, seen)

	old := w.get(room + "/state?revision=2").is(200)
	require.Equal(t, `{"celsius":1.50}`, old.body)
	require.Equal(t, tags[1], old.etag())
	require.Equal(t, "1.50", w.get(room+"/state/celsius?revision=2").is(200).body)
	require.Contains(t, w.get(room+"?revision=2").is(200).body, `"revision":2`)
	w.get(room+"?revision=2", "If-None-Match", tags[1]).is(304)
	for _, q := range []string{"revision=6", "revision=99999999"} {
		w.get(room+"?"+q).is(404, "no_such_revision")
		w.get(room+"/state?"+q).is(404, "no_such_revision")
		w.get(room+"/state/celsius?"+q).is(404, "no_such_revision")
	}
	at := url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339Nano))
	require.Equal(t, tags[4], w.get(room+"/state?at="+at).is(200).etag())
	w.get(room+"/state?at=2001-01-01T00:00:00Z").is(404, "no_such_revision")
	require.Equal(t, tags[2], w.get(room+"?at="+url.QueryEscape(w.changed(tags[2]))).is(200).etag())

	first := w.get(room).etag()
	w.delete(room).is(204)
	require.Contains(t, w.get(room+"/history").is(404, "no_such_entity").body, "?earlier=true")
	w.get(room + "/history?earlier=true").is(200).into(&list)
	require.Len(t, list.Items, 6)
	w.put(room+"/state", `{"celsius":7}`).is(201)
	require.NotEqual(t, first, w.get(room).etag())
	w.get(room + "/history").is(200).into(&list)
	require.Len(t, list.Items, 1)
	w.get(room + "/history?earlier=true").is(200).into(&list)
	require.Len(t, list.Items, 7)
	require.True(t, list.Items[5].Deleted)
	w.get(fmt.Sprint(room, "/history?life=", list.Items[0].Life)).is(200).into(&list)
	require.Len(t, list.Items, 6)

	for _, q := range []string{"from=0", "from=x", "to=-1", "life=0", "limit=0", "limit=1001", "cursor=!", "cursor=AAAA", "earlier=perhaps", "when=1"} {
		w.get(room+"/history?"+q).is(400, "bad_query")
	}
	for _, q := range []string{"revision=0", "revision=x", "at=now", "at=2026-01-01", "revision=1&at=2026-01-01T00:00:00Z"} {
		w.get(room+"?"+q).is(400, "bad_query")
		w.get(room+"/state?"+q).is(400, "bad_query")
	}
	w.get("/v1/pods/docs/entities/%00/history").is(400, "bad_name")
	w.get("/v1/pods/none/entities/a/history").is(404, "no_such_pod")
}

// changed is when the revision of a tag was made.
func (w *world) changed(tag string) string {
	w.t.Helper()
	var list httpapi.HistoryList
	w.get(room + "/history").is(200).into(&list)
	for _, i := range list.Items {
		if tag == fmt.Sprintf(`"%d-%d"`, i.Life, i.Revision) {
			return i.Changed.Format(time.RFC3339Nano)
		}
	}
	require.Fail(w.t, "no such tag")
	return ""
}

func TestBuckets(t *testing.T) {
	w := newWorld(t)
	w.docs()
	const buckets = room + "/history/buckets"
	from := url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339Nano))
	w.get(buckets+"?path=state.celsius&from="+from).is(404, "no_such_entity")
	for _, c := range []string{"20", "22.5", "17.5", `"warm"`} {
		w.put(room+"/state", `{"celsius":`+c+`}`)
	}
	var list httpapi.BucketList
	w.get(buckets + "?path=state.celsius&from=" + from + "&width=100h").is(200).into(&list)
	require.Len(t, list.Items, 1)
	b := list.Items[0]
	require.Equal(t, []any{3, 17.5, 22.5, 20.0, 17.5}, []any{b.Count, b.Min, b.Max, b.Avg, b.Last})
	require.Nil(t, list.Since)
	w.get(buckets + "?path=state.none&from=" + from).is(200).into(&list)
	require.Empty(t, list.Items)
	for _, q := range []string{"from=" + from, "path=state.celsius", "path=state.celsius&from=x", "path=state.celsius&width=0&from=" + from, "path=state.celsius&width=1ns&from=" + from, "path=state.celsius&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"} {
		w.get(buckets+"?"+q).is(400, "bad_query")
	}
	w.get(buckets+"?path=state..x&from="+from).is(400, "bad_filter")
	// From the beginning of time, or to its end, is more than can be counted.
	for _, q := range []string{"from=0001-01-01T00:00:00Z", "from=0000-01-01T00:00:00Z", "to=9999-01-01T00:00:00Z&from=" + from} {
		require.Contains(t, w.get(buckets+"?path=state.celsius&width=876000h&"+q).is(400, "bad_query").body, "more time than can be counted")
	}
	w.get(buckets+"?path=state.celsius&to=0001-01-01T00:00:00Z&from="+from).is(400, "bad_query")
}

// Numbers of documents may be beyond what a float64 can be, alone and together.
func TestBucketsOfLargeNumbers(t *testing.T) {
	w := newWorld(t)
	w.docs()
	from := url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339Nano))
	for _, n := range []string{"1e400", "-1e400", "1.7e308", "-1.7e308"} {
		require.Less(t, w.bring(`{"pod":"docs","name":"room","state":{"n":` + n + `}}`)[0].Status, 300)
	}
	var list httpapi.BucketList
	w.get(room + "/history/buckets?path=state.n&width=100h&from=" + from).is(200).into(&list)
	b := list.Items[0]
	require.Equal(t, []any{4, -math.MaxFloat64, math.MaxFloat64, -1.7e308}, []any{b.Count, b.Min, b.Max, b.Last})
	require.Less(t, math.Abs(b.Avg), 1e300)
}

// The year 1 is a time like others, though Go has no other for none.
func TestTheFirstMomentIsATime(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{}`).is(201)
	for _, at := range []string{"0001-01-01T00:00:00Z", "0001-01-01T01:00:00%2B01:00"} {
		w.get(room+"?at="+at).is(404, "no_such_revision")
		w.get(room+"?revision=1&at="+at).is(400, "bad_query")
	}
}
