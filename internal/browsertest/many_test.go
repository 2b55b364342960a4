package browsertest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// count is how many entities the large pod has: 100,000, or 20,000 in short tests
// and under the race detector, or what TWINSRV_MANY says.
func count(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("TWINSRV_MANY"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, "TWINSRV_MANY is a number of entities")
		return n
	}
	if testing.Short() || raced {
		return 20_000
	}
	return 100_000
}

// A large pod is looked at a page at a time: what the browser holds does not grow
// with the pod, nor with what is gone through or changes meanwhile.
func TestManyEntitiesStayUsable(t *testing.T) {
	t.Parallel()
	many := count(t)
	s := twinsrv(t)
	_, _, err := s.api().PutPod(t.Context(), "docs", client.Definition{Type: "document"})
	require.NoError(t, err)
	fill(t, s, "docs", many)

	b := explore(t, s, "#/pods")
	becomes(b, fmt.Sprint(many), `document.querySelector("tr[data-pod=docs] [data-field=count]")?.dataset.count`)
	b.view(podView("docs", "limit", "100"))
	b.until(rows + `.length == 100`)
	becomes(b, fmt.Sprint(many), `document.querySelector("entity-table [data-field=count]")?.dataset.count`)
	const nodes = `document.querySelectorAll("*").length`
	most := run[int](b, nodes) + 3000
	assert.Less(t, most, 12_000)

	name := func(i int) string { return fmt.Sprintf("d-%06d", i) }
	for page := range 4 {
		b.until(rows+`[0] === %s && `+rows+`.length == 100`, name(100*page+1))
		b.click(`button[data-action=next]`)
	}
	filter := fmt.Sprintf(`state.n > %d && state.even`, many-20)
	b.write(filterField, filter)
	want := []string{}
	for i := many - 18; i <= many; i += 2 {
		want = append(want, name(i))
	}
	becomes(b, want, rows)
	b.view(podView("docs", "sort", "-state.n", "limit", "100"))
	b.until(rows+`[0] === %s`, name(many))
	b.connected()

	// Two thousand changes come while it is looked at.
	c := s.api()
	for i := range 2 {
		var items []client.Item
		for j := range 1000 {
			items = append(items, client.Item{Entity: c.Entity("docs", name(many-(1000*i+j)%1500)), Message: "merge", Body: map[string]int{"changed": i + 1}})
		}
		answers, err := c.Batch(t.Context(), items, 0)
		require.NoError(t, err)
		require.Len(t, answers, len(items))
	}
	becomes(b, "2000", `document.querySelector("change-feed").dataset.seen`)
	assert.Less(t, run[int](b, nodes), most)
	assert.LessOrEqual(t, run[int](b, `document.querySelectorAll("change-feed li").length`), 200)
	b.until(`document.querySelector("entity-table tr[data-name=" + CSS.escape(%s) + "]").dataset.revision == "3"`, name(many))
	b.write(filterField, `state.n == 7`)
	becomes(b, []string{name(7)}, rows)
}
