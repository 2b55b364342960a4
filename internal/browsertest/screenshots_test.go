package browsertest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// screenshots is where `make screenshots` wants its pictures.
var screenshots = flag.String("screenshots", "", "folder to draw the pictures of the explorer page into")

// scene is a view of which there is a picture.
type scene struct {
	name, fragment string
	prepare        func(b *tab, s *server) // what is done before, if anything
}

// pictured is the room that the pictures show.
const pictured = "tower-2-24"

func scenes() []scene {
	return []scene{
		{name: "pods", fragment: "#/pods", prepare: func(b *tab, s *server) {
			// Rooms change, now more and now less, while the rates are measured.
			looks := 2
			if *screenshots != "" {
				looks = 16
			}
			const points = `(document.querySelector("pod-list tr[data-pod=rooms] polyline")?.getAttribute("points") ?? "").split(" ").length`
			for i := 0; run[int](b, points) < looks; i++ {
				if now := run[int](b, points); now%5 < 3 || i%4 == 0 {
					s.measured(fmt.Sprintf("tower-1-2%d", i%8), 20+float64(i%40)/10)
				}
			}
		}},
		{name: "table", fragment: podView("rooms", "filter", `state.celsius > 21.0 && !state.alarm`, "sort", "-state.celsius"), prepare: func(b *tab, s *server) {
			b.until(rows + `.length > 0`)
			for i, room := range []string{"tower-3-21", "tower-2-24", "tower-1-22", "tower-3-26", "tower-2-21"} {
				s.measured(room, 22.5+float64(i)/10)
			}
			b.until(`+document.querySelector("change-feed").dataset.seen >= 5`)
			b.click(`entity-table button[data-action=reload]`)
			b.until(rows + `[0] == "tower-2-21"`)
		}},
		{name: "entity", fragment: entityView("buildings", "tower"), prepare: func(b *tab, s *server) {
			for i, room := range []string{"tower-1-20", "tower-2-24", "tower-3-27", "tower-3-22"} {
				seen := run[int](b, `+document.querySelector("entity-view").dataset.seen`)
				s.measured(room, 22.5+float64(i)/2)
				b.until(`+document.querySelector("entity-view").dataset.seen > %s`, seen)
			}
		}},
		{name: "history", fragment: entityView("rooms", pictured, "history"), prepare: func(b *tab, _ *server) {
			b.until(`document.querySelector("number-chart circle")`)
		}},
		{name: "message", fragment: entityView("rooms", pictured, "messages"), prepare: func(b *tab, _ *server) {
			b.choose(messages, "enter")
			b.write(`message-form [name="/people"]`, "2")
			b.click(sendIt)
			b.until(`document.querySelector(%s)?.dataset.status == "200"`, replyText)
		}},
		{name: "actors", fragment: "#/actors", prepare: func(b *tab, s *server) {
			s.measured(pictured, 22) // so that there is an entity in memory
			for _, path := range []string{"/user", "/user/pods", "/user/pods/rooms"} {
				row := fmt.Sprintf(`actor-tree [data-path=%q]`, path)
				b.until(`document.querySelector(%s)?.hasAttribute("aria-expanded")`, row)
				if run[bool](b, `document.querySelector(%s).getAttribute("aria-expanded") == "false"`, row) {
					b.click(row + ` button[data-action=toggle]`)
				}
			}
			b.until(`document.querySelector('actor-tree [data-path^="/user/pods/rooms/"]')`)
		}},
	}
}

// measured tells a room its temperature.
func (s *server) measured(room string, celsius float64) {
	s.t.Helper()
	_, err := s.ask(s.t.Context(), http.MethodPost, "/v1/pods/rooms/entities/"+room+"/messages/measured", fmt.Sprintf(`{"celsius":%g}`, celsius))
	require.NoError(s.t, err)
}

// most is how large a file may be.
const most = 300_000

// The pictures can be drawn, and are small. Without -screenshots only those of a
// phone in the light theme are, and thrown away.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	folder, themes, scale := t.ArtifactDir(), []string{"light"}, 1.0
	widths := []struct {
		name          string
		width, height int64
	}{{"-phone", 390, 780}}
	if *screenshots != "" {
		folder, themes, scale = *screenshots, []string{"light", "dark"}, 2
		widths = append(widths, struct {
			name          string
			width, height int64
		}{"", 1280, 720})
		require.NoError(t, os.MkdirAll(folder, 0o755))
	}
	for _, theme := range themes {
		for _, w := range widths {
			for _, sc := range scenes() {
				s := buildings(t)
				b := blank(t, s)
				b.prefer("prefers-color-scheme", theme)
				b.do(
					chromedp.EmulateViewport(w.width, w.height, chromedp.EmulateScale(scale)),
					called(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}),
					called(emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-GB"}),
				)
				b.navigate(s.url + "/" + sc.fragment)
				b.shows(sc.fragment)
				b.connected()
				if sc.prepare != nil {
					sc.prepare(b, s)
				}
				b.still()
				picture := b.picture()
				require.Less(t, len(picture), most, sc.name)
				require.NoError(t, os.WriteFile(filepath.Join(folder, sc.name+w.name+"-"+theme+".png"), picture, 0o644)) //nolint:gosec // a picture for all
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.png"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), len(scenes())*len(themes)*len(widths))
}

// still lets the focus go, so that no cursor blinks, puts the mouse where it
// lights nothing up, and waits until nothing moves.
func (b *tab) still() {
	b.t.Helper()
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 200))
	run[any](b, `void (document.activeElement?.blur(), scrollTo(0, 0))`)
	b.settled()
	run[any](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`)
}

// picture is what the tab shows.
func (b *tab) picture() []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, *patience)
	defer cancel()
	full, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	small, err := smaller(full)
	require.NoError(b.t, err)
	return small
}
