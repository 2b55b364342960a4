package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/cli"
)

type serveCommand struct {
	storeFlags
	asFoundFlag
	Listen      string        `default:"${listen}" env:"TWINSRV_LISTEN" placeholder:"ADDR" help:"Address to serve on; port 0 picks a free one (${default})."`
	TokenFile   string        `env:"TWINSRV_TOKEN_FILE" placeholder:"FILE" help:"Let in only who brings a token of this file, whose lines are read TOKEN or write TOKEN. Needed for addresses other than loopback. SIGHUP has it read again."`
	Insecure    bool          `help:"Allow addresses other than loopback and any Host header without tokens: whoever reaches the address may do everything."`
	CommitLog   bool          `env:"TWINSRV_COMMIT_LOG" default:"true" negatable:"" help:"Put a commit log in front of a store in bolt, so that it takes many more changes a second (on)."`
	KeepChanges uint64        `env:"TWINSRV_KEEP_CHANGES" default:"1000000" placeholder:"N" help:"How many changes the history keeps (${default})."`
	KeepFor     time.Duration `env:"TWINSRV_KEEP_FOR" placeholder:"DURATION" help:"Drop changes from the history that are older, such as 720h; without it age drops none."`
	IdleAfter   time.Duration `env:"TWINSRV_IDLE_AFTER" default:"10m" placeholder:"DURATION" help:"How long an entity stays in memory without a message (${default}); --idle-after=-1s means for ever."`
	MaxActive   int           `env:"TWINSRV_MAX_ACTIVE" default:"100000" placeholder:"N" help:"How many entities may be in memory (${default}); --max-active=-1 sets no bound."`
}

// Help says more than the list of flags.
func (serveCommand) Help() string {
	return cli.Examples(
		"twinsrv serve                                   # the store in ./twinsrv-data, on 127.0.0.1:8080",
		"twinsrv serve --data /var/lib/twinsrv --listen 127.0.0.1:9000",
		"twinsrv serve --store json:./twins",
		"twinsrv serve --store 'postgres://twins:secret@db.example/twins?sslmode=verify-full'",
		"twinsrv serve --no-commit-log                   # one file alone, and slower",
		"twinsrv serve --listen 0.0.0.0:8080 --token-file /etc/twinsrv/tokens",
		"twinsrv serve --keep-for 720h --keep-changes 5000000",
	)
}

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, given flags, definitions []entity.Definition) error {
	switch {
	case c.KeepChanges == 0:
		return cli.Usagef("--keep-changes must be at least 1")
	case c.KeepFor < 0:
		return cli.Usagef("--keep-for must not be negative")
	case c.IdleAfter == 0:
		return cli.Usagef("--idle-after must not be 0; --idle-after=-1s means for ever")
	case c.MaxActive == 0:
		return cli.Usagef("--max-active must not be 0; --max-active=-1 sets no bound")
	}
	at, err := c.target(given)
	if err != nil {
		return err
	}
	return Run(ctx, Config{
		Store: c.Store, Data: c.Data, Listen: c.Listen, Insecure: c.Insecure, TokenFile: c.TokenFile, Definitions: definitions,
		NoCommitLog: !c.CommitLog, IgnoreMissing: c.IgnoreMissing,
		KeepChanges: c.KeepChanges, KeepFor: c.KeepFor, IdleAfter: c.IdleAfter, MaxActive: c.MaxActive,
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Version: version(),
		Ready: func(addr net.Addr) {
			fmt.Printf("serving %s on http://%s\n", at, addr)
		},
	})
}
