package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// escapeAll percent-encodes every byte.
func escapeAll(name string) string {
	var b strings.Builder
	for i := range len(name) {
		fmt.Fprintf(&b, "%%%02x", name[i])
	}
	return b.String()
}

func TestNamesRoundTrip(t *testing.T) {
	w := newWorld(t)
	w.docs()
	names := []string{
		"a", "a/b", "a%2Fb", "a%252Fb", "%2F", "/", "//", "a//b", "%", "%00", "%FF", "a b", " ", "+", "a+b", "con", "nul", "CON", "con.json",
		"...", ".a", "../x", "./", "e\u0301tat", "\u00e9tat", "🏢", "état/🏢?#", "state", "messages", "entities", "?", "#", "a?b=c", "&", ";", ":", "*",
		"\n", "\t", "\x7f", "\x01", `"`, `\`, `a"/state`, `<b>`, "-", "null", "0", strings.Repeat("x", 256), strings.Repeat("é", 128), strings.Repeat("/", 256),
		"tower-3-21", "A", "$deadletters", "\ufeff", "\u202e", "\u2028",
	}
	for _, name := range names {
		target := "/v1/pods/docs/entities/" + url.PathEscape(name)
		made := w.put(target+"/state", mustJSON(map[string]string{"me": name})).is(201)
		require.Equal(t, target, made.header.Get("Location"))
	}
	listed := map[string]bool{}
	for next := ""; ; {
		var page struct {
			Items []struct {
				Name  string
				State struct{ Me string }
			}
			Next string
		}
		w.get("/v1/pods/docs/entities?limit=7&cursor=" + next).is(200).into(&page)
		for _, i := range page.Items {
			require.Equal(t, i.Name, i.State.Me)
			require.False(t, listed[i.Name])
			listed[i.Name] = true
		}
		if next = page.Next; next == "" {
			break
		}
	}
	require.Len(t, listed, len(names), "no two names are one entity")
	for _, name := range names {
		for _, escaped := range []string{url.PathEscape(name), escapeAll(name)} {
			var e struct {
				Name  string
				State struct{ Me string }
			}
			w.get("/v1/pods/docs/entities/" + escaped).is(200).into(&e)
			require.Equal(t, name, e.Name)
			require.Equal(t, name, e.State.Me)
			require.JSONEq(t, mustJSON(map[string]string{"me": name}), w.get("/v1/pods/docs/entities/"+escaped+"/state").body)
			w.post("/v1/pods/docs/entities/"+escaped+"/messages/merge", `{}`).is(200)
			w.patch("/v1/pods/docs/entities/"+escaped+"/state", `{}`).is(200)
		}
	}
	for i, name := range names {
		w.delete("/v1/pods/docs/entities/" + escapeAll(name)).is(204)
		if i+1 < len(names) {
			w.get("/v1/pods/docs/entities/" + url.PathEscape(names[i+1])).is(200)
		}
	}
}

func TestBadNames(t *testing.T) {
	w := newWorld(t)
	w.docs()
	for escaped, rule := range map[string]string{
		"": "empty", "%00": "U+0000", "a%00b": "U+0000", "%FF": "UTF-8", "%C3%28": "UTF-8", "%ED%A0%80": "UTF-8",
		"%2E%2E": `\"..\"`, "..": `\"..\"`, "%2e": `\".\"`, ".": `\".\"`,
		strings.Repeat("x", 257): "256 bytes", strings.Repeat("%F0%9F%8F%A2", 65): "256 bytes",
	} {
		at := "/v1/pods/docs/entities/" + escaped
		for _, a := range []answer{
			w.get(at), w.delete(at), w.get(at + "/state"), w.put(at+"/state", `{}`), w.patch(at+"/state", `{}`), w.post(at+"/messages/merge", `{}`),
		} {
			require.Contains(t, a.is(400, "bad_name").body, rule)
		}
	}
	for _, escaped := range []string{"", "UP", "-a", "a%20b", "%2E%2E", "..", "a%2Fb", "a%00", "%FF", "$pods", "%C3%A9", strings.Repeat("a", 65)} {
		at := "/v1/pods/" + escaped
		for _, a := range []answer{
			w.get(at), w.put(at, `{"type":"document"}`), w.delete(at), w.get(at + "/entities"), w.get(at + "/entities/a"), w.put(at+"/entities/a/state", `{}`),
		} {
			a.is(400, "bad_name")
		}
	}
	require.Equal(t, `{"items":[]}`, w.get("/v1/pods/docs/entities").body)
}

