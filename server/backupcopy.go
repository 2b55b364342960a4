package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
)

// backupCopy writes a backup of a bolt store without writing to the store's disk:
// it copies the file into another folder, folds into the copy what the commit
// log has, and writes that. The log and the file stay as they are.
func (t target) backupCopy(ctx context.Context, w io.Writer, other string) (err error) {
	// While the file is open nobody else has it or its log.
	file, err := bolt.Open(t.boltPath(), bolt.Config{VerifyFirst: true, CommitLog: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	needed, err := t.needsLog(ctx, file)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(other, ".twinsrv-backup-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	to := target{kind: kindBolt, at: scratch}
	if err := copyFile(to.boltPath(), t.boltPath()); err != nil {
		return err
	}
	if needed {
		if err := foldInto(ctx, to.boltPath(), t.logPath()); err != nil {
			return err
		}
	}
	whole, err := os.Open(to.boltPath())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, whole)
	return errors.Join(err, whole.Close())
}

// foldInto folds what a log has into a copy of its store's file, which is then
// one that has no log.
func foldInto(ctx context.Context, path, log string) error {
	file, err := bolt.Open(path, bolt.Config{VerifyFirst: true, CommitLog: true})
	if err != nil {
		return err
	}
	logged, err := commitlog.Open(log, file, commitlog.Config{NoBackground: true})
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(logged.Fold(ctx), logged.Close()); err != nil {
		return fmt.Errorf("fold the commit log into a copy of its store: %w", err)
	}
	return nil
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
