package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

// collect reads so many items of a sequence.
func collect[T any](t *testing.T, seq iter.Seq2[T, error], n int) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		require.NoError(t, err)
		if out = append(out, v); len(out) == n {
			break
		}
	}
	return out
}

// TestLists reads page after page, and says which entities cannot be read.
func TestLists(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("n%02d", i)
		_, err := w.c.Entity("docs", name).Put(ctx, note{N: i})
		require.NoError(t, err)
		want = append(want, name)
	}
	w.damage("docs", "n07")
	var got []string
	for n, err := range client.List[note](ctx, w.c, "docs", client.ListOptions{Page: 10}) {
		if n.Name == "n07" {
			require.ErrorIs(t, err, client.Quarantined)
		} else {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("n%02d", n.State.N), n.Name)
		}
		require.Equal(t, "docs", n.Pod)
		got = append(got, n.Name)
	}
	require.Equal(t, want, got)
	require.Len(t, collect(t, client.List[note](ctx, w.c, "docs", client.ListOptions{Prefix: "n1", Page: 3}), -1), 10)
	require.Len(t, collect(t, client.List[note](ctx, w.c, "docs", client.ListOptions{Page: 2}), 5), 5)
	for _, err := range client.List[note](ctx, w.c, "nothing", client.ListOptions{}) {
		require.ErrorIs(t, err, client.NoSuchPod)
	}
	for _, err := range client.List[[]int](ctx, w.c, "docs", client.ListOptions{}) {
		require.ErrorContains(t, err, "does not fit")
	}
	var pods []string
	for p, err := range w.c.Pods(ctx) {
		require.NoError(t, err)
		pods = append(pods, p.Name)
	}
	require.Equal(t, []string{"docs", "gauges"}, pods)

	bad := collect(t, w.c.Quarantine(ctx), -1)
	require.Len(t, bad, 1)
	e := w.c.Entity("docs", "n07")
	u, err := e.Unreadable(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, u.Quarantined)
	_, err = w.c.Entity("docs", "n08").Unreadable(ctx)
	require.ErrorIs(t, err, client.NotQuarantined)
	_, err = e.Retry(ctx)
	require.ErrorIs(t, err, client.Quarantined)
	require.ErrorIs(t, w.c.Entity("docs", "n08").RemoveUnreadable(ctx), client.NotQuarantined)
	require.NoError(t, e.RemoveUnreadable(ctx))
	_, err = client.Get[note](ctx, e)
	require.ErrorIs(t, err, client.NoSuchEntity)
}

