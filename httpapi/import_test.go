package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
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

// A client that sends everything before it reads anything comes to its end: what
// memory has no room for is told together.
func TestImportOfAClientThatDoesNotRead(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.api.SetPatience(5 * time.Second)
	c, err := net.Dial("tcp", w.srv.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	const many = 60_000
	bad := "x" + strings.Repeat(" ", 300) + "\n"
	good := `{"pod":"docs","name":"a","state":{}}` + "\n"
	out := bufio.NewWriterSize(c, 64<<10)
	_, err = fmt.Fprintf(out, "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", lines, 2*len(good)+many*len(bad))
	require.NoError(t, err)
	for _, text := range []string{good, good} {
		_, err = out.WriteString(text)
		require.NoError(t, err)
	}
	for range many {
		_, err = out.WriteString(bad)
		require.NoError(t, err)
	}
	require.NoError(t, out.Flush())
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	next, together := 1, 0
	in := bufio.NewReader(resp.Body)
	for {
		text, err := in.ReadBytes('\n')
		require.NoError(t, err)
		var l httpapi.ImportedLine
		require.NoError(t, json.Unmarshal(text, &l))
		if l.End {
			require.Equal(t, httpapi.ImportedLine{End: true, Lines: many + 2, Failed: many}, l)
			break
		}
		require.Equal(t, next, l.Line)
		if l.Line > 2 {
			require.Equal(t, httpapi.CodeMalformed, l.Code)
			require.NotEmpty(t, l.Detail)
		}
		if next = l.Line + 1; l.Through > 0 {
			next, together = l.Through+1, together+1
		}
	}
	require.Equal(t, many+3, next)
	require.Positive(t, together)
	_, err = io.Copy(io.Discard, in)
	require.NoError(t, err)
}

// The lines that are on their way are bounded by their bytes, too.
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
	body := &largeLines{most: 20, text: strings.Repeat("x", 3<<20)}
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/import", body)
	r.Header.Set("Content-Type", lines)
	rec := newRecorder()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.api.ServeHTTP(rec, r)
	}()
	require.Eventually(t, func() bool { return body.given() >= 5 }, eventually, tick)
	require.Never(t, func() bool { return body.given() > 8 }, 300*time.Millisecond, tick)
	release()
	<-ended
	require.Contains(t, rec.Body.String(), `{"end":true,"lines":20}`)
}

// largeLines are lines of an import that are made when they are read.
type largeLines struct {
	most int
	text string
	n    atomic.Int64
	rest []byte
}

func (l *largeLines) given() int { return int(l.n.Load()) }

func (l *largeLines) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.given() == l.most {
			return 0, io.EOF
		}
		l.rest = fmt.Appendf(nil, `{"pod":"docs","name":"l%d","state":{"text":%q}}`+"\n", l.n.Add(1), l.text)
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
