package browsertest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// filterField is where a filter is typed.
const filterField = `filter-field input[name=filter]`

// found are the names that the API gives for a query.
func found(t *testing.T, s *server, o client.QueryOptions) []string {
	t.Helper()
	names := []string{}
	for twin, err := range client.Query[json.RawMessage](t.Context(), s.api(), o) {
		require.NoError(t, err)
		names = append(names, twin.Name)
	}
	return names
}

func TestAFilterShowsExactlyWhatTheAPIFinds(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms"))
	for _, filter := range []string{
		`state.celsius > 21.0`,
		`state.floor == "tower-2" && !state.alarm`,
		`state.alarm`,
		`state.occupants > 0 && state.celsius > 21.0`,
		`name.endsWith("7") || state.occupants > 0`,
		`state.celsius < -80.0`,
	} {
		want := found(t, s, client.QueryOptions{Pods: []string{"rooms"}, Filter: filter})
		b.write(filterField, filter)
		becomes(b, want, rows)
		becomes(b, fmt.Sprint(len(want)), `document.querySelector("entity-table [data-field=count]")?.dataset.count`)
		b.until(`document.querySelector("filter-field").dataset.state == "ok"`)
		b.until(`new URLSearchParams(location.hash.split("?")[1]).get("filter") === %s`, filter)
	}
	b.press(kb.Escape)
	b.until(rows + `.length == 24`)
	assert.Empty(t, run[string](b, `document.querySelector(%s).value`, filterField))
}

// A filter that is wrong is said to be so below it, with the column, and the
// rows stay until it is right again.
func TestAWrongFilterIsShownWhereItIsWrong(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms"))
	b.allow(400, "filter=")
	before := run[[]string](b, rows)
	for _, filter := range []string{`state.celsius > "warm" &&`, `nothing(`, `state.celsius + 1`} {
		_, err := s.api().Count(t.Context(), client.QueryOptions{Pods: []string{"rooms"}, Filter: filter})
		var problem *client.Error
		require.ErrorAs(t, err, &problem)
		b.write(filterField, filter)
		b.until(`document.querySelector("filter-field").dataset.state == "error"`)
		const shown = `document.querySelector("filter-field [data-field=error]")`
		becomes(b, fmt.Sprint(problem.Column), shown+`?.dataset.column`)
		becomes(b, fmt.Sprint(problem.Line), shown+`?.dataset.line`)
		b.until(shown + `.checkVisibility() && ` + shown + `.innerText.trim() != ""`)
		require.Equal(t, before, run[[]string](b, rows))
	}
	b.fits(t, "a wrong filter")
	b.write(filterField, `state.alarm`)
	b.until(`document.querySelector("filter-field").dataset.state == "ok"`)
	becomes(b, found(t, s, client.QueryOptions{Pods: []string{"rooms"}, Filter: `state.alarm`}), rows)
}

func TestAColumnSortsBothWays(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, podView("rooms", "columns", "state.celsius,state.occupants"))
	const column = `entity-table th[data-column="state.celsius"]`
	order := func() string { return run[string](b, `document.querySelector(%s).ariaSort`, column) }
	seen := map[string]bool{}
	for range 2 {
		before := order()
		b.click(column + ` button`)
		b.until(`!["none", %s].includes(document.querySelector(%s).ariaSort)`, before, column)
		by := map[string]string{"ascending": "state.celsius", "descending": "-state.celsius"}[order()]
		becomes(b, found(t, s, client.QueryOptions{Pods: []string{"rooms"}, Sort: []string{by}}), rows)
		seen[order()] = true
	}
	assert.Len(t, seen, 2)
}

// Going through all pages shows each entity once, and back leads to what was
// seen before.
func TestPagesShowEverythingOnce(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	c := s.api()
	_, _, err := c.PutPod(t.Context(), "docs", client.Definition{Type: "document"})
	require.NoError(t, err)
	fill(t, s, "docs", 120)
	want := found(t, s, client.QueryOptions{Pods: []string{"docs"}, Sort: []string{"-state.n"}})
	b := explore(t, s, podView("docs", "sort", "-state.n", "limit", "50"))
	const next, previous = `button[data-action=next]`, `button[data-action=previous]`
	becomes(b, want[:50], rows)
	becomes(b, "120", `document.querySelector("entity-table [data-field=count]")?.dataset.count`)
	// A change on another page is counted, and moves nothing here.
	_, err = c.Entity("docs", want[110]).Merge(t.Context(), map[string]int{"other": 1})
	require.NoError(t, err)
	becomes(b, "1", `document.querySelector("entity-table [data-field=elsewhere]").dataset.count`)
	becomes(b, want[:50], rows)
	b.click(next)
	becomes(b, want[50:100], rows)
	b.click(next)
	becomes(b, want[100:], rows)
	b.until(`document.querySelector(%s).disabled`, next)
	b.click(previous)
	becomes(b, want[50:100], rows)
	run[any](b, `void history.back()`)
	b.until(rows+`[0] != %s`, want[50])
	b.view(podView("docs", "sort", "-state.n", "limit", "50"))
	becomes(b, want[:50], rows)
}

// fill imports documents d-000001 and so on with the numbers 1 and so on.
func fill(t *testing.T, s *server, pod string, count int) {
	t.Helper()
	lines := func(yield func(client.Line) bool) {
		for i := range count {
			if !yield(client.Line{Pod: pod, Name: fmt.Sprintf("d-%06d", i+1), State: fmt.Appendf(nil, `{"n":%d,"even":%t}`, i+1, i%2 == 1)}) {
				return
			}
		}
	}
	for result, err := range s.api().Import(t.Context(), lines) {
		require.NoError(t, err)
		require.Less(t, result.Status, 300, "%+v", result)
	}
}
