package explorer_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/httpapi/explorer"
	"github.com/twinsrv/twinsrv/httpapi/webpage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(t *testing.T, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	explorer.Handler().ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// sources are the page's files by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("static")
	require.NoError(t, err)
	files := make(map[string]string)
	for _, e := range entries {
		require.True(t, e.Type().IsRegular(), e.Name())
		data, err := os.ReadFile("static/" + e.Name())
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

func TestThePageAndItsFilesAreServed(t *testing.T) {
	media := map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	}
	for name, text := range sources(t) {
		targets := []string{explorer.Root + "/" + name}
		if name == "index.html" {
			targets = []string{"/", explorer.Root}
		}
		for _, target := range targets {
			w := ask(t, http.MethodGet, target)
			require.Equal(t, http.StatusOK, w.Code, target)
			require.Equal(t, text, w.Body.String())
			h := w.Header()
			require.Equal(t, media[path.Ext(name)], h.Get("Content-Type"), target)
			require.Equal(t, webpage.Policy, h.Get("Content-Security-Policy"))
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
			require.Equal(t, "no-cache", h.Get("Cache-Control"))
			require.NotEmpty(t, h.Get("ETag"))
			head := ask(t, http.MethodHead, target)
			require.Equal(t, h, head.Header())
			require.Empty(t, head.Body.String())
		}
	}
}

func TestNothingElseIsServed(t *testing.T) {
	for _, target := range []string{
		explorer.Root + "/", explorer.Root + "/index.html", explorer.Root + "/static", explorer.Root + "/static/app.js", explorer.Root + "/..", explorer.Root + "/../doc.go",
		explorer.Root + "/none.js", explorer.Root + "/app.js/", explorer.Root + "//app.js", "/app.js", "/index.html", "/x", explorer.Root + "x",
	} {
		w := ask(t, http.MethodGet, target)
		require.Equal(t, http.StatusNotFound, w.Code, target)
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		var p struct{ Code, Detail, Title string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
		require.Equal(t, "not_found", p.Code)
		require.NotEmpty(t, p.Detail)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		w := ask(t, method, "/")
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
}

// Every file that one refers to is there, by a name that leads to it from both of
// the page's addresses and below any prefix, and every file is referred to.
func TestReferencesLeadSomewhere(t *testing.T) {
	files := sources(t)
	used := map[string]bool{"index.html": true}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(files["index.html"], -1) {
		name, below := strings.CutPrefix(m[1], "explorer/")
		require.True(t, below, m[1])
		require.Contains(t, files, name)
		used[name] = true
	}
	imports := regexp.MustCompile(`(?m)(?:\bfrom |^import |\bimport\()"([^"]*)"`)
	sheets := regexp.MustCompile(`(?:@import |url\()"([^"]*)"`)
	for name, text := range files {
		for _, m := range append(imports.FindAllStringSubmatch(text, -1), sheets.FindAllStringSubmatch(text, -1)...) {
			to, here := strings.CutPrefix(m[1], "./")
			require.True(t, here, "%s refers to %s", name, m[1])
			require.Contains(t, files, to, name)
			used[to] = true
		}
	}
	for name := range files {
		require.True(t, used[name], "nothing refers to %s", name)
	}
}

// What the policy refuses is not tried, nor anything that makes code of data.
func TestThePageKeepsToItsPolicy(t *testing.T) {
	namespaces := strings.NewReplacer(`"http://www.w3.org/2000/svg"`, "", `"http://json-schema.org/draft-07/schema#"`, "")
	forbidden := []*regexp.Regexp{
		regexp.MustCompile(`https?://`), regexp.MustCompile(`["'(]//`), regexp.MustCompile(`wss?://`),
		regexp.MustCompile(`(?i)(inner|outer)HTML|insertAdjacentHTML|document\.write|setHTML|createContextualFragment|DOMParser|srcdoc`),
		regexp.MustCompile(`\beval\(|new Function|setTimeout\("|setInterval\("|javascript:`),
		regexp.MustCompile(`(?i)<style|<script>|\sstyle="|\son[a-z]+="|setAttribute\("style"|setAttribute\("on`),
		regexp.MustCompile(`localStorage\.[a-zA-Z]+\([^)]*oken`), regexp.MustCompile(`document\.cookie`),
	}
	for name, text := range sources(t) {
		for _, f := range forbidden {
			require.NotRegexp(t, f, namespaces.Replace(text), name)
		}
	}
	for _, word := range []string{"unsafe", "*", "data:", "blob:"} {
		require.NotContains(t, webpage.Policy, word)
	}
}

// The page stays one that a slow line brings at once, made of modules that can be
// read at a sitting, each of which says what it is.
func TestSizes(t *testing.T) {
	const most, lines = 400 << 10, 300
	all := 0
	for name, text := range sources(t) {
		all += len(text)
		require.LessOrEqual(t, strings.Count(text, "\n"), lines, name)
		require.True(t, strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\n"), "%s ends with one line end", name)
		for i, line := range strings.Split(text, "\n") {
			require.LessOrEqual(t, len(line), 200, "%s:%d", name, i+1)
		}
		switch path.Ext(name) {
		case ".js":
			require.True(t, strings.HasPrefix(text, "// "), "%s begins with a comment that says what it is", name)
		case ".css":
			require.True(t, strings.HasPrefix(text, "/* "), "%s begins with a comment that says what it is", name)
		}
	}
	require.LessOrEqual(t, all, most)
}
