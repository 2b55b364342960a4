package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// Pods show how many entities they have and how many changes a second there are,
// and no more of these when nothing changes.
func TestPodsShowCountsAndRates(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, "#/pods")
	const rate = `Number(document.querySelector("pod-list tr[data-pod=rooms] [data-field=rate]")?.dataset.rate ?? NaN)`
	const total = `document.querySelector("[data-field=total-rate]").innerText.trim()`
	b.until(rate + ` === 0`)
	for i := 0; !run[bool](b, rate+` > 0`); i++ {
		s.measured(room, 20+float64(i%20)/10)
	}
	b.until(rate + ` === 0`)
	becomes(b, "0", total)
	s.measured("annex-1-1", 20)
	becomes(b, "25", `document.querySelector("tr[data-pod=rooms] [data-field=count]").dataset.count`)
}

// The bar at the bottom says what the server is, and how late changes are shown.
func TestTheStatusBarSaysHowTheServerIs(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms"))
	text, err := s.ask(t.Context(), http.MethodGet, "/healthz", "")
	require.NoError(t, err)
	var health struct{ Version string }
	require.NoError(t, json.Unmarshal([]byte(text), &health))
	require.NotEmpty(t, health.Version)
	b.until(`document.querySelector("status-bar [data-field=version]").innerText.includes(%s)`, health.Version)
	becomes(b, "true", `document.querySelector("status-bar [data-field=store]").dataset.ready`)
	assert.Equal(t, "connected", b.shown(`status-bar [data-field=state]`))
	b.until(`document.querySelector("status-bar [data-field=lag]").dataset.ms === undefined`)
	s.measured(room, 33)
	b.until(`/^[0-9]+([.][0-9]+)?$/.test(document.querySelector("status-bar [data-field=lag]").dataset.ms)`)
	b.until(`document.querySelector("status-bar [data-field=lag]").innerText.includes("lag")`)
	b.until(`Number(document.querySelector("status-bar").dataset.lastId) > 0`)
}

// The columns that are chosen are the ones that are shown, and stand in the
// address.
func TestColumnsAreChosen(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms", "columns", "state.celsius,state.floor"))
	const columns = `[...document.querySelectorAll("entity-table thead th")].map(h => h.dataset.column)`
	becomes(b, []string{"name", "state.celsius", "state.floor"}, columns)
	b.click(`button[data-action=columns]`)
	b.click(`column-picker input[value="state.floor"]`)
	b.click(`column-picker input[value="revision"]`)
	b.settled()
	b.fits(t, "the choice of columns")
	b.click(`column-picker button[value=yes]`)
	becomes(b, []string{"name", "state.celsius", "revision"}, columns)
	b.until(`new URLSearchParams(location.hash.split("?")[1]).get("columns") === "state.celsius,revision"`)
	twin, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	becomes(b, fmt.Sprint(twin.Revision), `document.querySelector("tr[data-name='`+room+`'] td[data-column=revision]").innerText.trim()`)
}

// An entity is made by its first message, unless there is one of its name.
func TestANewEntityIsMade(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms"))
	b.allow(412, "/messages/enter")
	const dialog = `new-entity dialog[open] `
	b.click(`button[data-action=new]`)
	b.write(dialog+`input[name=name]`, room)
	b.choose(dialog+`select[name=message]`, "enter")
	b.write(dialog+`message-form [name="/people"]`, "2")
	b.settled()
	b.fits(t, "the form for a new entity")
	before, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	b.click(dialog + `button[type=submit]`)
	b.until(`document.querySelector("new-entity problem-note")?.dataset.code == "condition_failed"`)
	after, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	assert.Equal(t, before, after)
	b.write(dialog+`input[name=name]`, "annex/b-1-1")
	b.click(dialog + `button[type=submit]`)
	b.shows(entityView("rooms", "annex/b-1-1"))
	becomes(b, "2", value, "/occupants")
	made, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", "annex/b-1-1"))
	require.NoError(t, err)
	assert.InDelta(t, 2, made.State["occupants"], 0)
}