// Bytes that no client should send bare: the server takes them as they are, and
// an escaped slash beside them stays a part of the name.
func TestBareBytes(t *testing.T) {
	w := newWorld(t)
	w.docs()
	conn, err := net.Dial("tcp", w.srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func(method, target, body string) (int, string) {
		_, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, target, len(body), body)
		require.NoError(t, err)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		var e struct{ Name, Code string }
		_ = json.NewDecoder(resp.Body).Decode(&e)
		return resp.StatusCode, e.Name + e.Code
	}
	for bare, name := range map[string]string{`a"%2Fstate`: `a"/state`, `{x}%2F`: `{x}/`, `|%25`: `|%`, `é%2Fstate`: "é/state", `^`: "^", `a;b=c`: "a;b=c", `@`: "@"} {
		status, _ := ask("PUT", "/v1/pods/docs/entities/"+bare+"/state", `{}`)
		require.Equal(t, 201, status, bare)
		status, got := ask("GET", "/v1/pods/docs/entities/"+url.PathEscape(name), "")
		require.Equal(t, 200, status, bare)
		require.Equal(t, name, got)
	}
	for target, code := range map[string]string{
		"//v1/pods": "not_found", "/v1/pods/docs/../docs": "not_found", "/v1/pods/docs/entities/a/../b": "not_found", "/v1/pods/docs//entities": "not_found",
		"/v1/pods/docs/entities//state": "bad_name", "/v1/pods/../entities": "bad_name", "/%761/pods": "not_found",
		"/v1/pods/docs/entities/%F0": "bad_name",
	} {
		_, got := ask("GET", target, "")
		require.Equal(t, code, got, target)
	}
	status, _ := ask("GET", "http://localhost/v1/pods", "")
	require.Equal(t, 200, status, "a target in the absolute form")
	status, _ = ask("OPTIONS", "*", "")
	require.Equal(t, 200, status, "answered by net/http")
}

// Any bytes as a name round-trip, or are refused; never a fault of the server,
// never another entity.
func TestAnyNameRoundTrips(t *testing.T) {
	w := newWorld(t)
	w.docs()
	seen := map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		name := string(rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 300),
			rapid.SliceOfN(rapid.SampledFrom([]byte("/%2F.+ a\x00")), 0, 12),
		).Draw(rt, "name"))
		if rapid.Bool().Draw(rt, "text") {
			name = rapid.String().Draw(rt, "string")
		}
		escape := rapid.SampledFrom([]func(string) string{url.PathEscape, escapeAll}).Draw(rt, "escape")
		at := "/v1/pods/docs/entities/" + escape(name)
		valid := len(name) > 0 && len(name) <= 256 && name != "." && name != ".." && utf8.ValidString(name) && !strings.Contains(name, "\x00")
		made := w.put(at+"/state", mustJSON(map[string]string{"me": name}))
		if !valid {
			made.is(400, "bad_name")
			w.get(at).is(400, "bad_name")
			return
		}
		want := 201
		if seen[name] {
			want = 200
		}
		made.is(want)
		seen[name] = true
		var e struct {
			Name  string
			State struct{ Me string }
		}
		w.get(at).is(200).into(&e)
		require.Equal(t, name, e.Name)
		require.Equal(t, name, e.State.Me)
	})
}

// FuzzPath sends any path: it gets an answer, and never a fault of the server.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/", "//", "/v1/pods/docs/entities/a%2Fb/state", "/v1/pods/%2e%2e", "/v1/pods/docs/entities/%00/messages/%FF", "/v1/pods/-/entities/-", "/v1/pods/docs/entities/a?limit=x", "*"} {
		f.Add(seed)
	}
	w := newWorld(f)
	w.docs()
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip("net/http refuses it")
		}
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost, http.MethodPatch} {
			rec := newRecorder()
			r, err := http.NewRequest(method, "http://localhost/", body(`{"type":"document"}`))
			require.NoError(t, err)
			r.URL, r.RequestURI = u, target
			r.Header.Set("Content-Type", "application/json")
			w.api.ServeHTTP(rec, r)
			require.Less(t, rec.Code, 500, "%s %s: %s", method, target, rec.Body)
		}
	})
}

func mustJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
