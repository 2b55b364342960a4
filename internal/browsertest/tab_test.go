package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tab is a page in a window of its own, with a store and connections of its own.
// What it does, it does as a person would: by the mouse at a place, and by keys.
type tab struct {
	*witness
	t   *testing.T
	ctx context.Context
}

// open opens a page of the server in a new tab. When the test ends the witness
// is heard.
func open(t *testing.T, s *server, path string) *tab {
	t.Helper()
	b := blank(t, s)
	b.navigate(s.url + path)
	return b
}

// blank is a tab that has not opened anything yet.
func blank(t *testing.T, s *server) *tab {
	t.Helper()
	b := newTab(t, s.url)
	t.Cleanup(b.judge)
	return b
}

// newTab is a tab whose witness nobody hears yet. It is closed when the test
// ends.
func newTab(t *testing.T, origin string) *tab {
	t.Helper()
	w := &witness{origin: origin}
	ctx, cancel := chromedp.NewContext(theBrowser.open(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(w.hear))
	b := &tab{witness: w, t: t, ctx: ctx}
	t.Cleanup(cancel)
	// The first of all runs must have the tab's own context: with it the tab ends.
	require.NoError(t, chromedp.Do(ctx))
	b.do(
		called(log.Enable, cdp.Empty{}),
		called(network.Enable, network.EnableParams{}),
		called(runtime.AddBinding, runtime.AddBindingParams{Name: binding}),
		called(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: violations}),
		called(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
	)
	b.size(1280, 800)
	return b
}

// called is a command of the protocol whose answer nobody needs.
func called[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// do runs actions, or ends the test.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, *patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// navigate opens an address as the address bar does.
func (b *tab) navigate(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// hash goes to another view by the fragment of the address.
func (b *tab) hash(fragment string) {
	b.t.Helper()
	run[any](b, `void (location.hash = %s)`, fragment)
}

// size sets the size of the window in CSS pixels.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// prefer sets a preference of the person, such as prefers-color-scheme.
func (b *tab) prefer(name, value string) {
	b.t.Helper()
	b.do(called(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: name, Value: value}},
	}))
}

// run evaluates an expression of JavaScript in the page. Each %s in it stands
// for a value, which is put there as JSON.
func run[T any](b *tab, script string, values ...any) T {
	b.t.Helper()
	v, err := try[T](b, filled(b.t, script, values))
	require.NoError(b.t, err, script)
	return v
}

func try[T any](b *tab, script string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, *patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

func filled(t *testing.T, script string, values []any) string {
	t.Helper()
	list := make([]any, len(values))
	for i, v := range values {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		list[i] = string(data)
	}
	if len(list) == 0 {
		return script
	}
	return fmt.Sprintf(script, list...)
}

// until waits until an expression is true in the page.
func (b *tab) until(script string, values ...any) {
	b.t.Helper()
	script = filled(b.t, script, values)
	b.wait(func() (bool, string) {
		v, err := try[bool](b, "Boolean("+script+")")
		return v && err == nil, fmt.Sprintf("waited in vain for %s (%v)", script, err)
	})
}

// becomes waits until an expression has a value.
func becomes[T any](b *tab, want T, script string, values ...any) {
	b.t.Helper()
	script = filled(b.t, script, values)
	b.wait(func() (bool, string) {
		got, err := try[T](b, script)
		return err == nil && assert.ObjectsAreEqual(want, got), fmt.Sprintf("%s\n is     %#v (%v)\n and not %#v", script, got, err, want)
	})
}

// wait looks until it is done, or ends the test with what the last look said.
func (b *tab) wait(done func() (bool, string)) {
	b.t.Helper()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		ok, why := done()
		if ok {
			return
		}
		if time.Since(begun) > *patience {
			require.FailNow(b.t, why)
		}
	}
}

// judge hears the witness and, if anything is wrong, leaves a picture and what
// the console said.
func (b *tab) judge() {
	_, err := try[int](b, "1") // what happened before has been told when this is answered
	if err != nil {
		b.t.Errorf("the page does not answer: %v", err)
	}
	for _, fault := range b.faults() {
		b.t.Errorf("%s", fault)
	}
	if !b.t.Failed() {
		return
	}
	dir := b.t.ArtifactDir()
	b.t.Logf("the console (with a picture in %s; -artifacts keeps it):\n%s", dir, b.console())
	if text, err := try[string](b, "location.href + '\\n' + document.body.innerText"); err == nil {
		b.t.Logf("the page:\n%.4000s", text)
	}
	ctx, cancel := context.WithTimeout(b.ctx, *patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Logf("no picture: %v", err)
		return
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "page.png"), picture, 0o600),
		os.WriteFile(filepath.Join(dir, "console.txt"), []byte(b.console()), 0o600),
	} {
		if err != nil {
			b.t.Log(err)
		}
	}
}
