package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// Whoever has no mouse comes to a room, sends it a message and reads the reply.
func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, "#/pods")
	b.tabTo(`pod-list tr[data-pod=rooms] a[href]`, 40)
	b.press(kb.Enter)
	b.shows(podView("rooms"))

	b.press("/")
	b.until(`document.activeElement?.matches(%s)`, filterField)
	b.text(`name.startsWith("tower-3")`)
	b.press(kb.Enter)
	want := found(t, s, client.QueryOptions{Pods: []string{"rooms"}, Filter: `name.startsWith("tower-3")`})
	becomes(b, want, rows)

	// Down the rows with the arrows, to the third room.
	b.tabTo(`entity-table tbody tr[data-name]`, 40)
	const focused = `document.activeElement?.closest("tr[data-name]")?.dataset.name ?? ""`
	becomes(b, want[0], focused)
	b.press(kb.End)
	becomes(b, want[len(want)-1], focused)
	b.press(kb.Home)
	b.press(kb.ArrowDown, kb.ArrowDown)
	becomes(b, want[2], focused)
	assert.True(t, run[bool](b, `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle != "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow != "none" })()`), "the focus is seen")
	b.press(kb.Enter)
	b.shows(entityView("rooms", want[2]))

	b.tabTo(`a[data-tab-link=messages], a[data-tab-link][aria-selected=true]`, 40)
	for i := 0; i < 3 && !run[bool](b, `document.activeElement.matches("a[data-tab-link=messages]")`); i++ {
		b.press(kb.ArrowRight)
	}
	b.press(kb.Enter)
	b.shows(entityView("rooms", want[2], "messages"))
	b.tabTo(messages, 40)
	b.press("e") // as a select does: to the first that begins with it
	becomes(b, "enter", `document.querySelector(%s).value`, messages)
	b.tabTo(`message-form [name="/people"]`, 20)
	run[any](b, `void document.activeElement.select()`)
	b.text("4")
	b.press(kb.Enter)
	b.until(`document.querySelector(%s)?.dataset.status == "200"`, replyText)
	twin, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", want[2]))
	require.NoError(t, err)
	assert.InDelta(t, 4, twin.State["occupants"], 4)
}
