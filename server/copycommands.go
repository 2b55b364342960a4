package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

type storeCopy struct {
	From           string `arg:"" help:"The store to read: ${stores}."`
	To             string `arg:"" help:"The store to write, which is made if it is missing and must be empty."`
	SkipUnreadable bool   `help:"Leave out what cannot be read, and list it, in place of stopping there."`
	asFoundFlag
}

// Help says more than the list of flags.
func (storeCopy) Help() string {
	return "Copies lives, revisions, positions, history and undelivered messages as they are, and then reads both stores to see that they are equal. " +
		"No server may run on either. A copy that was interrupted goes on when it is run again; until it is finished no server starts on it.\n\n" +
		cli.Examples(
			"twinsrv store copy bolt:./twinsrv-data json:./twins",
			"twinsrv store copy bolt:./twinsrv-data 'postgres://twins:secret@db.example/twins'",
			"twinsrv store copy --skip-unreadable bolt:./damaged bolt:./saved",
		)
}

// Run copies a store.
func (c *storeCopy) Run(ctx context.Context) error {
	from, err := parseTarget(c.From)
	if err != nil {
		return err
	}
	from.asFound = c.IgnoreMissing
	to, err := parseTarget(c.To)
	if err != nil {
		return err
	}
	switch {
	case to.kind == kindMemory:
		return cli.Usagef("a store in memory ends with its server: copy into one that stays")
	case from.same(to):
		return cli.Usagef("%s would be copied into itself", from)
	}
	report, err := c.copy(ctx, from, to)
	switch {
	case errors.Is(err, persist.ErrNotEmpty):
		return fmt.Errorf("%s: %w; give it a store of its own", to, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("the copy is not finished; run the same command again to go on with it: %w", cli.ErrInterrupted)
	case err != nil && !c.SkipUnreadable && (errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer)):
		return fmt.Errorf("%w (--skip-unreadable leaves out what cannot be read, also when the copy goes on)", err)
	case err != nil:
		return err
	}
	return printCopy(os.Stdout, from, to, &report)
}

// copy opens both stores and copies the one into the other.
func (c *storeCopy) copy(ctx context.Context, from, to target) (report persist.CopyReport, err error) {
	source, err := c.openSource(ctx, from)
	if err != nil {
		return report, err
	}
	err = withStore(source, func() error {
		destination, err := to.open(ctx, commandLog(), logAsLeft)
		if err != nil {
			return err
		}
		return withStore(destination, func() error {
			bar := newStageBar(os.Stderr)
			defer bar.end()
			report, err = persist.Copy(ctx, source, destination, persist.CopyOptions{
				SkipUnreadable: c.SkipUnreadable, Progress: bar.copying(),
			})
			return err
		})
	})
	return report, err
}

// openSource opens the store to be read. A file that is damaged is read for the
// sake of what can be saved of it alone.
func (c *storeCopy) openSource(ctx context.Context, from target) (persist.PersistenceService, error) {
	if !c.SkipUnreadable {
		return from.openExisting(ctx, commandLog())
	}
	store, damage, err := from.openDamaged(ctx, commandLog())
	if damage != nil {
		commandLog().Warn("the store is damaged: what cannot be read of it is left out, what its log has may be missing, and a pod whose definition is left out has to be defined again", "error", damage)
	}
	return store, err
}

func printCopy(w io.Writer, from, to target, r *persist.CopyReport) error {
	resumed := ""
	if r.Resumed {
		resumed = ", going on with an earlier copy"
	}
	_, err := fmt.Fprintf(w, "copied %s to %s%s\nverified %d records, %d rows and %d changes: both stores hold the same (SHA-256 %s)\n",
		from, to, resumed, r.Counts.Records, r.Counts.Rows, r.Counts.Changes, r.Digest)
	if err != nil || r.SkippedCount == 0 {
		return err
	}
	if _, err := fmt.Fprintf(w, "left out because they cannot be read: %d\n", r.SkippedCount); err != nil {
		return err
	}
	return printProblems(w, r.Skipped, r.SkippedCount)
}

// unfinishedCopy refuses to serve what is only a part of another store.
func unfinishedCopy(ctx context.Context, store persist.PersistenceService) error {
	_, err := store.Load(ctx, persist.Key{Pod: "$copy", Name: "progress"})
	if errors.Is(err, persist.ErrNotFound) {
		return nil
	}
	if err == nil || errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, snapshot.ErrNewer) {
		return errors.New("the store is a copy that was not finished: run `twinsrv store copy` again, which goes on with it")
	}
	return fmt.Errorf("look at the store: %w", err)
}
