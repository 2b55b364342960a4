package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/twinsrv/twinsrv/persist"
)

// newFilePages is what bbolt writes into a new file at once. A file of exactly
// this size that holds only zeros was being made when the power went.
const newFilePages = 4

// opened is a file that passed every check and whose contents are durable.
type opened struct {
	db      *bbolt.DB
	file    *os.File
	txid    uint64
	format  uint64 // see Store.format
	mark    persist.Mark
	next    uint64
	trimmed uint64
	kinds   map[string]struct{}
	logged  bool     // a log may stand in front of it
	made    bool     // the buckets were not there
	wanted  int64    // see Store.wanted
	mapped  int64    // see Store.mapped
	stuck   bool     // bbolt panicked while it held its locks
	walk    *walking // what is still to be checked; nil: nothing
	sound   *sound   // what is read of a damaged file; nil: all
}

// open locks, checks and settles the file and hands it to bbolt. A file whose
// check is not put off has to prove with one synced transaction that it takes
// writes, or that nothing but room is missing for them; of the others, settling
// shows it.
//
// The checks run before bbolt sees the file, on the very descriptor that it
// gets: it would panic on a damaged list of free pages, or ask for as much
// memory as noise says.
func open(path string, cfg Config) (opened, error) {
	o, err := openMapped(path, cfg, cfg.mapsAhead(path))
	if !errors.Is(err, syscall.ENOMEM) {
		return o, err
	}
	// The process may not have so many addresses.
	if o, err = openMapped(path, cfg, 0); err == nil && !cfg.ReadOnly {
		if err = syncDir(filepath.Dir(path)); err != nil { // the first try may have made it
			release(o.db, o.file, path, o.stuck)
		}
	}
	return o, err
}

