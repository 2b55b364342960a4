package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// Backup implements persist.Backuper. What it writes is a file of this package,
// which Restore puts in its place and Open would open, too. The mark of a commit
// log is left out, and with it whatever stands in that log alone.
//
// The file is first copied to a temporary one beside it, which needs as much
// room, and that is written to w: however slowly w takes it, commits go on, and
// the pages that they no longer need are used again. While the copy lasts (as
// long as the disk takes to read and write the file once) they are not, so that
// the file can grow by what is committed in that time. Reads go on. A commit for
// which the file must be mapped anew waits until the copy is there, or its ctx ends:
// one that makes the file 64 GiB longer than it was when it was opened, and another
// GiB longer from then on. On Windows, on 32 bits, and where a process may not have
// so many addresses, less is enough for that.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	return s.BackupTelling(ctx, w, func() {})
}

// BackupTelling implements persist.TellingBackuper. It is Backup, and calls begun
// before the file is copied.
func (s *Store) BackupTelling(ctx context.Context, w io.Writer, begun func()) error {
	if err := s.whole(ctx); err != nil {
		return fmt.Errorf("back up: %w", err) // it names the file
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".backup-*")
	if err != nil {
		return s.notCopied(err)
	}
	_ = os.Remove(f.Name()) // where that works, no crash leaves it behind
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	marked := false
	err = s.viewLong(ctx, func(tx *bbolt.Tx) error {
		_, m, err := readMark(tx)
		if err != nil {
			return err
		}
		marked = m != persist.Mark{}
		begun()
		w := &watchedWriter{ctx: ctx, w: f, store: s}
		if _, err := tx.WriteTo(w); w.err == nil {
			return err
		}
		return w.err // bbolt's says it in a text
	})
	if err != nil {
		return s.notCopied(err)
	}
	send := func() error {
		// bbolt may have the file, so that its offset is not ours.
		if _, err := io.Copy(&watchedWriter{ctx: ctx, w: w}, io.NewSectionReader(f, 0, math.MaxInt64)); err != nil {
			return fmt.Errorf("write the backup of %s: %w", s.path, err)
		}
		return nil
	}
	if !marked {
		return send()
	}
	return unmark(f, send)
}

// notCopied is the error of a backup whose copy beside the file could not be made.
func (s *Store) notCopied(err error) error {
	if persist.IsNoRoom(err) {
		err = fmt.Errorf("%w: there is none for a copy beside the file: %w: %w", persist.ErrUnavailable, persist.ErrNoRoom, err)
	}
	return fmt.Errorf("back up %s: %w", s.path, err)
}

// unmark removes the mark of a commit log from a copy, which need not be durable,
// calls then, and closes the copy. That may have no name any more.
func unmark(f *os.File, then func() error) error {
	var db *bbolt.DB
	err := guard(f.Name(), func() (err error) {
		if db, err = bbolt.Open(f.Name(), 0o600, &bbolt.Options{
			Timeout: time.Millisecond, FreelistType: bbolt.FreelistArrayType, NoSync: true, NoGrowSync: true, NoStatistics: true,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil },
		}); err != nil {
			return err
		}
		return db.Update(func(tx *bbolt.Tx) error {
			plain, _, err := readMark(tx)
			if err != nil {
				return err
			}
			return putFormat(tx.Bucket([]byte(metaBucket)), plain, persist.Mark{})
		})
	})
	if err != nil {
		err = fmt.Errorf("leave the mark of the log out of the backup: %w", err)
	} else {
		err = then()
	}
	if db != nil && !isFault(err) {
		err = errors.Join(err, db.Close())
	}
	return err
}

// watchedWriter fails once its context has ended or, if it has one, its store
// wants to close.
type watchedWriter struct {
	ctx   context.Context
	w     io.Writer
	store *Store
	err   error // the first one
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	switch {
	case w.err != nil:
	case w.ctx.Err() != nil:
		w.err = w.ctx.Err()
	case w.store != nil && w.store.leaving.Load():
		w.err = fmt.Errorf("%w: the file is being closed", persist.ErrUnavailable)
	default:
		n, err := w.w.Write(b)
		w.err = err
		return n, err
	}
	return 0, w.err
}

// Restore makes the file at path of what Backup has written. It refuses, with an
// error that wraps fs.ErrExist, when something is there already, and with one
// that wraps ErrDamaged or ErrFormat when r does not give a whole file of this
// package, or ErrLogged when it is a copy of one with a commit log in front and
// no backup. Only a file that was checked and synced appears under that name.
func Restore(path string, r io.Reader) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s: %w", path, err)
		}
	}()
	if err := vacant(path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".restore-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := errors.Join(receive(f, r), f.Close()); err != nil {
		return err
	}
	// Opening it checks everything, and ends with a commit that is synced.
	o, err := open(f.Name(), Config{VerifyFirst: true}.withDefaults())
	if err != nil {
		return err
	}
	release(o.db, o.file, f.Name(), o.stuck)
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func vacant(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%w: move it away first, or restore into another", fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// receive writes a backup into a file, syncs it, and tests that it is whole:
// Open would make a new store of an empty one.
func receive(f *os.File, r io.Reader) error {
	size, err := io.Copy(f, r)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if fresh, err := unwritten(f, size); err != nil || fresh {
		return errors.Join(err, fmt.Errorf("%w: the backup is empty", ErrDamaged))
	}
	_, err = check(f, size, f.Name(), true)
	return err
}

// place gives a file its name, unless another has it.
func place(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// There are file systems without links.
	if err := vacant(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}
