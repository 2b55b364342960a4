package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/twinsrv/twinsrv/client"
)

type exportCommand struct {
	Pods   []string `arg:"" optional:"" complete:"pods" help:"The pods; left out, all."`
	Format string   `enum:"ndjson" default:"ndjson" placeholder:"FORMAT" help:"The form of the lines: ${enum}."`
	File   string   `short:"f" placeholder:"FILE" complete:"files" help:"Write this file, which appears when all of it is on disk, in place of the standard output."`
	Force  bool     `help:"Replace FILE if it exists."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (exportCommand) Help() string {
	return "Each pod is a line with its definition, and each entity one with its state, as it is when it is read; writers work on meanwhile. " +
		"The last line has the member end: without it the export is not whole. `twinsrv import ndjson` reads it.\n\n" +
		Examples(
			"twinsrv export rooms -f rooms.ndjson",
			"twinsrv export > everything.ndjson",
			"twinsrv export rooms machines | gzip > two-pods.ndjson.gz",
			"twinsrv export rooms | twinsrv import ndjson - --pod rooms-copy",
		)
}

// exported counts what an export has.
type exported struct {
	File       string `json:"file,omitempty"`
	Pods       int    `json:"pods"`
	Entities   int    `json:"entities"`
	Unreadable int    `json:"unreadable,omitempty"`
	Bytes      int64  `json:"bytes"`
}

// Run writes the lines.
func (c *exportCommand) Run(ctx context.Context) error {
	if c.File == "" {
		if c.Force {
			return Usagef("--force replaces a file: name one with --file")
		}
		_, err := c.export(ctx, os.Stdout)
		return err
	}
	if err := Refuse(c.File, c.Force); err != nil {
		return err
	}
	var done exported
	var partly error // its file stands
	size, err := SaveFile(c.File, c.Force, func(w io.Writer) (err error) {
		done, err = c.export(ctx, w)
		if done.Unreadable > 0 && ExitCode(err) == ExitPartial {
			partly, err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	done.File, done.Bytes = c.File, size
	err = c.Print(done, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s has %d entities of %d pods, in %d bytes\n", Printable(c.File), done.Entities, done.Pods, size)
		return err
	})
	if err != nil {
		return err
	}
	return partly
}

// export writes the lines to w.
func (c *exportCommand) export(ctx context.Context, w io.Writer) (done exported, err error) {
	bar := NewBar(os.Stderr, "entities")
	if w == os.Stdout && isTerminal(os.Stdout) {
		bar = nil // they are to be seen themselves
	}
	defer bar.End()
	out := bufio.NewWriterSize(w, 64<<10)
	format := exportFormats(out)[c.Format]
	err = c.stream(ctx, func(ctx context.Context, s *Session) error {
		lines := patient(ctx, s, func(ctx context.Context) iter.Seq2[client.Line, error] { return s.Export(ctx, "", c.Pods...) })
		for l, err := range lines {
			if err != nil {
				_ = out.Flush() // what came stands; that it has no end says that it is not all
				return err
			}
			switch {
			case l.Definition != nil:
				done.Pods++
			case l.Quarantined != "":
				done.Unreadable++
				bar.End()
				note("%s cannot be read, and its line has no state: %s", Printable(l.Pod+"/"+l.Name), Printable(l.Quarantined))
				fallthrough
			default:
				done.Entities++
			}
			if err := format.line(l); err != nil {
				return err
			}
			bar.Show(int64(done.Entities), 0)
		}
		if err := format.end(done.Entities); err != nil {
			return err
		}
		return out.Flush()
	})
	if err == nil && done.Unreadable > 0 {
		err = &failure{code: ExitPartial, text: fmt.Sprintf("%d of %d entities cannot be read; `twinsrv quarantine list` says more", done.Unreadable, done.Entities)}
	}
	return done, err
}
