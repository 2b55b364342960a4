package browsertest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// kept is a mark in the page that a reload would take away.
const kept = `window.browsertestKept`

// A room that somebody else changes is shown changed, and where.
func TestARoomChangesWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, entityView("rooms", room))
	run[any](b, `void (`+kept+` = true)`)
	run[any](b, `(() => {
		window.browsertestFlashes = []
		new MutationObserver(list => {
			for (const m of list) {
				const e = m.target.closest?.("[data-pointer]")
				if (e && (m.target.classList.contains("flash") || e.classList.contains("flash"))) window.browsertestFlashes.push(e.dataset.pointer)
			}
		}).observe(document.querySelector("entity-view"), {subtree: true, childList: true, attributes: true, attributeFilter: ["class"]})
	})()`)
	tower := s.api().Entity("rooms", room)
	before, err := client.Get[map[string]any](t.Context(), tower)
	require.NoError(t, err)
	becomes(b, fmt.Sprint(before.State["celsius"]), value, "/celsius")
	for i := range 3 {
		celsius := 30.5 + float64(i)
		ack, err := tower.Send(t.Context(), "measured", map[string]float64{"celsius": celsius})
		require.NoError(t, err)
		becomes(b, fmt.Sprint(celsius), value, "/celsius")
		becomes(b, fmt.Sprint(ack.Revision), `document.querySelector("entity-view").dataset.revision`)
	}
	becomes(b, "true", value, "/alarm")
	b.until(`window.browsertestFlashes.includes("/celsius") && window.browsertestFlashes.includes("/alarm")`)
	assert.NotContains(t, run[[]string](b, `window.browsertestFlashes`), "/floor", "what did not change does not flash")
	becomes(b, "0", `document.querySelector("entity-view").dataset.missed`)
	becomes(b, "3", `document.querySelector("entity-view").dataset.seen`)
	assert.True(t, run[bool](b, kept), "the page was not loaded anew")

	require.NoError(t, tower.Delete(t.Context()))
	b.until(`document.querySelector("entity-view").dataset.exists == "false"`)
	_, err = client.Ask[int](t.Context(), tower, "enter", map[string]int{"people": 4})
	require.NoError(t, err)
	becomes(b, "4", value, "/occupants")
}

// A table shows what changes in its rows, and what comes and goes.
func TestATableChangesWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms", "columns", "state.celsius", "filter", `state.celsius < 60.0`))
	run[any](b, `void (`+kept+` = true)`)
	send := func(name string, celsius float64) client.Ack {
		ack, err := s.api().Entity("rooms", name).Send(t.Context(), "measured", map[string]float64{"celsius": celsius})
		require.NoError(t, err)
		return ack
	}
	row := `document.querySelector("entity-table tr[data-name=" + CSS.escape(%s) + "]")`
	ack := send(room, 33.25)
	becomes(b, "33.25", row+`?.querySelector('td[data-column="state.celsius"]').innerText.trim()`, room)
	becomes(b, fmt.Sprint(ack.Revision), row+`?.dataset.revision`, room)
	becomes(b, "changed", row+`?.dataset.live`, room)
	send(room, 99)
	becomes(b, "left", row+`?.dataset.live`, room)
	require.NoError(t, s.api().Entity("rooms", "tower-1-21").Delete(t.Context()))
	becomes(b, "deleted", row+`?.dataset.live`, "tower-1-21")
	send("annex-1-1", 20)
	becomes(b, "changed", row+`?.dataset.live`, "annex-1-1")
	b.click(`entity-table button[data-action=reload]`)
	becomes(b, found(t, s, client.QueryOptions{Pods: []string{"rooms"}, Filter: `state.celsius < 60.0`}), rows)
	becomes(b, "4", `document.querySelector("change-feed").dataset.seen`)
	assert.True(t, run[bool](b, kept))
}

// The history shows what each change did, and the numbers as a chart with a
// point for each.
func TestTheHistoryShowsWhatChanged(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	tower := s.api().Entity("rooms", room)
	_, err := client.Ask[int](t.Context(), tower, "enter", map[string]int{"people": 3})
	require.NoError(t, err)
	_, err = tower.Send(t.Context(), "measured", map[string]float64{"celsius": 31})
	require.NoError(t, err)
	var revisions []client.Revision[map[string]json.RawMessage]
	for r, err := range client.History[map[string]json.RawMessage](t.Context(), tower, client.HistoryOptions{}) {
		require.NoError(t, err)
		revisions = append(revisions, r)
	}
	b := explore(t, s, entityView("rooms", room, "history"))
	const items = `[...document.querySelectorAll("entity-history li[data-revision]")]`
	b.until(items + `.length > 1`)
	listed := run[[]uint64](b, items+`.map(e => +e.dataset.revision)`)
	last := revisions[len(revisions)-1].Revision
	for i, n := range listed {
		require.Equal(t, last-uint64(i), n, "newest first, none missing")
	}
	diffs := func(revision uint64) []string {
		return run[[]string](b, `[...document.querySelector("entity-history li[data-revision=" + CSS.escape(%s) + "]").querySelectorAll("[data-diff]")].map(e => e.dataset.diff + " " + e.dataset.pointer).sort()`, fmt.Sprint(revision))
	}
	for i := range listed[:len(listed)-1] {
		want := []string{}
		now, before := revisions[len(revisions)-1-i], revisions[len(revisions)-2-i]
		for _, key := range []string{"alarm", "celsius", "floor", "occupants"} {
			if string((*now.State)[key]) != string((*before.State)[key]) {
				want = append(want, "changed /"+key)
			}
		}
		require.Equal(t, want, diffs(now.Revision), "revision %d", now.Revision)
	}
	for _, path := range []string{"celsius", "occupants"} {
		points := 0
		for _, r := range revisions[len(revisions)-len(listed):] {
			if text := string((*r.State)[path]); text != "null" && text != "" {
				points++
			}
		}
		chart := `document.querySelector('number-chart[data-path="state.` + path + `"]')`
		becomes(b, fmt.Sprint(points), chart+`?.dataset.points`)
		becomes(b, points, chart+`.querySelectorAll("circle[data-point]").length`)
		becomes(b, string((*revisions[len(revisions)-1].State)[path]), chart+`.querySelector("circle[data-point]:last-of-type").dataset.y`)
	}
}
