package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// redraw is how often a bar is drawn at most.
const redraw = 100 * time.Millisecond

// Bar shows on a terminal how far something is, which may have several stages. A
// nil one shows nothing.
type Bar struct {
	out   *os.File
	what  string
	stage string
	total int64
	bar   *progressbar.ProgressBar
}

// NewBar returns nil when out is no terminal. Show draws what, such as
// "entities".
func NewBar(out *os.File, what string) *Bar {
	if !isTerminal(out) {
		return nil
	}
	return &Bar{out: out, what: what}
}

// Show draws the one stage that there is; total 0 means that it is not known.
func (b *Bar) Show(done, total int64) {
	if b != nil {
		b.ShowStage(b.what, done, total)
	}
}

// ShowStage draws a stage; total 0 means that it is not known.
func (b *Bar) ShowStage(stage string, done, total int64) {
	if b == nil {
		return
	}
	if b.bar == nil || b.stage != stage || b.total != total {
		b.End()
		length := total
		if length == 0 {
			length = -1
		}
		b.stage, b.total = stage, total
		b.bar = progressbar.NewOptions64(length,
			progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(stage),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(redraw),
		)
		_ = b.bar.RenderBlank() // also of what is done before the first redrawing
	}
	_ = b.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
}

// End removes what is drawn.
func (b *Bar) End() {
	if b != nil && b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}
