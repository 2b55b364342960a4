package browsertest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// refusing is a proxy before a server that answers the first GET of each of some
// paths as a server does that has too much to do.
func refusing(t *testing.T, s *server, status int, paths ...string) *server {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	left := make(map[string]bool)
	for _, p := range paths {
		left[p] = true
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}, FlushInterval: -1}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refused := left[r.URL.Path] && r.Header.Get("Accept") == "application/json"
		if refused {
			delete(left, r.URL.Path)
		}
		mu.Unlock()
		if refused {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return &server{t: t, url: proxy.URL}
}

// A view that is refused once asks again, and then shows what there is and what
// becomes of it.
func TestAViewThatWasRefusedAsksAgain(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"hall":"north"}`)
	const pod = "/v1/pods/machines"
	p := refusing(t, s, http.StatusServiceUnavailable, pod, pod+"/entities/press-7", pod+"/entities", "/v1/deadletters")
	b := blank(t, p)
	b.allow(http.StatusServiceUnavailable, "/v1/")
	b.navigate(p.url + "/" + entityView("machines", "press-7"))
	b.shows(entityView("machines", "press-7"))
	becomes(b, `"north"`, value, "/hall")
	b.until(`!document.querySelector("entity-view button[data-action=edit]").hidden`)
	b.until(`!document.querySelector("entity-view > problem-note").checkVisibility()`)
	if _, err := press.Merge(t.Context(), map[string]string{"hall": "south"}); err != nil {
		t.Fatal(err)
	}
	becomes(b, `"south"`, value, "/hall")
	b.view(podView("machines"))
	becomes(b, []string{"press-7"}, rows)
	b.view("#/deadletters")
}