// TestQueries finds, sorts, selects, counts and groups.
func TestQueries(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	_, _, err := w.c.PutPod(ctx, "more", client.Definition{Index: []string{"state.n"}})
	require.NoError(t, err)
	for i := range 30 {
		pod := []string{"docs", "more"}[i%2]
		_, err := w.c.Entity(pod, fmt.Sprintf("n%02d", i)).Put(ctx, note{N: i, Text: []string{"a", "b", "c"}[i%3], Tags: []string{"t"}})
		require.NoError(t, err)
	}
	warm := client.QueryOptions{Pods: []string{"docs"}, Filter: `state.n > 9 && name.startsWith("n")`, Sort: []string{"-state.n"}, Select: []string{"state.n"}, Page: 3}
	w.next(unsent, says(502, ""))
	found := collect(t, client.Query[note](ctx, w.c, warm), -1)
	var ns []int
	for _, f := range found {
		require.Equal(t, "docs", f.Pod)
		require.Equal(t, fmt.Sprintf("n%02d", f.State.N), f.Name)
		require.EqualValues(t, 1, f.Revision)
		require.NotZero(t, f.Life)
		require.Empty(t, f.State.Tags, "it was not selected")
		ns = append(ns, f.State.N)
	}
	require.Equal(t, []int{28, 26, 24, 22, 20, 18, 16, 14, 12, 10}, ns)
	all := collect(t, client.Query[note](ctx, w.c, client.QueryOptions{Page: 7, Sort: []string{"state.n"}}), -1)
	require.Len(t, all, 30)
	require.Equal(t, "more", all[29].Pod)
	n, err := w.c.Count(ctx, client.QueryOptions{Pods: []string{"docs", "more"}, Filter: "state.n < 11"})
	require.NoError(t, err)
	require.Equal(t, 10, n)
	groups, err := w.c.Groups(ctx, client.QueryOptions{Pods: []string{"more"}}, []string{"state.text"}, "sum(state.n)", "max(state.n)")
	require.NoError(t, err)
	require.Len(t, groups, 3)
	require.Equal(t, client.Group{By: map[string]any{"state.text": "a"}, Count: 5, Values: map[string]any{"sum(state.n)": 75.0, "max(state.n)": 27.0}}, groups[0])

	w.damage("docs", "n04")
	var unreadable []string
	for f, err := range client.Query[note](ctx, w.c, client.QueryOptions{Pods: []string{"docs"}, Sort: []string{"state.n"}, Page: 4}) {
		if errors.Is(err, client.Quarantined) {
			unreadable = append(unreadable, f.Name)
			continue
		}
		require.NoError(t, err)
	}
	require.Equal(t, []string{"n04"}, unreadable)
	for _, err := range client.Query[note](ctx, w.c, client.QueryOptions{Filter: "state.n >"}) {
		require.ErrorIs(t, err, client.BadFilter)
		require.NotErrorIs(t, err, client.OutcomeUnknown)
	}
	for _, err := range client.Query[[]int](ctx, w.c, client.QueryOptions{Pods: []string{"more"}}) {
		require.ErrorContains(t, err, "does not fit")
	}
	require.Len(t, collect(t, client.Query[note](ctx, w.c, client.QueryOptions{Prefix: "n1"}), 2), 2)
}

// TestBatch: each message fails alone, and a repeat of the whole has no second
// effect.
func TestBatch(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	g, d := w.c.Entity("gauges", "g"), w.c.Entity("docs", "d")
	w.next(unheard)
	got, err := w.c.Batch(ctx, []client.Item{
		{Entity: g, Message: "add", Body: add{5}},
		{Entity: g, Message: "take", Body: take{2}},
		{Entity: g, Message: "take", Body: take{9}},
		{Entity: g, Message: "total"},
		{Entity: g.IfAbsent(), Message: "add", Body: add{1}},
		{Entity: w.c.Entity("docs", "e").IfExists(), Message: "merge", Body: note{Text: "x"}},
		{Entity: d, Message: "merge", Body: note{Text: "x"}},
		{Entity: d.Where(`state.text == "y"`), Message: "merge", Body: note{Text: "z"}},
		{Entity: d.IfMatch(client.ETag{Life: 1, Revision: 9}), Message: "merge", Body: note{Text: "z"}},
		{Entity: w.c.Entity("none", "x"), Message: "add"},
	}, 30*time.Second)
	require.NoError(t, err)
	require.Len(t, w.requests(), 2)
	require.Len(t, got, 10)
	var left int
	require.NoError(t, got[1].Into(&left))
	require.Equal(t, 3, left)
	require.NoError(t, got[3].Into(&left))
	require.Equal(t, 3, left, "it was added once")
	require.NotEmpty(t, got[0].ETag)
	for n, want := range map[int]error{0: nil, 2: client.Rejected, 4: client.ConditionFailed, 5: client.ConditionFailed, 6: nil, 7: client.ConditionFailed, 8: client.StaleRevision, 9: client.NoSuchPod} {
		require.ErrorIs(t, got[n].Err, want, "%d: %v", n, got[n].Err)
	}
	// What has no room is said to be missing.
	w.next(says(200, `{"items":[{"status":200,"etag":"\"1-1\"","omitted":true}],"failed":0}`))
	got, err = w.c.Batch(ctx, []client.Item{{Entity: g, Message: "total"}}, 0)
	require.NoError(t, err)
	require.True(t, got[0].Omitted)
	require.NoError(t, got[0].Err)
	require.ErrorContains(t, got[0].Into(&left), "the message was handled")
	_, err = w.c.Batch(ctx, []client.Item{{Entity: g, Message: "add", Body: func() {}}}, 0)
	require.ErrorContains(t, err, "message 0 of the batch")
}

