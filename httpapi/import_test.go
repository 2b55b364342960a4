package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func (w *world) bring(body string) []httpapi.ImportedLine {
	w.t.Helper()
	var out []httpapi.ImportedLine
	for line := range strings.Lines(w.post("/v1/import", body, "Content-Type", lines).is(200).body) {
		var l httpapi.ImportedLine
		require.NoError(w.t, json.Unmarshal([]byte(line), &l))
		out = append(out, l)
	}
	return out
}

// A line is one thing: what it has beside that would be passed over, and is refused.
func TestImportOfLinesThatAreTwoThings(t *testing.T) {
	w := newWorld(t)
	w.put("/v1/pods/docs", `{"type":"document"}`).is(201)
	for _, line := range []string{
		`{"pod":"fresh","definition":{"type":"document"},"name":"a","state":{"n":1}}`,
		`{"pod":"fresh","definition":{"type":"document"},"state":null}`,
		`{"pod":"fresh","definition":{"type":"document"},"quarantined":"it cannot be read"}`,
		`{"end":true,"pod":"docs","name":"a","state":{"n":1}}`,
		`{"end":true,"pod":"fresh","definition":{"type":"document"}}`,
		`{"pod":"docs","name":"a","state":{"n":1},"quarantined":"it cannot be read"}`,
	} {
		got := w.bring(line + `
{"pod":"docs","name":"b","state":{}}
{"end":true,"entities":1}`)
		require.Len(t, got, 3, line)
		require.Equal(t, []any{1, 400, httpapi.CodeMalformed}, []any{got[0].Line, got[0].Status, got[0].Code}, line)
		require.Less(t, got[1].Status, 300, line)
		require.Equal(t, []int{2, 1}, []int{got[2].Lines, got[2].Failed}, line)
	}
	w.get("/v1/pods/fresh").is(404)
	w.get("/v1/pods/docs/entities/a").is(404)
}

// A pod that is there with another definition keeps it, and the import says so.
func TestImportOfAnotherDefinition(t *testing.T) {
	w := newWorld(t)
	const definition = `{"type":"document","durability":"async:500ms","create":{"by":["set"],"names":"a.*"},"schema":{"type":"object","minProperties":0},"index":["state.n"]}`
	line := func(pod, definition string) string { return `{"pod":"` + pod + `","definition":` + definition + "}\n" }
	w.put("/v1/pods/docs", definition).is(201)
	w.put("/v1/pods/plain", `{"type":"document"}`).is(201)
	exported, _, _ := strings.Cut(w.get("/v1/export?pods=gauges").is(200).body, "\n")
	for _, same := range []string{
		line("docs", definition), line("docs", strings.Replace(definition, "500ms", "0.5s", 1)), line("docs", strings.Replace(definition, `"type":"object","minProperties":0`, `"minProperties":0, "type":"object"`, 1)),
		line("plain", `{"type":"document"}`), line("plain", `{"type":"document","durability":"sync","create":{"by":["set","merge"]}}`), exported,
	} {
		require.Equal(t, 200, w.bring(same)[0].Status, same)
	}
	for part, other := range map[string]string{
		"durability differs": strings.Replace(definition, "500ms", "501ms", 1), "create differs": strings.Replace(definition, `"set"`, `"merge"`, 1),
		"schema differs": strings.Replace(definition, `"minProperties":0`, `"minProperties":0,"maxProperties":9`, 1), "index differs": strings.Replace(definition, "state.n", "state.m", 1),
		"type and durability": `{"type":"typed","durability":"sync","create":{"by":["set"],"names":"a.*"},"schema":{"minProperties":0,"type":"object"},"index":["state.n"]}`,
		"create and schema":   `{"type":"document","durability":"async:500ms","index":["state.n"]}`,
	} {
		got := w.bring(line("docs", other) + `{"pod":"docs","name":"a1","state":{"n":1}}`)
		require.Equal(t, []any{409, httpapi.CodePodExists}, []any{got[0].Status, got[0].Code}, other)
		require.Contains(t, got[0].Detail, part)
		require.Less(t, got[1].Status, 300, "the lines behind it are tried")
		require.Equal(t, 1, got[2].Failed)
	}
	require.Equal(t, 422, w.bring(line("docs", `{"type":"document","schema":{"type":"nonsense"}}`))[0].Status)
	require.Contains(t, w.get("/v1/pods/docs").is(200).body, `"async:500ms"`)
}

// deaf is an answer that nobody reads before the request is whole. What has a
// deadline by then fails; what has none waits.
type deaf struct {
	*httptest.ResponseRecorder
	reads chan struct{}

	mu    sync.Mutex
	until time.Time
}

func (d *deaf) SetReadDeadline(time.Time) error { return nil }

func (d *deaf) SetWriteDeadline(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
	return nil
}

func (d *deaf) timed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.until.IsZero()
}

func (d *deaf) Write(b []byte) (int, error) {
	select {
	case <-d.reads:
	default:
		if d.timed() {
			return 0, os.ErrDeadlineExceeded
		}
		<-d.reads
	}
	return d.ResponseRecorder.Write(b)
}

// whole is a body whose sender begins to read when it has sent all.
type whole struct {
	io.Reader
	reads chan struct{}
}

