package browsertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proxied is a proxy before a server, which has f answer, or pass on.
func proxied(t *testing.T, s *server, f func(w http.ResponseWriter, r *http.Request, pass http.Handler)) *server {
	t.Helper()
	to, err := url.Parse(s.url)
	require.NoError(t, err)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}, FlushInterval: -1}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(w, r, pass) }))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return &server{t: t, url: proxy.URL}
}

// refusing is a proxy that answers the first GET of each of some paths as a
// server does that has too much to do.
func refusing(t *testing.T, s *server, status int, paths ...string) *server {
	t.Helper()
	var mu sync.Mutex
	left := make(map[string]bool)
	for _, p := range paths {
		left[p] = true
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		assert.Empty(t, left, "these were not asked for")
	})
	return proxied(t, s, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mu.Lock()
		refused := left[r.URL.Path] && r.Header.Get("Accept") == "application/json"
		if refused {
			delete(left, r.URL.Path)
		}
		mu.Unlock()
		if !refused {
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
	})
}

// holding is a proxy that keeps answers, which the server has given already, until
// release. asked waits for the first of them.
func holding(t *testing.T, s *server, which func(r *http.Request) bool) (p *server, asked, release func()) {
	t.Helper()
	first, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p = proxied(t, s, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if !which(r) {
			pass.ServeHTTP(w, r)
			return
		}
		held := httptest.NewRecorder()
		pass.ServeHTTP(held, r)
		once.Do(func() { close(first) })
		<-free
		maps.Copy(w.Header(), held.Header())
		w.WriteHeader(held.Code)
		_, _ = w.Write(held.Body.Bytes())
	})
	asked = func() {
		t.Helper()
		select {
		case <-first:
		case <-time.After(*patience):
			require.FailNow(t, "the page does not ask for what is held")
		}
	}
	release = sync.OnceFunc(func() { close(free) })
	t.Cleanup(release) // before the proxy is closed
	return p, asked, release
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
	_, err := press.Merge(t.Context(), map[string]string{"hall": "south"})
	require.NoError(t, err)
	becomes(b, `"south"`, value, "/hall")
	b.view(podView("machines"))
	becomes(b, []string{"press-7"}, rows)
	b.view("#/deadletters")
}

// The question for a token comes back when it was closed without one.
func TestTheQuestionForATokenCannotBeLost(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("read look-only-2f9c1b\n"), 0o600))
	b := blank(t, twinsrv(t, "--token-file", file))
	b.allow(http.StatusUnauthorized, "/")
	b.navigate(b.origin + "/" + podView("machines"))
	const dialog = `token-dialog dialog`
	b.until(`document.querySelector(%s)?.open`, dialog)
	run[any](b, `void (window.browsertestClosed = 0, document.querySelector(%s).addEventListener("close", () => window.browsertestClosed++))`, dialog)
	run[any](b, `void document.querySelector(%s).close()`, dialog) // as Escape does in a page that nobody has touched yet
	b.until(`window.browsertestClosed == 1 && document.querySelector(%s).open`, dialog)
	b.press(kb.Escape)
	b.write(`token-dialog dialog[open] input[name=token]`, "look-only-2f9c1b")
	b.allow(http.StatusNotFound, "/")
	b.press(kb.Enter)
	b.until(`!document.querySelector(%s).open && document.querySelector("status-bar").dataset.state != "unauthorized"`, dialog)
}

// A scale holds whatever numbers there are.
func TestScalesStayFinite(t *testing.T) {
	t.Parallel()
	b := open(t, twinsrv(t), "/")
	b.until(`document.querySelector("pod-list")`)
	for _, numbers := range []string{"[1.7e308, -1.7e308]", "[1.7976931348623157e308]", "[-1.7976931348623157e308, 0]", "[0, 5e-324]", "[5e-324]", "[1e300, 1.0000000000000002e300]"} {
		becomes(b, true, `(async () => {
			const m = await import("./explorer/scale.js"), n = `+numbers+`;
			const r = m.range(n), y = m.linear(r, [100, 0]);
			return [...r, ...m.ticks(...r, 5), ...n.map(y), ...m.ticks(...r, 5).map(y)].every(Number.isFinite);
		})()`)
	}
}

