package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/twinsrv/twinsrv/entity"
)

// commandLine is what the program understands.
type commandLine struct {
	Serve   serveCommand   `cmd:"" default:"withargs" help:"Serve the pods of a data folder over HTTP (the default)."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

type serveCommand struct {
	Data     string `default:"${data}" env:"TWINSRV_DATA" placeholder:"DIR" help:"Folder that holds the store; made if it is missing (${default})."`
	Listen   string `default:"${listen}" env:"TWINSRV_LISTEN" placeholder:"ADDR" help:"Address to serve on; port 0 picks a free one (${default})."`
	Insecure bool   `help:"Allow addresses other than loopback and any Host header. There is no authentication: whoever reaches the address may do everything."`
}

type versionCommand struct{}

// Main is the program twinsrv with typed pods added: it reads the command line,
// serves until SIGINT or SIGTERM, and exits. A second signal ends it at once.
func Main(definitions ...entity.Definition) {
	if err := run(os.Args, definitions); err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

func run(args []string, definitions []entity.Definition) error {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name(filepath.Base(args[0])), kong.Description("A server of digital twins that keeps what it acknowledges."),
		kong.UsageOnError(), kong.Vars{"data": DefaultData, "listen": DefaultListen},
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args[1:])
	parser.FatalIfErrorf(err)
	return parsed.Run(definitions)
}

// Run serves until a signal.
func (c *serveCommand) Run(definitions []entity.Definition) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal does what signals do
	if c.Data == "" {
		c.Data = DefaultData
	}
	return Run(ctx, Config{
		Data: c.Data, Listen: c.Listen, Insecure: c.Insecure, Definitions: definitions,
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Version: version(),
		Ready: func(addr net.Addr) {
			fmt.Printf("serving %s on http://%s\n", c.Data, addr)
		},
	})
}

// Run prints the version.
func (versionCommand) Run() error {
	fmt.Println(version())
	return nil
}

// version is that of the program's module, as it was built.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