// openMapped is open with so much of the file mapped at least.
func openMapped(path string, cfg Config, mapped int64) (o opened, err error) {
	fresh := false
	o.mapped = mapped
	o.logged = cfg.CommitLog || cfg.NoVerify
	options := &bbolt.Options{
		Timeout: max(cfg.LockTimeout, time.Millisecond), // 0 would wait for ever
		// The array gives what lies first. The map gives any, so that free pages
		// scatter until the list of them, which lies in one piece, fits nowhere:
		// then every commit makes the file longer by a list, and the list by the
		// pages of that. The price: a value of several pages takes longer to place
		// in a file with very many free pages, until it is compacted.
		FreelistType: bbolt.FreelistArrayType,
		// The list of free pages is written with every commit: it costs one page
		// mostly. Without that bbolt walks all pages at Open (on a goroutine of
		// its own, where a damaged page ends the process) and again whenever a
		// commit fails.
		NoFreelistSync: false,
		NoStatistics:   true,
		// As much as is mapped at once need not be mapped anew.
		InitialMmapSize: int(mapped),
		ReadOnly:        cfg.ReadOnly,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			if err != nil {
				return nil, err
			}
			if fresh, o.walk, err = prepare(f, name, cfg); err == nil && cfg.salvages() {
				o.sound, err = findSound(f, name)
			}
			if err != nil {
				return nil, errors.Join(err, f.Close())
			}
			o.file = f
			return f, nil
		},
	}
	err = guard(path, func() (err error) {
		o.db, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if err != nil {
		if o.file != nil {
			unlock(o.file) // bbolt has closed the file, unless it panicked
			_ = o.file.Close()
		}
		if errors.Is(err, bbolterrors.ErrTimeout) {
			err = ErrLocked
		}
		if !strings.Contains(err.Error(), path) {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return opened{}, err
	}
	if err = o.begin(path, cfg.ReadOnly); err == nil && fresh {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		release(o.db, o.file, path, o.stuck)
		return opened{}, err
	}
	return o, nil
}

// prepare takes the lock and checks and settles what is in the file. It says
// whether the file is new, and what is still to be checked.
func prepare(f *os.File, path string, cfg Config) (fresh bool, later *walking, err error) {
	if err := lock(f, cfg.LockTimeout); err != nil {
		return false, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return false, nil, err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(info, now) {
		return false, nil, fmt.Errorf("%s: %w: it was replaced meanwhile: try again", path, ErrLocked)
	}
	if fresh, err = unwritten(f, info.Size()); err != nil || fresh {
		if err == nil && cfg.ReadOnly {
			err = fmt.Errorf("%s: %w: it is empty", path, ErrDamaged)
		}
		if err == nil {
			err = f.Truncate(0)
		}
		return fresh, nil, err
	}
	if cfg.salvages() {
		return false, nil, nil
	}
	var m meta
	if cfg.VerifyFirst || cfg.NoVerify || cfg.ReadOnly {
		m, err = check(f, info.Size(), path, !cfg.NoVerify)
	} else {
		var c *checker
		if c, m, err = checkStart(f, info.Size(), path, false); err == nil {
			later, err = walkLater(c, m)
		}
	}
	if err != nil || cfg.ReadOnly {
		return false, nil, err
	}
	return false, later, settle(f, m, path)
}

// unwritten says whether nothing was ever committed to the file.
func unwritten(f io.ReaderAt, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	if size != int64(newFilePages*os.Getpagesize()) {
		return false, nil
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	for _, c := range b {
		if c != 0 {
			return false, nil
		}
	}
	return true, nil
}

// begin reads the store's own numbers, makes its buckets in a new file, and
// commits unless the file has not been checked yet. From here on everything that
// is read is durable: settling has seen to that, too.
func (o *opened) begin(path string, readOnly bool) error {
	var tx *bbolt.Tx
	if o.walk != nil || readOnly {
		if err := guard(path, func() error { return o.db.View(o.look) }); err != nil {
			return fmt.Errorf("prepare %s: %w", path, err)
		}
		return nil
	}
	err := guard(path, func() (err error) {
		if tx, err = o.db.Begin(true); err != nil {
			return err
		}
		pace(o.db, tx)
		if err = o.load(tx); err != nil {
			return err
		}
		o.txid = uint64(tx.ID())
		return tx.Commit()
	})
	if err != nil {
		if tx == nil {
			o.stuck = isFault(err)
		} else {
			o.stuck = isFault(guard(path, tx.Rollback)) // does nothing when the commit has ended it
			if o.lacksRoom(tx, err, path) {
				return nil
			}
		}
		return fmt.Errorf("prepare %s: %w", path, err)
	}
	return nil
}

// lacksRoom says whether a file is as it was, and can be read, though the first
// transaction has failed: for want of room.
func (o *opened) lacksRoom(tx *bbolt.Tx, failed error, path string) bool {
	if o.stuck || o.made || !noRoom(failed) {
		return false
	}
	m, ok, err := readMetas(o.file, path)
	if !ok || err != nil || m.txid != o.txid-1 {
		return false
	}
	o.txid, o.wanted = m.txid, pagesOf(tx)
	return true
}

// look is begin in a file that is still to be checked, or is only read.
func (o *opened) look(tx *bbolt.Tx) error {
	if o.walk != nil {
		// The other numbers have been checked; trimmedThrough looks at this, too.
		if err := o.walk.check(logBucket, span{most: 1}); err != nil {
			return err
		}
	}
	o.txid = uint64(tx.ID())
	return o.load(tx)
}

func (o *opened) load(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte(metaBucket))
	if b == nil {
		return o.create(tx)
	}
	if o.sound != nil {
		if err := o.loadSound(b); err != nil {
			return err
		}
		return haveBuckets(tx)
	}
	var ok bool
	var err error
	if o.format, ok, err = getNumber(b, formatKey); err != nil {
		return err
	}
	if err := knownFormat(o.format, ok); err != nil {
		return err
	}
	if o.format, o.mark, err = loadMark(b, o.format); err != nil {
		return err
	}
	if attached(o.mark) && !o.logged {
		return fmt.Errorf("%w: what was acknowledged may stand in the log beside it alone: open the two with commitlog.Open, or detach the log first", ErrLogged)
	}
	if o.next, ok, err = getNumber(b, nextKey); err != nil {
		return err
	} else if !ok || o.next == 0 {
		return fmt.Errorf("%w: the next position is missing", ErrDamaged)
	}
	if err := haveBuckets(tx); err != nil {
		return err
	}
	if o.trimmed, err = trimmedThrough(tx); err != nil {
		return err
	}
	o.trimmed = min(o.trimmed, o.next-1)
	o.kinds = map[string]struct{}{}
	c := b.Cursor()
	for k, v := c.Seek([]byte(kindPrefix)); strings.HasPrefix(string(k), kindPrefix); k, v = c.Next() {
		if _, _, err := unseal(metaBucket, k, v); err != nil {
			return err
		}
		o.kinds[string(k[len(kindPrefix):])] = struct{}{}
	}
	return nil
}

// haveBuckets refuses a file that lacks a bucket.
func haveBuckets(tx *bbolt.Tx) error {
	for _, name := range buckets() {
		if tx.Bucket([]byte(name)) == nil {
			return missing(tx, name)
		}
	}
	return nil
}

// missing is the error about a bucket whose name is not where it must be, in a
// file that has others of this program's.
func missing(tx *bbolt.Tx, name string) error {
	return damaged(tx.DB().Path(), uint64(tx.Cursor().Bucket().Root()), "the bucket %q is missing", name)
}

// create makes the buckets of a file that has none.
func (o *opened) create(tx *bbolt.Tx) error {
	ours := 0
	for _, name := range buckets() {
		if tx.Bucket([]byte(name)) != nil {
			ours++
		}
	}
	if ours > 1 { // another program may have one of such a name
		return missing(tx, metaBucket)
	}
	if k, _ := tx.Cursor().First(); k != nil {
		return fmt.Errorf("%w: it holds another program's bucket %q; use another file", ErrFormat, k)
	}
	for _, name := range buckets() {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	o.made = true
	o.format, o.next, o.kinds = formatFirst, 1, map[string]struct{}{}
	b := tx.Bucket([]byte(metaBucket))
	if err := putNumber(b, formatKey, o.format); err != nil {
		return err
	}
	return putNumber(b, nextKey, o.next)
}

func knownFormat(format uint64, ok bool) error {
	switch {
	case !ok:
		return fmt.Errorf("%w: it does not say its version", ErrFormat)
	case format > formatVersion:
		return fmt.Errorf("%w: it has version %d and this program reads up to %d: use a newer program", ErrFormat, format, formatVersion)
	}
	return nil
}

// release closes the file. When bbolt is stuck, closing it would wait for ever:
// then only the file is closed, and its map stays until the process ends.
func release(db *bbolt.DB, f *os.File, path string, stuck bool) {
	if stuck {
		unlock(f)
	} else {
		_ = guard(path, db.Close)
	}
	_ = f.Close() // an error if bbolt has closed it
}

func getNumber(b *bbolt.Bucket, key string) (n uint64, ok bool, err error) {
	v := b.Get([]byte(key))
	if v == nil {
		return 0, false, nil
	}
	head, _, err := unseal(metaBucket, []byte(key), v)
	if err != nil {
		return 0, false, fmt.Errorf("number %q: %w", key, err)
	}
	return binary.BigEndian.Uint64(head), true, nil
}

func putNumber(b *bbolt.Bucket, key string, n uint64) error {
	return b.Put([]byte(key), seal(metaBucket, []byte(key), 0, n))
}

// syncDir makes a new file's name durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there, and need not be
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync the folder %s: %w", dir, err), d.Close())
	}
	return d.Close()
}
