package browsertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// note is a script that notes every change that the page shows in its list of
// them, as it is put there.
const note = `(() => {
	window.browsertestChanges = []
	const seen = new Set()
	const look = () => {
		for (const e of [...document.querySelectorAll("change-feed li[data-position]")].reverse()) {
			const key = [e.dataset.position, e.dataset.kind].join()
			if (seen.has(key)) continue
			seen.add(key)
			window.browsertestChanges.push({kind: e.dataset.kind, name: e.dataset.name, revision: +e.dataset.revision, life: +e.dataset.life})
		}
	}
	look()
	new MutationObserver(look).observe(document.querySelector("change-feed"), {subtree: true, childList: true, attributes: true})
})()`

// change is one that the page has shown.
type change struct {
	Kind, Name     string
	Revision, Life uint64
}

// The server is killed while changes go on, and changes are made while the page
// cannot hear of them. It says that it is cut off, comes back by itself, has
// shown each change once and in order, and shows what there is.
func TestAKilledServerComesBackAndNoChangeIsMissed(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	table := explore(t, s, podView("rooms", "columns", "state.celsius,state.occupants"))
	view := explore(t, s, entityView("rooms", room))
	pages := []*tab{table, view}
	for _, b := range pages {
		run[any](b, `void (`+kept+` = true)`)
	}
	run[any](table, note)
	before, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)

	for round := range 2 {
		var back []func()
		for _, b := range pages {
			back = append(back, b.gone())
		}
		// The server is killed somewhere amid these changes; what had no answer is
		// sent again until it has one.
		w := begin(s, round*100)
		w.wait(t, 10)
		s.kill()
		for _, b := range pages {
			b.until(`document.querySelector("status-bar").dataset.state == "reconnecting"`)
			assert.Contains(t, b.shown(`status-bar [data-field=state]`), "reconnecting")
		}
		// The store changes where the page does not look.
		address := s.url
		s.elsewhere(func(url string) {
			for i := range 5 {
				c, err := client.New(url, client.Config{})
				require.NoError(t, err)
				_, err = client.Ask[int](t.Context(), c.Entity("rooms", room), "enter", map[string]int{"people": 1})
				require.NoError(t, err, i)
				c.Close()
			}
		})
		require.Equal(t, address, s.url)
		s.start()
		w.end(t)
		for i, b := range pages {
			b.connected()
			b.until(`+document.querySelector("status-bar").dataset.reconnects >= %s`, round+1)
			back[i]()
		}
	}

	after, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	row := `document.querySelector("entity-table tr[data-name='` + room + `']")`
	becomes(table, fmt.Sprint(after.Revision), row+`.dataset.revision`)
	becomes(table, fmt.Sprint(after.State["celsius"]), row+`.querySelector('td[data-column="state.celsius"]').innerText.trim()`)
	becomes(view, fmt.Sprint(after.Revision), `document.querySelector("entity-view").dataset.revision`)
	becomes(view, fmt.Sprint(after.State["celsius"]), value, "/celsius")
	becomes(view, fmt.Sprint(after.State["occupants"]), value, "/occupants")
	becomes(view, "0", `document.querySelector("entity-view").dataset.missed`)
	becomes(view, fmt.Sprint(after.Revision-before.Revision), `document.querySelector("entity-view").dataset.seen`)

	shown := run[[]change](table, `window.browsertestChanges`)
	next := before.Revision + 1
	for _, c := range shown {
		require.Equal(t, "changed", c.Kind, "%+v", c)
		if c.Name == room {
			require.Equal(t, change{"changed", room, next, before.Life}, c, "no change is missing, none comes twice: %+v", shown)
			next++
		}
	}
	require.Equal(t, after.Revision+1, next, "all changes were shown")
	require.GreaterOrEqual(t, after.Revision-before.Revision, uint64(2*(writes+5)))
	for _, b := range pages {
		assert.True(t, run[bool](b, kept), "the page was not loaded anew")
		becomes(b, "", `document.querySelector("status-bar [data-field=gaps]")?.innerText.trim() ?? ""`)
	}
}

// elsewhere runs the server at another address, while f has something to do
// with it.
func (s *server) elsewhere(f func(url string)) {
	s.t.Helper()
	other := newServer(s.t, "buildings", s.args...)
	defer other.kill()
	f(other.url)
}

// writes is how many changes a writer makes.
const writes = 40

// writer changes the room, whatever becomes of the server.
type writer struct {
	stop context.CancelFunc
	done chan int // tells of each change
	err  chan error
}

func begin(s *server, base int) *writer {
	ctx, stop := context.WithTimeout(context.Background(), 2**patience)
	w := &writer{stop: stop, done: make(chan int, writes), err: make(chan error, 1)}
	tower := s.api().Entity("rooms", room)
	go func() {
		defer close(w.done)
		w.err <- w.run(ctx, tower, base)
	}()
	return w
}

func (w *writer) run(ctx context.Context, tower client.Entity, base int) error {
	for i := range writes {
		for {
			// The key makes one change of it, however often it is sent.
			_, err := tower.WithKey(fmt.Sprintf("write-%d", base+i)).Send(ctx, "measured", map[string]float64{"celsius": 20 + float64(base+i)/8})
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(look):
			}
		}
		w.done <- i
	}
	return nil
}

// wait waits for a number of changes.
func (w *writer) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, more := <-w.done; !more {
			w.end(t)
			return
		}
	}
}

// end waits for the last change.
func (w *writer) end(t *testing.T) {
	t.Helper()
	for range w.done {
	}
	w.stop()
	require.NoError(t, <-w.err)
}
