package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A page that does what it must not is found out: this is what all other tests
// rely on.
func TestTheWitnessHearsWhatAPageDoesWrong(t *testing.T) {
	t.Parallel()
	chromium(t)
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	var script atomic.Value
	site := http.NewServeMux()
	site.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><p>text</p><script src="script.js"></script>`)
	})
	site.HandleFunc("GET /script.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprintf(w, "%s\n;window.ended = true", script.Load())
	})
	site.HandleFunc("GET /refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	s := httptest.NewServer(site)
	defer s.Close()

	for _, c := range []struct {
		name, script string
		wrong        string // empty when nothing is
		prepare      func(b *tab)
	}{
		{name: "nothing", script: `console.log("well"); fetch("/")`},
		{name: "an error on the console", script: `console.error("bad", 7)`, wrong: "bad 7"},
		{name: "a warning on the console", script: `console.warn("odd")`, wrong: "odd"},
		{name: "an exception", script: `setTimeout(() => { throw new Error("thrown") }); setTimeout(() => { window.ended = true }, 50)`, wrong: "thrown"},
		{name: "a rejection that nobody takes", script: `Promise.reject(new Error("rejected"))`, wrong: "rejected"},
		{name: "style in an attribute", script: `document.querySelector("p").setAttribute("style", "color: red")`, wrong: "style-src"},
		{name: "eval", script: `try { eval("1") } catch {}`, wrong: "Content-Security-Policy"},
		{name: "another origin", script: `fetch("` + elsewhere.URL + `").catch(() => {})`, wrong: elsewhere.URL},
		{name: "a picture of another origin", script: `new Image().src = "` + elsewhere.URL + `/a.png"`, wrong: "img-src"},
		{name: "a refused request", script: `fetch("/refused")`, wrong: "status of 409"},
		{name: "a refused request that was meant", script: `fetch("/refused")`, prepare: func(b *tab) { b.allow(http.StatusConflict, "/refused") }},
		{name: "one that was meant with another status", script: `fetch("/refused")`, wrong: "status of 409", prepare: func(b *tab) { b.allow(http.StatusNotFound, "/refused") }},
		{name: "a refusal while the server is said to be gone", script: `fetch("/refused")`, wrong: "status of 409", prepare: func(b *tab) { b.gone() }},
	} {
		script.Store(`window.ended = false;` + c.script)
		b := newTab(t, s.URL)
		if c.prepare != nil {
			c.prepare(b)
		}
		b.navigate(s.URL + "/")
		b.until(`window.ended`)
		if c.wrong == "" {
			run[any](b, `new Promise(done => setTimeout(done, 100))`) // for what may still come
			assert.Empty(t, b.faults(), c.name)
			continue
		}
		b.wait(func() (bool, string) { return len(b.faults()) > 0, c.name + " was not heard" })
		assert.Contains(t, fmt.Sprint(b.faults()), c.wrong, c.name)
	}

	// A server that is gone is found out as well, unless the test says so.
	b := newTab(t, s.URL)
	script.Store("")
	b.navigate(s.URL + "/")
	b.until(`window.ended`)
	s.Close()
	back := b.gone()
	run[any](b, `fetch("/gone").catch(() => null)`)
	run[any](b, `new Promise(done => setTimeout(done, 100))`)
	assert.Empty(t, b.faults())
	back()
	run[any](b, `new Promise(done => setTimeout(done, 10)).then(() => fetch("/still")).catch(() => null)`)
	b.wait(func() (bool, string) { return len(b.faults()) > 0, "a server that is gone was not missed" })
	assert.Contains(t, fmt.Sprint(b.faults()), "/still")
}

// A page that is hard to use is found out as well.
func TestAPageThatIsHardToUseIsFoundOut(t *testing.T) {
	t.Parallel()
	chromium(t)
	var body atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><body style="background:#fff">`, body.Load())
	}))
	defer s.Close()
	b := newTab(t, s.URL)
	for _, c := range []struct{ body, script, wrong string }{
		{`<p style="color:#767676">well</p>`, unreadable, ""},
		{`<p style="color:#888">faint</p>`, unreadable, "faint"},
		{`<p style="color:#888; font-size:24px">large</p>`, unreadable, ""},
		{`<p style="color:#000; opacity:0.3">through</p>`, unreadable, "through"},
		{`<div style="background:#000"><p style="color:#333">dark</p></div>`, unreadable, "dark"},
		{`<p style="color:#eee" hidden>hidden</p><button disabled>off</button>`, unreadable, ""},
		{`<svg><text y="20" fill="#ccc">axis</text></svg>`, unreadable, "axis"},
		{`<button>ok</button><label>l <input></label><a href="#">a</a>`, nameless, ""},
		{`<button></button>`, nameless, "<button>"},
		{`<input placeholder="no label">`, nameless, "<input"},
		{`<select><option>1</option></select>`, nameless, "<select>"},
		{`<p>narrow</p>`, wide, ""},
		{`<p id="far" style="width:2000px">wide</p>`, wide, "far"},
	} {
		body.Store(c.body)
		b.navigate(s.URL)
		found := run[[]string](b, c.script)
		if c.wrong == "" {
			assert.Empty(t, found, c.body)
			continue
		}
		assert.Contains(t, fmt.Sprint(found), c.wrong, c.body)
	}
}
