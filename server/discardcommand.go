package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist/bolt"
)

type storeDiscardLog struct {
	Yes bool `help:"Do it: what stands in the log alone is lost."`
	storeFlags
}

// Help says more than the list of flags.
func (storeDiscardLog) Help() string {
	return "It is for bolt:DIR when its commit log is damaged, missing or another store's, and there is no backup to be restored. " +
		"What was acknowledged last and stands in the log alone is lost: about the last second before the server ended, and more if its disk was slow. " +
		"If the server was folding then, some entities are newer than others, and `twinsrv store check` may find their histories inconsistent. The log is moved aside and not deleted. " +
		"A log that can be read is not discarded.\n\n" +
		cli.Examples("twinsrv store discard-log --data ./twinsrv-data", "twinsrv store discard-log --data ./twinsrv-data --yes")
}

// Run takes the log away from a store that does not open with it.
func (c *storeDiscardLog) Run(ctx context.Context, given flags) error {
	t, err := c.target(given)
	if err != nil {
		return err
	}
	if t.kind != kindBolt {
		return cli.Usagef("%s has no commit log: stores of the kind %s have", t, kindBolt)
	}
	store, err := t.openExisting(ctx, commandLog())
	if err == nil {
		if err := store.Close(); err != nil {
			return fmt.Errorf("close the store: %w", err)
		}
		fmt.Printf("%s needs nothing to be discarded: everything that was acknowledged can be read\n", t)
		return nil
	}
	if !logLost(err) {
		return err
	}
	if !c.Yes {
		return cli.Usagef("%w; what was acknowledged last would be lost: repeat it with --yes if it may be", err)
	}
	aside, err := t.discardLog(ctx)
	if err != nil {
		return fmt.Errorf("discard the commit log of %s: %w", t, err)
	}
	fmt.Printf("%s goes on without its commit log\n", t)
	if aside != "" {
		fmt.Printf("the log is in %s now, and may be deleted\n", aside)
	}
	return nil
}

// discardLog moves the log aside, and removes the file's mark of it. Where it is
// interrupted between the two, the log is missing, and the command can be run
// again.
func (t target) discardLog(ctx context.Context) (aside string, err error) {
	file, err := bolt.Open(t.boltPath(), bolt.Config{VerifyFirst: true, CommitLog: true})
	if err != nil {
		return "", err
	}
	err = withStore(file, func() (err error) {
		if aside, err = t.moveLog(); err != nil {
			return err
		}
		if err = file.Detach(ctx); err != nil && aside != "" {
			err = errors.Join(err, os.Rename(aside, t.logPath()))
		}
		return err
	})
	return aside, err
}

// moveLog gives the log's folder another name, if there is one.
func (t target) moveLog() (aside string, err error) {
	if has, err := t.hasLog(); err != nil || !has {
		return "", err
	}
	for i := 1; ; i++ {
		aside = fmt.Sprintf("%s.discarded-%d", t.logPath(), i)
		if _, err := os.Lstat(aside); err != nil {
			break // it does not exist, or renaming says why not
		}
	}
	if err := os.Rename(t.logPath(), aside); err != nil {
		return "", err
	}
	return aside, cli.SyncFolder(filepath.Dir(aside))
}
