package logtest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"github.com/twinsrv/twinsrv/persist/commitlog"
)

var (
	// ErrCrashed is what a disk fails with after Crash or Kill.
	ErrCrashed = errors.New("the process that had this disk has died")
	// ErrFull is what a write fails with that would take the disk over its limit.
	ErrFull = fmt.Errorf("logtest: %w", syscall.ENOSPC)
)

// Op is what is done to a disk.
type Op string

// The operations that Disk.Fail is asked about.
const (
	Open  Op = "open"  // of a file; it may make it
	Write Op = "write" // a WriteAt
	Sync  Op = "sync"  // of a file
	Read  Op = "read"  // a ReadAt, or the size
	Names Op = "names" // of the whole disk; the name is empty
)

// Disk is a commitlog.Disk in memory of which only what was synced survives a
// crash. It is safe for concurrent use, and does the same for the same calls and
// the same random numbers.
type Disk struct {
	// Fail is asked before each operation; if it returns an error, the operation
	// fails with it. A write is then done in part, by whole sectors, and a sync
	// keeps some of what it should, as Rand has it. nil fails nothing. It may call the disk.
	Fail func(op Op, name string) error
	// Rand decides how much a failed operation does. nil is nothing.
	Rand *rand.Rand
	// Full is the most bytes that the files may have together; a write that
	// makes them longer does what fits and fails with ErrFull. 0 has no limit.
	Full int64

	mu    sync.Mutex
	dead  bool
	files map[string]*content
}

var _ commitlog.Disk = (*Disk)(nil)

// New returns an empty disk.
func New() *Disk { return &Disk{files: map[string]*content{}} }

// ask is called before an operation, without the lock.
func (d *Disk) ask(op Op, name string) error {
	d.mu.Lock()
	dead, fail := d.dead, d.Fail
	d.mu.Unlock()
	if dead {
		return fmt.Errorf("%s %s: %w", op, name, ErrCrashed)
	}
	if fail == nil {
		return nil
	}
	if err := fail(op, name); err != nil {
		return fmt.Errorf("%s %s: %w", op, name, err)
	}
	return nil
}

// lock takes the lock of a disk whose process lives.
func (d *Disk) lock(op Op, name string) error {
	d.mu.Lock()
	if d.dead {
		d.mu.Unlock()
		return fmt.Errorf("%s %s: %w", op, name, ErrCrashed)
	}
	return nil
}

// Open implements commitlog.Disk.
func (d *Disk) Open(name string) (commitlog.File, error) {
	failed := d.ask(Open, name)
	if err := d.lock(Open, name); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if failed != nil {
		if d.Rand != nil && d.Rand.IntN(2) == 0 {
			d.file(name)
		}
		return nil, failed
	}
	d.file(name)
	return &file{disk: d, name: name}, nil
}

// file returns a file, which it makes if it is missing. The lock is held.
func (d *Disk) file(name string) *content {
	c := d.files[name]
	if c == nil {
		c = newContent()
		d.files[name] = c
	}
	return c
}

// Names implements commitlog.Disk.
func (d *Disk) Names() ([]string, error) {
	if err := d.ask(Names, ""); err != nil {
		return nil, err
	}
	if err := d.lock(Names, ""); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files)), nil
}

// room is how many bytes the files may still grow by. The lock is held.
func (d *Disk) room() int64 {
	if d.Full == 0 {
		return 1 << 62
	}
	room := d.Full
	for _, c := range d.files {
		room -= int64(len(c.shown))
	}
	return max(room, 0)
}

// file is a file that is open.
type file struct {
	disk *Disk
	name string
}

var _ commitlog.File = (*file)(nil)

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	if err := f.disk.ask(Read, f.name); err != nil {
		return 0, err
	}
	if err := f.disk.lock(Read, f.name); err != nil {
		return 0, err
	}
	defer f.disk.mu.Unlock()
	shown := f.disk.file(f.name).shown
	if at >= int64(len(shown)) {
		return 0, io.EOF
	}
	n := copy(b, shown[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Size() (int64, error) {
	if err := f.disk.ask(Read, f.name); err != nil {
		return 0, err
	}
	if err := f.disk.lock(Read, f.name); err != nil {
		return 0, err
	}
	defer f.disk.mu.Unlock()
	return int64(len(f.disk.file(f.name).shown)), nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	d := f.disk
	failed := d.ask(Write, f.name)
	if err := d.lock(Write, f.name); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	c, n := d.file(f.name), len(b)
	if failed != nil {
		if n = 0; d.Rand != nil {
			n = partOf(d.Rand, at, len(b))
		}
	}
	if most := int64(len(c.shown)) + d.room() - at; int64(n) > most {
		n = int(max(most, 0))
		if failed == nil {
			failed = fmt.Errorf("%s %s: %w", Write, f.name, ErrFull)
		}
	}
	c.write(b[:n], at)
	return n, failed
}

// partOf is how many of n bytes a write does that fails: whole sectors.
func partOf(rng *rand.Rand, at int64, n int) int {
	first, last := int(at/Sector), int((at+int64(n)+Sector-1)/Sector)
	until := (first + rng.IntN(last-first+1)) * Sector
	return max(0, min(until-int(at), n))
}

func (f *file) Sync() error {
	failed := f.disk.ask(Sync, f.name)
	if err := f.disk.lock(Sync, f.name); err != nil {
		return err
	}
	defer f.disk.mu.Unlock()
	if c := f.disk.file(f.name); failed != nil {
		c.syncFails(f.disk.Rand)
	} else {
		c.sync()
	}
	return failed
}

func (f *file) Close() error { return nil }
