package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

func brisk(c *httpapi.Config, ours *client.Config, _ *pod.Config) {
	c.Heartbeat = 20 * time.Millisecond
}

// watching watches in the background until so many events have come.
func watching(t *testing.T, w *world, o client.WatchOptions, n int) (events func() []client.Event[note]) {
	t.Helper()
	connected := make(chan struct{})
	var once sync.Once
	w.next(func(rw http.ResponseWriter, r *http.Request, api http.Handler) {
		api.ServeHTTP(&noticing{ResponseWriter: rw, noticed: func() { once.Do(func() { close(connected) }) }}, r)
	})
	done := make(chan struct{})
	var out []client.Event[note]
	var failed error
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		defer close(done)
		defer cancel()
		for e, err := range client.Watch[note](ctx, w.c, o) {
			if err != nil {
				failed = err
				return
			}
			if out = append(out, e); len(out) == n {
				return
			}
		}
	}()
	<-connected
	return func() []client.Event[note] {
		<-done
		require.NoError(t, failed)
		return out
	}
}

// noticing tells of the second part of an answer: behind the head of a stream it
// says from where on it tells.
type noticing struct {
	http.ResponseWriter
	noticed func()
	parts   int
}

func (n *noticing) Write(b []byte) (int, error) {
	if n.parts++; n.parts == 2 {
		defer n.noticed()
	}
	return n.ResponseWriter.Write(b)
}

func (n *noticing) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// TestWatch sees what happens, in order, and what leaves a filter.
func TestWatch(t *testing.T) {
	w := newWorld(t, brisk)
	ctx := t.Context()
	w.docs()
	e := w.c.Entity("docs", "d")
	_, err := e.Put(ctx, note{N: 1})
	require.NoError(t, err)
	all := client.WatchOptions{Resume: true}
	first := watching(t, w, all, 1)()
	require.Equal(t, client.Changed, first[0].Kind)
	require.Equal(t, 1, first[0].State.N)
	require.Equal(t, "d", first[0].Name)
	require.Equal(t, "set", first[0].Type)

	events := watching(t, w, client.WatchOptions{Pods: []string{"docs"}, Name: "d", Filter: "state.n > 1", Resume: true, After: first[0].ID}, 3)
	for _, n := range []int{2, 1} {
		_, err = e.Put(ctx, note{N: n})
		require.NoError(t, err)
	}
	_, err = w.c.Entity("docs", "other").Put(ctx, note{N: 5})
	require.NoError(t, err)
	_, err = e.Put(ctx, note{N: 3})
	require.NoError(t, err)
	require.NoError(t, e.Delete(ctx))
	got := events()
	require.Equal(t, []client.EventKind{client.Changed, client.Left, client.Changed}, []client.EventKind{got[0].Kind, got[1].Kind, got[2].Kind})
	last := watching(t, w, client.WatchOptions{Pods: []string{"docs", "gauges"}, Resume: true, After: got[2].ID}, 1)()
	require.Equal(t, client.Deleted, last[0].Kind)
	require.Nil(t, last[0].State)
	require.Equal(t, client.ETag{Life: last[0].Life, Revision: last[0].Revision}, last[0].ETag())

	fresh := w.c.Entity("docs", "new")
	var once sync.Once
	w.next(func(rw http.ResponseWriter, r *http.Request, api http.Handler) {
		api.ServeHTTP(&noticing{ResponseWriter: rw, noticed: func() {
			once.Do(func() {
				if _, err := fresh.Put(ctx, note{N: 4}); err != nil {
					t.Error(err)
				}
			})
		}}, r)
	})
	for ev, err := range fresh.Watch(ctx) {
		require.NoError(t, err)
		require.JSONEq(t, `{"text":"","n":4}`, string(*ev.State))
		break
	}
}

// TestWatchGoesOn: over connections that break wherever they may, each change
// comes once and in order.
func TestWatchGoesOn(t *testing.T) {
	w := newWorld(t, brisk)
	ctx := t.Context()
	w.docs()
	e := w.c.Entity("docs", "d")
	_, err := e.Put(ctx, note{N: 1})
	require.NoError(t, err)
	const changes = 200
	var spoil []spoiler
	for i := range 60 {
		spoil = append(spoil, cutAfter(40+i*37), []spoiler{unsent, says(503, `{"code":"too_many_watchers"}`), says(502, ""), cutAfter(1)}[i%4])
	}
	for n := 2; n <= changes; n++ {
		_, err := e.Put(ctx, note{N: n})
		require.NoError(t, err)
	}
	w.next(spoil...)
	var lost []error
	next := 1
	for ev, err := range client.Watch[note](ctx, w.c, client.WatchOptions{Pods: []string{"docs"}, Resume: true, Lost: func(err error) { lost = append(lost, err) }}) {
		require.NoError(t, err)
		require.Equal(t, next, ev.State.N)
		if next++; next > changes {
			break
		}
	}
	require.NotEmpty(t, lost)
	require.Greater(t, len(w.requests()), 10)
}