// What waits over a restart of the server is shown: the letters of before, that
// there was one, and those since, which are counted anew.
func TestDeadLettersThatWaitOverARestartAreShown(t *testing.T) {
	t.Parallel()
	b := explore(t, twinsrv(t), "#/deadletters")
	run[any](b, `void (() => {
		const view = document.querySelector("dead-letters");
		const tell = (from, to) => {
			for (let number = from; number <= to; number++)
				view.told("deadletter", {number, at: "2026-01-31T12:00:00Z", to: "machines/press-7", message: "m", reason: "none"});
		};
		view.stopOrGo();
		tell(1, 50);
		view.told("gap", {reason: "restarted"});
		tell(1, 3);
		view.stopOrGo();
	})()`)
	const first = `[...document.querySelectorAll("dead-letters tbody tr")].slice(0, 6).map(r => r.dataset.number ?? r.dataset.gap)`
	becomes(b, []string{"3", "2", "1", "restarted", "50", "49"}, first)
	// As many may wait that the restart itself is no longer one of them.
	run[any](b, `void (() => {
		const view = document.querySelector("dead-letters");
		view.stopOrGo();
		view.told("gap", {reason: "restarted"});
		for (let number = 1; number <= 600; number++)
			view.told("deadletter", {number, at: "2026-01-31T12:00:00Z", to: "machines/press-7", message: "m", reason: "none"});
		view.stopOrGo();
	})()`)
	becomes(b, []string{"600", "599", "598", "597", "596", "595"}, first)
	becomes(b, 500, `document.querySelectorAll("dead-letters tbody tr").length`)
}

// Of more changes than the page keeps while it reads a state, the newest count.
func TestAStateThatComesLateIsTheNewest(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"n":0}`)
	p, asked, release := holding(t, s, func(r *http.Request) bool { return r.URL.Path == "/v1/pods/machines/entities/press-7" })
	b := open(t, p, "/"+entityView("machines", "press-7"))
	asked()
	const many = 1100
	for n := range many {
		_, err := press.Merge(t.Context(), map[string]int{"n": n + 1})
		require.NoError(t, err)
	}
	release()
	becomes(b, fmt.Sprint(many), value, "/n")
	becomes(b, fmt.Sprint(many+1), `document.querySelector("entity-view").dataset.revision`)
}

// Whoever edits what is deleted meanwhile sees it, loses nothing, and can make it
// again.
func TestADeletionWhileEditingIsAConflict(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"hall":"north"}`)
	b := explore(t, s, entityView("machines", "press-7"))
	b.allow(http.StatusNotFound, "/press-7")
	b.allow(http.StatusPreconditionFailed, "/state")
	b.edit(`{"hall":"west"}`)
	err := press.Delete(t.Context())
	require.NoError(t, err)
	b.until(`document.querySelector("state-editor .notice")?.innerText.includes("deleted")`)
	for _, round := range []string{"back", "make-again"} {
		b.click(save)
		b.until(`document.querySelector("state-editor")?.dataset.state == "conflict"`)
		b.click(`state-conflict button[data-action=` + round + `]`)
		if round == "back" {
			becomes(b, `{"hall":"west"}`, `document.querySelector(%s).value`, editText)
		}
	}
	b.until(`!document.querySelector("state-editor")`)
	becomes(b, `"west"`, value, "/hall")
	require.JSONEq(t, `{"hall":"west"}`, state(t, press))
}

