package browsertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// strange are names, and keys and texts of states, that a page may get wrong.
func strange() []string {
	return []string{
		"tower/4/1", "with space", " around ", "50%", "%2F", "%25", "a?b#c&d=e+f", `quo"te'`, `back\slash`,
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "{{x}}${x}", "Kühlhaus 🏭", "👩‍👩‍👧", "مستودع", "\u202eright to left", "a\nb\tc", "\u0001",
		"__proto__", "constructor", "toString", "-0", "1e3", "...", "~0~1", strings.Repeat("long-", 51) + "!",
	}
}

// Names are shown as they are and led to, whatever they are made of; nothing of
// them becomes a part of the page.
func TestAnyNameIsShownAndLedTo(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	document(t, s, "press-7", `{}`)
	for _, name := range strange() {
		state, err := json.Marshal(map[string]any{name: name, "number": 1})
		require.NoError(t, err)
		_, err = s.api().Entity("machines", name).Put(t.Context(), json.RawMessage(state))
		require.NoError(t, err, "%q", name)
	}
	b := explore(t, s, podView("machines", "limit", "100"))
	want := append(strange(), "press-7")
	slices.Sort(want)
	becomes(b, want, rows+`.sort((a, b) => { const x = new TextEncoder().encode(a), y = new TextEncoder().encode(b); for (let i = 0; ; i++) { if (x[i] !== y[i]) return (x[i] ?? -1) - (y[i] ?? -1); if (i >= x.length) return 0 } })`)
	b.fits(t, "strange names")
	b.size(360, 740)
	b.fits(t, "strange names on a phone")
	for _, name := range strange() {
		selector := run[string](b, `"entity-table tr[data-name=" + CSS.escape(%s) + "] a[href]"`, name)
		b.click(selector)
		b.until(`document.querySelector("entity-view")?.dataset.name === %s`, name)
		b.until(`document.querySelector("main > [data-state]")?.dataset.state === "ready"`)
		b.until(`document.querySelector("entity-view").dataset.exists === "true"`)
		text, err := json.Marshal(name)
		require.NoError(t, err)
		var same string
		becomes(b, "1", value, "/number")
		shown := run[*string](b, value, "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
		require.NotNil(t, shown, "%q", name)
		require.NoError(t, json.Unmarshal([]byte(*shown), &same), "%s for %s", *shown, text)
		assert.Equal(t, name, same)
		b.fits(t, fmt.Sprintf("%.20q", name))
		run[any](b, `void history.back()`)
		b.until(rows + `.length > 1`)
	}
	b.has(`entity-table`)
	assert.Zero(t, run[int](b, `document.querySelectorAll("main script, main img, main iframe").length`))

	// Each has a history, and takes messages.
	for _, name := range []string{"tower/4/1", "50%", "<script>alert(1)</script>", "Kühlhaus 🏭"} {
		b.view(entityView("machines", name, "history"))
		b.until(`document.querySelectorAll("entity-history li[data-revision]").length == 1`)
		b.view(entityView("machines", name, "messages"))
		b.choose(messages, "merge")
		ack, err := s.api().Entity("machines", name).Send(t.Context(), "merge", map[string]int{"number": 2})
		require.NoError(t, err)
		becomes(b, fmt.Sprint(ack.Revision), `document.querySelector("entity-view").dataset.revision`)
	}
}
