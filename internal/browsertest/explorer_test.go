package browsertest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// explore opens a view of the explorer page and waits until it shows what it
// has, and is connected.
func explore(t *testing.T, s *server, fragment string) *tab {
	t.Helper()
	b := open(t, s, "/"+fragment)
	b.shows(fragment)
	b.connected()
	return b
}

// view goes to a view by the fragment of the address.
func (b *tab) view(fragment string) {
	b.t.Helper()
	b.hash(fragment)
	b.shows(fragment)
}

// shows waits until the view of a fragment is there.
func (b *tab) shows(fragment string) {
	b.t.Helper()
	w := whereTo(b.t, fragment)
	b.until(`document.querySelector("main")?.dataset.view === %s`, w.view)
	b.until(`(v => v?.dataset.state === "ready" && (v.dataset.pod ?? "") === %s && (v.dataset.name ?? "") === %s && (v.dataset.tab ?? "") === %s)(document.querySelector("main > [data-state]"))`,
		w.pod, w.name, w.tab)
}

// where is what a fragment leads to.
type where struct{ view, pod, name, tab string }

func whereTo(t *testing.T, fragment string) where {
	t.Helper()
	path, _, _ := strings.Cut(strings.TrimPrefix(fragment, "#/"), "?")
	parts := strings.Split(path, "/")
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		require.NoError(t, err)
		parts[i] = text
	}
	switch {
	case path == "" || path == "pods":
		return where{view: "pods"}
	case parts[0] != "pods":
		return where{view: parts[0]}
	case len(parts) == 2:
		return where{view: "pod", pod: parts[1]}
	case len(parts) == 3:
		return where{view: "entity", pod: parts[1], name: parts[2], tab: "state"}
	}
	return where{view: "entity", pod: parts[1], name: parts[2], tab: parts[3]}
}

// connected waits until the page says that it hears of all changes.
func (b *tab) connected() {
	b.t.Helper()
	b.until(`document.querySelector("status-bar")?.dataset.state === "connected"`)
}

// podView and entityView are fragments.
func podView(pod string, query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	if len(values) == 0 {
		return "#/pods/" + url.PathEscape(pod)
	}
	return "#/pods/" + url.PathEscape(pod) + "?" + strings.ReplaceAll(values.Encode(), "+", "%20")
}

func entityView(pod, name string, tab ...string) string {
	return strings.Join(append([]string{"#/pods", url.PathEscape(pod), url.PathEscape(name)}, tab...), "/")
}

// rows are the names that the table of a pod shows, from top to bottom.
const rows = `[...document.querySelectorAll("entity-table tbody tr[data-name]")].map(r => r.dataset.name)`

// value is the JSON text of what stands at a pointer in the state shown.
const value = `document.querySelector("state-tree [data-pointer=" + CSS.escape(%s) + "] [data-value]")?.dataset.value`

// shown is what an element shows, without space around it.
func (b *tab) shown(selector string) string {
	b.t.Helper()
	b.until(`document.querySelector(%s)`, selector)
	return run[string](b, `document.querySelector(%s).innerText.trim()`, selector)
}

// has requires that the page has an element now.
func (b *tab) has(selector string) {
	b.t.Helper()
	require.True(b.t, run[bool](b, `document.querySelector(%s) !== null`, selector), selector)
}
