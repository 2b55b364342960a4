package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

type note struct {
	Text string   `json:"text"`
	Tags []string `json:"tags,omitempty"`
	N    int      `json:"n,omitempty"`
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "http://x?a=b", "http://x#y", "http://[::1", "/v1"} {
		_, err := client.New(bad, client.Config{})
		require.Error(t, err, "%q", bad)
	}
}

// TestDocuments goes through the life of a document.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	p, created, err := w.c.PutPod(ctx, "docs", client.Definition{Durability: "sync", Schema: json.RawMessage(`{"properties":{"n":{"maximum":9}}}`)})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "document", p.Type)
	_, created, err = w.c.PutPod(ctx, "docs", client.Definition{Schema: json.RawMessage(`{"properties":{"n":{"maximum":9}}}`)})
	require.NoError(t, err)
	require.False(t, created)

	e := w.c.Entity("docs", "a/b %2F é")
	_, err = client.Get[note](ctx, e)
	require.ErrorIs(t, err, client.NoSuchEntity)
	first, err := e.IfAbsent().Put(ctx, note{Text: "x"})
	require.NoError(t, err)
	require.True(t, first.Created)
	require.EqualValues(t, 1, first.Revision)
	_, err = e.IfAbsent().Put(ctx, note{Text: "y"})
	require.ErrorIs(t, err, client.ConditionFailed)

	got, err := client.Get[note](ctx, e)
	require.NoError(t, err)
	require.Equal(t, note{Text: "x"}, got.State)
	require.Equal(t, "a/b %2F é", got.Name)
	require.Equal(t, first.ETag(), got.ETag())
	_, newer, err := client.GetNewer[note](ctx, e, got.ETag())
	require.NoError(t, err)
	require.False(t, newer)

	second, err := e.IfMatch(got.ETag()).Merge(ctx, map[string]any{"tags": []string{"t"}})
	require.NoError(t, err)
	require.False(t, second.Created)
	_, err = e.IfMatch(got.ETag()).Merge(ctx, map[string]any{"text": "z"})
	require.ErrorIs(t, err, client.StaleRevision)
	_, err = e.IfNoneMatch(second.ETag()).Put(ctx, note{})
	require.ErrorIs(t, err, client.ConditionFailed)
	again, newer, err := client.GetNewer[note](ctx, e, got.ETag())
	require.NoError(t, err)
	require.True(t, newer)
	require.Equal(t, []string{"t"}, again.State.Tags)

	_, err = e.Patch(ctx, client.Test("/text", "x"), client.Add("/tags/-", "u"), client.Copy("/text", "/copy"), client.Move("/copy", "/moved"), client.Replace("/text", nil), client.Remove("/moved"))
	require.NoError(t, err)
	_, err = e.Patch(ctx, client.Test("/text", "x"))
	require.ErrorIs(t, err, client.Rejected)
	tags, tag, err := client.Value[[]string](ctx, e, "/tags")
	require.NoError(t, err)
	require.Equal(t, []string{"t", "u"}, tags)
	require.EqualValues(t, 3, tag.Revision)
	_, _, err = client.Value[any](ctx, e, "/nothing/here")
	require.ErrorIs(t, err, client.NoSuchValue)
	_, _, err = client.Value[any](ctx, e, "tags")
	require.ErrorContains(t, err, "not a JSON pointer")

	_, err = e.PutAt(ctx, "/odd~1key/%2F./..", 7)
	require.NoError(t, err)
	seven, _, err := client.Value[map[string]any](ctx, e, "/odd~1key")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"%2F.": map[string]any{"..": 7.0}}, seven)
	_, err = e.MergeAt(ctx, "/odd~1key", map[string]any{"%2F.": nil, "x": true})
	require.NoError(t, err)
	_, err = e.MergeAt(ctx, "/not-there", map[string]any{"x": true})
	require.ErrorIs(t, err, client.NoSuchValue)
	ack, err := e.RemoveAt(ctx, "/odd~1key")
	require.NoError(t, err)
	require.EqualValues(t, 6, ack.Revision)
	_, err = e.RemoveAt(ctx, "")
	require.ErrorIs(t, err, client.Rejected)

	_, err = e.Where(`state.n > 1`).Merge(ctx, map[string]any{"n": 3})
	require.ErrorIs(t, err, client.ConditionFailed)
	_, err = e.Where(`state.tags[1] == "u"`).Merge(ctx, map[string]any{"n": 3})
	require.NoError(t, err)
	var failed *client.Error
	_, err = e.Where(`state.n >`).Merge(ctx, map[string]any{"n": 3})
	require.ErrorIs(t, err, client.BadFilter)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.Line)
	require.Positive(t, failed.Column)
	_, err = e.Merge(ctx, map[string]any{"n": 10})
	require.ErrorIs(t, err, client.SchemaViolation)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, http.StatusUnprocessableEntity, failed.Status)
	require.Equal(t, "/n", failed.Violations[0].Pointer)

	require.ErrorIs(t, e.Where("state.n == 4").Delete(ctx), client.ConditionFailed)
	require.NoError(t, e.Where("state.n == 3").Delete(ctx))
	require.ErrorIs(t, e.Delete(ctx), client.NoSuchEntity)
	require.ErrorIs(t, w.c.DeletePod(ctx, "nothing", false), client.NoSuchPod)
	_, err = e.Put(ctx, note{})
	require.NoError(t, err)
	require.ErrorIs(t, w.c.DeletePod(ctx, "docs", false), client.PodNotEmpty)
	require.NoError(t, w.c.DeletePod(ctx, "docs", true))
	_, err = w.c.Pod(ctx, "docs")
	require.ErrorIs(t, err, client.NoSuchPod)
}