// TestExportAndImport: an export that is cut off goes on where it was, and can be
// imported, twice.
func TestExportAndImport(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	for i := range 40 {
		_, err := w.c.Entity("docs", fmt.Sprintf("n%02d", i)).Put(ctx, note{N: i})
		require.NoError(t, err)
	}
	w.next(cutAfter(900), unsent, cutAfter(2000), says(503, `{"status":503,"code":"overloaded"}`))
	lines := collect(t, w.c.Export(ctx, "", "docs"), -1)
	require.Len(t, w.requests(), 5)
	require.Len(t, lines, 41)
	require.NotNil(t, lines[0].Definition)
	for i, l := range lines[1:] {
		require.Equal(t, fmt.Sprintf("n%02d", i), l.Name)
	}
	require.Len(t, collect(t, w.c.Export(ctx, lines[20].Cursor, "docs"), -1), 20)
	require.Len(t, collect(t, w.c.Export(ctx, ""), 3), 3)
	for _, err := range w.c.Export(ctx, "", "none") {
		require.ErrorIs(t, err, client.NoSuchPod)
	}

	other := newWorld(t)
	for _, status := range []int{http.StatusCreated, http.StatusOK} {
		n := 0
		for i, err := range other.c.Import(ctx, slices.Values(lines)) {
			require.NoError(t, err)
			require.NoError(t, i.Err)
			require.Equal(t, status, i.Status)
			require.Equal(t, lines[n].Name, i.Name)
			n++
		}
		require.Equal(t, 41, n)
	}
	bad := []client.Line{{Pod: "gauges", Name: "g", State: json.RawMessage(`{}`)}, {Pod: "docs", Name: "z", State: json.RawMessage(`{"n":1}`)}, {Pod: "none", Name: "x", State: json.RawMessage(`{}`)}}
	results := collect(t, other.c.Import(ctx, slices.Values(bad)), -1)
	require.ErrorIs(t, results[0].Err, client.TypedState)
	require.NoError(t, results[1].Err)
	require.ErrorIs(t, results[2].Err, client.NoSuchPod)

	changed := []client.Line{{Pod: "docs", Definition: &client.Definition{Type: "document", Index: []string{"state.n"}}}}
	results = collect(t, other.c.Import(ctx, slices.Values(changed)), -1)
	require.ErrorIs(t, results[0].Err, client.PodExists)
	other.next(says(200, `{"line":1,"pod":"docs","name":"a","status":201,"etag":"\"1-1\""}`+"\n"+`{"line":2,"through":9,"pod":"docs","status":200}`+"\n"+`{"end":true,"lines":9}`+"\n"))
	results = collect(t, other.c.Import(ctx, slices.Values(bad)), -1)
	require.Equal(t, []client.Imported{{Line: 1, Pod: "docs", Name: "a", Status: 201, ETag: `"1-1"`}, {Line: 2, Through: 9, Pod: "docs", Status: 200}}, results)

	// Results come while lines are still to be written.
	gate := make(chan struct{})
	n := 0
	for _, err := range other.c.Import(ctx, func(yield func(client.Line) bool) {
		if yield(bad[1]) {
			<-gate
			yield(bad[1])
		}
	}) {
		require.NoError(t, err)
		if n++; n == 1 {
			close(gate)
		}
	}
	require.Equal(t, 2, n)
	endless := func(yield func(client.Line) bool) {
		for yield(bad[1]) {
		}
	}
	require.Len(t, collect(t, other.c.Import(ctx, endless), 5), 5)
	cut, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range other.c.Import(cut, slices.Values(lines)) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestService(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, _ *client.Config, _ *pod.Config) { c.Store = "memory" })
	ctx := t.Context()
	h, err := w.c.Health(ctx)
	require.NoError(t, err)
	require.Equal(t, "ok", h.Status)
	r, err := w.c.Ready(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, r.Pods)
	l, err := w.c.Limits(ctx)
	require.NoError(t, err)
	require.Equal(t, 1000, l.MaxBatch)
	require.NotEmpty(t, collect(t, w.c.Actors(ctx, "", 3), -1))
	_, n, err := w.c.DeadLetters(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
	var to bytes.Buffer
	_, err = w.c.Backup(ctx, &to)
	if err != nil {
		require.ErrorIs(t, err, client.NoBackup)
	}
	w.next(says(503, `{"status":503,"code":"not_ready","detail":"x"}`))
	_, err = w.c.Ready(ctx)
	require.ErrorIs(t, err, client.NotReady)
	require.Len(t, w.requests(), 1, "a failure is the answer")
}

