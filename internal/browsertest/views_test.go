package browsertest

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

const room = "tower-1-20"

// allViews are fragments of everything that the page shows of the example.
func allViews() []string {
	return []string{
		"#/pods", podView("rooms"), podView("rooms", "filter", "state.celsius > 21.0", "sort", "-state.celsius"), podView("buildings"),
		entityView("rooms", room), entityView("rooms", room, "history"), entityView("rooms", room, "messages"),
		entityView("floors", "tower-1"), entityView("buildings", "tower", "history"), entityView("buildings", "tower", "messages"),
		"#/actors", "#/deadletters",
	}
}

// Every view works in both themes, on a screen and on a phone: nothing is wrong
// on the console, nothing comes from elsewhere, nothing is too faint or too wide
// or without a name.
func TestEveryViewIsCleanAndFits(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	deadLetter(t, s)
	for _, theme := range []string{"light", "dark"} {
		t.Run(theme, func(t *testing.T) {
			t.Parallel()
			b := blank(t, s)
			b.prefer("prefers-color-scheme", theme)
			b.navigate(s.url + "/")
			b.connected()
			for _, width := range []int64{1280, 360, 320} {
				b.size(width, 740)
				for _, fragment := range allViews() {
					b.view(fragment)
					b.settled()
					b.fits(t, fragment)
				}
			}
		})
	}
}

// settled waits until nothing of the page moves or fades any more, but for what
// does so all the time.
func (b *tab) settled() {
	b.t.Helper()
	b.until(`document.getAnimations().every(a => a.playState == "finished" || a.playState == "idle" || a.effect.getTiming().iterations == Infinity) && document.fonts.status == "loaded"`)
}

func TestThePageIsAtTwoAddresses(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	for _, path := range []string{"/", "/explorer"} {
		b := open(t, s, path)
		b.connected()
		b.shows("")
		becomes(b, []string{"buildings", "floors", "rooms"}, `[...document.querySelectorAll("pod-list tr[data-pod]")].map(r => r.dataset.pod).sort()`)
		becomes(b, "24", `document.querySelector("tr[data-pod=rooms] [data-field=count]").dataset.count`)
		b.click(`pod-list tr[data-pod=rooms] a[href]`)
		b.shows(podView("rooms"))
		b.click(`entity-table tr[data-name="` + room + `"] a[href]`)
		b.shows(entityView("rooms", room))
		run[any](b, `void history.back()`)
		b.shows(podView("rooms"))
		b.until(rows + `.length > 0`)
	}
}

// A deep link shows the same as the way there, also after a reload.
func TestALinkLeadsToWhatWasSeen(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	link := podView("rooms", "filter", `name.startsWith("tower-2")`, "sort", "-state.celsius", "limit", "25")
	b := explore(t, s, link)
	b.until(rows + `.length == 8`)
	seen := run[[]string](b, rows)
	b.navigate("about:blank")
	b.navigate(s.url + "/" + link)
	b.shows(link)
	becomes(b, seen, rows)
	assert.Equal(t, `name.startsWith("tower-2")`, run[string](b, `document.querySelector("input[name=filter]").value`))
}

func TestTheThemeCanBeChosenAndIsKept(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := blank(t, s)
	b.prefer("prefers-color-scheme", "light")
	b.navigate(s.url + "/")
	b.connected()
	const background = `getComputedStyle(document.body).backgroundColor`
	light := run[string](b, background)
	b.prefer("prefers-color-scheme", "dark")
	b.until(background+` != %s`, light)
	dark := run[string](b, background)
	for run[*string](b, `document.documentElement.dataset.theme ?? null`) == nil || run[string](b, `document.documentElement.dataset.theme`) != "light" {
		b.click(`button[data-action=theme]`)
	}
	becomes(b, light, background)
	b.navigate(s.url + "/explorer")
	b.connected()
	becomes(b, light, background)
	b.click(`button[data-action=theme]`)
	becomes(b, dark, background)
}

func TestHelpIsAKeyAway(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, "#/pods")
	b.press("?")
	b.until(`document.querySelector("help-overlay dialog[open]")`)
	b.settled()
	b.fits(t, "help")
	assert.Contains(t, b.shown("help-overlay dialog"), "?")
	b.press(kb.Escape)
	b.until(`!document.querySelector("help-overlay dialog[open]")`)
	b.click(`button[data-action=help]`)
	b.until(`document.querySelector("help-overlay dialog[open]")`)
}

func TestActorsAreATreeThatOpens(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := blank(t, s)
	// A mailbox that is empty again in no time is said to hold seven messages.
	b.do(called(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const real = window.fetch
		window.fetch = async (...args) => {
			const answer = await real(...args)
			if (!String(args[0]?.url ?? args[0]).includes("v1/actors")) return answer
			const text = (await answer.text()).replace(/("path":"\/user\/pods\/rooms","mailbox":)0/g, "$17")
			return new Response(text, {status: answer.status, headers: answer.headers})
		}`}))
	b.navigate(s.url + "/#/actors")
	b.shows("#/actors")
	const pods = `actor-tree [data-path="/user/pods"]`
	if !run[bool](b, `Boolean(document.querySelector(%s))`, pods) {
		b.click(`actor-tree [data-path="/user"] button[data-action=toggle]`)
	}
	b.until(`document.querySelector(%s)`, pods)
	if run[string](b, `document.querySelector(%s).getAttribute("aria-expanded")`, pods) != "true" {
		b.click(pods + ` button[data-action=toggle]`)
	}
	becomes(b, "7", `document.querySelector('actor-tree [data-path="/user/pods/rooms"] [data-field=mailbox]')?.dataset.mailbox`)
	becomes(b, "0", `document.querySelector('actor-tree [data-path="/user/pods/floors"] [data-field=mailbox]')?.dataset.mailbox`)
	b.fits(t, "actors")
}

// A dead letter shows while the view is open, and not while it is paused.
func TestDeadLettersShowAsTheyHappen(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, "#/deadletters")
	const numbers = `[...document.querySelectorAll("dead-letters tr[data-number]")].map(r => +r.dataset.number)`
	becomes(b, []int{}, numbers)
	deadLetter(t, s)
	b.until(numbers + `.length > 0`)
	b.has(`dead-letters tr[data-number="1"][data-to]`)
	b.click(`dead-letters button[data-action=pause]`)
	b.until(`document.querySelector("dead-letters button[data-action=pause]").getAttribute("aria-pressed") == "true"`)
	letters := deadLetter(t, s)
	b.click(`dead-letters button[data-action=pause]`)
	b.until(numbers+`.includes(%s)`, letters[len(letters)-1].Number)
	got := run[[]int](b, numbers)
	for i := 1; i < len(got); i++ {
		require.Equal(t, got[i-1]-1, got[i], "newest first, none missing, none twice: %v", got)
	}
}

// deadLetter has the server write at least one dead letter more, and returns
// all: an answer that comes when its asker has gone.
func deadLetter(t *testing.T, s *server) []client.DeadLetter {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *patience)
	defer cancel()
	c := s.api()
	_, before, err := c.DeadLetters(ctx)
	require.NoError(t, err)
	for {
		var asking sync.WaitGroup
		for range 40 {
			asking.Go(func() {
				_, _ = s.ask(ctx, http.MethodPost, "/v1/pods/rooms/entities/annex-1-1/messages/enter?timeout=1ms", `{"people":1}`)
			})
		}
		asking.Wait()
		letters, count, err := c.DeadLetters(ctx)
		require.NoError(t, err)
		if count > before && len(letters) > 0 {
			return letters
		}
	}
}
