package bolt

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// filler fills a disk with entities until a commit fails.
type filler struct {
	s     *Store
	lives []uint64
}

func fillerName(i int) persist.Key { return rooms(fmt.Sprintf("r%05d", i)) }
func fillerState(i int) string     { return strings.Repeat(fmt.Sprintf("%05d", i), 700) }

// fill commits until there is no room, and requires that this is said as it is.
func (f *filler) fill() error {
	for range 10_000 {
		i := len(f.lives)
		o, err := f.s.Commit(ctx, []persist.Unit{create(fillerName(i), fillerState(i))})
		if err == nil && o[0].Err == nil {
			f.lives = append(f.lives, o[0].Life)
			continue
		}
		if !errors.Is(err, persist.ErrUnavailable) || errors.Is(err, persist.ErrUnknown) {
			return fmt.Errorf("commit %d without room: %w, %v", i, err, o)
		}
		return nil
	}
	return errors.New("the disk is never full")
}

// whole requires that everything that was acknowledged is there, and no more.
func (f *filler) whole() error {
	for i, life := range f.lives {
		r, err := f.s.Load(ctx, fillerName(i))
		if err != nil || r.Life != life || string(r.State) != fillerState(i) {
			return fmt.Errorf("entity %d of %d: life %d, %d bytes: %w", i, len(f.lives), r.Life, len(r.State), err)
		}
	}
	if _, err := f.s.Load(ctx, fillerName(len(f.lives))); !errors.Is(err, persist.ErrNotFound) {
		return fmt.Errorf("what was refused: %w", err)
	}
	log, err := f.s.Log(ctx, 0, 1<<20)
	if err == nil && len(log) != len(f.lives) {
		err = fmt.Errorf("%d changes of %d entities", len(log), len(f.lives))
	}
	return err
}

// play fills the disk, looks, tries again, makes room, goes on and opens anew.
// full says that the disk has room for nothing else either: then that is seen
// without a commit.
func (f *filler) play(full bool, makeRoom func() error) error {
	if err := f.fill(); err != nil {
		return err
	}
	if len(f.lives) < 5 {
		return fmt.Errorf("only %d commits fit", len(f.lives))
	}
	for range 3 { // the committer does this: it reopens, and tries the next group
		err := f.s.Reopen(ctx)
		if full != (errors.Is(err, persist.ErrUnavailable) && persist.IsNoRoom(err)) || !full && err != nil {
			return fmt.Errorf("reopened without room: %w", err)
		}
		if err := f.whole(); err != nil {
			return err
		}
		if err := f.fill(); err != nil {
			return err
		}
	}
	if err := f.again(); err != nil {
		return err
	}
	if err := f.s.Backup(ctx, io.Discard); full && (!errors.Is(err, persist.ErrUnavailable) || !errors.Is(err, persist.ErrNoRoom)) {
		return fmt.Errorf("backed up without room: %w", err)
	}
	if err := f.whole(); err != nil {
		return err
	}
	before := len(f.lives)
	if err := makeRoom(); err != nil {
		return err
	}
	if err := f.s.Reopen(ctx); err != nil {
		return fmt.Errorf("there is room: %w", err)
	}
	if left, err := filepath.Glob(f.s.path + ".*"); err != nil || left != nil {
		return fmt.Errorf("left beside the file: %v, %w", left, err)
	}
	for range 25 {
		i := len(f.lives)
		o, err := f.s.Commit(ctx, []persist.Unit{create(fillerName(i), fillerState(i))})
		if err != nil || o[0].Err != nil {
			return fmt.Errorf("commit %d, %d after there is room: %w, %v", i, i-before, err, o)
		}
		f.lives = append(f.lives, o[0].Life)
	}
	if err := f.whole(); err != nil {
		return err
	}
	if err := f.s.Close(); err != nil {
		return err
	}
	s, err := Open(f.s.path, Config{})
	if err != nil {
		return err
	}
	f.s = s
	fmt.Println("whole:", len(f.lives))
	return errors.Join(f.whole(), s.Close())
}

// again opens the file anew in each way, and has it read.
func (f *filler) again() error {
	for _, cfg := range []Config{{}, {NoVerify: true}, {VerifyFirst: true}} {
		err := f.s.Close()
		if err != nil {
			return err
		}
		if f.s, err = Open(f.s.path, cfg); err != nil {
			return fmt.Errorf("open without room: %w", err)
		}
		if err := f.whole(); err != nil {
			return err
		}
		if err := f.fill(); err != nil {
			return err
		}
	}
	return nil
}

// playSizeLimit is the child of the first test: its files may not grow.
func playSizeLimit(s *Store) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	small := limit
	small.Cur = 300_000 // so that the last pages are refused, in the midst of one
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	f := filler{s: s}
	if err := f.play(false, func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit) }); err != nil {
		return err
	}
	small.Cur = uint64(2 * os.Getpagesize()) // the meta pages can be written, and no others
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	for _, cfg := range []Config{{NoVerify: true}, {VerifyFirst: true}} {
		var err error
		if f.s, err = Open(s.path, cfg); err != nil {
			return fmt.Errorf("open where the first commit finds no room: %w", err)
		}
		if f.s.wanted == 0 {
			return errors.New("the first commit found room")
		}
		if err := errors.Join(f.whole(), f.fill(), f.whole(), f.s.Close()); err != nil {
			return err
		}
	}
	return nil
}

// playSmallDisk is the child of the second test, in a namespace where it may
// mount a disk of a megabyte.
func playSmallDisk(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		fmt.Println("no disk:", err)
		return nil
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 400<<10), 0o600); err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "test.db"), Config{})
	if err != nil {
		return err
	}
	f := filler{s: s}
	return f.play(true, func() error { return os.Remove(ballast) })
}

func TestNoRoomFailsCommitsAloneAndTheStoreGoesOn(t *testing.T) {
	t.Run("a file that may not grow", func(t *testing.T) {
		out, err := process(t, "sizelimit", filepath.Join(t.TempDir(), "test.db")).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "whole:")
	})
	t.Run("a full disk", func(t *testing.T) {
		cmd := process(t, "smalldisk", t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.Contains(string(out), "no disk") {
			t.Skipf("a small disk cannot be mounted here: %v %s", err, out)
		}
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "whole:")
	})
}
