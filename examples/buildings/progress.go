package main

import (
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressFunc shows how far a feed is.
type progressFunc struct {
	update func(answered int)
	end    func()
}

// quiet shows nothing.
func quiet(int) progressFunc {
	return progressFunc{update: func(int) {}, end: func() {}}
}

// bar shows a progress bar on a terminal, and nothing anywhere else.
func bar(terminal *os.File) func(total int) progressFunc {
	if !term.IsTerminal(int(terminal.Fd())) {
		return quiet
	}
	return func(total int) progressFunc {
		b := progressbar.NewOptions(total,
			progressbar.OptionSetWriter(terminal),
			progressbar.OptionSetDescription("readings"),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("readings"),
			progressbar.OptionClearOnFinish(),
		)
		return progressFunc{
			// A bar that cannot be drawn is no reason to stop.
			update: func(answered int) { _ = b.Set(answered) },
			end:    func() { _ = b.Clear() },
		}
	}
}
