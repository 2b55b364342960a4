package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres"
)

// storeCommands are about a store that no server has open, but for a backup with
// --server.
type storeCommands struct {
	Migrate    storeMigrate    `cmd:"" help:"Bring the tables of a store in PostgreSQL up to date."`
	Check      storeCheck      `cmd:"" help:"Read everything, change nothing, and report what cannot be read or belongs to nothing."`
	Copy       storeCopy       `cmd:"" help:"Copy a store into another one, of any kind, and compare the two."`
	Compact    storeCompact    `cmd:"" help:"Give room in the store's files back that nothing needs."`
	Backup     storeBackup     `cmd:"" help:"Write a backup: of a stopped server's store, or of a running server."`
	Restore    storeRestore    `cmd:"" help:"Make a store of a backup."`
	DiscardLog storeDiscardLog `cmd:"" help:"Go on without a commit log that is damaged or missing, and without what it has."`
}

// commandLog gets what stores have to tell to people.
func commandLog() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

type storeMigrate struct {
	storeFlags
}

// Help says more than the list of flags.
func (storeMigrate) Help() string {
	return "It may run while servers serve the store. A server brings its tables up to date by itself when it starts; this is for doing it before.\n\n" +
		cli.Examples("twinsrv store migrate --store 'postgres://twins:secret@db.example/twins'")
}

// Run applies what is missing and says so.
func (c *storeMigrate) Run(ctx context.Context, given flags) error {
	t, err := c.target(given)
	if err != nil {
		return err
	}
	if t.kind != kindPostgres {
		fmt.Printf("%s has nothing to migrate: every version reads what earlier ones wrote\n", t)
		return nil
	}
	done, err := postgres.Migrate(ctx, t.at)
	for _, m := range done.Applied {
		fmt.Printf("applied %d %s in %v\n", m.Version, m.Name, m.Took)
	}
	if err != nil {
		return err
	}
	fmt.Printf("schema %s is at version %d\n", done.Schema, done.Version)
	return nil
}

type storeCompact struct {
	storeFlags
}

// Help says more than the list of flags.
func (storeCompact) Help() string {
	return "Stop the server first. The new file is made beside the old one, which needs room for both, and is compared before it replaces it. What cannot be read of the store stays as it is and is listed, and the command ends with 8.\n\n" +
		cli.Examples("twinsrv store compact --data ./twinsrv-data")
}

// Run compacts the store.
func (c *storeCompact) Run(ctx context.Context, given flags) error {
	t, err := c.target(given)
	if err != nil {
		return err
	}
	if t.kind == kindPostgres {
		return cli.Usagef("PostgreSQL gives room back by itself (autovacuum); VACUUM FULL of the store's tables does it at once")
	}
	store, err := t.openExisting(ctx, commandLog())
	if err != nil {
		return err
	}
	before, after := t.size(), int64(0)
	var u persist.Unreadable
	err = withStore(store, func() error {
		compacter, ok := store.(persist.Compacter)
		if !ok {
			return cli.Usagef("%s keeps no room that nothing needs", t)
		}
		if err := compacter.Compact(ctx); err != nil {
			return err
		}
		after = t.size()
		var err error
		u, err = persist.FindUnreadable(ctx, store, 0)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s has %s, and had %s\n", t, bytesText(after), bytesText(before))
	return tellUnreadable(os.Stdout, "the compacted store "+t.String(), &u)
}

// withStore does something with a store and closes it.
func withStore(store persist.PersistenceService, f func() error) (err error) {
	defer func() {
		if closing := store.Close(); err == nil && closing != nil {
			err = fmt.Errorf("close the store: %w", closing)
		}
	}()
	return f()
}

// bytesText is a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