// TestWatchesWithoutAPlace: a watch from now on that is cut before an event has
// come goes on where it began, since the server says where that is.
func TestWatchFromNowOnGoesOn(t *testing.T) {
	w := newWorld(t, brisk)
	ctx := t.Context()
	w.docs()
	e := w.c.Entity("docs", "d")
	_, err := e.Put(ctx, note{N: 1})
	require.NoError(t, err)
	w.next(func(rw http.ResponseWriter, r *http.Request, api http.Handler) {
		until, end := context.WithCancel(r.Context())
		api.ServeHTTP(&noticing{ResponseWriter: rw, noticed: end}, r.WithContext(until))
		end()
		_, err := e.Put(ctx, note{N: 2}) // which nobody watches
		if err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	for ev, err := range client.Watch[note](ctx, w.c, client.WatchOptions{}) {
		require.NoError(t, err)
		require.Equal(t, 2, ev.State.N)
		break
	}
}

// TestWatchEnds: what no repeat would mend ends a watch, and so does the context.
func TestWatchEnds(t *testing.T) {
	w := newWorld(t, brisk)
	w.docs()
	ends := func(o client.WatchOptions, spoil ...spoiler) error {
		w.next(spoil...)
		var last error
		for _, err := range client.Watch[note](t.Context(), w.c, o) {
			last = err
		}
		return last
	}
	require.ErrorIs(t, ends(client.WatchOptions{Pods: []string{"none"}}), client.NoSuchPod)
	require.ErrorIs(t, ends(client.WatchOptions{Filter: "state."}), client.BadFilter)
	require.ErrorContains(t, ends(client.WatchOptions{Name: "x"}), "names its pod")
	require.Error(t, ends(client.WatchOptions{Resume: true, After: 1 << 40}))
	require.ErrorIs(t, ends(client.WatchOptions{}, says(200, "event: cut\ndata: {\"reason\":\"too_costly\",\"detail\":\"x\"}\n\n")), client.TooCostly)
	require.ErrorContains(t, ends(client.WatchOptions{}, says(200, "id: 1\nevent: changed\ndata: {\"state\":[]}\n\n")), "does not fit")
	require.ErrorContains(t, ends(client.WatchOptions{}, says(200, "id: x\nevent: changed\ndata: {}\n\n")), "event's id")

	ctx, cancel := context.WithCancel(t.Context())
	w.next(slices.Repeat([]spoiler{unsent}, 20)...)
	lost := 0
	for _, err := range client.Watch[json.RawMessage](ctx, w.c, client.WatchOptions{Lost: func(error) {
		if lost++; lost == 2 {
			cancel()
		}
	}}) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, 2, lost)
}

// TestWatchReadsTheStream: comments, ids without events, several lines of data
// and other ends of lines are as the standard has them; a server that is silent
// is asked again.
func TestWatchReadsTheStream(t *testing.T) {
	w := newWorld(t, func(_ *httpapi.Config, ours *client.Config, _ *pod.Config) { ours.Silence = time.Second })
	silent := func(rw http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = rw.Write([]byte(": hello\n\nid: 7\n\nid: 8\nevent: changed\ndata: {\"na"))
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	}
	mute := func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }
	w.next(mute, silent, says(200, "event: gap\r\nid:9\r\ndata:{\"from\":7,\r\ndata: \"to\":9,\"reason\":\"trimmed\"}\r\nretry: 5\r\n\r\n:\n\nevent: cut\ndata: {\"reason\":\"slow\"}\n\n"),
		says(200, "id: 12\nevent: deleted\ndata: {\"name\":\"x\"}\n\n"))
	var why []error
	var got []client.Event[note]
	for e, err := range client.Watch[note](t.Context(), w.c, client.WatchOptions{Lost: func(err error) { why = append(why, err) }}) {
		require.NoError(t, err)
		if got = append(got, e); len(got) == 2 {
			break
		}
	}
	require.Equal(t, client.Event[note]{Kind: client.Gap, ID: 9, From: 7, To: 9, Reason: "trimmed"}, got[0])
	require.EqualValues(t, 12, got[1].ID)
	var ids []string
	for _, r := range w.requests() {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
	}
	require.Equal(t, []string{"", "", "7", "9"}, ids)
	require.ErrorContains(t, why[1], "nothing came for 1s")
	require.ErrorContains(t, errors.Join(why...), "slow")
}
