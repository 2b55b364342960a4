package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/postgres"
)

const (
	boltFile = "twinsrv.db" // the store in the folder of bolt:DIR
	jsonFile = "store.json" // what the folder of json:DIR always has
)

// OpenStore opens the store that a target such as those of Config.Store names,
// and makes it if it is missing. Whoever opens it closes it. It fails with
// ErrStore when the target names none, and with ErrInUse when another process
// has it open. Errors do not repeat passwords. log gets what people should know
// about the store; nil discards. A store in bolt gets its commit log in front, as
// a server's does.
func OpenStore(ctx context.Context, named string, log *slog.Logger) (persist.PersistenceService, error) {
	t, err := parseTarget(named)
	if err != nil {
		return nil, err
	}
	return t.open(ctx, log, withLog)
}

// open opens the store and makes it if it is missing. use is for bolt.
func (t target) open(ctx context.Context, log *slog.Logger, use logUse) (persist.PersistenceService, error) {
	return t.openAs(ctx, log, bolt.Config{}, use)
}

func (t target) openAs(ctx context.Context, log *slog.Logger, cfg bolt.Config, use logUse) (persist.PersistenceService, error) {
	if t.files() {
		if err := t.onlyKind(); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(t.at, 0o700); err != nil {
			return nil, fmt.Errorf("make the data folder: %w", err)
		}
	}
	var store persist.PersistenceService
	var err error
	switch t.kind {
	case kindBolt:
		store, err = t.openBolt(ctx, log, cfg, use)
	case kindJSON:
		store, err = jsonfile.Open(t.at, jsonfile.Config{IgnoreMissing: t.asFound, Logger: log})
	case kindPostgres:
		store, err = postgres.Open(ctx, t.at, postgres.Config{Logger: log})
	default:
		// Lives count on from the time, so that a client that knows an entity of
		// an earlier run does not take a new one for it.
		return memory.Open(memory.Config{FirstPosition: uint64(max(time.Now().UnixMicro(), 0))}), nil
	}
	if err != nil {
		return nil, t.whyClosed(err)
	}
	return store, nil
}

// openExisting is open for a store that must be there, with the log that it may
// have. A damaged file is refused at once.
func (t target) openExisting(ctx context.Context, log *slog.Logger) (persist.PersistenceService, error) {
	if err := t.mustExist(); err != nil {
		return nil, err
	}
	if t.kind == kindPostgres {
		// A database without the tables is no store to be made on the way.
		store, err := postgres.Open(ctx, t.at, postgres.Config{Logger: log, NoMigrate: true})
		if err != nil {
			return nil, t.whyClosed(err)
		}
		return store, nil
	}
	return t.openAs(ctx, log, bolt.Config{VerifyFirst: true}, logAsLeft)
}

// openDamaged opens a store that must be there for reading alone, also if its
// file or its commit log is damaged; damage says in which way. What cannot be
// read of the file shows as errors of the reading; what a damaged log has is not
// seen. A file that cannot be written to is read as it is.
func (t target) openDamaged(ctx context.Context, log *slog.Logger) (store persist.PersistenceService, damage, err error) {
	store, err = t.openExisting(ctx, log)
	if t.kind == kindBolt && unwritable(err) {
		store, err = t.openUnwritable(ctx)
	}
	var second error
	switch {
	case t.kind == kindBolt && errors.Is(err, bolt.ErrDamaged):
		store, second = t.openBroken(ctx, log)
	case t.kind == kindBolt && logLost(err):
		store, second = bolt.Open(t.boltPath(), bolt.Config{VerifyFirst: true, CommitLog: true})
	default:
		return store, nil, err
	}
	if second != nil {
		return nil, nil, err
	}
	return store, err, nil
}

// openUnwritable opens bolt's file where nothing can be written. That is the
// whole store if no log stands in front of it.
func (t target) openUnwritable(ctx context.Context) (persist.PersistenceService, error) {
	file, err := bolt.Open(t.boltPath(), bolt.Config{ReadOnly: true, CommitLog: true})
	if err != nil {
		return nil, t.whyClosed(err)
	}
	mark, err := file.Mark(ctx)
	if err == nil && mark.Log != 0 && !mark.Detached {
		err = fmt.Errorf("%s cannot be written to, and what was acknowledged last stands in its commit log: %s", t, elsewhere)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// elsewhere is what to do with a store that cannot be written to.
const elsewhere = "copy all of its folder to where files can be written, and use the copy"

// unwritable says whether a store did not open because nothing can be written
// there.
func unwritable(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

func (t target) boltPath() string { return filepath.Join(t.at, boltFile) }

// mustExist refuses a store that would have to be made first.
func (t target) mustExist() error {
	path := ""
	switch t.kind {
	case kindBolt:
		path = t.boltPath()
	case kindJSON:
		path = filepath.Join(t.at, jsonFile)
	case kindMemory:
		return fmt.Errorf("%w: a store in memory ends with its server: there is nothing to be found", ErrStore)
	default:
		return nil
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if err := t.onlyKind(); err != nil {
			return err
		}
		return fmt.Errorf("%s: there is no store: %w; say where it is with --store", t, err)
	case err != nil:
		return fmt.Errorf("%s: %w", t, err)
	}
	return nil
}

// onlyKind refuses a folder that holds a store of the other kind, beside which
// an empty one would be made.
func (t target) onlyKind() error {
	other, path := kindJSON, filepath.Join(t.at, jsonFile)
	if t.kind == kindJSON {
		other, path = kindBolt, filepath.Join(t.at, boltFile)
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%w: %s holds a store of the other kind: use %s:%s, or copy it with `twinsrv store copy %s:%s %s:ANOTHER_DIR`",
			ErrStore, t.at, other, t.at, other, t.at, t.kind)
	}
	return nil
}

// whyClosed says why the store did not open.
func (t target) whyClosed(err error) error {
	switch {
	case errors.Is(err, bolt.ErrLocked) || errors.Is(err, jsonfile.ErrLocked):
		return fmt.Errorf("%w: another process serves %s; stop that one, or give this one a folder of its own", ErrInUse, t.at)
	case errors.Is(err, postgres.ErrLocked):
		return fmt.Errorf("%w: %w", ErrInUse, err)
	case logLost(err):
		return fmt.Errorf("open the store %s: %w; with none of that, `twinsrv store discard-log` goes on without what the log has", t, err)
	case errors.Is(err, bolt.ErrLogged):
		return fmt.Errorf("open the store %s: its commit log could not be folded into it, and is still needed: start without --no-commit-log, or make room: %w", t, err)
	}
	if t.files() && unwritable(err) {
		return fmt.Errorf("open the store %s: %w: opening it writes to it; %s", t, err, elsewhere)
	}
	return fmt.Errorf("open the store %s: %w", t, err)
}