func TestMessages(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	g := w.c.Entity("gauges", "g")
	ack, err := g.Send(ctx, "add", add{5})
	require.NoError(t, err)
	require.EqualValues(t, 1, ack.Revision)
	left, err := client.Ask[int](ctx, g, "take", take{2})
	require.NoError(t, err)
	require.Equal(t, 3, left)
	left, err = client.Ask[int](ctx, g, "total", nil)
	require.NoError(t, err)
	require.Equal(t, 3, left)
	_, err = client.Ask[string](ctx, g, "total", nil)
	require.ErrorContains(t, err, "does not fit a *string")
	for message, want := range map[string]client.Code{"take": client.Rejected, "boom": client.HandlerFailed, "none": client.NoSuchMessage} {
		var body any
		if message == "take" {
			body = take{9}
		}
		_, err = client.Ask[int](ctx, g, message, body)
		require.ErrorIs(t, err, want)
		require.NotErrorIs(t, err, client.OutcomeUnknown)
	}
	_, err = g.Send(ctx, "add", map[string]int{"m": 1})
	require.ErrorIs(t, err, client.UnknownField)
	_, err = g.Put(ctx, gauge{})
	require.ErrorIs(t, err, client.TypedState)
	_, err = g.Send(ctx, "add", func() {})
	require.ErrorContains(t, err, "the body")
	_, err = g.Rebuild(ctx)
	require.ErrorIs(t, err, client.Rejected)

	p, err := w.c.Pod(ctx, "gauges")
	require.NoError(t, err)
	require.Equal(t, "typed", p.Type)
	require.Contains(t, string(p.StateSchema), `"total"`)
	for _, m := range p.Messages {
		require.True(t, json.Valid(m.BodySchema) && json.Valid(m.ReplySchema))
		if m.Name == "total" {
			require.Equal(t, "query", m.Kind)
			require.Contains(t, string(m.ReplySchema), "integer")
		}
	}
	_, err = g.Send(ctx, "add", map[string]int{})
	var lacking *client.Error
	require.ErrorAs(t, err, &lacking)
	require.Equal(t, []any{client.SchemaViolation, "/n"}, []any{lacking.Code, lacking.Violations[0].Pointer})
}

func TestFutures(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	g := w.c.Entity("gauges", "g")
	_, err := g.Start(ctx, "nothing", nil)
	require.ErrorIs(t, err, client.NoSuchMessage)
	f, err := g.Start(ctx, "stall", nil)
	require.NoError(t, err)
	behind, err := g.Start(ctx, "take", take{1})
	require.NoError(t, err)
	s, err := f.State(ctx, time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, "pending", s.Status)
	require.Equal(t, "stall", s.Message)
	w.let()
	ack, err := client.Await[client.Ack](ctx, w.c.Future(f.ID))
	require.NoError(t, err)
	require.EqualValues(t, 1, ack.Revision)
	left, err := client.Await[int](ctx, behind)
	require.NoError(t, err)
	require.Zero(t, left)
	refused, err := g.Start(ctx, "take", take{1})
	require.NoError(t, err)
	_, err = client.Await[int](ctx, refused)
	require.ErrorIs(t, err, client.Rejected)
	require.NoError(t, refused.Cancel(ctx))
	_, err = client.Await[int](ctx, refused)
	require.ErrorIs(t, err, client.NoSuchFuture)
}