// A chart reads numbers out as they are, and says what it cannot draw.
func TestChartsKeepTheTextOfNumbers(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"n":1e400}`)
	for _, n := range []string{"2.50", "9007199254740997"} {
		_, err := press.Put(t.Context(), json.RawMessage(`{"n":`+n+`}`))
		require.NoError(t, err)
	}
	b := explore(t, s, entityView("machines", "press-7", "history"))
	const chart = `document.querySelector("number-chart[data-path='state.n']")`
	b.until(chart)
	becomes(b, "9007199254740997", chart+`.querySelector("strong")?.innerText`)
	becomes(b, "1 value is beyond the scale, and only in the table.", chart+`.querySelector("[data-field=beyond]").innerText`)
	becomes(b, 2, chart+`.querySelectorAll("circle[data-point]").length`)
	b.click(`number-chart[data-path='state.n'] summary`)
	becomes(b, []string{"9007199254740997", "2.50", "1e400"}, `[...`+chart+`.querySelectorAll("td[data-value]")].map(c => c.innerText)`)
}

// What is called as a step of an address is leads nowhere else.
func TestNamesThatAreStepsAreRefused(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	document(t, s, "press-7", `{"hall":"north"}`)
	b := explore(t, s, podView("machines"))
	for _, fragment := range []string{"#/pods/machines/..", "#/pods/machines/.", "#/pods/.."} {
		b.hash(fragment)
		b.until(`document.querySelector("main > .notice")?.innerText.includes("steps")`)
		b.view(podView("machines"))
	}
	b.click(`entity-table button[data-action=new]`)
	b.write(`new-entity input[name=name]`, "..")
	b.click(`new-entity button[type=submit]`)
	b.until(`document.querySelector("new-entity problem-note")?.dataset.code == "bad_name"`)
	for _, address := range b.asked() {
		require.NotContains(t, address, "/..")
	}
}

// A text that is no filter can be searched for in the names.
func TestATextThatIsNoFilterIsSearchedInNames(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	document(t, s, "tower press 7", `{"hall":"north"}`)
	document(t, s, "pump 7", `{"hall":"north"}`)
	b := explore(t, s, podView("machines"))
	becomes(b, []string{"pump 7", "tower press 7"}, rows)
	b.allow(http.StatusBadRequest, "filter")
	b.allow(http.StatusUnprocessableEntity, "filter")
	b.write(`filter-field input`, "press 7")
	b.click(`filter-field button[data-action=search]`)
	becomes(b, []string{"tower press 7"}, rows)
	becomes(b, `name.contains("press 7")`, `document.querySelector("filter-field input").value`)
	b.until(`!document.querySelector("filter-field button")`)
}

// What is told while a page of a table is read is not lost with the rows before.
func TestARowThatIsReadLateIsTheNewest(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"n":0}`)
	p, asked, release := holding(t, s, func(r *http.Request) bool {
		return r.URL.Path == "/v1/pods/machines/entities" && r.URL.Query().Get("sort") != ""
	})
	b := explore(t, p, podView("machines"))
	becomes(b, []string{"press-7"}, rows)
	b.click(`entity-table th[data-column="state.n"] button`)
	asked()
	_, err := press.Merge(t.Context(), map[string]int{"n": 1})
	require.NoError(t, err)
	const row = `document.querySelector("entity-table tr[data-name=press-7]")`
	becomes(b, "2", row+`.dataset.revision`) // in the old rows
	release()
	b.until(`document.querySelector("entity-table").getAttribute("aria-busy") == "false"`)
	becomes(b, "2", row+`.dataset.revision`)
	becomes(b, "1", row+`.querySelector("[data-column='state.n']").innerText`)
}

// A form shows as much of a schema as somebody looks into, however often that
// refers to itself, and of many members the first ones.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	document(t, s, "press-7", `{}`)
	b := explore(t, s, entityView("machines", "press-7"))
	becomes(b, []any{20.0, 1.0, 40.0}, `(async () => {
		const [{ documentSchema }, { messageForm }] = await Promise.all([import("./explorer/documentmessages.js"), import("./explorer/messageform.js")]);
		const members = Object.fromEntries([...Array(20).keys()].map((i) => ["c" + i, { $ref: "#" }]));
		const form = messageForm(documentSchema("merge", { type: "object", properties: members }));
		document.body.append(form); // what is nowhere hears of no change
		const counted = () => form.querySelectorAll("fieldset").length;
		const before = counted();
		form.querySelector("fieldset input").click();
		const first = form.querySelector("fieldset");
		const counts = [before, first.querySelectorAll(":scope > .inside").length, counted()];
		form.remove();
		return counts;
	})()`)
	becomes(b, []any{100.0, "9900 more", 200.0}, `(async () => {
		const [{ documentSchema }, { messageForm }] = await Promise.all([import("./explorer/documentmessages.js"), import("./explorer/messageform.js")]);
		const state = Object.fromEntries([...Array(10000).keys()].map((i) => ["m" + i, "x"]));
		const form = messageForm(documentSchema("merge", undefined, state));
		const counted = () => form.querySelectorAll(".inside > .form-field").length;
		const before = counted(), more = form.querySelector("[data-action=more-fields]"), label = more.innerText || more.textContent;
		more.click();
		return [before, label, counted()];
	})()`)
}

// A message's id that no header can hold is said before anything is sent.
func TestAMessageIDIsOfASCII(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"n":0}`)
	b := explore(t, s, entityView("machines", "press-7", "messages"))
	b.choose(messages, "merge")
	b.click(options)
	b.write(`entity-messages input[name=id]`, "日本")
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.innerText.includes("nothing was sent")`, problemNote)
	require.JSONEq(t, `{"n":0}`, state(t, press))
}
