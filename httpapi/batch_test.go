package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

// batch sends messages, each of which is the JSON of one.
func (w *world) batch(query string, items ...string) (r httpapi.BatchResult) {
	w.t.Helper()
	w.post("/v1/batch"+query, "["+strings.Join(items, ",")+"]").is(200).into(&r)
	require.Len(w.t, r.Items, len(items))
	return r
}

func codeOf(a httpapi.BatchAnswer) httpapi.Code {
	if a.Problem == nil {
		return ""
	}
	return a.Problem.Code
}

// parsed is a message that tells when it is parsed, which it is before it is sent.
type parsed struct{}

type parsedHook struct{ f func() }

var onParsed atomic.Pointer[parsedHook]

func (parsed) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

func (*parsed) UnmarshalJSON([]byte) error {
	if h := onParsed.Load(); h != nil {
		h.f()
	}
	return nil
}

// telling starts a pod whose message calls f when it is parsed.
func (w *world) telling(f func()) {
	w.t.Helper()
	onParsed.Store(&parsedHook{f})
	w.t.Cleanup(func() { onParsed.Store(nil) })
	_, err := pod.Start(w.pods, entity.Type[gauge]{
		Name:     "telling",
		Handlers: entity.Handlers[gauge]{"parsed": entity.On(func(_ *entity.Context, g *gauge, _ parsed) error { g.Total++; return nil })},
	})
	require.NoError(w.t, err)
}

// A batch ends with its time: what was not sent by then is not sent any more, and
// has an answer that says so.
func TestBatchEndsWithItsTime(t *testing.T) {
	const many = 1000
	w := newWorld(t)
	sent := 0
	w.telling(func() { // takes all the time that the whole batch has
		sent++
		ctx, cancel := w.sys.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		<-ctx.Done()
	})
	items := make([]string, many)
	for i := range items {
		items[i] = fmt.Sprintf(`{"pod":"telling","name":"n%d","type":"parsed","body":{}}`, i)
	}
	r := w.batch("?timeout=1ms", items...)
	require.Less(t, sent, many)
	for i, a := range r.Items[sent:] {
		require.Equal(t, []any{504, httpapi.CodeTimedOut}, []any{a.Status, codeOf(a)}, i)
		require.Contains(t, a.Problem.Detail, "nothing was changed")
	}
	w.get(fmt.Sprintf("/v1/pods/telling/entities/n%d", many-1)).is(404, "no_such_entity")
}

// Nothing more is sent for a client that has gone.
func TestBatchEndsWithItsClient(t *testing.T) {
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	w.telling(leave)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/batch", strings.NewReader(
		`[{"pod":"telling","name":"a","type":"parsed","body":{}},{"pod":"gauges","name":"b","type":"add","body":{"n":1}}]`))
	r.Header.Set("Content-Type", "application/json")
	rec := newRecorder()
	w.api.ServeHTTP(rec, r)
	var result httpapi.BatchResult
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &result))
	for _, a := range result.Items {
		require.Equal(t, httpapi.CodeTimedOut, codeOf(a))
	}
	w.get("/v1/pods/telling/entities/a").is(404, "no_such_entity")
	w.get("/v1/pods/gauges/entities/b").is(404, "no_such_entity")
}

// What the different conditions of a batch cost is bounded; equal ones cost once.
func TestConditionsOfABatchAreBounded(t *testing.T) {
	w := newWorld(t)
	w.docs()
	item := func(n, of int) string {
		text := fmt.Sprintf("state.n == %d || state.text == '", n)
		text += strings.Repeat("x", of-len(text)-1) + "'"
		return fmt.Sprintf(`{"pod":"docs","name":"d%d","type":"merge","body":{},"if":{"condition":%q}}`, n, text)
	}
	var equal, different []string
	for n := range 20 {
		equal = append(equal, strings.Replace(item(0, 8000), "d0", fmt.Sprint("d", n), 1))
		different = append(different, item(n, 8000))
	}
	for _, a := range w.batch("", equal...).Items {
		require.Equal(t, httpapi.CodeConditionFailed, codeOf(a))
	}
	r := w.batch("", append(different, item(0, 8000), item(21, 1000), item(22, filter.MaxText+1), `{"pod":"docs","name":"e","type":"merge","body":{}}`)...)
	for n, a := range r.Items[:20] {
		if n < (64<<10)/8000 {
			require.Equal(t, httpapi.CodeConditionFailed, codeOf(a), n)
			continue
		}
		require.Equal(t, []any{422, httpapi.CodeTooCostly}, []any{a.Status, codeOf(a)}, n)
		require.Contains(t, a.Problem.Detail, "65536 bytes together")
	}
	require.Equal(t, httpapi.CodeConditionFailed, codeOf(r.Items[20]), "it is there already")
	require.Equal(t, httpapi.CodeConditionFailed, codeOf(r.Items[21]), "there is room for it")
	require.Equal(t, httpapi.CodeBadFilter, codeOf(r.Items[22]), "as it would be alone")
	require.Equal(t, 200, r.Items[23].Status)
}

// A message is as long as it may be by itself, in a batch as well.
func TestMessagesOfABatchAreAsLongAsOthers(t *testing.T) {
	const most = 10_000
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.MaxBody = most })
	w.docs()
	text := func(n int) string { return `{"s":"` + strings.Repeat("x", n-len(`{"s":""}`)) + `"}` }
	item := func(name, body string) string {
		return fmt.Sprintf(`{"pod":"docs","name":%q,"type":"merge","body":%s}`, name, body)
	}
	alone := w.post("/v1/pods/docs/entities/d/messages/merge", text(most+1)).is(413, "body_too_large")
	r := w.batch("", item("a", text(most)), item("b", text(most+1)), item("c", `{}`), `{"pod":"docs","name":"e","type":"merge","body":{},"more":`+text(most+64<<10)+`}`)
	require.Equal(t, []int{200, 413, 200, 413}, []int{r.Items[0].Status, r.Items[1].Status, r.Items[2].Status, r.Items[3].Status})
	var as httpapi.Problem
	alone.into(&as)
	require.Equal(t, as, *r.Items[1].Problem)
	w.get("/v1/pods/docs/entities/b").is(404, "no_such_entity")
}
