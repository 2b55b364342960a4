package webpage_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/httpapi/webpage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func page(files map[string]string) *webpage.Page {
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return webpage.New(folder)
}

func ask(p *webpage.Page, name string, headers ...string) (*httptest.ResponseRecorder, bool) {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/any", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	found := p.Serve(w, r, name)
	return w, found
}

func TestFilesAreServedWhole(t *testing.T) {
	p := page(map[string]string{"a.js": "aa", "b.css": "bb", "below/c.js": "cc"})
	require.Equal(t, []string{"a.js", "b.css"}, p.Names())
	w, found := ask(p, "a.js", "Range", "bytes=0-0", "If-Match", `"x"`)
	require.True(t, found)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "aa", w.Body.String())
	for _, name := range []string{"", ".", "c.js", "below/c.js", "below", "A.JS"} {
		w, found := ask(p, name)
		require.False(t, found, name)
		require.Empty(t, w.Header(), name)
	}
}

func TestATagIsOfWhatAFileSays(t *testing.T) {
	one, _ := ask(page(map[string]string{"a.js": "aa"}), "a.js")
	tag := one.Header().Get("ETag")
	same, _ := ask(page(map[string]string{"a.js": "aa"}), "a.js", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, same.Code)
	require.Empty(t, same.Body.String())
	other, _ := ask(page(map[string]string{"a.js": "ab"}), "a.js", "If-None-Match", tag)
	require.Equal(t, http.StatusOK, other.Code)
	require.NotEqual(t, tag, other.Header().Get("ETag"))
}

func TestUnknownTypesAreNoPage(t *testing.T) {
	require.Panics(t, func() { page(map[string]string{"a.exe": ""}) })
}
