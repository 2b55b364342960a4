package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/cli"
)

// commandLine is what the program understands.
type commandLine struct {
	Serve serveCommand `cmd:"" default:"withargs" help:"Serve the pods of a store over HTTP (the default)."`
	cli.Commands
	Store   storeCommands  `cmd:"" help:"Look after a store: migrate, check, copy, compact, backup, restore, discard its commit log."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

func exitCode(err error) int {
	if errors.Is(err, ErrStore) || errors.Is(err, ErrListen) || errors.Is(err, ErrTokens) {
		return cli.ExitUsage
	}
	return cli.ExitCode(err)
}

// Main is the program twinsrv with typed pods added: it reads the command line,
// does what that says (without a command: serves until SIGINT or SIGTERM), and
// exits: with 0, with 1 when it failed, with 2 when it was used wrongly, or with
// one of the other codes that its help lists. A second signal ends it at once.
func Main(definitions ...entity.Definition) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal does what signals do
	err := run(ctx, os.Args, definitions)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil && cli.ExitCode(err) != cli.ExitInterrupted {
		err = cli.ErrInterrupted
	}
	stop()
	if err = cli.Quiet(err); err != nil {
		if text := err.Error(); text != "" { // else all has been said
			fmt.Fprintf(os.Stderr, "%s: error: %s\n", filepath.Base(os.Args[0]), text)
		}
		os.Exit(exitCode(err))
	}
}

func run(ctx context.Context, args []string, definitions []entity.Definition) error {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name(filepath.Base(args[0])), kong.Description("A server of digital twins that keeps what it acknowledges, and commands that talk to one.\n\n"+cli.ExitHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars{"data": DefaultData, "listen": DefaultListen, "server": "http://" + DefaultListen, "stores": storeForms},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args[1:])
	if err != nil {
		return cli.Usagef("%w; `%s --help` says what there is", cli.Nearest(parser, args[1:], err), helpFor(parser, err))
	}
	return parsed.Run(given(parsed), definitions)
}

// helpFor is the command whose help is wanted after a wrong command line.
func helpFor(parser *kong.Kong, err error) string {
	command := parser.Model.Name
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		for _, p := range wrong.Context.Path {
			if p.Command != nil && p.Command.Name != "serve" { // serve is also what stands for no command at all
				command += " " + p.Command.Name
			}
		}
	}
	return command
}

// flags are the names of those that stand on the command line, and not just in
// the environment.
type flags map[string]bool

func given(parsed *kong.Context) flags {
	f := flags{}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			f[p.Flag.Name] = true
		}
	}
	return f
}

// storeFlags say which store a command is about.
type storeFlags struct {
	Store string `env:"TWINSRV_STORE" placeholder:"STORE" help:"The store: ${stores}."`
	Data  string `env:"TWINSRV_DATA" placeholder:"DIR" help:"Short for --store bolt:DIR (${data})."`
}

// asFoundFlag is of commands that may open a json store whose files went or came.
type asFoundFlag struct {
	IgnoreMissing bool `help:"Take the entities of a store in JSON files as they are found, where it is refused because files went or came while no program had it open."`
}

// settle leaves at most one of the two: the command line goes before the
// environment.
func (f *storeFlags) settle(given flags) error {
	switch {
	case f.Store == "" || f.Data == "":
	case given["store"] && given["data"]:
		return cli.Usagef("--store and --data both say where the store is: give one of them")
	case given["data"]:
		f.Store = ""
	default:
		f.Data = ""
	}
	return nil
}

// target returns the store that is meant.
func (f *storeFlags) target(given flags) (target, error) {
	if err := f.settle(given); err != nil {
		return target{}, err
	}
	return Config{Store: f.Store, Data: f.Data}.target()
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	_, err := fmt.Println(version())
	return err
}

// version is that of the program's module, as it was built.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
