package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// screenshots is where `make screenshots` wants its pictures.
var screenshots = flag.String("screenshots", "", "folder to draw the pictures of the explorer page into")

// scene is a view of which there is a picture.
type scene struct {
	name, fragment string
	prepare        func(b *tab) // what is done before, if anything
}

func scenes() []scene {
	return []scene{
		{name: "pods", fragment: "#/pods"},
		{name: "table", fragment: podView("rooms", "filter", `state.occupants > 0 && state.celsius > 21.0`, "sort", "-state.celsius")},
		{name: "entity", fragment: entityView("rooms", pictured)},
		{name: "history", fragment: entityView("rooms", pictured, "history"), prepare: func(b *tab) {
			b.until(`document.querySelector("number-chart circle")`)
		}},
		{name: "message", fragment: entityView("rooms", pictured, "messages"), prepare: func(b *tab) {
			b.choose(messages, "enter")
			b.write(`message-form [name="/people"]`, "2")
			b.click(sendIt)
			b.until(`document.querySelector(%s)?.dataset.status == "200"`, replyText)
		}},
		{name: "actors", fragment: "#/actors", prepare: func(b *tab) {
			for _, path := range []string{"/user", "/user/pods", "/user/pods/rooms"} {
				row := fmt.Sprintf(`actor-tree [data-path=%q]`, path)
				b.until(`document.querySelector(%s)`, row)
				if run[*string](b, `document.querySelector(%s).getAttribute("aria-expanded")`, row) != nil && run[string](b, `document.querySelector(%s).getAttribute("aria-expanded")`, row) != "true" {
					b.click(row + ` button[data-action=toggle]`)
				}
			}
		}},
	}
}

// pictured is the room that the pictures show.
const pictured = "tower-2-24"

// most is how large a file may be.
const most = 300_000

// The pictures can be drawn, and are small. Without -screenshots only those of a
// phone in the light theme are, and thrown away.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	folder, themes := t.ArtifactDir(), []string{"light"}
	widths := []struct {
		name          string
		width, height int64
	}{{"-phone", 390, 780}}
	if *screenshots != "" {
		folder, themes = *screenshots, []string{"light", "dark"}
		widths = append(widths, struct {
			name          string
			width, height int64
		}{"", 1280, 800})
		require.NoError(t, os.MkdirAll(folder, 0o755))
	}
	for _, theme := range themes {
		for _, w := range widths {
			s := buildings(t)
			for _, sc := range scenes() {
				b := blank(t, s)
				b.prefer("prefers-color-scheme", theme)
				b.do(
					chromedp.EmulateViewport(w.width, w.height, chromedp.EmulateScale(2)),
					called(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}),
				)
				b.navigate(s.url + "/" + sc.fragment)
				b.shows(sc.fragment)
				b.connected()
				if sc.prepare != nil {
					sc.prepare(b)
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

// still lets the focus go, so that no cursor blinks, and waits until nothing
// moves.
func (b *tab) still() {
	b.t.Helper()
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
