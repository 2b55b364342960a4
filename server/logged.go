package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
)

// logFolder is the commit log in the folder of bolt:DIR. What was acknowledged
// last may stand in it alone, so that nobody reads the store's file without it.
const logFolder = "commit-log"

// logUse says what is to be in front of bolt's file.
type logUse int

const (
	// withLog puts the log in front, and makes it if it is missing.
	withLog logUse = iota
	// withoutLog folds into the file what a log has, and leaves it aside.
	withoutLog
	// logAsLeft puts the log in front if there is one. It is for commands, which
	// make none.
	logAsLeft
)

func (t target) logPath() string { return filepath.Join(t.at, logFolder) }

// openBolt opens bolt's file with its log in front, or without.
func (t target) openBolt(ctx context.Context, log *slog.Logger, cfg bolt.Config, use logUse) (persist.PersistenceService, error) {
	if err := t.strayLog(); err != nil {
		return nil, err
	}
	if use == withoutLog {
		return t.openPlain(ctx, log, cfg)
	}
	cfg.CommitLog = true
	file, err := bolt.Open(t.boltPath(), cfg)
	if err != nil {
		return nil, err
	}
	if use == logAsLeft {
		needed, err := t.needsLog(ctx, file)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if !needed {
			return file, nil
		}
	}
	logged, err := commitlog.Open(t.logPath(), file, commitlog.Config{Logger: log})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return logged, nil
}

// openPlain opens bolt's file without a log. What a log in front of it has is
// folded first: closing does that.
func (t target) openPlain(ctx context.Context, log *slog.Logger, cfg bolt.Config) (persist.PersistenceService, error) {
	file, err := bolt.Open(t.boltPath(), cfg)
	if err == nil {
		return file, nil
	}
	if !errors.Is(err, bolt.ErrLogged) {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log.Info("the commit log is switched off: what it has is folded into the store's file", "log", t.logPath())
	withLog := cfg
	withLog.CommitLog = true
	if file, err = bolt.Open(t.boltPath(), withLog); err != nil {
		return nil, err
	}
	logged, err := commitlog.Open(t.logPath(), file, commitlog.Config{Logger: log, NoBackground: true})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	folded := logged.Fold(ctx) // closing it would not say why that fails
	if err := errors.Join(folded, logged.Close()); err != nil {
		return nil, fmt.Errorf("its commit log could not be folded into it, and is still needed: start without --no-commit-log (or without TWINSRV_COMMIT_LOG=false), or make room if the disk is full: %w", err)
	}
	if file, err = bolt.Open(t.boltPath(), cfg); err != nil {
		return nil, err
	}
	log.Info("the commit log is folded and not used any more", "log", t.logPath())
	return file, nil
}

// openBroken opens bolt's file for reading, whatever is wrong with it. If its
// log can be opened, what that has is read, too; neither is written to.
func (t target) openBroken(ctx context.Context, log *slog.Logger) (persist.PersistenceService, error) {
	file, err := bolt.Open(t.boltPath(), bolt.Config{NoVerify: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if mark, err := file.Mark(ctx); err != nil || mark.Log == 0 || mark.Detached {
		return file, nil // to note that it has a log would write to it
	}
	logged, err := commitlog.Open(t.logPath(), file, commitlog.Config{NoBackground: true})
	if err != nil {
		log.Warn("the commit log cannot be read either: what was acknowledged last may be missing", "error", err)
		return file, nil
	}
	return brokenStore{logged, file}, nil
}

// brokenStore reads a damaged file and its log.
type brokenStore struct {
	*commitlog.Store
	file *bolt.Store
}

// Lost implements persist.Lossy.
func (b brokenStore) Lost() []persist.Problem { return b.file.Lost() }

// Close closes the file first, so that nothing is folded into it.
func (b brokenStore) Close() error { return errors.Join(b.file.Close(), b.Store.Close()) }

// needsLog says whether a log stands in front of a file, or lies beside it.
// Whether one that lies there is its own, the log finds out.
func (t target) needsLog(ctx context.Context, file *bolt.Store) (bool, error) {
	mark, err := file.Mark(ctx)
	if err != nil || mark.Log != 0 && !mark.Detached {
		return true, err
	}
	return t.hasLog()
}

// hasLog says whether something is in the log's folder.
func (t target) hasLog() (bool, error) {
	entries, err := os.ReadDir(t.logPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(entries) > 0, err
}

// strayLog refuses a folder with a log whose store is gone, beside which an
// empty one would be made: a store's file is there before its log.
func (t target) strayLog() error {
	if _, err := os.Stat(t.boltPath()); !errors.Is(err, fs.ErrNotExist) {
		return nil // opening it says what is wrong
	}
	has, err := t.hasLog()
	if err == nil && has {
		err = fmt.Errorf("the commit log %s is there, and its store's file %s is not: bring that back, or move the folder of the log away",
			t.logPath(), t.boltPath())
	}
	return err
}

// logLost reports whether a store did not open because of its log, whose file
// may be whole.
func logLost(err error) bool {
	return errors.Is(err, commitlog.ErrDamaged) || errors.Is(err, commitlog.ErrForeign) || errors.Is(err, commitlog.ErrMissing)
}