// TestRepeats: what can do no harm is sent again, with the same key, and has one
// effect; everything else is not.
func TestRepeats(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	g, e := w.c.Entity("gauges", "g"), w.c.Entity("docs", "d")
	sum := 0
	total := func() int {
		w.next()
		n, err := client.Ask[int](ctx, g, "total", nil)
		require.NoError(t, err)
		return n
	}
	busy := says(503, `{"status":503,"code":"overloaded"}`, "Content-Type", "application/problem+json", "Retry-After", "0")
	unknown := says(504, `{"status":504,"code":"outcome_unknown"}`)
	for name, spoil := range map[string][]spoiler{
		"answer lost":          {unheard},
		"request lost":         {unsent},
		"lost again and again": {unheard, unsent, unheard, unsent, unheard},
		"overloaded":           {busy, busy},
		"unknown":              {unknown},
		"a proxy's 502":        {says(502, "bad gateway")},
		"a proxy's 503":        {says(503, "<html>")},
		"a proxy's 429":        {says(429, "")},
		"the answer is cut":    {cutAfter(10)},
		"the head of it promises": {func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			w.Header().Set("Content-Length", "100")
			panic(http.ErrAbortHandler)
		}},
	} {
		w.next(spoil...)
		_, err := g.Send(ctx, "add", add{1})
		require.NoError(t, err, name)
		seen := w.requests()
		require.Len(t, seen, len(spoil)+1, name)
		for _, r := range seen {
			require.Equal(t, seen[0].Header["Idempotency-Key"], r.Header["Idempotency-Key"], name)
			require.Len(t, r.Header.Get("Idempotency-Key"), 26)
		}
		sum++
		require.Equal(t, sum, total(), name)

		before, err := e.Put(ctx, note{N: sum})
		require.NoError(t, err)
		w.next(spoil...)
		got, err := e.IfMatch(before.ETag()).Put(ctx, note{N: -sum})
		require.NoError(t, err, name)
		require.Equal(t, before.Revision+1, got.Revision, name)
		w.next(spoil...)
		_, err = client.Get[note](ctx, e)
		require.NoError(t, err, name)
	}
	for code, spoil := range map[client.Code][]spoiler{
		client.HandlerFailed: {says(500, `{"status":500,"code":"handler_failed"}`)},
		client.Internal:      {says(500, `{"status":500,"code":"internal"}`)},
		client.Quarantined:   {says(503, `{"status":503,"code":"quarantined"}`)},
		client.Rejected:      {says(422, `{"status":422,"code":"rejected"}`)},
		client.Conflict:      {says(409, `{"status":409,"code":"conflict"}`)},
	} {
		w.next(spoil...)
		_, err := g.Send(ctx, "add", add{1})
		require.ErrorIs(t, err, code)
		require.Len(t, w.requests(), 1, code)
	}
	gone := slices.Repeat([]spoiler{unsent}, 20) // net/http repeats some requests by itself
	w.next(gone...)
	_, err := g.Send(ctx, "add", add{1})
	require.ErrorIs(t, err, client.OutcomeUnknown)
	require.GreaterOrEqual(t, len(w.requests()), 6)
	require.LessOrEqual(t, len(w.requests()), 12)
	w.next(gone...)
	_, err = client.Get[gauge](ctx, g)
	require.NotErrorIs(t, err, client.OutcomeUnknown, "a read has no outcome")
	require.Error(t, err)
	require.Equal(t, sum, total())
}

