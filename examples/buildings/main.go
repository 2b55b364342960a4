// Command buildings is twinsrv with three typed pods: rooms, floors and
// buildings. Rooms are measured and entered; what they come to rolls up to
// their floor and their building.
//
// Without arguments it serves them with a simulated day, in a data folder of its
// own. With --metadata and --weather it feeds real buildings, of the form that
// the Building Data Genome Project publishes, and serves those.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/twinsrv/twinsrv/server"
)

// options is the command line.
type options struct {
	Metadata string `placeholder:"FILE" help:"Feed the buildings of this CSV file, in place of the simulated day."`
	Weather  string `placeholder:"FILE" help:"Feed the readings of this CSV file to those of the buildings whose column newweatherfilename names it."`
	Exit     bool   `help:"End when everything is fed, in place of serving on."`
	Data     string `default:"./buildings-data" env:"TWINSRV_DATA" placeholder:"DIR" help:"Folder that holds the store; made if it is missing (${default})."`
	Listen   string `default:"${listen}" env:"TWINSRV_LISTEN" placeholder:"ADDR" help:"Address to serve on; port 0 picks a free one (${default})."`
	Insecure bool   `help:"Allow addresses other than loopback. Without authentication whoever reaches the address may do everything."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does what signals do
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "buildings: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer, terminal *os.File) error {
	var o options
	parser, err := kong.New(&o, kong.Name("buildings"), kong.Vars{"listen": server.DefaultListen},
		kong.Description("Rooms, floors and buildings as twins: a simulated day, or real buildings from files."))
	if err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return err
	}
	work, err := o.work(out, terminal)
	if err != nil {
		return err
	}
	return o.serve(ctx, slog.New(slog.NewTextHandler(terminal, nil)), out, work)
}

// serve runs the server with the three pods and, beside it, the work; then it
// serves on until ctx ends, unless it is to exit.
func (o options) serve(ctx context.Context, log *slog.Logger, out io.Writer, work func(context.Context, pods) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return server.Run(ctx, server.Config{
		Data: o.Data, Listen: o.Listen, Insecure: o.Insecure, Definitions: definitions, Logger: log,
		Ready: func(addr net.Addr) { _, _ = fmt.Fprintf(out, "serving %s on http://%s\n", o.Data, addr) },
		Work: func(ctx context.Context, s *server.Server) error {
			h, err := findPods(s.Pods())
			if err != nil {
				return err
			}
			if err := work(ctx, h); err != nil || !o.Exit {
				return err
			}
			cancel()
			return nil
		},
	})
}

// work returns what is to be done once the pods run. It reads and checks the
// files, so that nothing is begun with bad ones.
func (o options) work(out io.Writer, terminal *os.File) (func(context.Context, pods) error, error) {
	switch {
	case o.Weather != "" && o.Metadata == "":
		return nil, errors.New("--weather needs --metadata, which says what buildings there are")
	case o.Metadata == "":
		return func(ctx context.Context, h pods) error { return simulateDay(ctx, out, h) }, nil
	}
	f, err := readFiles(o.Metadata, o.Weather)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, h pods) error { return feedFiles(ctx, out, h.buildings, f, bar(terminal)) }, nil
}