// TestTokens: a request has its token.
func TestTokens(t *testing.T) {
	w := newWorld(t, func(c *httpapi.Config, ours *client.Config, _ *pod.Config) { ours.Token = "secret" })
	w.next()
	_, err := w.c.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Bearer secret", w.requests()[0].Header.Get("Authorization"))
}

// TestHistory reads what became of an entity.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	e := w.c.Entity("docs", "d")
	p, err := w.c.Pod(ctx, "docs")
	require.NoError(t, err)
	require.Positive(t, p.History.Changes)
	began := time.Now().Add(-time.Second)
	for i := range 7 {
		_, err := e.Put(ctx, note{N: i + 1})
		require.NoError(t, err)
	}
	revisions := collect(t, client.History[note](ctx, e, client.HistoryOptions{Page: 3}), -1)
	require.Len(t, revisions, 7)
	for i, r := range revisions {
		require.EqualValues(t, i+1, r.Revision)
		require.Equal(t, i+1, r.State.N)
		require.Equal(t, "set", r.Type)
	}
	require.Len(t, collect(t, client.History[note](ctx, e, client.HistoryOptions{From: 2, To: 4}), -1), 3)
	s, tag, err := client.At[note](ctx, e, 3)
	require.NoError(t, err)
	s3 := s
	require.Equal(t, 3, s.N)
	require.EqualValues(t, 3, tag.Revision)
	_, _, err = client.At[note](ctx, e, 8)
	require.ErrorIs(t, err, client.NoSuchRevision)
	s, _, err = client.AtTime[note](ctx, e, revisions[4].Changed)
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.N, 5)
	then, err := client.GetAt[note](ctx, e, 3)
	require.NoError(t, err)
	require.Equal(t, client.Twin[note]{Pod: "docs", Name: "d", Life: tag.Life, Revision: 3, Changed: revisions[2].Changed, State: s3}, then)
	then, err = client.GetAtTime[note](ctx, e, revisions[4].Changed)
	require.NoError(t, err)
	require.Equal(t, s, then.State)
	_, err = client.GetAt[note](ctx, e, 8)
	require.ErrorIs(t, err, client.NoSuchRevision)
	_, _, err = client.AtTime[note](ctx, e, began)
	require.ErrorIs(t, err, client.NoSuchRevision)
	buckets, since, err := e.Buckets(ctx, "state.n", began, time.Time{}, time.Hour)
	require.NoError(t, err)
	require.Zero(t, since)
	require.Equal(t, 7, buckets[0].Count)
	require.InDelta(t, 4, buckets[0].Avg, 0.001)
	require.NoError(t, e.Delete(ctx))
	_, err = e.Put(ctx, note{})
	require.NoError(t, err)
	require.Len(t, collect(t, client.History[note](ctx, e, client.HistoryOptions{Earlier: true}), -1), 9)
	require.Len(t, collect(t, client.History[note](ctx, e, client.HistoryOptions{Life: revisions[0].Life}), -1), 8)
}