// TestDeletesAreRepeatedWithCare: a deletion of unknown outcome is repeated only
// where it can end no other life.
func TestDeletesAreRepeatedWithCare(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.docs()
	e := w.c.Entity("docs", "d")
	_, err := e.Put(ctx, note{})
	require.NoError(t, err)
	w.next(unheard)
	require.ErrorIs(t, e.Delete(ctx), client.OutcomeUnknown)
	require.Len(t, w.requests(), 1)
	require.ErrorIs(t, e.Delete(ctx), client.NoSuchEntity)
	ack, err := e.Put(ctx, note{})
	require.NoError(t, err)
	w.next(unheard)
	require.NoError(t, e.IfMatch(ack.ETag()).Delete(ctx), "it is gone, and that was asked for")
	require.Len(t, w.requests(), 2)
	ack, err = e.Put(ctx, note{})
	require.NoError(t, err)
	w.next(says(503, `{"status":503,"code":"store_unavailable"}`, "Retry-After", "0"))
	require.NoError(t, e.Discard(ctx), "nothing was done the first time")
	require.ErrorIs(t, e.IfMatch(ack.ETag()).Delete(ctx), client.NoSuchEntity)
}

// TestRetryAfter: the server's word on when to come back holds, unless the
// context ends before.
func TestRetryAfter(t *testing.T) {
	w := newWorld(t)
	w.next(says(503, `{"status":503,"code":"overloaded"}`, "Retry-After", "3600"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := w.c.Pod(ctx, "gauges")
	require.ErrorIs(t, err, client.Overloaded)
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, time.Hour, e.RetryAfter)
	require.NoError(t, ctx.Err(), "it did not wait")
}

// TestNothingListens: a server that is away is asked again, and the error says
// that nothing was sent.
func TestNothingListens(t *testing.T) {
	c, err := client.New("http://127.0.0.1:1", client.Config{Pause: time.Microsecond, MaxPause: time.Microsecond})
	require.NoError(t, err)
	_, err = c.Entity("gauges", "g").Send(t.Context(), "add", add{1})
	require.Error(t, err)
	require.NotErrorIs(t, err, client.OutcomeUnknown)
	require.ErrorContains(t, err, "POST /v1/pods/gauges/entities/g/messages/add")
}

// TestContexts: the context ends everything, and its time is the server's, too.
func TestContexts(t *testing.T) {
	w := newWorld(t)
	g := w.c.Entity("gauges", "g")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := g.Send(ctx, "add", add{1})
	require.NoError(t, err)
	asked, err := url.ParseQuery(w.requests()[0].URL.RawQuery)
	require.NoError(t, err)
	d, err := time.ParseDuration(asked.Get("timeout"))
	require.NoError(t, err)
	require.LessOrEqual(t, d, 5*time.Second)

	_, err = g.Timeout(10*time.Millisecond).Send(t.Context(), "stall", nil)
	require.ErrorIs(t, err, client.OutcomeUnknown)

	stopped, stop := context.WithCancel(t.Context())
	w.next(func(rw http.ResponseWriter, r *http.Request, api http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // without which nobody sees that the client goes
		stop()
		<-r.Context().Done()
	})
	_, err = g.Send(stopped, "add", add{1})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, client.OutcomeUnknown)
	require.Len(t, w.requests(), 1)
}

func TestWithKey(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	g := w.c.Entity("gauges", "g").WithKey("mine")
	first, err := g.Send(ctx, "add", add{1})
	require.NoError(t, err)
	again, err := g.Send(ctx, "add", add{1})
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = g.Send(ctx, "add", add{2})
	require.ErrorIs(t, err, client.MessageIDReused)
}

func TestETags(t *testing.T) {
	for text, want := range map[string]client.ETag{"7-3": {Life: 7, Revision: 3}, `"7-3"`: {Life: 7, Revision: 3}} {
		got, err := client.ParseETag(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "7", `"7-3`, "a-b", "-1-2", `W/"7-3"`} {
		_, err := client.ParseETag(bad)
		require.Error(t, err, bad)
	}
}

// TestErrors: an error says what was asked and what came.
func TestErrors(t *testing.T) {
	w := newWorld(t)
	_, err := client.Get[note](t.Context(), w.c.Entity("gauges", "x"))
	require.ErrorContains(t, err, "GET /v1/pods/gauges/entities/x: 404 no_such_entity: ")
	require.False(t, errors.Is(&client.Error{}, client.Code("")))
	w.next(says(418, strings.Repeat("x", 100)))
	_, err = client.Get[note](t.Context(), w.c.Entity("gauges", "x"))
	require.ErrorContains(t, err, "GET /v1/pods/gauges/entities/x: 418 I'm a teapot, which is not how a twinsrv server answers; is the address right?")
}