func (w *whole) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if err != nil {
		close(w.reads)
	}
	return n, err
}

// A client that sends everything before it reads anything comes to its end,
// however long that takes: what memory has no room for is told together, and what
// cannot be told together is counted.
func TestImportOfAClientThatDoesNotRead(t *testing.T) {
	w := newWorld(t)
	w.docs()
	const many = 40_000
	for _, c := range []struct {
		name, lines string
		together    bool
	}{
		{"alike", strings.Repeat("x\n", many), true},
		{"different", strings.Repeat("x\n"+`{"pod":"none","name":"a","state":{}}`+"\n", many/2), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reads := make(chan struct{})
			rec := &deaf{ResponseRecorder: newRecorder(), reads: reads}
			r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/import", &whole{strings.NewReader(`{"pod":"docs","name":"a","state":{}}` + "\n" + c.lines), reads})
			r.Header.Set("Content-Type", lines)
			require.NotPanics(t, func() { w.api.ServeHTTP(rec, r) })
			require.Less(t, rec.Body.Len(), 8<<20)
			told, together, before := 0, 0, 0
			for _, l := range linesOf[httpapi.ImportedLine](t, rec.Body.String()) {
				if l.End {
					require.Equal(t, many+1, l.Lines)
					require.Equal(t, many, l.Failed)
					require.Equal(t, l.Lines, told+l.Untold)
					require.Equal(t, c.together, l.Untold == 0)
					require.Equal(t, c.together, together > 0)
					return
				}
				require.Greater(t, l.Line, before)
				before = max(l.Line, l.Through)
				if told++; l.Through > 0 {
					told += l.Through - l.Line
					together++
				}
				require.Equal(t, l.Line > 1, l.Code != "" && l.Detail != "")
			}
			require.Fail(t, "there is no end")
		})
	}
}

// The lines that are on their way are bounded by the memory that they take, too; a
// single one may take more.
func TestImportOfLargeLines(t *testing.T) {
	w := newWorld(t)
	w.docs()
	written := make(chan struct{})
	release := sync.OnceFunc(func() { close(written) })
	t.Cleanup(release)
	w.store.OnUnits(func(u persist.Unit) bool {
		if u.Key.Pod == "docs" {
			<-written
		}
		return false
	}, persisttest.FailBefore)
	w.api.SetImportWindow(2000) // a line with its two objects takes 900
	body := &eachLine{most: 100}
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/import", body)
	r.Header.Set("Content-Type", lines)
	rec := newRecorder()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.api.ServeHTTP(rec, r)
	}()
	// Two fit, and the third one waits for room.
	require.Eventually(t, func() bool { return body.given() == 3 }, eventually, tick)
	require.Never(t, func() bool { return body.given() > 3 }, 300*time.Millisecond, tick)
	release()
	<-ended
	require.Contains(t, rec.Body.String(), `{"end":true,"lines":100}`)
	w.api.SetImportWindow(1)
	require.Equal(t, httpapi.ImportedLine{End: true, Lines: 2}, w.bring(strings.Repeat(`{"pod":"docs","name":"a","state":{}}`+"\n", 2))[2])
}

// What the store could not take is refused without being parsed; white space and
// escapes do not count.
func TestImportOfLinesThatAreTooLarge(t *testing.T) {
	const most = 1000
	w := newWorld(t, func(_ *httpapi.Config, c *pod.Config) { c.MaxState = most })
	w.docs()
	line := func(name, state string) string {
		return fmt.Sprintf(`{"pod":"docs","name":%q,"state":%s}`, name, state)
	}
	const far = most + 128<<10
	list := func(element, between string, n int) string {
		return `{"a":[` + strings.TrimSuffix(strings.Repeat(element+between, n), between) + `]}`
	}
	got := w.bring(strings.Join([]string{
		line("parsed", list("0", ",", most)),
		line("not-parsed", list("0", ",", far)),
		"[" + strings.Repeat("x", far), // of which nobody sees that it is no JSON
		line("wide", list("0", ","+strings.Repeat(" \t", far/100), 100)),
		line("escaped", `{"s":"`+strings.Repeat(`\u0061`, most-len(`{"s":""}`))+`"}`),
		line("exact", `{"s":"`+strings.Repeat("a", most-len(`{"s":""}`))+`"}`),
	}, "\n"))
	var status []int
	for _, l := range got[:6] {
		status = append(status, l.Status)
	}
	require.Equal(t, []int{422, 422, 422, 201, 201, 201}, status, "%v", got)
	require.Equal(t, []httpapi.Code{httpapi.CodeStoreRefused, httpapi.CodeStoreRefused, httpapi.CodeStoreRefused}, []httpapi.Code{got[0].Code, got[1].Code, got[2].Code})
	require.Equal(t, "parsed", got[0].Name)
	require.Empty(t, got[1].Name)
}

// eachLine are lines of an import of about 40 bytes, each given alone.
type eachLine struct {
	most int
	n    atomic.Int64
	rest []byte
}

func (l *eachLine) given() int { return int(l.n.Load()) }

func (l *eachLine) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.given() == l.most {
			return 0, io.EOF
		}
		l.rest = fmt.Appendf(nil, `{"pod":"docs","name":"l%02d","state":{}}`+"\n", l.n.Add(1))
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
