package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that wants a token has the page ask for one. It is in no address, and
// is forgotten when it is told to.
func TestThePageAsksForAToken(t *testing.T) {
	t.Parallel()
	const write, read = "may-change-8d7e40", "look-only-2f9c1b"
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("read "+read+"\nwrite "+write+"\n"), 0o600))
	s := twinsrv(t, "--token-file", file)
	s.token = write
	press := document(t, s, "press-7", `{"hall":"north"}`)

	b := blank(t, s)
	b.allow(401, "/")
	b.navigate(s.url + "/" + entityView("machines", "press-7"))
	const dialog, field = `token-dialog dialog[open]`, `token-dialog dialog[open] input[name=token]`
	b.until(`document.querySelector(%s)`, dialog)
	b.until(`document.querySelector("status-bar").dataset.state == "unauthorized"`)
	b.settled()
	b.fits(t, "the question for a token")

	b.write(field, "wrong-token")
	b.press(kb.Enter)
	b.until(`document.querySelector("token-dialog problem-note")?.checkVisibility()`)
	b.until(`document.querySelector(%s)`, dialog)

	b.write(field, read)
	b.click(`token-dialog dialog[open] button[type=submit]`)
	b.until(`!document.querySelector(%s)`, dialog)
	b.connected()
	becomes(b, `"north"`, value, "/hall")
	_, err := press.Merge(t.Context(), map[string]string{"hall": "south"})
	require.NoError(t, err)
	becomes(b, `"south"`, value, "/hall")

	// A token that may only read is told so by the server.
	b.allow(403, "/state")
	b.edit(`{"hall":"west"}`)
	b.click(save)
	b.until(`[...document.querySelectorAll("entity-view problem-note")].some(n => n.dataset.code == "read_only_token" && n.checkVisibility())`)
	b.click(`state-editor button[data-action=cancel]`)

	// It is kept in this window only, and over a reload.
	b.navigate(s.url + "/" + podView("machines"))
	becomes(b, []string{"press-7"}, rows)
	assert.Equal(t, []string{"0", read}, run[[]string](b, `[String([...Array(localStorage.length).keys()].filter(i => localStorage.getItem(localStorage.key(i)).includes(%s)).length), sessionStorage.getItem("twinsrv.token")]`, read))
	b.click(`button[data-action=forget-token]`)
	b.until(`document.querySelector(%s)`, dialog)
	b.until(`sessionStorage.getItem("twinsrv.token") === null`)
	b.write(field, write)
	b.press(kb.Enter)
	b.view(entityView("machines", "press-7"))
	b.edit(`{"hall":"west"}`)
	b.click(save)
	becomes(b, `"west"`, value, "/hall")

	asked := b.asked()
	require.NotEmpty(t, asked)
	for _, address := range append(asked, run[[]string](b, `[location.href, document.referrer, ...performance.getEntriesByType("resource").map(e => e.name)]`)...) {
		for _, token := range []string{write, read, "wrong-token"} {
			require.False(t, strings.Contains(address, token), address)
		}
	}
}
