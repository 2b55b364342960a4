package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
)

// Backups, restored stores and compacted ones have what is damaged as it is: the
// rest is worth having. What has been made is read once more, so that nobody
// takes it for whole.

// openFile opens bolt's file or the folder of a json store to look for what
// cannot be read.
func (t target) openFile() (persist.PersistenceService, error) {
	if t.kind == kindJSON {
		return jsonfile.Open(t.at, jsonfile.Config{Flush: -1})
	}
	return bolt.Open(t.boltPath(), bolt.Config{ReadOnly: true})
}

// backupUnreadable reads a backup. One of a json store is unpacked beside itself
// for that, and needs as much room.
func backupUnreadable(ctx context.Context, path string) (u persist.Unreadable, err error) {
	f, err := os.Open(path)
	if err != nil {
		return u, err
	}
	defer f.Close()
	switch kindOfBackup(f) {
	case kindBolt:
		return unreadableIn(ctx, func() (persist.PersistenceService, error) { return bolt.Open(path, bolt.Config{ReadOnly: true}) })
	case kindJSON:
	default:
		return u, errors.New("it is no backup of twinsrv")
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".reading-*")
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	unpacked := target{kind: kindJSON, at: filepath.Join(folder, "store")}
	if err := jsonfile.Restore(unpacked.at, f); err != nil {
		return u, err
	}
	return unreadableIn(ctx, unpacked.openFile)
}

// unreadableIn opens a store and looks for what cannot be read in it.
func unreadableIn(ctx context.Context, open func() (persist.PersistenceService, error)) (u persist.Unreadable, err error) {
	store, err := open()
	if err != nil {
		return u, err
	}
	err = withStore(store, func() (err error) {
		u, err = persist.FindUnreadable(ctx, store, 0)
		return err
	})
	return u, err
}

// tellUnreadable lists what cannot be read in what a command has made, and
// returns the error that such a command ends with.
func tellUnreadable(w io.Writer, what string, u *persist.Unreadable) error {
	n := u.Count()
	if n == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "cannot be read: %d\n", n); err != nil {
		return err
	}
	if err := printProblems(w, u.Problems, n); err != nil {
		return err
	}
	return cli.Partlyf("%s is there, but of what it has %s cannot be read; keep the backups from before the damage, which may have it", what, countsText(u))
}

// countsText is the counts that are not 0.
func countsText(u *persist.Unreadable) string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{u.Records, "record"}, {u.Changes, "change"}, {u.Rows, "row"}} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 "+c.what)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}
