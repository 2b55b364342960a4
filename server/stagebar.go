package server

import (
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/twinsrv/twinsrv/persist"
)

// stageBar shows on a terminal how far something is that has several stages. A
// nil one shows nothing.
type stageBar struct {
	out   *os.File
	stage string
	total int64
	bar   *progressbar.ProgressBar

	copied int64 // parts before the stage "verify", which reads them twice
	last   int64 // part that it has read
	again  int64 // what the first reading of it has read, in the second
}

// newStageBar returns nil when out is no terminal.
func newStageBar(out *os.File) *stageBar {
	if !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return &stageBar{out: out}
}

// show draws a stage; total 0 means that it is not known.
func (b *stageBar) show(stage string, done, total int64) {
	if b.bar == nil || b.stage != stage || b.total != total {
		b.end()
		length := total
		if length == 0 {
			length = -1
		}
		b.stage, b.total = stage, total
		b.bar = progressbar.NewOptions64(length,
			progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(stage),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		)
	}
	_ = b.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
}

// end removes what is drawn.
func (b *stageBar) end() {
	if b != nil && b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}

// copying returns what shows the progress of a copy, nil if nothing does.
func (b *stageBar) copying() func(persist.CopyProgress) {
	if b == nil {
		return nil
	}
	return func(p persist.CopyProgress) {
		n := int64(p.Counts.Records + p.Counts.Rows + p.Counts.Changes)
		switch p.Doing {
		case "changes":
			b.copied = n
			b.show(p.Doing, int64(p.Position), int64(p.Through))
		case "verify":
			if n < b.last { // the second store is being read
				b.again = b.last
			}
			b.last = n
			b.show(p.Doing, b.again+n, 2*b.copied)
		default:
			b.show(p.Doing, n, 0)
		}
	}
}

// checking returns what shows the progress of a check, nil if nothing does.
func (b *stageBar) checking() func(persist.CheckProgress) {
	if b == nil {
		return nil
	}
	return func(p persist.CheckProgress) {
		switch p.Doing {
		case "changes":
			b.show(p.Doing, int64(p.Position), int64(p.Through))
		case "rows":
			b.show(p.Doing, int64(p.Rows), 0)
		default:
			b.show(p.Doing, int64(p.Records), 0)
		}
	}
}
