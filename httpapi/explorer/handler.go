package explorer

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/httpapi/webpage"
)

//go:embed static
var static embed.FS

// Root is the path of the page, beside "/"; its files are below.
const Root = "/explorer"

type handler struct{ page *webpage.Page }

// Handler serves the page at "/" and at Root, and its files below Root. It takes
// GET and HEAD. What it refuses it answers with a problem (RFC 9457). It is safe
// for concurrent use.
func Handler() http.Handler {
	folder, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the name is a valid one
	}
	return handler{webpage.New(folder)}
}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "the path takes GET and HEAD")
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, Root+"/")
	if r.URL.Path == "/" || r.URL.Path == Root {
		name = "index.html"
	} else if !below || name == "index.html" { // whose references would lead elsewhere from there
		name = ""
	}
	if !h.page.Serve(w, r, name) {
		refuse(w, http.StatusNotFound, "not_found", "the explorer has no such file; it is at "+Root)
	}
}

// refuse answers with a problem, as all of the API does.
func refuse(w http.ResponseWriter, status int, code, detail string) {
	body, _ := json.Marshal(map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": detail}) // always has JSON
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone if this fails
}
