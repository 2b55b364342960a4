package server

import (
	"os"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist"
)

// stageBar shows on a terminal how far something is that has several stages. A
// nil one shows nothing.
type stageBar struct {
	bar *cli.Bar

	copied int64 // parts before the stage "verify", which reads them twice
	last   int64 // part that it has read
	again  int64 // what the first reading of it has read, in the second
}

// newStageBar returns nil when out is no terminal.
func newStageBar(out *os.File) *stageBar {
	bar := cli.NewBar(out, "")
	if bar == nil {
		return nil
	}
	return &stageBar{bar: bar}
}

// end removes what is drawn.
func (b *stageBar) end() {
	if b != nil {
		b.bar.End()
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
			b.bar.ShowStage(p.Doing, int64(p.Position), int64(p.Through))
		case "verify":
			if n < b.last { // the second store is being read
				b.again = b.last
			}
			b.last = n
			b.bar.ShowStage(p.Doing, b.again+n, 2*b.copied)
		default:
			b.bar.ShowStage(p.Doing, n, 0)
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
			b.bar.ShowStage(p.Doing, int64(p.Position), int64(p.Through))
		case "rows":
			b.bar.ShowStage(p.Doing, int64(p.Rows), 0)
		default:
			b.bar.ShowStage(p.Doing, int64(p.Records), 0)
		}
	}
}
