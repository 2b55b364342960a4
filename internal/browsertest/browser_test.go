package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// theBrowser is the Chromium of all tests. The first that needs it starts it.
var theBrowser browser

type browser struct {
	start sync.Once
	err   error
	ctx   context.Context // of chromedp; nil unless it runs
	end   context.CancelFunc
	dir   string // its profile and home
}

// names are what a Chromium may be called. tools/scripts/need.sh looks for the
// same ones.
func names() []string {
	return []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
}

// chromium returns the path of the browser, or ends the test.
func chromium(t *testing.T) string {
	t.Helper()
	required := slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), "chromium")
	if os.Getenv("BROWSER") == "0" && !required {
		t.Skip("needs chromium: left out by BROWSER=0")
	}
	for _, name := range names() {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	why := "needs chromium: none of " + strings.Join(names(), ", ") + " is on the path"
	if required {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// open returns the context of the browser, which runs until the package's tests
// have ended.
func (b *browser) open(t *testing.T) context.Context {
	t.Helper()
	path := chromium(t)
	b.start.Do(func() { b.err = b.run(path) })
	require.NoError(t, b.err, "start %s", path)
	return b.ctx
}

func (b *browser) run(path string) (err error) {
	if b.dir, err = os.MkdirTemp("", "browsertest-"); err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(b.dir), chromedp.Env("HOME="+b.dir),
		chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-pings", true),
		chromedp.Flag("lang", "en-GB"), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("font-render-hinting", "none"), chromedp.DisableGPU,
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to be root in a sandbox
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(unread), chromedp.WithLogf(unread))
	b.end = func() { cancel(); end() }
	if err := chromedp.Do(ctx); err != nil {
		b.end()
		return err
	}
	b.ctx = ctx
	return nil
}

// unread drops what chromedp has to say: mostly of events that are newer than
// the protocol it was made for.
func unread(string, ...any) {}

// close ends the browser, if there is one, and waits until it is gone.
func (b *browser) close() error {
	if b.ctx != nil {
		ctx, cancel := context.WithTimeout(b.ctx, *patience)
		defer cancel()
		if err := chromedp.Cancel(ctx); err != nil {
			b.end()
			return fmt.Errorf("end the browser: %w", err)
		}
		b.end()
		chromedp.FromContext(b.ctx).Allocator.Wait()
	}
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}
